//! The objects that a controller has yet to handle.

use std::collections::BTreeSet;
use std::time::Duration;

use machinery::Text;
use parking_lot::{Mutex, MutexGuard};

use crate::limits;

/// The keys of objects to be handled. A key that is added several times is handled once.
#[derive(Default)]
pub struct Pending {
    keys: Mutex<BTreeSet<Text>>,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<Text>> {
        self.keys.lock()
    }

    pub fn add(&self, key: Text) {
        self.lock().insert(key);
    }

    /// Handles all keys. Those that fail are added again, and the time until the next pass is returned.
    pub async fn each<F: Future<Output = bool>>(&self, handle: impl Fn(Text) -> F) -> Option<Duration> {
        let mut failed = BTreeSet::new();
        let keys = std::mem::take(&mut *self.lock());
        for key in keys {
            if !handle(key.clone()).await {
                failed.insert(key);
            }
        }
        let again = (!failed.is_empty()).then_some(limits::CONTROLLER_RETRY);
        self.lock().append(&mut failed);
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
