//! The same on many hosts at once.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Does every work, at most `limit` at once. `seen` sees each outcome when it is there, with the work's number, so that a
/// slow or dead host keeps nobody waiting; all are returned in the order of the works.
///
/// # Panics
/// When one of them does.
pub async fn fan_out<T: Send + 'static>(
    works: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
    limit: usize,
    mut seen: impl FnMut(usize, &T),
) -> Vec<T> {
    let places = Arc::new(Semaphore::new(limit.max(1)));
    let mut set = JoinSet::new();
    for (number, work) in works.into_iter().enumerate() {
        let places = Arc::clone(&places);
        set.spawn(async move {
            let place = places.acquire().await;
            let outcome = work.await;
            drop(place);
            (number, outcome)
        });
    }
    let mut outcomes: Vec<Option<T>> = (0..set.len()).map(|_| None).collect();
    while let Some(joined) = set.join_next().await {
        match joined {
            Ok((number, outcome)) => {
                seen(number, &outcome);
                outcomes[number] = Some(outcome);
            }
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    let all: Vec<T> = outcomes.into_iter().flatten().collect();
    all
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_limit_are_at_work_and_all_outcomes_come_in_order() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let works = (0..20_u64).map(|n| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                sleep(Duration::from_secs(20 - n)).await;
                now.fetch_sub(1, SeqCst);
                n
            }
        });
        let outcomes = fan_out(works, 6, |_, _| {}).await;
        assert_eq!(outcomes, (0..20).collect::<Vec<_>>());
        assert_eq!(most.load(SeqCst), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_one_keeps_nobody_waiting() {
        let start = Instant::now();
        let works = [60, 1, 2].map(|s| sleep(Duration::from_secs(s)));
        let mut seen = Vec::new();
        fan_out(works, 10, |number, ()| {
            seen.push((number, start.elapsed().as_secs()));
        })
        .await;
        assert_eq!(seen, [(1, 1), (2, 2), (0, 60)]);
    }
}
