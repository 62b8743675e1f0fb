//! Seats and queues.
//!
//! A level has seats in proportion to its share. The seats that it does not lend are reserved for it; beyond them it may
//! borrow as long as the reserved seats of other levels stay free. A request that has to wait joins the shortest of the few
//! queues of its flow's hand, so that a flow with many requests fills only those. The queue with the least service is next.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use base::clock;
use base::metrics::{FlowLevel, METRICS};
use machinery::Text;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Refused;
use super::classify::Limit;
use super::supply::SeatSupply;

/// The level of a shared supply for requests that no FlowSchema of the API classifies; the name of no object.
const UNCLASSIFIED: &str = "";

/// A seat, returned when it is dropped.
#[derive(Debug)]
pub struct Seat(Option<(Arc<Mutex<State>>, FlowLevel)>);

impl Seat {
    /// A seat of an unlimited level.
    pub fn free() -> Seat {
        Seat(None)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some((state, flow_level)) = &self.0 {
            let mut locked = state.lock();
            locked.release(flow_level);
            locked.measure();
            locked.dispatch(state);
        }
    }
}

/// The outcome of a request for a seat.
enum Turn {
    Started,
    Queued(oneshot::Receiver<Seat>),
    Rejected,
}

/// A queued request.
#[derive(Debug)]
struct Waiting {
    flow_level: FlowLevel,
    seat: oneshot::Sender<Seat>,
}

#[derive(Debug, Default)]
struct RequestQueue {
    /// Service that the queue has received, in requests.
    served: u64,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug, Default)]
struct LevelSeats {
    limit: Option<Limit>,
    /// Seats according to its share; `guaranteed` are those of them that it does not lend.
    nominal: usize,
    guaranteed: usize,
    /// Maximum number of seats, including borrowed ones.
    max_seats: usize,
    running: usize,
    waiting: usize,
    /// Service of the queue that was served last; a queue that was empty starts there.
    served: u64,
    queues: Vec<RequestQueue>,
}

#[derive(Debug)]
struct State {
    supply: SeatSupply,
    /// The seats of the supply for which those of the levels were computed.
    total: usize,
    running: usize,
    levels: HashMap<Text, LevelSeats>,
}

/// The seats of an API.
#[derive(Debug)]
pub struct Seats(Arc<Mutex<State>>);

impl Seats {
    pub fn new(supply: SeatSupply) -> Seats {
        let total = supply.seats();
        Seats(Arc::new(Mutex::new(State { supply, total, running: 0, levels: HashMap::new() })))
    }

    /// The supply without the limit of its share.
    pub fn supply(&self) -> SeatSupply {
        let mut supply = self.0.lock().supply.clone();
        supply.limit_to(0);
        supply
    }

    /// Limits the share of a pool to this number of seats; 0 for no limit.
    pub fn limit_to(&self, seats: usize) {
        let mut state = self.0.lock();
        state.supply.limit_to(seats);
        state.measure();
        state.dispatch(&self.0);
    }

    /// Sets the levels; those without a limit need no seats, unless these are a share of a pool. Requests that are queued in a
    /// changed level stay queued.
    pub fn set_levels(&self, limits: impl Iterator<Item = (Text, Option<Limit>)>) {
        let mut state = self.0.lock();
        let is_shared = state.supply.is_shared();
        let limit = |limit: Option<Limit>| limit.or_else(|| is_shared.then(Limit::of_exempt));
        let limits = limits.chain(is_shared.then(|| (UNCLASSIFIED.into(), None)));
        let limits: HashMap<Text, Limit> = limits.filter_map(|(name, of)| Some((name, limit(of)?))).collect();
        state.set(limits);
        state.dispatch(&self.0);
    }

