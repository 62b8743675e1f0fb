//! Deadlines of requests, and long computations within them.
//!
//! Invariant: a computation of a request that may take long either runs in [`long`] or calls [`task::give_way`], so that
//! other requests go on beside it and the timeout of its own request holds.

use std::future::Future;

use tokio::time::Instant;

use crate::{clock, task};

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Runs a request until it ends, or until it is dropped at `deadline`, see [`long`].
pub async fn within<T>(deadline: Instant, request: impl Future<Output = T>) -> Result<T, tokio::time::error::Elapsed> {
    tokio::time::timeout_at(deadline, DEADLINE.scope(deadline, request)).await
}

/// Whether the deadline of the running request has passed.
fn is_over() -> bool {
    DEADLINE.try_with(|deadline| clock::instant() >= *deadline).unwrap_or(false)
}

/// The interrupt of computations, which they call about once per millisecond.
fn interrupt() -> bool {
    task::give_way();
    is_over()
}

/// Runs a computation that evaluates expressions or matches patterns. At the deadline of the request it is interrupted;
/// then the returned future never completes, and the timeout of the request responds.
pub async fn long<T>(work: impl FnOnce() -> T) -> T {
    let done = cel::interruptible(interrupt, work);
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
