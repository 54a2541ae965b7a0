//! What no pack can say of TiDB: that leaders stay where they are, and that compaction is idle. Both are seen only by
//! comparing several looks.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::{Cluster, DatabaseError, Member};
use crate::database::Hosts;
use crate::host::Bounds;
use crate::probe::{self, Metrics, Sample};
use crate::spec::Settle;

/// The system that this is for.
pub(super) const SYSTEM: &str = "tidb";
/// So many looks in a row must find the same.
const WINDOWS: usize = 3;
/// Leaders of two stores that differ by less count as balanced; PD leaves such gaps.
const GAP: f64 = 10.0;
/// Or by this share of the most that a store has.
const SHARE: f64 = 0.05;
/// Bytes that may wait for compaction: levels keep a residue.
const PENDING: f64 = 256.0 * 1024.0 * 1024.0;

/// Metrics of TiKV that stand still when compaction is idle; the same in all versions.
const FLOW: [&str; 2] = [
    "tikv_engine_compaction_flow_bytes",
    "tikv_engine_event_total",
];
const WAITING: &str = "tikv_engine_pending_compaction_bytes";
const IMMUTABLE: &str = "tikv_engine_num_immutable_mem_table";

/// What one look found.
#[derive(Clone, Debug, PartialEq)]
struct Look {
    /// Store -> leaders.
    leaders: BTreeMap<String, u64>,
    /// Instance and counters that only move while it compacts.
    flow: BTreeMap<String, f64>,
    /// What is not idle by itself.
    busy: Option<String>,
}

/// Waits until leaders are balanced and stay, and compaction is idle. Returns what was not so at the limit.
pub(super) async fn until_quiet<'b>(
    cluster: &Cluster,
    hosts: &Hosts,
    settle: &Settle,
    left: &(dyn Fn() -> Bounds<'b> + Sync),
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Option<String>, DatabaseError> {
    let is_store = |m: &Member| m.instance.role == "pd" || m.instance.role == "tikv";
    // Of a cluster that is there already only the entries are known.
    if !cluster.members.iter().any(is_store) {
        return Ok(None);
    }
    let mut same: Vec<Look> = Vec::new();
    loop {
        let found = look(cluster, hosts, left()).await?;
        let moved = same.last().and_then(|last| moved(last, &found));
        let why = found.busy.clone().or_else(|| imbalance(&found)).or(moved);
        match &why {
            Some(why) => {
                say(&format!("until {why}"));
                same = vec![found];
            }
            None => {
                say("until leaders stay and compaction is idle");
                same.push(found);
            }
        }
        if same.len() > WINDOWS && why.is_none() {
            return Ok(None);
        }
        let bounds = left();
        if bounds.limit < settle.window.0 {
            let why = why.unwrap_or_else(|| "looks were too few".to_owned());
            return Ok(Some(format!("waited until {why}")));
        }
        // The next look at something that changes by itself.
        tokio::select! {
            () = bounds.stop.cancelled() => {}
            () = tokio::time::sleep(settle.window.0) => {}
        }
    }
}

/// Asks PD for leaders and every TiKV for its metrics.
async fn look(cluster: &Cluster, hosts: &Hosts, bounds: Bounds<'_>) -> Result<Look, DatabaseError> {
    let of_role = |role: &'static str| {
        let members = cluster.members.iter();
        members.filter(move |m| m.instance.role == role)
    };
    let mut found = Look {
        leaders: BTreeMap::new(),
        flow: BTreeMap::new(),
        busy: None,
    };
    if let Some(pd) = of_role("pd").next() {
        found.leaders = leaders(cluster, hosts, pd, bounds).await?;
    }
    for tikv in of_role("tikv") {
        let samples = metrics(cluster, hosts, tikv, bounds).await?;
        let id = &tikv.instance.id;
        for sample in &samples {
            let value = sample.value;
            if sample.name == WAITING && value > PENDING {
                found.busy = Some(format!("compaction of `{id}` is idle: {value} bytes wait"));
            }
            if sample.name == IMMUTABLE && value > 0.0 {
                found.busy = Some(format!("`{id}` has flushed its memtables"));
            }
            if FLOW.contains(&&*sample.name) {
                let labels = format!("{:?}", sample.labels);
                found
                    .flow
                    .insert(format!("{id} {} {labels}", sample.name), value);
            }
        }
    }
    Ok(found)
}

