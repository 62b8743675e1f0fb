//! The objects that a controller has yet to handle.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use machinery::Text;
use tokio::sync::{Notify, watch};

use crate::limits;

/// The keys of objects to be handled. A key that is added several times is handled once.
#[derive(Default)]
pub struct Pending {
    keys: Mutex<BTreeSet<Text>>,
    changed: Notify,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<Text>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, key: Text) {
        self.lock().insert(key);
        self.changed.notify_one();
    }

    /// Removes and returns all keys.
    pub fn take(&self) -> BTreeSet<Text> {
        std::mem::take(&mut *self.lock())
    }

    /// Waits for another key and adds those that `failed`, after [`limits::CONTROLLER_RETRY`] at the latest if there are any.
    /// Returns false once `stop` is true.
    pub async fn wait(&self, mut failed: BTreeSet<Text>, stop: &mut watch::Receiver<bool>) -> bool {
        let retry = async {
            if failed.is_empty() {
                std::future::pending().await
            } else {
                tokio::time::sleep(limits::CONTROLLER_RETRY).await
            }
        };
        tokio::select! {
            () = self.changed.notified() => {}
            () = retry => {}
            () = super::stopped(stop) => return false,
        }
        self.lock().append(&mut failed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn keys_that_failed_are_there_again() {
        let pending = Pending::default();
        let (stop, mut stopped) = watch::channel(false);
        ["a", "b", "a"].into_iter().for_each(|key| pending.add(key.into()));
        assert!(pending.wait(BTreeSet::new(), &mut stopped).await, "keys were added");
        assert_eq!(pending.take(), ["a", "b"].map(Text::from).into());
        let failed = || BTreeSet::from([Text::from("b")]);
        assert!(pending.wait(failed(), &mut stopped).await, "after a while");
        assert_eq!(pending.take(), failed());
        stop.send_replace(true);
        assert!(!pending.wait(failed(), &mut stopped).await);
    }
}
