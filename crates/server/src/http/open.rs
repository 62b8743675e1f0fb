//! The open connections and the WebSockets that some of them were upgraded to, which a shutdown waits for.

use tokio::sync::watch;

/// The number of open connections and WebSockets.
pub struct OpenCount(watch::Sender<usize>);

/// Counts one open connection or WebSocket until it is dropped.
pub struct OpenGuard(watch::Sender<usize>);

impl OpenCount {
    pub fn new() -> OpenCount {
        OpenCount(watch::Sender::new(0))
    }

    /// Counts one more until the returned guard is dropped.
    pub fn enter(&self) -> OpenGuard {
        self.0.send_modify(|n| *n += 1);
        OpenGuard(self.0.clone())
    }

    pub fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until nothing is open.
    pub async fn emptied(&self) {
        // waiting fails only if the sender is dropped, and it is borrowed here
        let _ = self.0.subscribe().wait_for(|n| *n == 0).await;
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}
