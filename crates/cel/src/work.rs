//! Bounds of the work of an evaluation, beside its cost.
//!
//! Costs are upstream's, and they count some calls by the size of an argument however large the result is, or by the
//! lengths of lists however much is in them. As values are shared, a short expression can make a list that would take
//! years to compare or to print. So work is counted as well, in units of about a nanosecond: steps through values, bytes
//! made, bytes searched. One evaluation may do [`EVALUATION_UNITS`]; no rule that means anything comes near. What one
//! thread evaluates, it evaluates alone, so the count belongs to the thread: the functions of the libraries know nothing
//! of the evaluation.
//!
//! The caller may also install an interrupt, see [`interruptible`].

pub(crate) use crate::limits::EVALUATION_UNITS;
pub(crate) use crate::limits::NESTING_MAX;
use crate::limits::{ASK_VISITS, INTERRUPT_UNITS, OBJECT_VISITS_MAX, VISITS_MAX};
use std::cell::Cell;

/// Units of a step: a value compared or printed, an item of a list copied.
const STEP_UNITS: u64 = 64;
/// Units of a byte that is made: 64 MiB may be made, and held, by one evaluation.
const BYTE_UNITS: u64 = 4;
/// Bytes that are searched for a unit.
const SEARCHED_PER_UNIT: u64 = 8;

/// Units of a visit: [`VISITS_MAX`] of them take all the work of an evaluation.
const VISIT_UNITS: u64 = EVALUATION_UNITS / VISITS_MAX;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(EVALUATION_UNITS) };
    /// Units until the interrupt is asked.
    static UNASKED: Cell<u64> = const { Cell::new(INTERRUPT_UNITS) };
    static INTERRUPT: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
    /// Visits that the matches within [`bounded_patterns`] may still make.
    static VISITS: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Runs `work` with an interrupt: a function that evaluations, and matches of large patterns, call about once in a
/// millisecond. While it returns true, evaluations end with the error of an exceeded budget and such matches find
/// nothing, so that `work` returns soon; the caller discards what it returns then.
///
/// ```
/// let checked = cel::Environment::standard().check("1 + 1 == 2").unwrap();
/// let program = cel::Program::new(&cel::Environment::standard(), &checked).unwrap();
/// let outcome = cel::interruptible(|| false, || program.eval(&[], u64::MAX));
/// assert!(outcome.result.unwrap().equals(&cel::Val::Bool(true)));
/// ```
pub fn interruptible<T>(interrupt: fn() -> bool, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<fn() -> bool>);
    impl Drop for Restore {
        fn drop(&mut self) {
            INTERRUPT.set(self.0);
        }
    }
    let _restore = Restore(INTERRUPT.replace(Some(interrupt)));
    work()
}

/// Runs `work`, whose matches of large patterns may take a few seconds together. Once they have, such matches find nothing,
/// and [`are_patterns_exhausted`] is true until `work` returns.
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

/// Whether the matches within the running [`bounded_patterns`] have taken all their time.
pub fn are_patterns_exhausted() -> bool {
    VISITS.get() == 0
}

/// The visits of one match: states of a pattern that are gone through.
pub(crate) struct Visits {
    made: u64,
    max: u64,
    /// Visits made when the interrupt was last called.
    asked: u64,
}

impl Visits {
    pub(crate) fn new() -> Visits {
        Visits { made: 0, max: VISITS_MAX.min(VISITS.get()), asked: 0 }
    }

    /// Counts visits. `None` if the match is to be given up.
    #[inline]
    pub(crate) fn count(&mut self, visits: u64) -> Option<()> {
        self.made += visits;
        if self.made - self.asked < ASK_VISITS && self.made <= self.max { Some(()) } else { self.ask() }
    }

    #[cold]
    fn ask(&mut self) -> Option<()> {
        self.asked = self.made;
        if is_interrupted() || self.made > self.max {
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

/// An evaluation begins that may take so many units.
pub(crate) fn begin(units: u64) {
    LEFT.set(units.min(EVALUATION_UNITS));
}

/// The units that the evaluation has not taken.
pub(crate) fn left() -> u64 {
    LEFT.get()
}

/// Takes steps through values. None if there are no more: the evaluation will end, whatever the caller returns.
#[inline]
pub(crate) fn step(count: usize) -> Option<()> {
    take((count as u64).saturating_mul(STEP_UNITS))
}

/// Takes bytes that are about to be made. None if there are no more.
#[inline]
pub(crate) fn make(bytes: usize) -> Option<()> {
    take((bytes as u64).saturating_mul(BYTE_UNITS))
}

/// Takes bytes that are searched. None if there are no more.
#[inline]
pub(crate) fn search(bytes: usize) -> Option<()> {
    take(bytes as u64 / SEARCHED_PER_UNIT)
}

#[inline]
fn take(units: u64) -> Option<()> {
    let left = LEFT.get().saturating_sub(units);
    LEFT.set(left);
    match UNASKED.get().checked_sub(units) {
        Some(unasked) => UNASKED.set(unasked),
        None => {
            is_interrupted();
        }
    }
    (!is_used_up()).then_some(())
}

/// Asks the interrupt now. If it says so, no units are left.
#[cold]
pub(crate) fn is_interrupted() -> bool {
    UNASKED.set(INTERRUPT_UNITS);
    let interrupted = INTERRUPT.get().is_some_and(|interrupt| interrupt());
    if interrupted {
        LEFT.set(0);
    }
    interrupted
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