async fn leaders(
    cluster: &Cluster,
    hosts: &Hosts,
    pd: &Member,
    bounds: Bounds<'_>,
) -> Result<BTreeMap<String, u64>, DatabaseError> {
    let url = url(cluster, pd, "client_port", "/pd/api/v1/stores");
    let host = &*hosts[&pd.instance.host];
    let answer = probe::http(host, &cluster.get(pd, url), bounds.stop).await?;
    let stores: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let stores = stores["stores"].as_array().cloned().unwrap_or_default();
    let leaders = stores.iter().map(|store| {
        let address = store["store"]["address"].as_str().unwrap_or_default();
        // PD leaves out what is zero.
        let count = store["status"]["leader_count"].as_u64().unwrap_or(0);
        (address.to_owned(), count)
    });
    Ok(leaders.collect())
}

async fn metrics(
    cluster: &Cluster,
    hosts: &Hosts,
    tikv: &Member,
    bounds: Bounds<'_>,
) -> Result<Vec<Sample>, DatabaseError> {
    let url = url(cluster, tikv, "status_port", "/metrics");
    let names = FLOW.into_iter().chain([WAITING, IMMUTABLE]);
    let request = Metrics {
        url: url.clone(),
        names: names.map(str::to_owned).collect(),
        tls: cluster.get(tikv, url).tls,
        timeout: crate::units::Duration(Duration::from_secs(10)),
    };
    let host = &*hosts[&tikv.instance.host];
    Ok(probe::metrics(host, &request, bounds.stop).await?)
}

fn url(cluster: &Cluster, member: &Member, port: &str, path: &str) -> String {
    let number = member.instance.ports.get(port).copied().unwrap_or(0);
    probe::url(&member.instance.address, number, path, cluster.scene.tls)
}

/// The instance that leads PD, if anybody says so.
pub(super) async fn leader(cluster: &Cluster, hosts: &Hosts, bounds: Bounds<'_>) -> Option<String> {
    let pds = || cluster.members.iter().filter(|m| m.instance.role == "pd");
    for pd in pds().filter(|_| cluster.pack.name == SYSTEM) {
        let url = url(cluster, pd, "client_port", "/pd/api/v1/leader");
        let host = &*hosts[&pd.instance.host];
        let Ok(answer) = probe::http(host, &cluster.get(pd, url), bounds.stop).await else {
            continue;
        };
        let said: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let name = said["name"].as_str()?;
        let leads = |m: &&Member| m.context["name"].as_str() == Some(name);
        return pds().find(leads).map(|m| m.instance.id.clone());
    }
    None
}

/// How leaders are not balanced.
fn imbalance(look: &Look) -> Option<String> {
    let (store, most) = look.leaders.iter().max_by_key(|(_, n)| **n)?;
    let least = look.leaders.values().min()?;
    let gap = (most - least) as f64;
    let allowed = GAP.max(*most as f64 * SHARE);
    (gap > allowed)
        .then(|| format!("leaders are balanced: `{store}` has {most}, another store {least}"))
}

/// What moved between two looks.
fn moved(before: &Look, now: &Look) -> Option<String> {
    if before.leaders != now.leaders {
        return Some("leaders stay where they are".to_owned());
    }
    let changed = now.flow.iter().find(|(key, value)| {
        before
            .flow
            .get(*key)
            .is_none_or(|known| (known - **value).abs() > 0.0)
    });
    let (key, _) = changed.filter(|_| !before.flow.is_empty())?;
    let instance = key.split(' ').next().unwrap_or_default();
    Some(format!("compaction of `{instance}` is idle"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(leaders: &[u64], flow: f64) -> Look {
        let stores = leaders.iter().enumerate();
        Look {
            leaders: stores.map(|(i, n)| (format!("kv{i}:20160"), *n)).collect(),
            flow: BTreeMap::from([("tikv-20160@kv1 flow".to_owned(), flow)]),
            busy: None,
        }
    }

    #[test]
    fn a_gap_of_ten_leaders_or_a_few_percent_is_balanced() {
        assert_eq!(imbalance(&look(&[30, 20, 25], 0.0)), None);
        assert_eq!(imbalance(&look(&[1000, 960, 980], 0.0)), None);
        let found = imbalance(&look(&[40, 20, 25], 0.0)).unwrap();
        assert!(
            found.contains("`kv0:20160` has 40, another store 20"),
            "{found}"
        );
    }

    #[test]
    fn what_moves_between_two_looks_is_named() {
        let before = look(&[10, 10], 5.0);
        assert_eq!(moved(&before, &before), None);
        let leaders = moved(&before, &look(&[9, 11], 5.0)).unwrap();
        assert_eq!(leaders, "leaders stay where they are");
        let flow = moved(&before, &look(&[10, 10], 6.0)).unwrap();
        assert_eq!(flow, "compaction of `tikv-20160@kv1` is idle");
    }
}
