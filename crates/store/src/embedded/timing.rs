//! How long the disk takes for commits and syncs: for metrics, and to notice a disk that hangs.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::contract::{DiskWork, StoreError, StoreObserver};
use crate::limits;

/// The work of the disk that the committer waits for.
#[derive(Default)]
pub struct Timing {
    began: Mutex<Option<Instant>>,
    observer: OnceLock<Arc<dyn StoreObserver>>,
}

#[allow(clippy::disallowed_methods, reason = "the crate below all others measures how long its disk takes")]
fn now() -> Instant {
    Instant::now()
}

impl Timing {
    /// Sets who learns how long everything takes; the first one counts.
    pub fn observe(&self, observer: Arc<dyn StoreObserver>) {
        let _ = self.observer.set(observer);
    }

    /// Measures until the returned value is dropped.
    pub fn begin(self: &Arc<Self>, work: DiskWork) -> Measured {
        let began = now();
        let mut outermost = self.began.lock();
        let is_outermost = outermost.is_none();
        outermost.get_or_insert(began);
        Measured { timing: self.clone(), work, began, is_outermost }
    }

    /// How long the work has taken that the committer waits for, if it does.
    pub fn in_flight(&self) -> Option<Duration> {
        let began = *self.began.lock();
        began.map(|began| now().saturating_duration_since(began))
    }

    /// Fails while the disk hangs.
    pub fn check(&self) -> Result<(), StoreError> {
        match self.in_flight() {
            Some(taken) if taken >= limits::COMMIT_STALLED => {
                let why = format!("a write to the log has taken {} seconds and is not finished", taken.as_secs());
                Err(StoreError::Unavailable(why))
            }
            _ => Ok(()),
        }
    }
}

/// See [`Timing::begin`].
pub struct Measured {
    timing: Arc<Timing>,
    work: DiskWork,
    began: Instant,
    /// Whether this is no part of other work.
    is_outermost: bool,
}

impl Drop for Measured {
    fn drop(&mut self) {
        if self.is_outermost {
            *self.timing.began.lock() = None;
        }
        if let Some(observer) = self.timing.observer.get() {
            observer.took(self.work, now().saturating_duration_since(self.began));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Mutex<Vec<DiskWork>>);

    impl StoreObserver for Seen {
        fn took(&self, work: DiskWork, _: Duration) {
            self.0.lock().push(work);
        }
    }

    #[test]
    fn work_that_takes_too_long_is_an_error_until_it_ends() {
        let (timing, seen) = (Arc::new(Timing::default()), Arc::new(Seen::default()));
        timing.observe(seen.clone());
        assert_eq!((timing.in_flight(), timing.check()), (None, Ok(())));
        let commit = timing.begin(DiskWork::Commit);
        let sync = timing.begin(DiskWork::Sync);
        assert_eq!(timing.check(), Ok(()));
        *timing.began.lock() = now().checked_sub(limits::COMMIT_STALLED);
        assert!(timing.check().is_err());
        drop(sync);
        assert!(timing.check().is_err(), "a sync is a part of its commit");
        drop(commit);
        assert_eq!((timing.in_flight(), timing.check()), (None, Ok(())));
        assert_eq!(*seen.0.lock(), [DiskWork::Sync, DiskWork::Commit]);
    }
}
