//! Where the seats of an API come from: they are its own, or it shares a pool of them with other APIs of the server.
//!
//! An API takes no more of a pool than its share, whatever its FlowSchemas and levels are, so that its load leaves the other shares
//! free.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::metrics::FlowLevel;

use crate::limits;

/// Seats that APIs share. Each of them has the same share, which falls as more of them have requests in flight.
#[derive(Debug)]
pub struct SeatPool {
    seats: usize,
    /// How many APIs occupy seats.
    busy: AtomicUsize,
    /// The labels of all requests in metrics, since the levels of every API would be too many series.
    measured_as: FlowLevel,
}

impl SeatPool {
    /// `seats` is the total, 0 for no limit; `name` is the priority level and the FlowSchema of all requests in metrics.
    pub fn new(seats: usize, name: &str) -> SeatPool {
        let measured_as = FlowLevel { priority_level: name.into(), flow_schema: name.into() };
        SeatPool { seats, busy: AtomicUsize::new(0), measured_as }
    }

    fn share(&self) -> usize {
        self.seats.div_ceil(self.busy.load(Ordering::Relaxed).max(limits::POOL_SHARES_MIN))
    }
}

/// The seats of an API.
#[derive(Clone, Debug)]
pub enum SeatSupply {
    /// Its own; 0 for no limit.
    Own(usize),
    /// A share of a pool, and at most `limit` seats if that is not 0.
    Shared { pool: Arc<SeatPool>, limit: usize },
}

impl SeatSupply {
    pub fn of(pool: Arc<SeatPool>) -> SeatSupply {
        SeatSupply::Shared { pool, limit: 0 }
    }

    pub fn is_shared(&self) -> bool {
        matches!(self, SeatSupply::Shared { .. })
    }

    /// Sets the limit of a share; 0 for none.
    pub fn limit_to(&mut self, seats: usize) {
        if let SeatSupply::Shared { limit, .. } = self {
            *limit = seats;
        }
    }

    /// The seats that it has now; 0 for no limit.
    pub fn seats(&self) -> usize {
        match self {
            SeatSupply::Own(seats) => *seats,
            SeatSupply::Shared { pool, limit } => match (pool.share(), *limit) {
                (share, 0) => share,
                (0, limit) => limit,
                (share, limit) => share.min(limit),
            },
        }
    }

    /// Notes that the API, whose seats were all free, occupies one.
    pub fn occupied(&self) {
        if let SeatSupply::Shared { pool, .. } = self {
            pool.busy.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that the last of its seats is free again.
    pub fn vacated(&self) {
        if let SeatSupply::Shared { pool, .. } = self {
            pool.busy.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The labels of a request in metrics.
    pub fn measured<'a>(&'a self, of: &'a FlowLevel) -> &'a FlowLevel {
        match self {
            SeatSupply::Own(_) => of,
            SeatSupply::Shared { pool, .. } => &pool.measured_as,
        }
    }
}
