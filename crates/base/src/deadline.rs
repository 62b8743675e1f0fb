//! Deadlines of requests, and long computations within them.
//!
//! Invariant: a computation of a request that may take long either runs in [`long`] or calls [`task::give_way`], so
//! that other requests are served meanwhile and the timeout of its own request holds.

mod turns;

use std::cell::Cell;
use std::future::Future;

use tokio::time::Instant;

pub use self::turns::beside_others;
use crate::{clock, limits, task};

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Runs a request until it ends, or until it is dropped at `deadline`, see [`long`].
pub async fn within<T>(deadline: Instant, request: impl Future<Output = T>) -> Result<T, tokio::time::error::Elapsed> {
    tokio::time::timeout_at(deadline, DEADLINE.scope(deadline, request)).await
}

/// The deadline of the running request.
fn current() -> Option<Instant> {
    DEADLINE.try_with(|deadline| *deadline).ok()
}

/// Whether the deadline of the running request has passed.
fn is_over() -> bool {
    current().is_some_and(|deadline| clock::instant() >= deadline)
}

thread_local! {
    /// When a computation on this thread last gave way.
    static GAVE_WAY: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Whether a computation should give way again. If it did so too often, giving way would take longer than the
/// computation.
fn is_due(last: Option<Instant>, now: Instant) -> bool {
    last.is_none_or(|last| now.saturating_duration_since(last) >= limits::GIVE_WAY_INTERVAL)
}

/// The interrupt of computations, which they call about once per millisecond, or more often where work is hard to estimate.
fn interrupt() -> bool {
    if is_due(GAVE_WAY.get(), clock::instant()) {
        task::give_way();
        GAVE_WAY.set(Some(clock::instant()));
    }
    is_over()
}

/// Runs a computation that counts its work (`machinery::work`): evaluations, matches, patches. At the deadline of the
/// request it is interrupted. The returned future then never completes, and the timeout of the request responds.
pub async fn long<T>(work: impl FnOnce() -> T) -> T {
    let done = machinery::work::interruptible(interrupt, work);
    if is_over() {
        std::future::pending::<()>().await;
    }
    done
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use cel::{Environment, Program};

    use super::*;

    fn program() -> Program {
        let env = Environment::kubernetes(35);
        let text = "lists.range(1000000).all(x, lists.range(1000000).all(y, x + y > -1))";
        Program::new(&env, &env.check(text).unwrap()).unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn computation_is_interrupted_at_request_deadline() {
        let program = program();
        let endless = || program.eval(&[], u64::MAX).cost;
        let deadline = clock::instant() + Duration::from_millis(20);
        assert!(within(deadline, long(endless)).await.is_err());
    }

    #[test]
    fn computations_give_way_at_intervals() {
        let now = clock::instant();
        let ago = |time| now.checked_sub(time);
        let interval = limits::GIVE_WAY_INTERVAL;
        assert!(is_due(None, now) && is_due(ago(interval), now));
        assert!(!is_due(Some(now), now) && !is_due(ago(interval / 2), now));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_progress_beside_a_computation() {
        let waiting = Arc::new(AtomicBool::new(true));
        let computation = task::spawn("computation", {
            let waiting = waiting.clone();
            async move {
                let program = program();
                let other = waiting.clone();
                task::spawn("other", async move { other.store(false, Ordering::SeqCst) });
                // this is the only worker: the other task runs before the end only if the computation yields
                let rounds = || {
                    (0..10_000).take_while(|_| {
                        program.eval(&[], 1 << 16);
                        waiting.load(Ordering::SeqCst)
                    })
                };
                long(|| rounds().count()).await
            }
        });
        assert!(computation.await.unwrap() < 10_000);
    }
}
