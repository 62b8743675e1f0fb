//! The runtime of commands that make requests.

use client::{Context as _, Result, fail};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::LocalSet;

/// A runtime of one thread.
pub fn single() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start")
}

pub fn listen(kind: SignalKind) -> Result<Signal> {
    signal(kind).context("cannot listen for signals")
}

/// Runs a task unless a signal ends this process before. What the task has started ends when it is dropped.
pub async fn until_signalled<T>(task: impl Future<Output = Result<T>>) -> Result<T> {
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::select! {
        done = task => done,
        _ = interrupt.recv() => fail("interrupted"),
        _ = terminate.recv() => fail("terminated"),
    }
}

/// Runs a task of a connection.
pub fn block_on<T>(task: impl Future<Output = Result<T>>) -> Result<T> {
    LocalSet::new().block_on(&single()?, task)
}
