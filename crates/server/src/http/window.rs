//! How much of a response may wait in its connection, and for how long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{clock, limits};

/// What of the responses of one stream of HTTP/2, or of one connection of HTTP/1.1, was handed over and is not sent yet.
pub struct Window {
    state: Mutex<State>,
    /// Something was handed over, and nothing was before.
    begun: Notify,
}

struct State {
    unsent: usize,
    /// When bytes were sent last, or handed over after all had been sent.
    progress: Instant,
    waiting: Option<Waker>,
}

tokio::task_local! {
    static WINDOW: Arc<Window>;
}

impl Window {
    pub fn new() -> Arc<Window> {
        let state = State { unsent: 0, progress: clock::instant(), waiting: None };
        Arc::new(Window { state: Mutex::new(state), begun: Notify::new() })
    }

    /// That of the running task.
    pub fn current() -> Option<Arc<Window>> {
        WINDOW.try_with(Arc::clone).ok()
    }

    /// Serves a stream or a connection until it ends, or until its client has read nothing of a response for too long.
    pub async fn serve<F: Future>(serving: F) -> Option<F::Output> {
        let window = Window::new();
        tokio::select! {
            output = WINDOW.scope(window.clone(), serving) => Some(output),
            () = window.stalled(limits::UNREAD_RESPONSE) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether more may be handed over; the task is woken when that changes.
    pub fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.unsent < limits::UNSENT_BYTES_MAX {
            return Poll::Ready(());
        }
        state.waiting = Some(context.waker().clone());
        Poll::Pending
    }

    /// The same bytes, which count until they have been sent.
    pub fn hand_over(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        let mut state = self.lock();
        if state.unsent == 0 {
            state.progress = clock::instant();
            self.begun.notify_one();
        }
        state.unsent += bytes.len();
        drop(state);
        Bytes::from_owner(Unsent { bytes, window: self.clone() })
    }

    /// Waits until something has waited to be sent for as long as `limit`.
    async fn stalled(&self, limit: std::time::Duration) {
        loop {
            let since = {
                let state = self.lock();
                (state.unsent > 0).then_some(state.progress)
            };
            match since {
                None => self.begun.notified().await,
                Some(since) if since.elapsed() >= limit => return,
                Some(since) => tokio::time::sleep_until(since + limit).await,
            }
        }
    }
}

/// Bytes that were handed over, until they have been sent or dropped.
struct Unsent {
    bytes: Bytes,
    window: Arc<Window>,
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        let mut state = self.window.lock();
        state.unsent -= self.bytes.len();
        state.progress = clock::instant();
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

/// Runs the streams of HTTP/2 connections as tasks, each with its window.
#[derive(Clone)]
pub struct Streams;

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        crate::task::spawn("stream", async move {
            // a stream that is dropped is reset
            Window::serve(stream).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn no_more_is_handed_over_than_fits() {
        let window = Window::new();
        let room = || std::future::poll_fn(|context| Poll::Ready(window.poll_room(context).is_ready()));
        let piece = Bytes::from(vec![0; limits::UNSENT_BYTES_MAX]);
        assert!(room().await);
        let first = window.hand_over(piece.slice(1..));
        assert!(room().await, "one byte fits");
        let (second, part) = (window.hand_over(piece), first.slice(7..9));
        drop(first);
        assert!(!room().await);
        drop(part);
        assert!(!room().await, "the second alone is too much");
        drop(second);
        assert!(room().await);
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_noticed() {
        let limit = Duration::from_millis(1);
        let window = Window::new();
        let unread = window.hand_over(Bytes::from_static(b"unread"));
        window.stalled(limit).await;
        drop(unread);
        let mut idle = std::pin::pin!(window.stalled(limit));
        for _ in 0..100 {
            tokio::select! {
                biased;
                () = &mut idle => panic!("everything has been sent"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
}
