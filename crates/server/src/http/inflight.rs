//! Limits of requests in flight: one for read-only requests, one for mutating requests.

use std::sync::atomic::{AtomicUsize, Ordering};

use access::flow::SeatSupply;
use base::metrics::{METRICS, RequestKind};
use base::request::{RequestInfo, User, Verb};
use http::Method;
use prometheus_client::metrics::gauge::Gauge;

/// The maximum numbers of requests in flight, not counting watches; 0 is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlightMax {
    /// Requests that only read: `get` and `list`, and GET of paths that are no resources.
    pub read_only: usize,
    /// All other requests.
    pub mutating: usize,
}

impl InFlightMax {
    /// The seats of API priority and fairness, which shares the sum of the limits among priority levels.
    pub fn seats(self) -> SeatSupply {
        let is_unlimited = self.read_only == 0 || self.mutating == 0;
        SeatSupply::Own(if is_unlimited { 0 } else { self.read_only.saturating_add(self.mutating) })
    }
}

/// The requests in flight.
pub struct InFlight {
    max: InFlightMax,
    read_only: AtomicUsize,
    mutating: AtomicUsize,
}

/// A share of the in-flight limit, until it is dropped. Watches have an empty one.
pub struct Permit<'a>(Option<(&'a AtomicUsize, Gauge)>);

impl InFlight {
    pub fn new(max: InFlightMax) -> InFlight {
        InFlight { max, read_only: AtomicUsize::new(0), mutating: AtomicUsize::new(0) }
    }

    /// Counts a request; `None` if the limit is reached. Watches and members of `system:masters` are not limited.
    pub fn admit(&self, info: &RequestInfo, user: &User) -> Option<Permit<'_>> {
        if info.verb == Verb::Watch {
            return Some(Permit(None));
        }
        let (running, max, request_kind) = if reads(info) {
            (&self.read_only, self.max.read_only, "readOnly")
        } else {
            (&self.mutating, self.max.mutating, "mutating")
        };
        let gauge = METRICS.current_inflight_requests.get_or_create_owned(&RequestKind { request_kind });
        let before = running.fetch_add(1, Ordering::Relaxed);
        gauge.inc();
        let permit = Permit(Some((running, gauge)));
        if max == 0 || before < max || user.in_group(User::MASTERS) {
            return Some(permit);
        }
        METRICS.dropped_requests.get_or_create(&RequestKind { request_kind }).inc();
        None
    }
}

/// A request that is counted while it waits for its seat and runs. API priority and fairness limits it, not [`InFlight`].
pub struct CountedRequest(Gauge);

impl CountedRequest {
    pub fn begin(info: &RequestInfo) -> CountedRequest {
        let request_kind = if reads(info) { "readOnly" } else { "mutating" };
        let gauge = METRICS.current_inflight_requests.get_or_create_owned(&RequestKind { request_kind });
        gauge.inc();
        CountedRequest(gauge)
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some((running, gauge)) = &self.0 {
            running.fetch_sub(1, Ordering::Relaxed);
            gauge.dec();
        }
    }
}

/// Whether a request counts as read-only. Among requests for non-resource paths, only GET does.
fn reads(info: &RequestInfo) -> bool {
    match info.verb {
        Verb::Get | Verb::List | Verb::Watch => true,
        Verb::None => !info.is_resource && info.method == Method::GET,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(method: Method, path: &str) -> RequestInfo {
        RequestInfo::parse(&method, path, "")
    }

    #[test]
    fn reads_and_writes_are_limited_separately() {
        let inflight = InFlight::new(InFlightMax { read_only: 2, mutating: 1 });
        let user = User { name: "a".into(), ..User::default() };
        let (list, item) = ("/api/v1/namespaces/n/configmaps", "/api/v1/namespaces/n/configmaps/a");
        let admit = |method, path| inflight.admit(&info(method, path), &user);
        let write = admit(Method::POST, list);
        assert!(write.is_some() && admit(Method::DELETE, item).is_none() && admit(Method::HEAD, "/apis").is_none());
        let reads = [admit(Method::GET, item), admit(Method::GET, "/readyz")];
        assert!(reads.iter().all(Option::is_some) && admit(Method::HEAD, item).is_none());
        assert!(inflight.admit(&RequestInfo::parse(&Method::GET, list, "watch"), &user).is_some());
        let master = User { groups: vec![User::MASTERS.into()], ..User::default() };
        assert!(inflight.admit(&info(Method::POST, list), &master).is_some());
        drop((write, reads));
        assert!(admit(Method::PATCH, item).is_some() && admit(Method::GET, list).is_some());
    }

    #[test]
    fn zero_limit_is_unlimited() {
        let inflight = InFlight::new(InFlightMax { read_only: 0, mutating: 0 });
        let permits: Vec<_> =
            (0..100).map(|_| inflight.admit(&info(Method::PUT, "/api/v1/namespaces/a"), &User::default())).collect();
        assert!(permits.iter().all(Option::is_some));
    }
}
