//! The open TCP connections: how many there may be, which of them are idle, and which have to end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{clock, limits};

/// What one connection is used for.
pub struct Usage {
    opened: Instant,
    /// Whether a request has arrived, with all of its header.
    served: AtomicBool,
    /// Requests that run, up to the end of their responses.
    active: AtomicUsize,
    idle_since: Mutex<Instant>,
    evicted: Notify,
    drained: Notify,
}

/// What is due when the time of [`Usage::deadline`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing: the connection is in use, or was since.
    NotYet,
    /// No request has arrived in time.
    Silent,
    /// No request has run for too long.
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

    fn idle_since(&self) -> MutexGuard<'_, Instant> {
        self.idle_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has arrived. It runs until the result is dropped.
    pub fn begin(self: &Arc<Self>) -> Active {
        self.served.store(true, Ordering::Relaxed);
        self.active.fetch_add(1, Ordering::Relaxed);
        Active(self.clone())
    }

    /// When [`Usage::expiry`] is to be asked next.
    pub fn deadline(&self, now: Instant) -> Instant {
        if !self.served.load(Ordering::Relaxed) {
            return self.opened + limits::FIRST_REQUEST;
        }
        match self.active.load(Ordering::Relaxed) {
            0 => *self.idle_since() + limits::IDLE_CONNECTION,
            _ => now + limits::IDLE_CONNECTION,
        }
    }

    pub fn expiry(&self, now: Instant) -> Expiry {
        let is_served = self.served.load(Ordering::Relaxed);
        if now < self.deadline(now) {
            Expiry::NotYet
        } else if is_served {
            Expiry::Idle
        } else {
            Expiry::Silent
        }
    }

    /// Whether no request runs.
    pub fn is_idle(&self) -> bool {
        self.active.load(Ordering::Relaxed) == 0
    }

    /// Asks the connection to take no more requests, and to end when those that run have been answered.
    pub fn drain(&self) {
        self.drained.notify_one();
    }

    pub async fn drained(&self) {
        self.drained.notified().await;
    }

    /// Waits until the connection has to make room for others.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

/// A request that runs.
pub struct Active(Arc<Usage>);

impl Drop for Active {
    fn drop(&mut self) {
        *self.0.idle_since() = clock::instant();
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All open connections.
pub struct Connections {
    max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    by_id: HashMap<u64, Arc<Usage>>,
}

/// One open connection, until it is dropped.
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

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new connection; `others` is the number of descriptors beside these connections that count towards
    /// the limit. When there are too many, those that have been idle for longest are asked to end. `None` when none is
    /// idle, or when those that were asked have not ended yet.
    pub fn enter(self: &Arc<Self>, others: usize) -> Option<Connection> {
        let mut open = self.lock();
        let count = open.by_id.len() + others;
        if count >= self.max {
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

    /// How many are open.
    pub fn len(&self) -> usize {
        self.lock().by_id.len()
    }

    /// Asks idle connections to end, since the process has no descriptors left. Returns how many were asked.
    pub fn evict(&self) -> usize {
        self.lock().evict(self.max.div_ceil(limits::EVICTED_SHARE))
    }
}

impl Open {
    /// Asks up to `count` connections without requests to end, beginning with those that have been idle for longest.
    fn evict(&mut self, count: usize) -> usize {
        let mut idle: Vec<(Instant, &Arc<Usage>)> =
            self.by_id.values().filter(|usage| usage.is_idle()).map(|usage| (*usage.idle_since(), usage)).collect();
        idle.sort_unstable_by_key(|(since, _)| *since);
        idle.iter().take(count).for_each(|(_, usage)| usage.evicted.notify_one());
        idle.len().min(count)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.lock().by_id.remove(&self.id);
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
    async fn idle_connections_make_room() {
        let connections = Arc::new(Connections::new(3));
        let open: Vec<Connection> = (0..3).map(|_| connections.enter(0).unwrap()).collect();
        let busy = open[0].usage.begin();
        drop(open[1].usage.begin());
        let fourth = connections.enter(0);
        assert!(fourth.is_some());
        assert!(connections.enter(0).is_none(), "those that were asked to end have not ended yet");
        // the third has been idle for longest
        assert!(is_evicted(&open[2]).await);
        assert!(!is_evicted(&open[0]).await && !is_evicted(&open[1]).await);
        drop(busy);
    }

    #[test]
    fn connections_expire_when_nothing_is_asked() {
        let connections = Arc::new(Connections::new(10));
        let connection = connections.enter(0).unwrap();
        let usage = &connection.usage;
        let start = clock::instant();
        assert_eq!(usage.expiry(start), Expiry::NotYet);
        assert_eq!(usage.expiry(start + limits::FIRST_REQUEST), Expiry::Silent);
        let active = usage.begin();
        assert_eq!(usage.expiry(start + limits::IDLE_CONNECTION * 2), Expiry::NotYet, "a request runs");
        drop(active);
        let end = clock::instant();
        assert_eq!(usage.expiry(end), Expiry::NotYet);
        assert_eq!(usage.expiry(end + limits::IDLE_CONNECTION), Expiry::Idle);
    }

    #[test]
    fn no_connection_is_taken_when_all_are_busy() {
        let connections = Arc::new(Connections::new(2));
        let open: Vec<Connection> = (0..2).map(|_| connections.enter(0).unwrap()).collect();
        let busy: Vec<Active> = open.iter().map(|connection| connection.usage.begin()).collect();
        assert!(connections.enter(0).is_none());
        drop((busy, open));
        assert!(connections.enter(0).is_some());
        assert!(connections.enter(2).is_none(), "what else is open counts too");
    }
}
