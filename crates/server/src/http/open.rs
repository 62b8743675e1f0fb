//! What has to end before the server has stopped: connections, and the WebSockets that some of them became.

use tokio::sync::watch;

/// A count of what is open.
pub struct Open(watch::Sender<usize>);

/// One thing that is open, until it is dropped.
pub struct OpenGuard(watch::Sender<usize>);

impl Open {
    pub fn new() -> Open {
        Open(watch::Sender::new(0))
    }

    pub fn enter(&self) -> OpenGuard {
        self.0.send_modify(|n| *n += 1);
        OpenGuard(self.0.clone())
    }

    pub fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until nothing is open.
    pub async fn emptied(&self) {
        // the sender is here: waiting does not fail
        let _ = self.0.subscribe().wait_for(|n| *n == 0).await;
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}
