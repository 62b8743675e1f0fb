//! The HTTP server: listener, TLS, the handler chain, responses. Only this module depends on hyper.

mod body;
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
mod inflight;
mod list;
mod listener;
mod measure;
mod negotiate;
mod open;
mod perform;
mod pretty;
mod relay;
mod respond;
mod route;
mod table;
mod tls;
mod warnings;
mod watch;
mod websocket;
mod window;
mod zpages;

pub use chain::Edge;
pub use door::Door;
pub use health::Health;
pub use inflight::InFlightMax;
pub use listener::Listener;
pub use tls::{Acceptors, ProxyAuthority, Tls, TlsError};
