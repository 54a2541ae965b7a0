//! The same for many hosts, a few of them at once.

use std::pin::Pin;
use std::task::Poll;

use tokio::sync::Semaphore;

/// Does `work` for each of `items`, at most `at_once` of them at a time (at least one). The results stand in the order of the
/// items; one that fails hinders none of the others.
pub async fn to_all<'a, I, T, F>(
    items: impl IntoIterator<Item = I>,
    at_once: usize,
    work: impl Fn(I) -> F,
) -> Vec<T>
where
    F: Future<Output = T> + Send + 'a,
{
    let places = Semaphore::new(at_once.max(1));
    let mut running: Vec<_> = items
        .into_iter()
        .map(|item| {
            let (places, job) = (&places, work(item));
            let job = async move {
                let _place = places.acquire().await;
                job.await
            };
            (
                Box::pin(job) as Pin<Box<dyn Future<Output = T> + Send + '_>>,
                None,
            )
        })
        .collect();
    std::future::poll_fn(|context| {
        let mut is_ready = true;
        for (job, result) in running.iter_mut().filter(|(_, result)| result.is_none()) {
            match job.as_mut().poll(context) {
                Poll::Ready(value) => *result = Some(value),
                Poll::Pending => is_ready = false,
            }
        }
        match is_ready {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    let results = running.into_iter().filter_map(|(_, result)| result);
    results.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn results_stand_in_order_and_no_more_run_at_once_than_allowed() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let results = to_all(0..10_u64, 3, |n| {
            let (running, most) = (&running, &most);
            async move {
                let now = running.fetch_add(1, Ordering::Relaxed) + 1;
                most.fetch_max(now, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(10 - n)).await;
                running.fetch_sub(1, Ordering::Relaxed);
                n * n
            }
        })
        .await;
        assert_eq!(results, [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]);
        assert_eq!(most.into_inner(), 3);
    }
}
