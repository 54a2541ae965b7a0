//! `assay hosts facts`: what hosts are and, if asked for, how fast.

use std::collections::BTreeMap;

use comfy_table::{ContentArrangement, Table, presets};

use super::args::{Global, HostsFacts};
use super::error::{Code, Failure};
use super::examine::{self, Examined};
use super::hosts::{Meant, meant};
use super::hosts_check::{Leases, say_unreachable, split};
use super::session::block_on;
use super::{output, text};
use crate::artifacts::HostRecord;
use crate::host::{Calibration, Facts, Measure, outliers};

pub(super) fn facts(global: &Global, args: &HostsFacts) -> Result<Code, Failure> {
    let meant = meant(&args.targets, &args.changes)?;
    block_on(async {
        let _leases = match args.calibrate {
            true => Leases::take(&meant.hosts, "hosts facts").await?,
            false => Leases::default(),
        };
        let found = examine::examine(&meant.hosts).await;
        let (examined, unreachable) = split(found);
        let calibrations = match args.calibrate {
            true => calibrated(&meant, &examined).await?,
            false => BTreeMap::new(),
        };
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

/// The calibrations of the hosts that answered.
async fn calibrated(
    meant: &Meant,
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
