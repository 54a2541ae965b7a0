//! Closed-loop cells whose latencies leave part of the threads' time out: threads that waited are in no number.

use super::notes::named;
use crate::artifacts::Status;
use crate::report::rows::{Results, Round, Rows};

/// Less than this part of the threads' time in the latencies is told.
const ACCOUNTED: f64 = 0.9;

/// A sentence that names the cells; `None` when there are none.
pub(super) fn said(rows: &Rows) -> Option<String> {
    let mut found = Vec::new();
    for (_, group) in rows.groups() {
        for cell in group.cells.iter().filter(|c| c.rate.is_none()) {
            let worst = cell.results.iter().filter_map(|r| Some((r, worst(r)?)));
            found.extend(worst.map(|(result, worst)| {
                let why = why(worst, cell.threads);
                format!("{} on {} ({why})", cell.id, result.variant)
            }));
        }
    }
    (!found.is_empty()).then(|| {
        format!(
            "Threads waited outside of the numbers, by starvation, locks or failures: {}. A wait through the whole window is one \
             operation in the percentiles and none in the throughput: both tell mostly of the threads that got through.",
            named(&found)
        )
    })
}

fn why((accounted, idle): (f64, u32), threads: u32) -> String {
    let mut parts = Vec::new();
    if idle > 0 {
        parts.push(format!(
            "{idle} of {threads} threads ended nothing in a window"
        ));
    }
    if accounted < ACCOUNTED {
        parts.push(format!(
            "latencies account for {:.0} % of their time",
            accounted * 100.0
        ));
    }
    parts.join(", ")
}

/// The least part accounted for and the most idle threads of the good rounds, if one of them is too bad.
fn worst(result: &Results) -> Option<(f64, u32)> {
    let good = result
        .rounds
        .iter()
        .filter(|r| r.status == Some(Status::Ok));
    let numbers = |r: &Round| Some((r.accounted?, r.idle_threads.unwrap_or(0)));
    let (accounted, idle) = good
        .filter_map(numbers)
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    (accounted < ACCOUNTED || idle > 0).then_some((accounted, idle))
}
