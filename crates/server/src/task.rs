//! The one place where tasks start (layer 0).

use std::future::Future;

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

/// Runs what may take long, so that other requests of this worker go on elsewhere.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let flavor = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavor, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}
