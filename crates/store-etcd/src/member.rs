//! One member of the cluster and the connection to it.

use parking_lot::Mutex;
use tonic::transport::{Channel, Endpoint};

use crate::failure::Failure;

pub struct Member {
    pub url: String,
    endpoint: Endpoint,
    channel: Mutex<Option<Channel>>,
    /// Held while a connection is made, so that one is made at a time.
    pub connecting: tokio::sync::Mutex<()>,
}

impl Member {
    pub fn new(url: String, endpoint: Endpoint) -> Member {
        Member { url, endpoint, channel: Mutex::new(None), connecting: tokio::sync::Mutex::default() }
    }

    pub fn open(&self) -> Option<Channel> {
        self.channel.lock().clone()
    }

    pub fn keep(&self, channel: &Channel) {
        *self.channel.lock() = Some(channel.clone());
    }

    pub fn forget(&self) {
        *self.channel.lock() = None;
    }

    pub async fn connect(&self) -> Result<Channel, Failure> {
        let connected = self.endpoint.connect().await;
        connected.map_err(|error| Failure::NotDone(format!("etcd at {}: {}", self.url, deepest(&error))))
    }
}

/// The innermost cause of an error, which is the most specific.
pub fn deepest(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Whether a version of etcd responds to a progress request only after all events before it: 3.4.31, 3.5.13 and later.
/// Kubernetes draws the line there too.
pub fn has_honest_progress(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| {
        let digits = part.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse::<u32>().unwrap_or(0)
    });
    let mut next = || numbers.next().unwrap_or(0);
    match (next(), next(), next()) {
        (3, 4, patch) => patch >= 31,
        (3, 5, patch) => patch >= 13,
        (major, minor, _) => (major, minor) > (3, 5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_notifications_require_etcd_version() {
        let cases = [("3.4.23", false), ("3.4.31", true), ("3.5.12", false), ("3.5.13", true), ("3.6.0-rc.1", true)];
        for (version, want) in cases.into_iter().chain([("3.7.3", true), ("3.3.99", false), ("", false)]) {
            assert_eq!(has_honest_progress(version), want, "{version}");
        }
    }
}
