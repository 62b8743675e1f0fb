//! Followers: a watch of etcd that is resumed after the last change when a member or a connection fails.

use std::sync::Arc;

use store::contract::BoxFuture;
use store::{Batch, Change, Changes, Revision, StoreError};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use crate::client::{Client, Stream};
use crate::failure::Failure;
use crate::keys::KeySpace;
use crate::limits;
use crate::messages::{self as m, revision};

/// The keys that a follower watches, and the revision that callers wait for it to reach.
pub struct Followed {
    pub client: Arc<Client>,
    pub keys: KeySpace,
    pub wanted: watch::Receiver<Revision>,
    /// Last revision delivered to the follower.
    pub after: Revision,
}

/// Why a watch has ended.
enum End {
    Compacted(Revision),
    /// The followed collection takes no more writes.
    Over,
    /// The watch failed; a new one may continue.
    Failed(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> End {
        End::Failed(failure)
    }
}

/// A follower. The watch lives in a future that is kept between calls.
pub struct Follower {
    batches: mpsc::Receiver<Result<Batch, StoreError>>,
    watching: BoxFuture<'static, ()>,
    ended: bool,
}

impl Follower {
    pub fn new(mut followed: Followed) -> Follower {
        let (sender, batches) = mpsc::channel(16);
        let watching = Box::pin(async move {
            let mut attempt = 0;
            loop {
                let before = followed.after;
                let end = match watch_on(&mut followed, attempt, &sender).await {
                    Ok(()) => return,
                    Err(end) => end,
                };
                attempt = if followed.after > before { 0 } else { attempt + 1 };
                match end {
                    End::Compacted(revision) => {
                        let _ = sender.send(Err(StoreError::Compacted(revision))).await;
                        return;
                    }
                    // later revisions are not those of this store, and its user learns elsewhere that it has ended
                    End::Over => std::future::pending().await,
                    End::Failed(failure) if failure.is_temporary() => {
                        tracing::debug!(why = failure.text(), "restarting the watch of etcd");
                    }
                    // only a change of our permissions in etcd will help
                    End::Failed(failure) => followed.client.mark_unhealthy(failure.text()),
                }
            }
        });
        Follower { batches, watching, ended: false }
    }
}

impl Changes for Follower {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, StoreError>> {
        Box::pin(async move {
            loop {
                tokio::select! {
                    biased;
                    batch = self.batches.recv() => {
                        let gone = || Err(StoreError::Unavailable("the watch of etcd has ended".to_owned()));
                        return batch.unwrap_or_else(gone);
                    }
                    () = &mut self.watching, if !self.ended => self.ended = true,
                }
            }
        })
    }
}

/// Returns the request that creates the watch.
fn creation(followed: &Followed) -> m::WatchRequest {
    let (key, range_end) = followed.keys.range();
    let create = m::WatchCreateRequest {
        key,
        range_end,
        // the watch starts with the last delivered change, which is skipped: etcd accepts a watch from exactly the
        // revision of a compaction, although a deletion at that revision is lost
        start_revision: m::number(followed.after.max(1)),
        progress_notify: true,
    };
    m::WatchRequest { action: Some(m::WatchAction::Create(create)) }
}

/// Watches at one member until that fails; ends without an error when the follower is dropped.
async fn watch_on(
    followed: &mut Followed,
    attempt: usize,
    batches: &mpsc::Sender<Result<Batch, StoreError>>,
) -> Result<(), End> {
    let client = followed.client.clone();
    client.pause(attempt).await;
    let (requests, receiver) = mpsc::channel(4);
    // the first message goes out with the stream
    let _ = requests.try_send(creation(followed));
    let mut moves = client.moves();
    let mut stream = client.watch(ReceiverStream::new(receiver), attempt).await?;
    let mut requests_without_response = 0;
    loop {
        let may_request_progress = client.honest_progress();
        let wanted = *followed.wanted.borrow_and_update() > followed.after;
        let pause = match wanted && may_request_progress {
            true if requests_without_response == 0 => limits::PROGRESS_FIRST,
            true => limits::PROGRESS_WANTED,
            false => limits::PROGRESS_IDLE,
        };
        let taken = tokio::select! {
            biased;
            response = stream.next() => take(followed, &stream, response?).await?,
            Ok(()) = followed.wanted.changed() => continue,
            // a call to that member has failed, so the watch may be dead as well
            Ok(()) = moves.changed() => return Err(End::Failed(Failure::NotDone("the client has switched to another member".to_owned()))),
            () = tokio::time::sleep(pause) => {
                requests_without_response += u32::from(may_request_progress);
                if requests_without_response > limits::PROGRESS_REQUESTS_MAX {
                    let why = "a member does not report progress".to_owned();
                    return Err(End::Failed(stream.failed(Failure::Unknown(why)).await));
                }
                if may_request_progress {
                    // if the queue is full, a request is waiting in it
                    let progress = m::WatchAction::Progress(m::WatchProgressRequest {});
                    let _ = requests.try_send(m::WatchRequest { action: Some(progress) });
                }
                continue;
            }
        };
        requests_without_response = 0;
        client.mark_healthy();
        if let Some(batch) = taken.ready
            && batches.send(Ok(batch)).await.is_err()
        {
            return Ok(());
        }
        if taken.is_last {
            return Err(End::Over);
        }
    }
}

/// The content of a response.
struct Taken {
    /// The changes that have not been delivered yet; `None` if there is nothing new.
    ready: Option<Batch>,
    /// Whether what is followed has ended.
    is_last: bool,
}

async fn take(followed: &mut Followed, stream: &Stream<'_>, response: m::WatchResponse) -> Result<Taken, End> {
    if response.compact_revision > 0 {
        return Err(End::Compacted(revision(response.compact_revision)));
    }
    if response.canceled {
        let failure = Failure::of(&tonic::Status::unavailable(&response.cancel_reason));
        return Err(End::Failed(stream.failed(failure).await));
    }
    let delivered = followed.after;
    let mut changes: Vec<Change> =
        response.events.into_iter().filter_map(change).filter(|change| change.revision > delivered).collect();
    let begun = followed.keys.begun.as_ref();
    let end = begun.and_then(|begun| changes.iter().find(|change| change.key == begun.key)).map(|end| end.revision);
    changes.retain(|change| end.is_none_or(|end| change.revision < end));
    let is_last = end.is_some();
    let reached = match changes.last() {
        Some(last) => last.revision,
        // the response to the creation of the watch says nothing about events
        None if response.created || is_last => return Ok(Taken { ready: None, is_last }),
        None => response.header.map_or(0, |header| revision(header.revision)),
    };
    if reached <= delivered {
        return Ok(Taken { ready: None, is_last });
    }
    followed.after = reached;
    changes.retain(|change| !followed.keys.is_internal(&change.key));
    for change in &mut changes {
        change.key = followed.keys.to_caller(std::mem::take(&mut change.key));
    }
    Ok(Taken { ready: Some(Batch { changes, revision: reached }), is_last })
}

fn change(event: m::Event) -> Option<Change> {
    let kind = event.kind();
    let kv = event.kv?;
    let value = (kind == m::EventKind::Put).then_some(kv.value);
    Some(Change { revision: revision(kv.mod_revision), key: kv.key, value })
}
