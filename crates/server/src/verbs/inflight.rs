//! Tracks writes in flight, for work that has to wait until they have ended.

use parking_lot::Mutex;
use tokio::sync::watch;

/// The writes in flight that may create an object in a namespace.
pub struct WritesInFlight {
    /// Each write holds a receiver of the channel that was current when it began, so a channel closes when its writes
    /// have ended.
    current: Mutex<(watch::Sender<()>, watch::Receiver<()>)>,
}

/// A write in flight, until it is dropped.
pub struct WriteInFlight(#[expect(dead_code, reason = "held for its Drop")] watch::Receiver<()>);

impl WritesInFlight {
    pub fn new() -> WritesInFlight {
        WritesInFlight { current: Mutex::new(watch::channel(())) }
    }

    /// Registers a write. Called before the write reads any namespace, so that it either sees a deletion or is waited
    /// for.
    pub fn begin(&self) -> WriteInFlight {
        WriteInFlight(self.current.lock().1.clone())
    }

    /// Waits until all writes that have begun since the previous call have ended. Replaces the channel first, so that
    /// writes that begin later are not waited for.
    pub async fn ended(&self) {
        let (sender, receiver) = std::mem::replace(&mut *self.current.lock(), watch::channel(()));
        drop(receiver);
        sender.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn earlier_writes_are_awaited() {
        let writes = WritesInFlight::new();
        assert!(writes.ended().now_or_never().is_some());
        let earlier = [writes.begin(), writes.begin()];
        let mut ended = Box::pin(writes.ended());
        assert!(ended.as_mut().now_or_never().is_none());
        let later = writes.begin();
        drop(earlier);
        assert!(ended.now_or_never().is_some());
        assert!(writes.ended().now_or_never().is_none());
        drop(later);
    }
}
