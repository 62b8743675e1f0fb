//! The open TCP connections: their maximum number, when unused ones are closed, and which are evicted for new ones.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::clock;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits;

/// The use of one connection.
pub struct Usage {
    opened: Instant,
    /// Whether the complete header of a first request has arrived.
    served: AtomicBool,
    /// Requests in flight, until their response bodies have been sent.
    active: AtomicUsize,
    /// When the last request ended, or the connection was opened. Meaningless while a request is in flight.
    idle_since: Mutex<Instant>,
    evicted: Notify,
    drained: Notify,
}

/// How a connection ends when [`Usage::deadline`] has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionExpiry {
    /// The connection is in use, or has been used since the deadline was computed.
    NotYet,
    /// No first request has arrived within [`limits::FIRST_REQUEST`].
    Silent,
    /// No request has been in flight for [`limits::IDLE_CONNECTION`].
    Idle,
}

impl Usage {
    fn new() -> Usage {
        let now = clock::instant();
        Usage {
            opened: now,
            served: AtomicBool::new(false),
            active: AtomicUsize::new(0),
            idle_since: Mutex::new(now),
            evicted: Notify::new(),
            drained: Notify::new(),
        }
    }

    /// Counts a request that has arrived. It is in flight until the returned guard is dropped.
    pub fn begin(self: &Arc<Self>) -> Active {
        self.served.store(true, Ordering::Relaxed);
        self.active.fetch_add(1, Ordering::Relaxed);
        Active(self.clone())
    }

    /// When to look at [`Usage::expiry`] next.
    pub fn deadline(&self, now: Instant) -> Instant {
        if !self.served.load(Ordering::Relaxed) {
            return self.opened + limits::FIRST_REQUEST;
        }
        match self.active.load(Ordering::Relaxed) {
            0 => *self.idle_since.lock() + limits::IDLE_CONNECTION,
            // it cannot expire earlier, even if its last request ends at once
            _ => now + limits::IDLE_CONNECTION,
        }
    }

    pub fn expiry(&self, now: Instant) -> ConnectionExpiry {
        let is_served = self.served.load(Ordering::Relaxed);
        if now < self.deadline(now) {
            ConnectionExpiry::NotYet
        } else if is_served {
            ConnectionExpiry::Idle
        } else {
            ConnectionExpiry::Silent
        }
    }

    /// Whether no request is in flight.
    pub fn is_idle(&self) -> bool {
        self.active.load(Ordering::Relaxed) == 0
    }

    /// Asks the connection to accept no more requests and to close once those in flight have completed.
    pub fn drain(&self) {
        self.drained.notify_one();
    }

    /// Waits until [`Usage::drain`] is called.
    pub async fn drained(&self) {
        self.drained.notified().await;
    }

    /// Waits until the connection is evicted in favor of new ones.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

/// A request in flight, which ends when this is dropped.
pub struct Active(Arc<Usage>);

impl Drop for Active {
    fn drop(&mut self) {
        // the time comes first: the connection must not appear idle since an earlier request
        *self.0.idle_since.lock() = clock::instant();
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All open connections.
pub struct Connections {
    max: usize,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    by_id: HashMap<u64, Arc<Usage>>,
}

/// An open connection, which counts as closed when this is dropped.
pub struct Connection {
    id: u64,
    connections: Arc<Connections>,
    pub usage: Arc<Usage>,
}

impl Connections {
    /// `max` is the number of connections that may be open at once.
    pub fn new(max: usize) -> Connections {
        Connections { max: max.max(1), open: Mutex::default() }
    }

    /// Registers a new connection. `others` is the number of other file descriptors that count towards the limit, such as
    /// those of upgraded connections. At the limit, the connections that have been idle for longest are evicted. Returns
    /// `None` if no connection is idle, or if too many evicted ones have not closed yet.
    pub fn enter(self: &Arc<Self>, others: usize) -> Option<Connection> {
        let mut open = self.open.lock();
        let count = open.by_id.len() + others;
        if count >= self.max {
            // evicted connections count until they have closed, so there may be some more than the maximum for a moment
            let evicted = open.evict(self.max.div_ceil(limits::EVICTED_SHARE));
            if evicted == 0 || count >= self.max + self.max.div_ceil(limits::EVICTED_SHARE) {
                return None;
            }
        }
        let (id, usage) = (open.next, Arc::new(Usage::new()));
        open.next += 1;
        open.by_id.insert(id, usage.clone());
        Some(Connection { id, connections: self.clone(), usage })
    }

    /// The number of open connections.
    pub fn len(&self) -> usize {
        self.open.lock().by_id.len()
    }

    /// Evicts idle connections when the process has run out of file descriptors, and returns their number.
    pub fn evict(&self) -> usize {
        self.open.lock().evict(self.max.div_ceil(limits::EVICTED_SHARE))
    }
}

impl OpenConnections {
    /// Evicts up to `count` connections without requests in flight, beginning with those that have been idle for longest.
    fn evict(&mut self, count: usize) -> usize {
        let mut idle: Vec<(Instant, &Arc<Usage>)> = self
            .by_id
            .values()
            .filter(|usage| usage.is_idle())
            .map(|usage| (*usage.idle_since.lock(), usage))
            .collect();
        idle.sort_unstable_by_key(|(since, _)| *since);
        idle.iter().take(count).for_each(|(_, usage)| usage.evicted.notify_one());
        idle.len().min(count)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.open.lock().by_id.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_evicted(connection: &Connection) -> bool {
        tokio::select! {
            biased;
            () = connection.usage.evicted() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn idle_connections_are_evicted_at_the_limit() {
        let connections = Arc::new(Connections::new(3));
        let open: Vec<Connection> = (0..3).map(|_| connections.enter(0).unwrap()).collect();
        let busy = open[0].usage.begin();
        drop(open[1].usage.begin());
        let fourth = connections.enter(0);
        assert!(fourth.is_some());
        assert!(connections.enter(0).is_none(), "the evicted connections have not closed yet");
        // the third connection has been idle for longest
        assert!(is_evicted(&open[2]).await);
        assert!(!is_evicted(&open[0]).await && !is_evicted(&open[1]).await);
        drop(busy);
    }

    #[test]
    fn connections_without_requests_expire() {
        let connections = Arc::new(Connections::new(10));
        let connection = connections.enter(0).unwrap();
        let usage = &connection.usage;
        let start = clock::instant();
        assert_eq!(usage.expiry(start), ConnectionExpiry::NotYet);
        assert_eq!(usage.expiry(start + limits::FIRST_REQUEST), ConnectionExpiry::Silent);
        let active = usage.begin();
        assert_eq!(
            usage.expiry(start + limits::IDLE_CONNECTION * 2),
            ConnectionExpiry::NotYet,
            "a request is in flight"
        );
        drop(active);
        let end = clock::instant();
        assert_eq!(usage.expiry(end), ConnectionExpiry::NotYet);
        assert_eq!(usage.expiry(end + limits::IDLE_CONNECTION), ConnectionExpiry::Idle);
    }

    #[test]
    fn connection_limit_refuses_when_all_are_active() {
        let connections = Arc::new(Connections::new(2));
        let open: Vec<Connection> = (0..2).map(|_| connections.enter(0).unwrap()).collect();
        let busy: Vec<Active> = open.iter().map(|connection| connection.usage.begin()).collect();
        assert!(connections.enter(0).is_none());
        drop((busy, open));
        assert!(connections.enter(0).is_some());
        assert!(connections.enter(2).is_none(), "other file descriptors count towards the limit");
    }
}
