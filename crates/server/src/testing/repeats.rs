//! Requests that faults made fail, and that their clients are expected to repeat.
//!
//! While a client backs off, it sends nothing, although it is not done. `Settle` waits until it has repeated the
//! request, or is taken not to.

use std::collections::HashMap;
use std::time::Duration;

use base::request::{RequestInfo, Verb};
use machinery::Text;
use tokio::time::Instant;

use crate::limits;

/// Identifies a request and its repetition. Of the verb, only whether it writes counts: a client may repeat an update
/// as a patch, or a list as a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RepeatKey {
    user: Text,
    agent: Text,
    group: Text,
    resource: Text,
    subresource: Text,
    namespace: Text,
    name: Text,
    writes: bool,
}

impl RepeatKey {
    pub fn of(user: &str, agent: &str, info: &RequestInfo) -> RepeatKey {
        RepeatKey {
            user: user.into(),
            agent: agent.into(),
            group: info.group.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            writes: !matches!(info.verb, Verb::Get | Verb::List | Verb::Watch),
        }
    }
}

/// A request that a fault has made fail.
#[derive(Clone, Debug)]
pub struct FailedRequest {
    pub request: String,
    pub fault: Text,
    /// The time for which the response asks the client to wait.
    pub pause: Option<Duration>,
}

/// The failed requests that clients are expected to repeat, and until when.
#[derive(Debug, Default)]
pub struct Repeats(HashMap<RepeatKey, (FailedRequest, Instant)>);

impl Repeats {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn expect(&mut self, key: RepeatKey, failed: FailedRequest, now: Instant) {
        if self.0.len() < limits::FAULT_REPEATS_MAX || self.0.contains_key(&key) {
            let until = now + failed.pause.unwrap_or(limits::FAULT_REPEAT);
            self.0.insert(key, (failed, until));
        }
    }

    /// Notes a request. Returns whether it repeats one that failed.
    pub fn requested(&mut self, key: &RepeatKey) -> bool {
        self.0.remove(key).is_some()
    }

    /// Forgets requests whose repetition is no longer expected. Returns whether there were any.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.0.len();
        self.0.retain(|_, (_, until)| *until > now);
        self.0.len() < before
    }

    /// When the next expectation expires.
    pub fn next(&self) -> Option<Instant> {
        self.0.values().map(|(_, until)| *until).min()
    }

    /// One line about the request whose expectation expires first.
    pub fn first(&self) -> Option<String> {
        let (key, (failed, _)) = self.0.iter().min_by_key(|(_, (_, until))| *until)?;
        let (agent, user, request, fault) = (&key.agent, &key.user, &failed.request, &failed.fault);
        Some(format!("{agent} ({user}) has yet to repeat \"{request}\", which Fault {fault} made fail"))
    }
}

#[cfg(test)]
mod tests {
    use base::clock;
    use http::Method;

    use super::*;

    fn key(verb: Verb, name: &str) -> RepeatKey {
        let info = RequestInfo::parse(&Method::GET, &format!("/api/v1/pods/{name}"), "");
        RepeatKey::of("ann", "a/1", &RequestInfo { verb, ..info })
    }

    #[test]
    fn a_request_is_expected_until_it_is_repeated_or_its_time_is_over() {
        let now = clock::instant();
        let mut repeats = Repeats::default();
        let mut expect = |verb: Verb, name: &str, after: Option<u64>| {
            let (request, pause) = (verb.as_str().to_owned(), after.map(Duration::from_secs));
            repeats.expect(key(verb, name), FailedRequest { request, fault: "f".into(), pause }, now);
        };
        expect(Verb::Update, "a", None);
        expect(Verb::List, "", Some(1));
        assert!(!repeats.requested(&key(Verb::Update, "b")) && !repeats.requested(&key(Verb::Get, "a")));
        assert!(repeats.requested(&key(Verb::Patch, "a")) && !repeats.requested(&key(Verb::Patch, "a")));
        assert_eq!(repeats.first().unwrap(), "a/1 (ann) has yet to repeat \"list\", which Fault f made fail");
        assert!(!repeats.expire(now) && repeats.expire(now + Duration::from_secs(1)) && repeats.is_empty());
    }
}
