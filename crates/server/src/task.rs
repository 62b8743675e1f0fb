//! The one place where tasks start (layer 0).

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

/// Waits for a future where there is no way to await it; other tasks go on in the meantime.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn wait<F: Future>(future: F) -> F::Output {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(future))
}

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

/// Runs what may take long, so that other requests of this worker go on elsewhere.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let flavor = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavor, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}
