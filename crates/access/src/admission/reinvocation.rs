//! Reinvocation of policies and webhooks after later changes (`reinvocationPolicy`).

use std::collections::BTreeSet;

use machinery::Value;

/// The round of the chain: it runs a second time if the object has been changed (`reinvocationPolicy`).
#[derive(Default)]
pub struct Round {
    pub number: usize,
    /// Whether a second round is required.
    pub again: bool,
}

/// The policies or webhooks of one plugin that are to be invoked again after later changes.
pub struct Reinvocation<K> {
    /// Policies or webhooks invoked since the last change.
    invoked: BTreeSet<K>,
    /// Policies or webhooks to be invoked again.
    due: BTreeSet<K>,
    /// The object after the plugin.
    pub result: Option<Value>,
}

impl<K> Default for Reinvocation<K> {
    fn default() -> Self {
        Reinvocation { invoked: BTreeSet::new(), due: BTreeSet::new(), result: None }
    }
}

impl<K: Ord> Reinvocation<K> {
    /// Begins the plugin's part of a round: later changes of others cause reinvocations.
    pub fn begin(&mut self, round: &Round, object: Option<&Value>) {
        if round.number > 0 && self.result.as_ref() != object {
            self.due.append(&mut self.invoked);
        }
    }

    /// Records that the object has been changed.
    pub fn changed(&mut self, round: &mut Round) {
        self.due.append(&mut self.invoked);
        round.again = true;
    }

    /// Whether to invoke `key`: always in the first round, and in the second round if it is due.
    pub fn is_due(&self, round: &Round, key: &K) -> bool {
        round.number == 0 || self.due.contains(key)
    }

    pub fn mark_invoked(&mut self, key: K) {
        self.invoked.insert(key);
    }
}
