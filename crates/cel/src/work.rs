//! The work limit of an evaluation, in addition to its cost limit.
//!
//! Upstream charges some calls by the size of an argument, however large the result is, or by the length of lists,
//! whatever they contain. As values are shared, a short expression can create a list that would take years to compare
//! or to print. So work is counted as well, in units of about a nanosecond: steps through values, bytes created, bytes
//! searched. One evaluation may take [`EVALUATION_UNITS`], which no realistic rule reaches. The counter is
//! thread-local, since a thread evaluates one expression at a time and library functions have no access to the
//! evaluation.
//!
//! Work is also counted for the interrupt of the caller, see [`machinery::work`].

pub(crate) use crate::limits::EVALUATION_UNITS;
pub(crate) use crate::limits::NESTING_MAX;
use crate::limits::{CHECK_VISITS, OBJECT_VISITS_MAX, VISITS_MAX};
use machinery::work::{ask, spend};
use std::cell::Cell;

/// Units of a step: a value compared or printed, an item of a list copied.
const STEP_UNITS: u64 = 64;
/// Units of a byte that is created: one evaluation may create, and hold, 64 MiB.
const BYTE_UNITS: u64 = 4;
/// Bytes that are searched per unit.
const SEARCHED_PER_UNIT: u64 = 8;

/// Units of a visit: [`VISITS_MAX`] of them use up the work of an evaluation.
const VISIT_UNITS: u64 = EVALUATION_UNITS / VISITS_MAX;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(EVALUATION_UNITS) };
    /// The remaining visits of the matches within [`bounded_patterns`].
    static VISITS: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Runs `work` with a limit of a few seconds on the total time of its matches of large patterns. After that, such matches
/// find nothing, and [`are_patterns_exhausted`] is true until `work` returns.
pub fn bounded_patterns<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            VISITS.set(self.0);
        }
    }
    let _restore = Restore(VISITS.replace(OBJECT_VISITS_MAX));
    work()
}

/// Whether the matches within the running [`bounded_patterns`] have exceeded their limit.
pub fn are_patterns_exhausted() -> bool {
    VISITS.get() == 0
}

/// Counts the visits of one match: the states of the pattern that it passes.
pub(crate) struct Visits {
    made: u64,
    max: u64,
    /// Visits made at the last check of the limit and the interrupt.
    last_check: u64,
}

impl Visits {
    pub(crate) fn new() -> Visits {
        Visits { made: 0, max: VISITS_MAX.min(VISITS.get()), last_check: 0 }
    }

    /// Counts visits. `None` if the match must be abandoned.
    #[inline]
    pub(crate) fn count(&mut self, visits: u64) -> Option<()> {
        self.made += visits;
        if self.made - self.last_check < CHECK_VISITS && self.made <= self.max { Some(()) } else { self.check_limits() }
    }

    #[cold]
    fn check_limits(&mut self) -> Option<()> {
        self.last_check = self.made;
        if ask() || self.made > self.max {
            exhaust();
            return None;
        }
        Some(())
    }
}

impl Drop for Visits {
    fn drop(&mut self) {
        VISITS.set(VISITS.get().saturating_sub(self.made));
        take(self.made.saturating_mul(VISIT_UNITS));
    }
}

/// Begins an evaluation that may take `units`.
pub(crate) fn begin(units: u64) {
    LEFT.set(units.min(EVALUATION_UNITS));
}

/// The remaining units of the evaluation.
pub(crate) fn left() -> u64 {
    LEFT.get()
}

/// Counts steps through values. `None` if the limit is exceeded: the evaluation ends, regardless of the caller's result.
#[inline]
pub(crate) fn step(count: usize) -> Option<()> {
    take((count as u64).saturating_mul(STEP_UNITS))
}

/// Counts bytes that are about to be created. `None` if the limit is exceeded.
#[inline]
pub(crate) fn make(bytes: usize) -> Option<()> {
    take((bytes as u64).saturating_mul(BYTE_UNITS))
}

/// Counts bytes that are searched. `None` if the limit is exceeded.
#[inline]
pub(crate) fn search(bytes: usize) -> Option<()> {
    take(bytes as u64 / SEARCHED_PER_UNIT)
}

#[inline]
fn take(units: u64) -> Option<()> {
    let left = LEFT.get().saturating_sub(units);
    LEFT.set(left);
    if spend(units) {
        exhaust();
    }
    (!is_used_up()).then_some(())
}

/// Ends the evaluation at the next call that is charged.
pub(crate) fn exhaust() {
    LEFT.set(0);
}

/// Whether no units are left.
#[inline]
pub(crate) fn is_used_up() -> bool {
    LEFT.get() == 0
}
