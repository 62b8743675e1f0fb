//! The HTTP server: listener, TLS, the handler chain, responses. Only this module depends on hyper.

mod arrival;
mod backup;
mod body;
mod captured_log;
mod chain;
mod chunks;
mod client;
mod connections;
mod documents;
mod door;
mod entry;
mod gzip;
mod handler;
mod health;
mod host;
mod inflight;
mod intercept;
mod interceptor;
mod list;
mod listener;
mod measure;
mod negotiate;
mod open;
mod perform;
mod plain;
mod pretty;
mod relay;
mod request_body;
mod request_log;
mod respond;
mod route;
mod table;
mod tapping;
mod tls;
mod warnings;
mod watch;
mod websocket;
mod window;
mod zpages;

pub use body::Body;
pub use captured_log::{CapturedLogs, LogOf, LogRun};
pub use chain::{Edge, EdgeParts, HttpResponse, InPlaceOfStored, RequestConfig, VerdictOnly};
pub use client::Client;
pub use door::{BRANCHES, Branches, Door};
pub use health::Health;
pub use host::set_path;
pub use inflight::InFlightMax;
pub use interceptor::{
    CAUSE_ANNOTATION, Disruption, InterceptedRequest, Interception, Interceptor, Observation, RequestEnding, Tap,
};
pub use listener::Listener;
pub use open::OpenCount;
pub use request_body::RequestBody;
pub use request_log::REQUESTS;
pub use respond::{header, response, status_response};
pub use tls::{Acceptors, ProxyAuthority, Tls, TlsError};
