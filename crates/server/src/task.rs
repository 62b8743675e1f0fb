//! The one place where tasks start (layer 0).

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

/// Starts a task of the server; `name` is for debugging.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn spawn<F>(name: &'static str, future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tracing::trace!(name, "task starts");
    tokio::spawn(future)
}

/// Looks at a file every now and then, and hands over what is in it when that has changed, until it is told to stop.
/// A file that cannot be read is looked at again.
pub fn follow_file(
    path: PathBuf,
    every: Duration,
    mut known: Vec<u8>,
    mut changed: impl FnMut(Result<&[u8], String>) -> bool + Send + 'static,
) {
    spawn("configuration file", async move {
        loop {
            tokio::time::sleep(every).await;
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

/// Where in a trace the work of a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    pub id: [u8; 16],
    pub span: [u8; 8],
    /// Whether anybody wants to know of it.
    pub sampled: bool,
}

/// The header that says which trace a request belongs to (W3C Trace Context).
pub const TRACE_HEADER: &str = "traceparent";

impl Trace {
    /// The header for another server that is called on behalf of this one's request.
    pub fn header(&self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("00-{}-{}-{:02x}", hex(&self.id), hex(&self.span), u8::from(self.sampled))
    }
}

tokio::task_local! {
    static TRACE: Trace;
}

/// Where in a trace the running task stands, if anywhere.
pub fn trace() -> Option<Trace> {
    TRACE.try_with(|trace| *trace).ok()
}

/// Does work at a place in a trace.
pub fn traced<F: Future>(at: Trace, work: F) -> impl Future<Output = F::Output> {
    TRACE.scope(at, work)
}

/// How long [`give_way`] waits for another thread to take over.
const HAND_OVER: Duration = Duration::from_micros(50);

/// Hands the other tasks of this worker to another thread, if there is one, in the middle of a computation that takes
/// long. The computation goes on here. Call it again from time to time: another thread may not have been free.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn give_way() {
    let flavor = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavor, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(|| std::thread::sleep(HAND_OVER));
    }
}

/// Runs what may take long and waits for nobody, so that other requests of this worker go on elsewhere.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let flavor = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavor, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}
