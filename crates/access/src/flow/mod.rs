//! API priority and fairness (KEP-1040): FlowSchemas classify requests into flows of priority levels, each with its share of
//! the seats; excess requests wait in queues, which flows share by shuffle sharding.
//!
//! Invariants: a level always has the part of its share that it does not lend; a request is executed, queued or rejected
//! at once; a request that is cancelled while it is queued has no effect.

mod classify;
pub mod defaults;
mod seats;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base::metrics::FlowLevel;
use base::request::{RequestInfo, User};
use http::HeaderValue;
use machinery::{Text, Value};
use objects::{Event, EventKind, Key};
use parking_lot::Mutex;
use resource::builtin::FLOW_GROUP;

use classify::{PriorityLevel, Schema};
pub use seats::Seat;
use seats::Seats;

/// The uids of the FlowSchema and the level of a request, for the headers of its response.
#[derive(Clone, Debug)]
pub struct Classification {
    pub schema: HeaderValue,
    pub level: HeaderValue,
}

/// The configuration objects.
#[derive(Clone, Default)]
struct FlowObjects {
    /// By precedence, then by name.
    schemas: Vec<Arc<Schema>>,
    levels: HashMap<Text, Arc<PriorityLevel>>,
}

/// Classifies requests and assigns seats.
pub struct Flow {
    configuration: ArcSwap<FlowObjects>,
    seats: Arc<Seats>,
    /// Serializes changes of the configuration.
    changing: Mutex<()>,
}

/// The request is rejected: no seat is free and the queue is full.
#[derive(Debug)]
pub struct Refused;

impl Flow {
    /// `seats` is the total of all limited levels; 0 for no limit.
    pub fn new(seats: usize) -> Flow {
        Flow { configuration: ArcSwap::default(), seats: Arc::new(Seats::new(seats)), changing: Mutex::default() }
    }

    /// Observes events, which are passed in order.
    pub fn observe(&self, key: &Key, event: &Event) {
        if key.group != FLOW_GROUP {
            return;
        }
        let _guard = self.changing.lock();
        let object = (event.kind != EventKind::Deleted).then(|| event.object.body.to_value(0));
        let mut next = FlowObjects::clone(&self.configuration.load());
        match key.plural.as_str() {
            "flowschemas" => {
                next.schemas.retain(|schema| schema.name != key.path);
                next.schemas.extend(object.as_ref().map(|object| Arc::new(Schema::parse(object))));
                next.schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
            }
            "prioritylevelconfigurations" => match &object {
                Some(object) => drop(next.levels.insert(key.path.clone(), Arc::new(PriorityLevel::parse(object)))),
                None => drop(next.levels.remove(&key.path)),
            },
            _ => return,
        }
        self.seats.set_levels(next.levels.values().map(|level| (level.name.clone(), level.limit.clone())));
        self.configuration.store(Arc::new(next));
    }

    /// The FlowSchema that matches a request, and its level. FlowSchemas of absent levels are ignored.
    fn classify(&self, user: &User, info: &RequestInfo) -> Option<(Arc<Schema>, Arc<PriorityLevel>)> {
        let configuration = self.configuration.load();
        let is_applicable =
            |schema: &&Arc<Schema>| schema.matches(user, info) && configuration.levels.contains_key(&schema.level);
        let schema = configuration.schemas.iter().find(is_applicable)?;
        let level = configuration.levels.get(&schema.level)?;
        Some((schema.clone(), level.clone()))
    }

    /// Waits for a seat for a request. Its classification is returned in any case. Without configuration, every request
    /// gets a seat.
    pub async fn admit(
        &self,
        user: &User,
        info: &RequestInfo,
        wait_max: Duration,
    ) -> (Option<Classification>, Result<Seat, Refused>) {
        let Some((schema, level)) = self.classify(user, info) else { return (None, Ok(Seat::free())) };
        let classification = Classification { schema: schema.uid.clone(), level: level.uid.clone() };
        if level.limit.is_none() {
            return (Some(classification), Ok(Seat::free()));
        }
        let flow = schema.flow(user, info);
        let flow_level = FlowLevel { priority_level: (&level.name).into(), flow_schema: (&schema.name).into() };
        (Some(classification), self.seats.take(flow_level, &flow, wait_max).await)
    }
}

/// An object's uid as a header, for which every uid is valid.
fn header(object: &Value) -> HeaderValue {
    HeaderValue::from_str(object.str_at(&["metadata", "uid"])).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests;