    /// Returns a seat of a level for a flow, or waits in a queue for one.
    pub async fn take(&self, mut flow_level: FlowLevel, flow: &str, wait_max: Duration) -> Result<Seat, Refused> {
        let started = clock::instant();
        let (turn, measured) = {
            let mut state = self.0.lock();
            state.measure();
            if state.supply.is_shared() && !state.levels.contains_key(&flow_level.priority_level.0) {
                flow_level.priority_level = UNCLASSIFIED.into();
            }
            let level = &flow_level.priority_level.0;
            let Some(level_seats) = state.levels.get(level) else { return Ok(Seat::free()) };
            if state.total == 0 {
                return Ok(Seat::free());
            }
            let turn = if level_seats.waiting == 0 && state.may_run(level) {
                state.start(&flow_level);
                Turn::Started
            } else {
                let queued = state.enqueue(&flow_level, flow);
                // requests before it may have been cancelled
                state.dispatch(&self.0);
                queued.map_or(Turn::Rejected, Turn::Queued)
            };
            (turn, state.supply.measured(&flow_level).clone())
        };
        let seat = match turn {
            Turn::Started => Ok(Seat(Some((self.0.clone(), flow_level.clone())))),
            Turn::Rejected => Err(Refused),
            Turn::Queued(seat) => match tokio::time::timeout(wait_max, seat).await {
                Ok(Ok(seat)) => Ok(seat),
                _ => Err(Refused),
            },
        };
        METRICS.flow.seat_requested(&measured, seat.is_ok(), started.elapsed());
        seat
    }

    /// Executing and queued requests, by level.
    #[cfg(test)]
    pub fn counts(&self, level: &str) -> (usize, usize) {
        let state = self.0.lock();
        state.levels.get(level).map_or((0, 0), |level| (level.running, level.waiting))
    }
}

impl State {
    fn set(&mut self, limits: HashMap<Text, Limit>) {
        // a removed level stays until it has no executing and queued requests
        self.levels.retain(|name, level| limits.contains_key(name) || level.running + level.waiting > 0);
        self.levels.values_mut().for_each(|level| level.limit = None);
        for (name, limit) in limits {
            let level = self.levels.entry(name).or_default();
            // queues take memory, so they are made when a request has to wait
            if level.waiting == 0 {
                level.queues = vec![];
            }
            level.limit = Some(limit);
        }
        self.apportion();
    }

    /// Divides the seats again if the supply has another number of them now.
    fn measure(&mut self) {
        let total = self.supply.seats();
        if total != self.total {
            self.total = total;
            self.apportion();
        }
    }

    /// Divides the seats among the levels.
    fn apportion(&mut self) {
        let limits = self.levels.values().filter_map(|level| level.limit.as_ref());
        let shares: u64 = limits.map(|limit| u64::from(limit.shares)).sum::<u64>().max(1);
        let is_shared = self.supply.is_shared();
        for level in self.levels.values_mut() {
            // a removed level has none of its own
            let limit = level.limit.clone().unwrap_or_else(Limit::of_none);
            let seats = self.total as u64 * u64::from(limit.shares);
            // a share may be smaller than the number of levels, which must not reserve more than all of it
            let nominal = if is_shared { seats / shares } else { seats.div_ceil(shares) } as usize;
            level.nominal = nominal;
            level.guaranteed = nominal - (nominal as f64 * limit.lendable).round() as usize;
            let borrowing = limit.borrowing.map(|part| nominal + (nominal as f64 * part).round() as usize);
            level.max_seats = borrowing.unwrap_or(usize::MAX);
        }
    }

    fn may_run(&self, name: &Text) -> bool {
        // a level may always execute one request, but all of them together no more than the share of a pool
        if self.supply.is_shared() && self.running >= self.total {
            return false;
        }
        let Some(level) = self.levels.get(name) else { return true };
        if level.running < level.guaranteed.max(1) {
            return true;
        }
        let others = self.levels.iter().filter(|(other, _)| *other != name);
        let reserved: usize = others.map(|(_, other)| other.guaranteed.saturating_sub(other.running)).sum();
        level.running < level.max_seats && self.running + reserved < self.total
    }

    fn start(&mut self, flow_level: &FlowLevel) {
        if self.running == 0 {
            self.supply.occupied();
        }
        self.running += 1;
        if let Some(level) = self.levels.get_mut(&flow_level.priority_level.0) {
            level.running += 1;
        }
        METRICS.flow.executing(self.supply.measured(flow_level), 1);
    }

    fn release(&mut self, flow_level: &FlowLevel) {
        self.running = self.running.saturating_sub(1);
        if self.running == 0 {
            self.supply.vacated();
        }
        if let Some(level) = self.levels.get_mut(&flow_level.priority_level.0) {
            level.running = level.running.saturating_sub(1);
        }
        METRICS.flow.executing(self.supply.measured(flow_level), -1);
    }

