//! Observes single requests.

use std::sync::Arc;

use base::clock;
use base::request::{RequestInfo, User, Verb};
use machinery::Text;
use store::Revision;

use super::super::Testing;
use super::super::definition::GROUP;
use crate::http::{Observation, RequestEnding};
use crate::limits;

/// The user agent up to its first space, without details such as the platform.
pub fn agent_of(agent: &str) -> Text {
    let name = agent.split(' ').next().unwrap_or_default();
    match &name[..name.floor_char_boundary(limits::REPORT_AGENT_BYTES)] {
        "" => Text::new_static("unknown"),
        name => Text::from(name),
    }
}

/// A request that has begun.
pub struct Exchange {
    pub info: RequestInfo,
    /// See [`agent_of`].
    pub agent: Text,
    pub user: Option<User>,
    /// For a write to an object, the revision of the object when the request began.
    pub before: Option<Revision>,
    /// Whether the request began while nothing was happening, see [`super::tally::Tally`].
    pub at_rest: bool,
}

impl Exchange {
    pub fn new(info: RequestInfo, agent: &str) -> Exchange {
        Exchange { info, agent: agent_of(agent), user: None, before: None, at_rest: false }
    }

    /// Whether the request stores something if it succeeds.
    pub fn is_write(&self) -> bool {
        let info = &self.info;
        let is_review = matches!(info.group.as_str(), "authorization.k8s.io" | "authentication.k8s.io");
        let writes =
            matches!(info.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection);
        writes && !is_review && info.subresource != "token" && !info.query.has("dryRun")
    }

    /// Whether the request is a write that names its object.
    pub fn changes_object(&self) -> bool {
        matches!(self.info.verb, Verb::Update | Verb::Patch) && !self.info.query.has("dryRun")
    }
}

/// Observes a request.
pub struct Observing {
    testing: Arc<Testing>,
    exchange: Exchange,
}

impl Observing {
    /// `None` if the request does not count.
    pub fn begin(testing: &Arc<Testing>, info: &RequestInfo, agent: &str) -> Option<Observing> {
        if !info.is_resource || info.group == GROUP {
            return None;
        }
        let mut exchange = Exchange::new(info.clone(), agent);
        // client-go names the heartbeats of leaders so; older ones write ConfigMaps instead of Leases
        if exchange.is_write() && !agent.ends_with("leader-election") {
            testing.kept.tally.lock().begins(&mut exchange);
        }
        if exchange.changes_object() {
            exchange.before = testing.revision_of(info);
        }
        Some(Observing { testing: testing.clone(), exchange })
    }
}

impl Observation for Observing {
    fn identified(&mut self, user: &User) {
        self.exchange.user = Some(user.clone());
    }

    fn ended(self: Box<Self>, ending: &RequestEnding) {
        self.testing.kept.tally.lock().ended(&self.exchange, ending, clock::instant());
    }
}

impl Testing {
    /// The revision of the stored object that a request names.
    fn revision_of(&self, info: &RequestInfo) -> Option<Revision> {
        let resource = self.context()?.registry.get(&info.group, &info.resource)?;
        Some(resource.collection.get(&resource.key(&info.namespace, &info.name).path)?.revision)
    }
}
