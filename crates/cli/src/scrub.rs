//! Reads the log of the embedded store again in the background: damage is found while all objects are still in memory.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base::metrics::METRICS;
use client::{Context as _, Result};
use store::Store;

use crate::limits;

/// Reads everything again at this interval, unless it is zero, until the store is closed. A start reads everything, too.
pub fn start(store: Weak<dyn Store>, interval: Duration) -> Result<()> {
    if interval.is_zero() {
        return Ok(());
    }
    let run = move || {
        loop {
            std::thread::sleep(interval);
            let Some(store) = store.upgrade() else { return };
            scrub(store);
        }
    };
    // it reads from the disk, which no thread of the runtime may wait for
    let started = std::thread::Builder::new().name("scrub".to_owned()).spawn(run);
    started.map(drop).context("cannot start")
}

fn scrub(store: Arc<dyn Store>) {
    let (mut read, watched): (u64, Weak<dyn Store>) = (0, Arc::downgrade(&store));
    let mut pace = |bytes| {
        read += bytes;
        if read >= limits::SCRUB_PART_BYTES {
            read = 0;
            std::thread::sleep(limits::SCRUB_PAUSE);
        }
        // the server has closed it, and waits for this
        watched.strong_count() > 1
    };
    let damaged = store.scrub(&mut pace);
    METRICS.operation.store_damaged_frames.set(i64::try_from(damaged.len()).unwrap_or(i64::MAX));
    for error in damaged {
        tracing::error!(
            %error,
            "the objects in memory are whole: back them up with \"pintle store backup --from-server\", and look at the disk and at \"pintle store check\""
        );
    }
}
