//! Reinvocation of policies and webhooks after later changes (`reinvocationPolicy`).

use std::collections::BTreeSet;

use machinery::Value;

/// A round of mutating admission: policies, then webhooks. There is a second one if a policy or webhook has changed the object in the
/// first.
#[derive(Default)]
pub struct Round {
    pub number: usize,
    /// Whether a second round is required.
    pub again: bool,
}

/// The policies or webhooks of one plugin that are to be invoked again after later changes.
pub struct Reinvocation<K> {
    /// Those with `reinvocationPolicy: IfNeeded` that were invoked since the last change.
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
    /// Begins the plugin's part of a round. In the second one, all that were invoked are due if the object is no longer the one that
    /// the plugin has left.
    pub fn begin(&mut self, round: &Round, object: Option<&Value>) {
        if round.number > 0 && self.result.as_ref() != object {
            self.due.append(&mut self.invoked);
        }
    }

    /// Records that the object has been changed. Call this before [`Self::mark_invoked`] for the policy or webhook that has
    /// changed it, which is not invoked again because of its own change.
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
