//! What an evaluation may do beyond what its cost counts.
//!
//! Costs are upstream's, and they count a comparison of lists by the lengths of the lists, however much is in them. As
//! values are shared, a short expression can make a list that would take years to compare or to print. So steps through
//! values are counted too; no rule that means anything comes near the bound. One evaluation runs on one thread, and the
//! count belongs to the thread, as the functions of the libraries know nothing of the evaluation.

use std::cell::Cell;

/// Steps of one evaluation: values compared, list items copied, bytes printed.
const STEPS_MAX: u64 = 1 << 22;
/// How deep made values may nest: what the thread's stack can walk and drop.
pub(crate) const NESTING_MAX: u32 = 1_000;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(STEPS_MAX) };
}

/// An evaluation begins.
pub(crate) fn begin() {
    LEFT.set(STEPS_MAX);
}

/// Takes steps. None if there are no more: the evaluation will end, whatever the caller answers.
#[inline]
pub(crate) fn step(count: usize) -> Option<()> {
    let left = LEFT.get().saturating_sub(count as u64);
    LEFT.set(left);
    (left > 0).then_some(())
}

/// Whether all steps are taken.
#[inline]
pub(crate) fn is_used_up() -> bool {
    LEFT.get() == 0
}
