//! The audit webhook: events are sent in batches.

use std::sync::Arc;
use std::time::Duration;

use base::task;
use base::webhook::Remote;
use machinery::{Value, json};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::log::lost;

#[derive(Clone, Copy, Debug)]
pub struct BatchOptions {
    pub size_max: usize,
    pub wait_max: Duration,
    /// Length of the queue; further events are dropped.
    pub buffer: usize,
}

enum BatchEntry {
    Event(Value),
    Flush(oneshot::Sender<()>),
}

/// Sends `EventList`s.
pub struct Webhook {
    remote: Arc<Remote>,
    options: BatchOptions,
    queue: mpsc::Sender<BatchEntry>,
    receiver: Mutex<Option<mpsc::Receiver<BatchEntry>>>,
}

impl Webhook {
    pub fn new(remote: Remote, options: BatchOptions) -> Webhook {
        let (queue, receiver) = mpsc::channel(options.buffer.max(1));
        Webhook { remote: Arc::new(remote), options, queue, receiver: Mutex::new(Some(receiver)) }
    }

    pub fn start(&self) {
        let receiver = self.receiver.lock().take();
        if let Some(receiver) = receiver {
            task::spawn("audit webhook", run(self.remote.clone(), self.options, receiver));
        }
    }

    pub fn send(&self, event: Value) {
        if self.queue.try_send(BatchEntry::Event(event)).is_err() {
            lost("webhook", &"the queue is full");
        }
    }

    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.queue.send(BatchEntry::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

async fn run(remote: Arc<Remote>, options: BatchOptions, mut queue: mpsc::Receiver<BatchEntry>) {
    while let Some(first) = queue.recv().await {
        let (mut batch, mut flushed) = (vec![], None);
        let mut next = Some(first);
        let wait = tokio::time::sleep(options.wait_max);
        tokio::pin!(wait);
        while let Some(entry) = next.take() {
            match entry {
                BatchEntry::Event(event) => batch.push(event),
                BatchEntry::Flush(done) => flushed = Some(done),
            }
            if flushed.is_none() && batch.len() < options.size_max {
                next = tokio::select! {
                    entry = queue.recv() => entry,
                    () = &mut wait => None,
                };
            }
        }
        send(&remote, batch).await;
        if let Some(done) = flushed {
            let _ = done.send(());
        }
    }
}

async fn send(remote: &Remote, batch: Vec<Value>) {
    if batch.is_empty() {
        return;
    }
    let count = batch.len();
    let list = json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": batch});
    if let Err(why) = remote.deliver(&list).await {
        for _ in 0..count {
            lost("webhook", &why);
        }
    }
}
