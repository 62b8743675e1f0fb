//! Flow control of response bodies: how many bytes may be buffered in a connection, and for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use base::clock;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits;

/// The response bytes of an HTTP/2 stream, or of an HTTP/1.1 connection, that were handed over to hyper and are not
/// sent yet.
pub struct Window {
    state: Mutex<WindowState>,
    /// Notified when bytes are handed over while no others are unsent.
    begun: Notify,
}

struct WindowState {
    /// Bytes that were handed over and are not sent yet.
    unsent: usize,
    /// When bytes were last sent, or handed over while no others were unsent.
    progress: Instant,
    /// The task that waits for room.
    waiting: Option<Waker>,
}

static UNSENT: AtomicUsize = AtomicUsize::new(0);

/// Whether clients read so fast that few bytes are unsent overall.
fn is_fast() -> bool {
    UNSENT.load(Ordering::Relaxed) < limits::UNSENT_TOTAL_FAST
}

/// The number of bytes of a response to encode at a time. It is smaller while many clients read slowly.
pub fn chunk_bytes() -> usize {
    if is_fast() { limits::PIECE_BYTES_MAX } else { limits::CHUNK_BYTES }
}

/// Lists whose objects have up to this many bytes are encoded completely before they are sent.
pub fn whole_bytes() -> usize {
    if is_fast() { limits::WHOLE_LIST_BYTES_FAST } else { limits::UNSENT_BYTES_MAX }
}

/// Bytes of a response that have been encoded but not handed over. They count as unsent until this is dropped.
pub struct UnsentBytes(usize);

impl UnsentBytes {
    pub fn new(bytes: usize) -> UnsentBytes {
        UNSENT.fetch_add(bytes, Ordering::Relaxed);
        UnsentBytes(bytes)
    }
}

impl Drop for UnsentBytes {
    fn drop(&mut self) {
        UNSENT.fetch_sub(self.0, Ordering::Relaxed);
    }
}

tokio::task_local! {
    static WINDOW: Arc<Window>;
}

impl Window {
    pub fn new() -> Arc<Window> {
        let state = WindowState { unsent: 0, progress: clock::instant(), waiting: None };
        Arc::new(Window { state: Mutex::new(state), begun: Notify::new() })
    }

    /// The window of the current task; `None` outside of [`Window::serve`].
    pub fn current() -> Option<Arc<Window>> {
        WINDOW.try_with(Arc::clone).ok()
    }

    /// Serves a stream or a connection until it ends. Returns `None` if the client has read nothing of a response for
    /// [`limits::UNREAD_RESPONSE`].
    pub async fn serve<F: Future>(serving: F) -> Option<F::Output> {
        let window = Window::new();
        tokio::select! {
            output = WINDOW.scope(window.clone(), serving) => Some(output),
            () = window.stalled(limits::UNREAD_RESPONSE) => None,
        }
    }

    /// Ready if more bytes may be handed over; otherwise the task is woken when bytes have been sent.
    pub fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        let max = if is_fast() { limits::UNSENT_BYTES_FAST } else { limits::UNSENT_BYTES_MAX };
        if state.unsent < max {
            return Poll::Ready(());
        }
        state.waiting = Some(context.waker().clone());
        Poll::Pending
    }

    /// Counts bytes as unsent until the returned buffer, which shares them, is dropped.
    pub fn hand_over(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        let mut state = self.state.lock();
        if state.unsent == 0 {
            state.progress = clock::instant();
            self.begun.notify_one();
        }
        state.unsent += bytes.len();
        UNSENT.fetch_add(bytes.len(), Ordering::Relaxed);
        drop(state);
        Bytes::from_owner(Unsent { bytes, window: self.clone() })
    }

    /// Waits until unsent bytes have made no progress for `limit`.
    async fn stalled(&self, limit: std::time::Duration) {
        loop {
            let since = {
                let state = self.state.lock();
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

/// Bytes that count as unsent until they are dropped, which hyper does once they are written to the socket.
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
        let mut state = self.window.state.lock();
        state.unsent -= self.bytes.len();
        UNSENT.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        state.progress = clock::instant();
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

/// Runs each stream of HTTP/2 connections as a task with its own window.
#[derive(Clone)]
pub struct Streams;

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        base::task::spawn("stream", async move {
            // dropping a stream that makes no progress resets it
            Window::serve(stream).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn full_window_blocks_the_body() {
        let window = Window::new();
        let room = || std::future::poll_fn(|context| Poll::Ready(window.poll_room(context).is_ready()));
        let piece = Bytes::from(vec![0; limits::UNSENT_BYTES_FAST]);
        assert!(room().await);
        let first = window.hand_over(piece.slice(1..));
        assert!(room().await, "one byte fits");
        let (second, part) = (window.hand_over(piece), first.slice(7..9));
        drop(first);
        assert!(!room().await);
        drop(part);
        assert!(!room().await, "the second buffer alone fills the window");
        drop(second);
        assert!(room().await);
    }

    #[tokio::test]
    async fn detects_client_that_reads_nothing() {
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
