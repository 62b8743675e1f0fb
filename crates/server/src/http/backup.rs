//! A backup of the objects, from memory, as the body of a response. It has no keys of the server.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use machinery::status::Reason;
use machinery::{Result, Status};
use store::{Content, Store};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::body::{Body, Broken, NextPiece, PieceSource};

pub const PATH: &str = "/storage/backup";

type Piece = Result<Bytes, String>;

/// The pieces of a backup, which a thread writes.
struct BackupPieces(Receiver<Piece>);

impl PieceSource for BackupPieces {
    fn next(mut self: Box<Self>) -> NextPiece {
        Box::pin(async move {
            match self.0.recv().await {
                None => Ok(None),
                Some(Ok(bytes)) => Ok(Some((bytes, self as Box<dyn PieceSource>))),
                Some(Err(why)) => Err(Broken(why)),
            }
        })
    }
}

/// Hands over what is written to it, and waits until that is sent.
struct Handover(Sender<Piece>);

impl Write for Handover {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Backs up a store.
pub async fn backup(store: &Arc<dyn Store>) -> Result<Body> {
    if store.is_shared() {
        return Err(Status::bad_request("back up etcd itself, with etcdctl snapshot save"));
    }
    let content = match store.clone().branching() {
        Some(log) => log.content().await,
        None => store.snapshot().await.map(Content::from),
    };
    let content = content.map_err(|error| objects::failure(&error))?;
    let (sender, receiver) = channel(1);
    let write = move || {
        if let Err(error) = store::write_backup(content, &[], Handover(sender.clone())) {
            let _ = sender.blocking_send(Err(error.to_string()));
        }
    };
    // it waits for the client, which no thread of the runtime may
    let started = std::thread::Builder::new().name("backup".to_owned()).spawn(write);
    started.map_err(|error| Status::new(Reason::ServiceUnavailable, error.to_string()))?;
    Ok(Body::document(Box::new(BackupPieces(receiver))))
}
