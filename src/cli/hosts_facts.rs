//! `assay hosts facts`: what hosts are and, if asked for, how fast.

use std::collections::BTreeMap;

use comfy_table::{ContentArrangement, Table, presets};

use super::args::{Global, HostsFacts};
use super::error::{Code, Failure};
use super::examine::{self, Examined};
use super::hosts::{Reached, meant};
use super::hosts_check::{Leases, say_unreachable, split};
use super::reach::close;
use super::session::block_on;
use super::{output, text};
use crate::artifacts::HostRecord;
use crate::host::{AgentError, Calibration, Facts, Measure, outliers};

pub(super) fn facts(global: &Global, args: &HostsFacts) -> Result<Code, Failure> {
    let meant = meant(&args.which)?;
    block_on(async {
        let reached = meant.reach().await?;
        let found = found(&reached, args.calibrate).await;
        close(&reached.hosts).await;
        let (examined, calibrations) = found?;
        let (examined, mut unreachable) = split(examined);
        unreachable.extend(reached.unreachable);
        let records = records(examined, &calibrations);
        if global.json {
            output::json(&serde_json::json!({ "hosts": records, "unreachable": unreachable }))?;
        } else {
            for (name, record) in &records {
                output::line(output::clean(&page(name, record, &calibrations)))?;
            }
            say_unreachable(&unreachable);
        }
        Ok(match unreachable.is_empty() {
            true => Code::Fine,
            false => Code::Host,
        })
    })
}

type Found = (
    BTreeMap<String, Result<Examined, AgentError>>,
    BTreeMap<String, Calibration>,
);

/// What the hosts are and, if asked for, how fast; they are held while they are measured.
async fn found(reached: &Reached, calibrate: bool) -> Result<Found, Failure> {
    if !calibrate {
        return Ok((examine::examine(&reached.hosts).await, BTreeMap::new()));
    }
    let _leases = Leases::take(&reached.hosts, "hosts facts").await?;
    let found = examine::examine(&reached.hosts).await;
    let good = found
        .iter()
        .filter_map(|(name, e)| Some((name.clone(), e.as_ref().ok()?.clone())));
    let calibrations = calibrated(reached, &good.collect()).await?;
    Ok((found, calibrations))
}

/// The calibrations of the hosts that answered.
async fn calibrated(
    meant: &Reached,
    examined: &BTreeMap<String, Examined>,
) -> Result<BTreeMap<String, Calibration>, Failure> {
    let mut hosts = meant.hosts.clone();
    hosts.retain(|name, _| examined.contains_key(name));
    let facts: BTreeMap<String, Facts> = examined
        .iter()
        .map(|(name, host)| (name.clone(), host.facts.clone()))
        .collect();
    examine::all(examine::calibrate(&hosts, &facts, &meant.addresses).await)
}

fn records(
    examined: BTreeMap<String, Examined>,
    calibrations: &BTreeMap<String, Calibration>,
) -> BTreeMap<String, HostRecord> {
    let record = |(name, host): (String, Examined)| {
        let record = HostRecord {
            facts: host.facts,
            clock: Some(host.clock),
            calibration: calibrations.get(&name).cloned(),
            preflight: Vec::new(),
        };
        (name, record)
    };
    examined.into_iter().map(record).collect()
}

/// A host's facts as a table with its name above.
fn page(name: &str, record: &HostRecord, calibrations: &BTreeMap<String, Calibration>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(width) = text::width() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    for (label, value) in record.facts.labelled() {
        table.add_row([label, &value]);
    }
    if let Some(clock) = record.clock {
        let doubt = clock.round_trip_ms / 2.0;
        let offset = format!("{:+.1} ms ± {doubt:.1} ms", clock.offset_ms);
        table.add_row(["Clock offset", &offset]);
    }
    let slow = outliers(calibrations);
    for measure in Measure::ALL {
        let value = record.calibration.as_ref().and_then(|c| measure.of(c));
        let mark = slow.iter().find(|o| o.host == name && o.measure == measure);
        let mark = mark.map_or(String::new(), |o| {
            format!(
                " (slow: the other hosts' median is {:.3} {})",
                o.median,
                measure.unit()
            )
        });
        if let Some(value) = value {
            table.add_row([
                measure.label(),
                &format!("{value:.3} {}{mark}", measure.unit()),
            ]);
        }
    }
    format!("{name}\n{}\n", table.trim_fmt())
}
