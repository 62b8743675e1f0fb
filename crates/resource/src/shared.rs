//! The facts of CRDs whose stored bytes several contexts share, as forks of a store do: they are read and compiled once.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use base::request::FeatureGates;
use bytes::Bytes;
use parking_lot::Mutex;

use super::conversion::Conversion;
use super::model::Facts;

/// By the address of the bytes. The facts keep the bytes in memory, so no others can have this address.
static SHARED: LazyLock<Mutex<HashMap<usize, Weak<Facts>>>> = LazyLock::new(Mutex::default);

fn address(stored: &Bytes) -> usize {
    stored.as_ptr().addr()
}

/// The facts of a stored CRD, if a context with the same features has them.
pub fn get(stored: &Bytes, gates: &FeatureGates) -> Option<Arc<Facts>> {
    let facts = SHARED.lock().get(&address(stored))?.upgrade()?;
    (facts.stored.len() == stored.len() && facts.gates == *gates).then_some(facts)
}

/// Offers the facts of a stored CRD to other contexts. A conversion webhook is called by the client of its own context.
pub fn offer(facts: &Arc<Facts>) {
    if facts.stored.is_empty() || !matches!(facts.conversion, Conversion::None) {
        return;
    }
    let mut shared = SHARED.lock();
    // entries without facts are removed whenever the size doubles, so that an offer takes constant time on average
    if shared.len().is_power_of_two() {
        shared.retain(|_, facts| facts.strong_count() > 0);
    }
    shared.insert(address(&facts.stored), Arc::downgrade(facts));
}
