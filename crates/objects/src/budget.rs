//! The memory of events: one budget for all APIs of the process. An API may use what others leave, and always its fair share, so
//! that an API with many updates never pushes out the events of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::limits;

/// The budget of the process.
static BUDGET: Budget =
    Budget { bytes_max: AtomicU64::new(limits::HISTORY_BYTES), bytes: AtomicU64::new(0), apis: AtomicU64::new(0) };

#[derive(Debug)]
struct Budget {
    bytes_max: AtomicU64,
    /// Bytes of the events of all APIs.
    bytes: AtomicU64,
    /// The number of APIs.
    apis: AtomicU64,
}

/// Bytes of all events since the start of the process.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Counts new events.
pub(super) fn count_written(bytes: u64) {
    WRITTEN.fetch_add(bytes, Ordering::Relaxed);
}

/// Bytes of all events since the start of the process: as many have been written to their stores.
pub fn written_bytes() -> u64 {
    WRITTEN.load(Ordering::Relaxed)
}

pub fn history_bytes() -> u64 {
    BUDGET.bytes_max.load(Ordering::Relaxed)
}

/// Age up to which events are kept, in milliseconds.
static DURATION: AtomicU64 = AtomicU64::new(limits::HISTORY_DURATION.as_secs() * 1000);

/// Sets the bytes of events that the process keeps, and the age up to which it keeps them.
pub fn bound_history(bytes_max: u64, duration: Duration) {
    BUDGET.bytes_max.store(bytes_max, Ordering::Relaxed);
    DURATION.store(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Age up to which events are kept.
pub fn history_duration() -> Duration {
    Duration::from_millis(DURATION.load(Ordering::Relaxed))
}

/// The events that one API keeps.
#[derive(Debug)]
pub(super) struct Share {
    budget: &'static Budget,
    bytes: AtomicU64,
    events: AtomicU64,
    /// The limit of this API alone.
    bytes_max: AtomicU64,
}

impl Share {
    pub fn new() -> Arc<Share> {
        Share::of(&BUDGET)
    }

    fn of(budget: &'static Budget) -> Arc<Share> {
        budget.apis.fetch_add(1, Ordering::Relaxed);
        let (bytes, events) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Share { budget, bytes, events, bytes_max: AtomicU64::new(u64::MAX) })
    }

    pub fn add(&self, bytes: u64) {
        self.budget.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    pub fn remove(&self, bytes: u64, events: u64) {
        self.budget.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.events.fetch_sub(events, Ordering::Relaxed);
    }

    /// Limits this API to so many bytes, besides what the budget allows.
    pub fn limit_to(&self, bytes_max: Option<u64>) {
        self.bytes_max.store(bytes_max.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The bytes to which the events of this API must be reduced, if they are too many.
    pub fn excess(&self) -> Option<u64> {
        let (own, own_max) = (self.bytes.load(Ordering::Relaxed), self.bytes_max.load(Ordering::Relaxed));
        let (all, all_max) = (self.budget.bytes.load(Ordering::Relaxed), self.budget.bytes_max.load(Ordering::Relaxed));
        if all <= all_max && own <= own_max {
            return None;
        }
        let fair = all_max / self.budget.apis.load(Ordering::Relaxed).max(1);
        let left = all_max.saturating_sub(all.saturating_sub(own));
        let allowed = fair.max(left).max(limits::HISTORY_SHARE_BYTES_MIN).min(own_max);
        // less than what is allowed, so that not every further event has to make room
        (own > allowed).then_some(allowed - allowed / 8)
    }

    /// Whether there are more bytes than these, and events that may be dropped: watchers need the newest ones, however large.
    pub fn exceeds(&self, bytes: u64) -> bool {
        self.bytes.load(Ordering::Relaxed) > bytes && self.events.load(Ordering::Relaxed) > limits::HISTORY_EVENTS_MIN
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.apis.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn budget(mib: u64) -> &'static Budget {
        Box::leak(Box::new(Budget { bytes_max: AtomicU64::new(mib * MIB), ..Budget::default() }))
    }

    impl Default for Budget {
        fn default() -> Budget {
            Budget { bytes_max: AtomicU64::new(0), bytes: AtomicU64::new(0), apis: AtomicU64::new(0) }
        }
    }

    #[test]
    fn an_api_uses_what_others_leave_and_always_its_share() {
        let budget = budget(64);
        let [busy, other] = [Share::of(budget), Share::of(budget)];
        busy.add(64 * MIB);
        assert_eq!(busy.excess(), None, "the other one leaves everything");
        other.add(8 * MIB);
        assert_eq!(other.excess(), None, "it has less than its share");
        assert_eq!(busy.excess(), Some(49 * MIB), "seven eighths of what the other one leaves");
        other.add(40 * MIB);
        assert_eq!([&busy, &other].map(|share| share.excess()), [Some(28 * MIB); 2], "both have more than a half");
        other.remove(48 * MIB, 2);
        assert_eq!(busy.excess(), None);
        drop(other);
        busy.limit_to(Some(8 * MIB));
        assert_eq!(busy.excess(), Some(7 * MIB));
        busy.limit_to(None);
        assert_eq!(busy.excess(), None);
    }

    #[test]
    fn shares_have_a_lower_bound_and_events_too() {
        let budget = budget(1);
        let shares: Vec<_> = (0..100).map(|_| Share::of(budget)).collect();
        shares.iter().for_each(|share| share.add(MIB / 2));
        assert!(shares.iter().all(|share| share.excess().is_none()));
        assert!(!shares[0].exceeds(0), "a single event stays");
        (0..limits::HISTORY_EVENTS_MIN).for_each(|_| shares[0].add(1));
        assert!(shares[0].exceeds(0));
    }
}
