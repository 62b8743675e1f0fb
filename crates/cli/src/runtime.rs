//! The runtime of commands that make requests.

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::LocalSet;

/// A runtime of one thread.
pub fn single() -> Result<Runtime, String> {
    Builder::new_current_thread().enable_all().build().map_err(|error| format!("cannot start: {error}"))
}

pub fn listen(kind: SignalKind) -> Result<Signal, String> {
    signal(kind).map_err(|error| format!("cannot listen for signals: {error}"))
}

/// Runs a task unless a signal ends this process before. What the task has started ends when it is dropped.
pub async fn until_signalled<T>(task: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::select! {
        done = task => done,
        _ = interrupt.recv() => Err("interrupted".to_owned()),
        _ = terminate.recv() => Err("terminated".to_owned()),
    }
}

/// Runs a task of a connection.
pub fn block_on<T>(task: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    LocalSet::new().block_on(&single()?, task)
}
