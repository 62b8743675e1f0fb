//! The runtime of commands that make requests.

use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// A runtime of one thread.
pub fn single() -> Result<Runtime, String> {
    Builder::new_current_thread().enable_all().build().map_err(|error| format!("cannot start: {error}"))
}

/// Runs a task of a connection.
pub fn block_on<T>(task: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    LocalSet::new().block_on(&single()?, task)
}
