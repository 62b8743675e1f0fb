//! The objects that a controller has yet to handle.

use std::collections::BTreeMap;
use std::time::Duration;

use base::clock;
use base::metrics::Queue;
use machinery::Text;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::limits;

/// The keys of objects to be handled, with the time at which they were added. A key that is added several times is
/// handled once.
#[derive(Default)]
pub struct Pending {
    keys: Mutex<BTreeMap<Text, Instant>>,
    /// The metrics of the queue, if kube-controller-manager has some for it.
    metrics: Option<Queue>,
}

impl Pending {
    /// Counts under the name that kube-controller-manager gives the queue.
    pub fn measured(name: &'static str) -> Pending {
        Pending { metrics: Some(Queue(name)), ..Pending::default() }
    }

    pub fn add(&self, key: Text) {
        self.keys.lock().entry(key).or_insert_with(|| {
            self.metrics.iter().for_each(|queue| queue.added(1));
            clock::instant()
        });
    }

    /// Adds other keys in place of one that stands for them, if that has been added.
    pub fn expand(&self, key: &Text, others: impl FnOnce() -> Vec<Text>) {
        let since = self.keys.lock().remove(key);
        if let Some(since) = since {
            self.metrics.iter().for_each(|queue| queue.taken(since.elapsed()));
            others().into_iter().for_each(|key| self.add(key));
        }
    }

    /// Handles all keys. Those that fail are added again, and the time until the next pass is returned.
    pub async fn each<F: Future<Output = bool>>(&self, handle: impl Fn(Text) -> F) -> Option<Duration> {
        let mut failed = vec![];
        let keys = std::mem::take(&mut *self.keys.lock());
        for (key, since) in keys {
            let began = clock::instant();
            self.metrics.iter().for_each(|queue| queue.taken(began - since));
            if !handle(key.clone()).await {
                self.metrics.iter().for_each(|queue| queue.retried());
                failed.push(key);
            }
            self.metrics.iter().for_each(|queue| queue.worked(began.elapsed()));
        }
        let again = (!failed.is_empty()).then_some(limits::CONTROLLER_RETRY);
        failed.into_iter().for_each(|key| self.add(key));
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keys_that_failed_are_there_again() {
        let pending = Pending::default();
        ["a", "b", "a"].into_iter().for_each(|key| pending.add(key.into()));
        let handled = Mutex::new(vec![]);
        let except = |fails: &'static str| {
            let handled = &handled;
            move |key: Text| async move {
                handled.lock().push(key.to_string());
                key != fails
            }
        };
        assert_eq!(pending.each(except("b")).await, Some(limits::CONTROLLER_RETRY));
        assert_eq!(pending.each(except("")).await, None);
        assert_eq!(pending.each(except("")).await, None);
        assert_eq!(*handled.lock(), ["a", "b", "b"]);
    }
}
