//! API priority and fairness (KEP-1040): FlowSchemas classify requests into flows of priority levels, each with its share of
//! the seats; excess requests wait in queues, which flows share by shuffle sharding.
//!
//! Invariants: a level always has the part of its share that it does not lend; a request is executed, queued or rejected
//! at once; a request that is cancelled while it is queued has no effect.

mod classify;
pub mod defaults;
mod seats;
mod supply;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base::metrics::FlowLevel;
use base::request::{RequestInfo, User};
use http::HeaderValue;
use kinds::FLOW_GROUP;
use machinery::{Text, Value};
use objects::{Event, EventKind, Key};
use parking_lot::Mutex;

use classify::{PriorityLevel, Schema};
pub use seats::Seat;
use seats::Seats;
pub use supply::{SeatPool, SeatSupply};

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
    seats: Seats,
    is_shared: bool,
    /// Serializes changes of the configuration.
    changing: Mutex<()>,
}

/// The request is rejected: no seat is free and the queue is full.
#[derive(Debug)]
pub struct Refused;

impl Flow {
    /// `supply` has the seats of all limited levels.
    pub fn new(supply: SeatSupply) -> Flow {
        let is_shared = supply.is_shared();
        let flow = Flow {
            configuration: ArcSwap::default(),
            seats: Seats::new(supply),
            is_shared,
            changing: Mutex::default(),
        };
        flow.seats.set_levels(std::iter::empty());
        flow
    }

    /// A copy of the configuration, which follows the events of another API from here on, with seats of its own or a share of its own
    /// of the same pool.
    pub fn fork(&self) -> Flow {
        let flow = Flow::new(self.seats.supply());
        flow.configure(self.configuration.load_full());
        flow
    }

    fn configure(&self, objects: Arc<FlowObjects>) {
        self.seats.set_levels(objects.levels.values().map(|level| (level.name.clone(), level.limit.clone())));
        self.configuration.store(objects);
    }

    /// Limits the share of a pool to this number of seats; 0 for no limit.
    pub fn limit_to(&self, seats: usize) {
        self.seats.limit_to(seats);
    }

    /// Whether the seats are a share of a pool.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Observes events, which are passed in order.
    pub fn observe(&self, key: &Key, event: &Event) {
        if key.group != FLOW_GROUP {
            return;
        }
        let _guard = self.changing.lock();
        let object = (event.kind != EventKind::Deleted).then(|| event.object.body.to_managed_value(0));
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
        self.configure(Arc::new(next));
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

    /// Waits for a seat for a request. Its classification is returned in any case. A request of an exempt level or without
    /// a FlowSchema needs no seat, unless seats come from a pool: then only those of `system:masters` need none. `is_master`
    /// says whether the client itself is a member: objects of the API could let it impersonate one.
    pub async fn admit(
        &self,
        user: &User,
        info: &RequestInfo,
        is_master: bool,
        wait_max: Duration,
    ) -> (Option<Classification>, Result<Seat, Refused>) {
        let classified = self.classify(user, info);
        let classification = classified
            .as_ref()
            .map(|(schema, level)| Classification { schema: schema.uid.clone(), level: level.uid.clone() });
        let is_free = match &classified {
            _ if self.is_shared => is_master && user.in_group(User::MASTERS),
            Some((_, level)) => level.limit.is_none(),
            None => true,
        };
        if is_free {
            return (classification, Ok(Seat::free()));
        }
        let (flow, flow_level) = match &classified {
            Some((schema, level)) => {
                let flow_level = FlowLevel { priority_level: (&level.name).into(), flow_schema: (&schema.name).into() };
                (schema.flow(user, info), flow_level)
            }
            None => (user.name.to_string(), FlowLevel { priority_level: "".into(), flow_schema: "".into() }),
        };
        (classification, self.seats.take(flow_level, &flow, wait_max).await)
    }
}

/// An object's uid as a header, for which every uid is valid.
fn header(object: &Value) -> HeaderValue {
    HeaderValue::from_str(object.str_at(&["metadata", "uid"])).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests;
