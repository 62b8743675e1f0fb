//! Log lines about requests: slow ones at level 2 (`--v=2`), all of them at level 3.

use std::net::IpAddr;
use std::time::Duration;

use base::clock;
use http::request::Parts;
use http::{Method, StatusCode, Uri};
use machinery::Text;
use tokio::time::Instant;

use crate::limits;

/// The target of lines about single requests, which the log shows from level 3 on.
pub const REQUESTS: &str = "pintle::requests";

pub struct RequestLog {
    started: Instant,
    method: Method,
    uri: Uri,
    address: IpAddr,
    /// The name of the authenticated user; empty if the request has none.
    pub user: Text,
    /// Whether the response lasts until the client or a timeout ends it, as for a watch. Such a request is not slow
    /// because it lasts long.
    is_long_running: bool,
}

impl RequestLog {
    pub fn begin(parts: &Parts, address: IpAddr, is_long_running: bool) -> RequestLog {
        let (method, uri) = (parts.method.clone(), parts.uri.clone());
        RequestLog { started: clock::instant(), method, uri, address, user: Text::default(), is_long_running }
    }

    /// Logs the request once its response is made; the body of the response may still be sent.
    pub fn end(self, status: StatusCode, audit_id: &str) {
        let RequestLog { started, method, uri, address, user, is_long_running } = self;
        let (elapsed, status) = (started.elapsed(), status.as_u16());
        let milliseconds = milliseconds(elapsed);
        // over HTTP/2, the URI also has the scheme and the host
        let uri = uri.path_and_query().map_or("*", |target| target.as_str());
        if elapsed >= limits::SLOW_REQUEST && !is_long_running {
            tracing::info!(%method, uri, status, milliseconds, %user, %address, audit_id, "slow request");
        } else {
            tracing::debug!(target: REQUESTS, %method, uri, status, milliseconds, %user, %address, audit_id, "request");
        }
    }
}

/// A duration in milliseconds, with three decimals.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}