    /// Joins the shortest queue of the flow's hand; `None` if it is full, or if the level has no queues.
    fn enqueue(&mut self, flow_level: &FlowLevel, flow: &str) -> Option<oneshot::Receiver<Seat>> {
        let level = self.levels.get_mut(&flow_level.priority_level.0)?;
        let queuing = level.limit.as_ref()?.queuing?;
        if queuing.queues > level.queues.len() {
            level.queues.resize_with(queuing.queues, RequestQueue::default);
        }
        let hand = deal(flow, level.queues.len(), queuing.hand);
        let length = |index: &usize| level.queues.get(*index).map_or(usize::MAX, |queue| queue.waiting.len());
        let shortest = hand.into_iter().min_by_key(length)?;
        let served = level.served;
        let queue = level.queues.get_mut(shortest)?;
        // cancelled requests do not count
        let length = queue.waiting.len();
        queue.waiting.retain(|waiting| {
            let is_cancelled = waiting.seat.is_closed();
            if is_cancelled {
                METRICS.flow.waiting(self.supply.measured(&waiting.flow_level), -1);
            }
            !is_cancelled
        });
        level.waiting -= length - queue.waiting.len();
        if queue.waiting.len() >= queuing.length {
            return None;
        }
        if queue.waiting.is_empty() {
            queue.served = queue.served.max(served);
        }
        let (seat, receiver) = oneshot::channel();
        queue.waiting.push_back(Waiting { flow_level: flow_level.clone(), seat });
        level.waiting += 1;
        METRICS.flow.waiting(self.supply.measured(flow_level), 1);
        Some(receiver)
    }

    /// Assigns free seats to queued requests.
    fn dispatch(&mut self, state: &Arc<Mutex<State>>) {
        while let Some(name) = self.next_level() {
            let Some(next) = self.next_waiting(&name) else { continue };
            self.start(&next.flow_level);
            if let Err(mut seat) = next.seat.send(Seat(Some((state.clone(), next.flow_level.clone())))) {
                // the request was cancelled; forget the seat without its drop, and assign it to the next request
                seat.0 = None;
                self.release(&next.flow_level);
            }
        }
    }

    /// The level with queued requests and free seats that uses the smallest part of its share.
    fn next_level(&self) -> Option<Text> {
        let waiting = self.levels.iter().filter(|(name, level)| level.waiting > 0 && self.may_run(name));
        let used = |level: &LevelSeats| level.running * 1000 / level.nominal.max(1);
        waiting.min_by_key(|(name, level)| (used(level), (*name).clone())).map(|(name, _)| name.clone())
    }

    /// The next request of a level: the first of the queue with the least service.
    fn next_waiting(&mut self, name: &Text) -> Option<Waiting> {
        let level = self.levels.get_mut(name)?;
        let queues = level.queues.iter_mut().filter(|queue| !queue.waiting.is_empty());
        let Some(queue) = queues.min_by_key(|queue| queue.served) else {
            level.waiting = 0;
            return None;
        };
        level.served = queue.served;
        queue.served += 1;
        level.waiting = level.waiting.saturating_sub(1);
        let next = queue.waiting.pop_front()?;
        METRICS.flow.waiting(self.supply.measured(&next.flow_level), -1);
        Some(next)
    }
}

/// The hand of a flow: distinct queues, determined by its name.
fn deal(flow: &str, queues: usize, hand: usize) -> Vec<usize> {
    let mut hasher = DefaultHasher::new();
    flow.hash(&mut hasher);
    let mut entropy = hasher.finish();
    // a deck of all queues, from which cards are removed by putting the last one in their place; only the places that
    // differ from their index are kept, since there may be millions of queues
    let mut moved: HashMap<usize, usize> = HashMap::new();
    let mut dealt = vec![];
    for last in (0..queues).rev().take(hand) {
        let left = last as u64 + 1;
        let place = (entropy % left) as usize;
        entropy = (entropy / left) ^ entropy.rotate_left(17);
        dealt.push(moved.get(&place).copied().unwrap_or(place));
        moved.insert(place, moved.get(&last).copied().unwrap_or(last));
    }
    dealt
}
