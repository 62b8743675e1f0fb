//! Leases for keys that expire. As in kube-apiserver's lease manager, a lease is shared by keys that are written within a
//! short time, since leases cost etcd memory; keys may live a little longer than their lifetime.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::client::Client;
use crate::failure::Failure;
use crate::{limits, messages as m};

/// A lease is used for new keys during this share of their lifetime, but at most for [`limits::LEASE_REUSE`] (upstream's
/// values).
const SHARE: f64 = 0.05;

/// A lease that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lease {
    id: i64,
    ends: Instant,
    keys: usize,
}

/// Gives leases to the keys that begin with a prefix.
pub struct Leases {
    prefix: Bytes,
    lifetime: Duration,
    current: tokio::sync::Mutex<Option<Lease>>,
}

impl Leases {
    pub fn new(prefix: Bytes, lifetime: Duration) -> Leases {
        Leases { prefix, lifetime, current: tokio::sync::Mutex::default() }
    }

    /// The time by which a new lease lasts longer than the lifetime of its first key.
    fn extra(&self) -> Duration {
        let seconds = (self.lifetime.as_secs() as f64 * SHARE) as u64;
        Duration::from_secs(seconds).min(limits::LEASE_REUSE)
    }

    /// Counts one more key of a lease and returns its id if it fits: it lasts at least as long as the key's lifetime, and not
    /// much longer.
    fn reused(&self, lease: &mut Lease, now: Instant) -> Option<i64> {
        lease.keys += 1;
        let left = lease.ends.saturating_duration_since(now);
        (left > self.lifetime && left < self.lifetime + self.extra() && lease.keys <= limits::LEASE_KEYS_MAX)
            .then_some(lease.id)
    }

    /// The lease for a key that is written now; 0 for none.
    #[allow(clippy::disallowed_methods, reason = "etcd's clock ends leases, which no test can set")]
    pub async fn of(&self, client: &Client, key: &[u8]) -> Result<i64, Failure> {
        if !key.starts_with(&self.prefix) {
            return Ok(0);
        }
        let mut current = self.current.lock().await;
        let now = Instant::now();
        if let Some(id) = current.as_mut().and_then(|lease| self.reused(lease, now)) {
            return Ok(id);
        }
        let lasts = self.lifetime + self.extra();
        let grant = m::LeaseGrantRequest { ttl: i64::try_from(lasts.as_secs()).unwrap_or(i64::MAX) };
        // a retry may grant a second lease, which does no harm
        let granted: m::LeaseGrantResponse = client.read(m::LEASE_GRANT, &grant).await?;
        *current = Some(Lease { id: granted.id, ends: now + lasts, keys: 1 });
        Ok(granted.id)
    }

    /// Forgets a lease that no longer exists.
    pub async fn forget(&self, id: i64) {
        let mut current = self.current.lock().await;
        *current = current.filter(|lease| lease.id != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "any moment will do")]
    fn lease_is_shared_by_keys_that_expire_earlier() {
        let seconds = Duration::from_secs;
        let now = Instant::now() + seconds(10_000);
        for (lifetime, extra) in [(3600, 60), (600, 30), (10, 0)] {
            let leases = Leases::new("/e/".into(), seconds(lifetime));
            assert_eq!(leases.extra(), seconds(extra));
            let reused = |ends: Instant, keys| leases.reused(&mut Lease { id: 7, ends, keys }, now).is_some();
            let whole = now + seconds(lifetime + extra);
            assert!(!reused(whole, 1), "at the very moment upstream takes another too");
            assert_eq!(reused(whole - seconds(1), 1), extra > 1);
            assert!(!reused(now + seconds(lifetime), 1), "it would end too early");
            assert!(!reused(whole - seconds(1), limits::LEASE_KEYS_MAX), "it has keys enough");
        }
    }
}
