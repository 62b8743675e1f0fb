//! Spawning of tasks, watching of files and yielding. No other module spawns tasks.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tracing::Instrument as _;

use crate::clock::{self, WorkspaceClock};
use crate::limits;

/// Starts a task of the server, which has the clock of the running one, and its span of the log; `name` is for debugging.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn spawn<F>(name: &'static str, future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tracing::trace!(name, "task starts");
    // one type for all futures: the code of a task, some hundred lines, is compiled once instead of for every caller
    let future: Boxed<F::Output> = Box::pin(future);
    let span = tracing::Span::current();
    let future = if span.is_none() { future } else { Box::pin(future.instrument(span)) };
    match clock::current() {
        None => tokio::spawn(future),
        clock => tokio::spawn(clock::within(clock, future)),
    }
}

/// A future that can be spawned.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs a future as a part of the calling task. If the caller is dropped before its end, it goes on in a task of its own.
pub async fn finish<F>(name: &'static str, future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut unfinished = Unfinished { name, clock: clock::current(), future: Some(Box::pin(future)) };
    std::future::poll_fn(|context| unfinished.poll(context)).await
}

/// Like [`finish`], with the given clock. A panic of the future becomes an error with its message.
pub async fn finish_caught<T: Send + 'static>(
    name: &'static str,
    clock: Option<Arc<WorkspaceClock>>,
    future: Boxed<T>,
) -> Result<T, String> {
    let mut unfinished = Unfinished { name, clock, future: Some(future) };
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| unfinished.poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => {
            unfinished.future = None;
            Poll::Ready(Err(message(&*panic)))
        }
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("the panic has no message").to_owned()
}

/// A future that goes on in a task of its own if this is dropped before its end.
struct Unfinished<T: Send + 'static> {
    name: &'static str,
    /// The clock of the future. The task-local can no longer be read when this is dropped.
    clock: Option<Arc<WorkspaceClock>>,
    future: Option<Boxed<T>>,
}

impl<T: Send + 'static> Unfinished<T> {
    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.future else { return Poll::Pending };
        let polled = clock::scoped(self.clock.as_ref(), || future.as_mut().poll(context));
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Unfinished<T> {
    fn drop(&mut self) {
        // at the end of the process there is no runtime any more, and after a panic of the future nothing to go on with
        if let Some(future) = self.future.take().filter(|_| !std::thread::panicking())
            && tokio::runtime::Handle::try_current().is_ok()
        {
            clock::scoped(self.clock.as_ref(), || drop(spawn(self.name, future)));
        }
    }
}

/// Wakes every task that watches files.
static RELOAD: tokio::sync::Notify = tokio::sync::Notify::const_new();

/// Checks all watched files now instead of at the next interval.
pub fn reload_files() {
    RELOAD.notify_waiters();
}

/// Waits for the next interval, or for [`reload_files`].
async fn next_poll(every: Duration) {
    tokio::select! {
        () = tokio::time::sleep(every) => {}
        () = RELOAD.notified() => {}
    }
}

/// Polls files and calls `changed` when the content of any of them differs from that of the last poll, until `changed`
/// returns false.
pub fn follow_files(paths: Vec<PathBuf>, every: Duration, mut changed: impl FnMut() -> bool + Send + 'static) {
    let contents = move || -> Vec<Option<Vec<u8>>> { paths.iter().map(|path| std::fs::read(path).ok()).collect() };
    let mut known = contents();
    spawn("followed files", async move {
        loop {
            next_poll(every).await;
            let now = contents();
            if now != known {
                known = now;
                if !changed() {
                    return;
                }
            }
        }
    });
}

/// Polls a file and passes its content to `changed` when it differs from that of the last poll, until `changed` returns
/// false. A read error is passed on as well, and the file is polled again.
pub fn follow_file(
    path: PathBuf,
    every: Duration,
    mut known: Vec<u8>,
    mut changed: impl FnMut(Result<&[u8], String>) -> bool + Send + 'static,
) {
    spawn("configuration file", async move {
        loop {
            next_poll(every).await;
            let go_on = match tokio::fs::read(&path).await {
                Ok(content) if content == known => true,
                Ok(content) => {
                    known = content;
                    changed(Ok(&known))
                }
                Err(error) => changed(Err(format!("cannot read {}: {error}", path.display()))),
            };
            if !go_on {
                return;
            }
        }
    });
}

/// Calls `look` at every interval, until it returns false. It may block.
pub fn follow(every: Duration, mut look: impl FnMut() -> bool + Send + 'static) {
    spawn("followed directory", async move {
        loop {
            next_poll(every).await;
            if !blocking(&mut look) {
                return;
            }
        }
    });
}

/// The span of a trace that a task works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    pub id: [u8; 16],
    pub span: [u8; 8],
    /// Whether the trace is sampled.
    pub sampled: bool,
}

/// Name of the header with the trace and the parent span of a request (W3C Trace Context).
pub const TRACE_HEADER: &str = "traceparent";

impl Trace {
    /// Value of that header for a call to another server on behalf of the current request.
    pub fn header(&self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("00-{}-{}-{:02x}", hex(&self.id), hex(&self.span), u8::from(self.sampled))
    }
}

tokio::task_local! {
    static TRACE: Trace;
}

/// The span of the running task, if it is traced.
pub fn trace() -> Option<Trace> {
    TRACE.try_with(|trace| *trace).ok()
}

/// Runs a future within a span.
pub fn traced<F: Future>(at: Trace, work: F) -> impl Future<Output = F::Output> {
    TRACE.scope(at, work)
}

/// Hands the other tasks of this worker to another thread, if there is one, in the middle of a long computation, which
/// continues on this thread. It should be called repeatedly, since another thread may not have been free.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn give_way() {
    let flavor = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavor, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(|| std::thread::sleep(limits::HAND_OVER));
    }
}

/// Runs a computation that may take more than a few milliseconds and does not block on other tasks. The other tasks of
/// this worker continue on another thread.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let flavor = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavor, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn unfinished_work_goes_on_when_its_caller_is_dropped() {
        let (go, gone) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let work = async move {
            gone.await.unwrap();
            done.send("done").unwrap();
        };
        let mut caller = Box::pin(finish("test", work));
        tokio::select! {
            biased;
            () = &mut caller => panic!("nothing has released the work"),
            () = std::future::ready(()) => {}
        }
        drop(caller);
        go.send(()).unwrap();
        assert_eq!(ended.await, Ok("done"));
        assert_eq!(finish("test", async { 5 }).await, 5);
    }
}
