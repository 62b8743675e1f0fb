//! Log lines about repeating failures: the first failure is logged at once, later ones at most every ten seconds, with
//! the number of failures in between. An operator sees that something fails, and a client that fails on purpose does
//! not fill the disk.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{clock, limits};

/// Failures of one kind, by a name such as that of a webhook.
pub struct Notices(Mutex<BTreeMap<String, Last>>);

/// The last line about a name, and the failures since.
struct Last {
    at: Instant,
    since: u64,
}

impl Notices {
    pub const fn new() -> Notices {
        Notices(Mutex::new(BTreeMap::new()))
    }

    /// Counts a failure. If it should be logged, returns the number of failures that were not logged since the last
    /// line; otherwise `None`.
    pub fn due(&self, name: &str) -> Option<u64> {
        let mut lasts = self.0.lock();
        let now = clock::instant();
        if let Some(last) = lasts.get_mut(name) {
            if now.duration_since(last.at) < limits::NOTICE_PAUSE {
                last.since += 1;
                return None;
            }
            last.at = now;
            return Some(std::mem::take(&mut last.since));
        }
        if lasts.len() >= limits::NOTICE_NAMES_MAX {
            lasts.retain(|_, last| now.duration_since(last.at) < limits::NOTICE_PAUSE);
            if lasts.len() >= limits::NOTICE_NAMES_MAX {
                return None;
            }
        }
        lasts.insert(name.to_owned(), Last { at: now, since: 0 });
        Some(0)
    }
}

impl Default for Notices {
    fn default() -> Notices {
        Notices::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn repeated_failures_are_counted() {
        let notices = Notices::new();
        let mut logged = vec![];
        for second in 0..25 {
            logged.extend(notices.due("a").map(|more| (second, more)));
            tokio::time::advance(std::time::Duration::from_secs(1)).await;
        }
        assert_eq!(logged, [(0, 0), (10, 9), (20, 9)]);
        assert_eq!(notices.due("b"), Some(0), "each name has lines of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn names_are_bounded() {
        let notices = Notices::new();
        let logged = (0..limits::NOTICE_NAMES_MAX + 5).filter(|name| notices.due(&name.to_string()).is_some());
        assert_eq!(logged.count(), limits::NOTICE_NAMES_MAX);
        tokio::time::advance(limits::NOTICE_PAUSE).await;
        assert_eq!(notices.due("new"), Some(0));
    }
}
