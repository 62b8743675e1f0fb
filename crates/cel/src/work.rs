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

use std::cell::Cell;

/// Units that one evaluation may take: about a quarter of a second.
pub(crate) const EVALUATION_UNITS: u64 = 1 << 28;
/// Units of a step: a value compared or printed, an item of a list copied.
const STEP_UNITS: u64 = 64;
/// Units of a byte that is made: 64 MiB may be made, and held, by one evaluation.
const BYTE_UNITS: u64 = 4;
/// Bytes that are searched for a unit.
const SEARCHED_PER_UNIT: u64 = 8;
/// Units between two questions to the interrupt: about a millisecond.
const INTERRUPT_UNITS: u64 = 1 << 20;
/// How deep made values may nest: what the thread's stack can walk and drop.
pub(crate) const NESTING_MAX: u32 = 1_000;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(EVALUATION_UNITS) };
    /// Units until the interrupt is asked.
    static UNASKED: Cell<u64> = const { Cell::new(INTERRUPT_UNITS) };
    static INTERRUPT: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
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
