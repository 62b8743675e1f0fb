//! A cache of webhook responses with a time to live.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{clock, limits};

/// Caches responses by key, each for its own time to live.
pub struct ResponseCache<T> {
    time_to_live: Box<dyn Fn(&T) -> Duration + Send + Sync>,
    known: Mutex<HashMap<String, (Instant, T)>>,
}

impl<T> std::fmt::Debug for ResponseCache<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("webhook responses")
    }
}

impl<T: Clone> ResponseCache<T> {
    pub fn new(time_to_live: impl Fn(&T) -> Duration + Send + Sync + 'static) -> ResponseCache<T> {
        ResponseCache { time_to_live: Box::new(time_to_live), known: Mutex::default() }
    }

    pub fn get(&self, key: &str) -> Option<T> {
        let known = self.known.lock();
        let (until, response) = known.get(key)?;
        (clock::instant() < *until).then(|| response.clone())
    }

    pub fn put(&self, key: String, response: T) {
        let now = clock::instant();
        let until = now + (self.time_to_live)(&response);
        let mut known = self.known.lock();
        if known.len() >= limits::CACHED_RESPONSES_MAX {
            known.retain(|_, (until, _)| now < *until);
        }
        if known.len() >= limits::CACHED_RESPONSES_MAX {
            known.clear();
        }
        known.insert(key, (until, response));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_expire_after_their_time_to_live() {
        let cache = ResponseCache::new(|good: &bool| if *good { Duration::from_secs(600) } else { Duration::ZERO });
        cache.put("a".into(), true);
        cache.put("b".into(), false);
        assert_eq!((cache.get("a"), cache.get("b"), cache.get("c")), (Some(true), None, None));
        for i in 0..2 * limits::CACHED_RESPONSES_MAX {
            cache.put(format!("x{i}"), true);
        }
        assert!(cache.known.lock().len() <= limits::CACHED_RESPONSES_MAX);
    }
}
