//! Interrupts of computations that take long.
//!
//! A pure function cannot see the deadline of the request that it works for. Its caller installs an interrupt, and the
//! function counts its work in units of about a nanosecond; about once per millisecond of work the interrupt is asked.

use crate::limits::INTERRUPT_UNITS;
use std::cell::Cell;

thread_local! {
    static INTERRUPT: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
    static IS_INTERRUPTED: Cell<bool> = const { Cell::new(false) };
    /// Units of work until the interrupt is asked again.
    static UNASKED: Cell<u64> = const { Cell::new(INTERRUPT_UNITS) };
}

/// Runs `work` with an interrupt: a function that long computations call about once per millisecond. Once it returns
/// true, they end soon, with whichever result: evaluations with the error of an exceeded budget, matches of large
/// patterns without a match, patches with an error. The caller must then discard the result.
///
/// ```
/// use machinery::work::{interruptible, spend};
///
/// assert_eq!(interruptible(|| true, || (0..).take_while(|_| !spend(1 << 21)).count()), 0);
/// ```
pub fn interruptible<T>(interrupt: fn() -> bool, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<fn() -> bool>, bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            INTERRUPT.set(self.0);
            IS_INTERRUPTED.set(self.1);
        }
    }
    let _restore = Restore(INTERRUPT.replace(Some(interrupt)), IS_INTERRUPTED.replace(false));
    work()
}

/// Counts units of work. Returns whether the computation is interrupted.
#[inline]
pub fn spend(units: u64) -> bool {
    match UNASKED.get().checked_sub(units) {
        Some(unasked) => {
            UNASKED.set(unasked);
            IS_INTERRUPTED.get()
        }
        None => ask(),
    }
}

/// Asks the interrupt now. Returns whether the computation is interrupted.
#[cold]
pub fn ask() -> bool {
    UNASKED.set(INTERRUPT_UNITS);
    if !IS_INTERRUPTED.get() && INTERRUPT.get().is_some_and(|interrupt| interrupt()) {
        IS_INTERRUPTED.set(true);
    }
    IS_INTERRUPTED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static ASKED: Cell<u32> = const { Cell::new(0) };
    }

    fn third() -> bool {
        ASKED.set(ASKED.get() + 1);
        ASKED.get() == 3
    }

    #[test]
    fn interrupt_is_asked_once_per_share_of_work_and_lasts() {
        let steps = |steps: u64| (0..steps).filter(|_| spend(INTERRUPT_UNITS / 16)).count();
        interruptible(third, || {
            assert_eq!(steps(2 * 17), 0);
            assert_eq!((ASKED.get(), IS_INTERRUPTED.get()), (2, false));
            assert_eq!(steps(20), 4);
            assert_eq!((ASKED.get(), IS_INTERRUPTED.get()), (3, true));
        });
        assert!(!IS_INTERRUPTED.get() && !ask());
    }
}
