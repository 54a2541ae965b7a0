//! Waiting until something is true: it is looked at again and again, up to a limit.

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Check, ProbeError};
use crate::units::Duration;

/// The shortest time from one look to the next.
const SHORTEST: std::time::Duration = std::time::Duration::from_millis(10);

/// Something to wait for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// What has to be true.
    pub what: Check,
    /// The longest to wait.
    pub limit: Duration,
    /// From one look to the next.
    #[serde(default = "pace")]
    pub pace: Duration,
}

/// What is told of waiting: why it goes on, whenever that is another reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// What was found instead: `/0/health is false, wanted true`, `connection refused`.
    pub reason: String,
}

/// What was waited for is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// How long it took.
    pub after: Duration,
}

fn pace() -> Duration {
    Duration(std::time::Duration::from_millis(200))
}

impl Until {
    /// Waits for `what` at the usual pace.
    #[must_use]
    pub fn new(what: Check, limit: Duration) -> Self {
        Self {
            what,
            limit,
            pace: pace(),
        }
    }
}

/// Waits.
pub(super) async fn wait(
    request: &Until,
    tell: &mut dyn FnMut(&Waiting),
) -> Result<Held, ProbeError> {
    let look = async || request.what.fault().await;
    let waited = poll(request.limit, request.pace, look, tell).await?;
    waited.map_err(|found| ProbeError::Unmet {
        wanted: request.what.to_string(),
        limit: request.limit,
        found,
    })
}

/// Looks until nothing is at fault; at the limit, the last fault. A look that the limit cuts off has found nothing new.
async fn poll(
    limit: Duration,
    pace: Duration,
    look: impl AsyncFn() -> Result<Option<String>, ProbeError>,
    tell: &mut dyn FnMut(&Waiting),
) -> Result<Result<Held, String>, ProbeError> {
    let start = Instant::now();
    let deadline = start + limit.0;
    let mut last: Option<Waiting> = None;
    loop {
        let began = Instant::now();
        let fault = match tokio::time::timeout_at(deadline, look()).await {
            Ok(found) => found?,
            Err(_) => break,
        };
        let Some(reason) = fault else {
            return Ok(Ok(Held {
                after: Duration(start.elapsed()),
            }));
        };
        if last.as_ref().is_none_or(|last| last.reason != reason) {
            tell(last.insert(Waiting { reason }));
        }
        let next = began + pace.0.max(SHORTEST);
        if next >= deadline {
            tokio::time::sleep_until(deadline).await;
            break;
        }
        tokio::time::sleep_until(next).await;
    }
    Ok(Err(last.map_or_else(
        || format!("no answer within {limit}"),
        |last| last.reason,
    )))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    const PACE: Duration = Duration(std::time::Duration::from_millis(200));

    /// Polls something whose faults are these, the last of them for ever: what came of it, what was told, how many looks.
    async fn polled(
        limit: u64,
        faults: &[Option<&str>],
    ) -> (Result<Held, String>, Vec<String>, usize) {
        let looks = Cell::new(0);
        let look = async || {
            let fault = faults[looks.get().min(faults.len() - 1)];
            looks.set(looks.get() + 1);
            Ok(fault.map(str::to_owned))
        };
        let told = RefCell::new(Vec::new());
        let mut tell = |waiting: &Waiting| told.borrow_mut().push(waiting.reason.clone());
        let outcome = poll(Duration::from_secs(limit), PACE, look, &mut tell).await;
        (outcome.unwrap(), told.take(), looks.get())
    }

    #[tokio::test(start_paused = true)]
    async fn it_looks_until_nothing_is_at_fault_and_tells_of_each_new_reason() {
        let faults = [Some("refused"), Some("refused"), Some("starting"), None];
        let (outcome, told, looks) = polled(60, &faults).await;
        assert_eq!(told, ["refused", "starting"]);
        assert_eq!(looks, 4);
        let after = outcome.unwrap().after.as_secs_f64();
        assert!((0.6..0.62).contains(&after), "{after}");
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_limit_and_not_before_the_last_reason_is_told() {
        let start = Instant::now();
        let (outcome, _, looks) = polled(1, &[Some("refused"), Some("starting")]).await;
        assert_eq!(outcome.unwrap_err(), "starting");
        assert_eq!(start.elapsed().as_millis() / 10, 100);
        assert_eq!(looks, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_never_ends_is_cut_off_at_the_limit() {
        let look = async || std::future::pending().await;
        let outcome = poll(Duration::from_secs(2), PACE, look, &mut |_| {}).await;
        assert_eq!(outcome.unwrap().unwrap_err(), "no answer within 2s");
    }

    #[tokio::test(start_paused = true)]
    async fn what_can_never_be_true_is_not_waited_for() {
        let start = Instant::now();
        let look = async || Err(ProbeError::Impossible("never".into()));
        let outcome = poll(Duration::from_secs(2), PACE, look, &mut |_| {}).await;
        assert!(matches!(outcome, Err(ProbeError::Impossible(_))));
        assert_eq!(start.elapsed().as_millis(), 0);
    }
}
