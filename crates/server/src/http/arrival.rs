//! A request as it arrives.

use super::client::Client;

/// A request that has arrived, before its body is read.
pub(super) struct Arrival<'a> {
    pub client: &'a Client,
    pub parts: &'a http::request::Parts,
    pub audit_id: &'a str,
    /// Time of arrival, in microseconds since the Unix epoch.
    pub received: i64,
}

impl Arrival<'_> {
    /// The path and query, as received.
    pub fn target(&self) -> &str {
        self.parts.uri.path_and_query().map_or("/", |uri| uri.as_str())
    }
}
