//! The edge (layer 8): listener, TLS, the path of a request, answers. Only this room knows hyper.

mod body;
mod chain;
mod health;
mod listener;
mod measure;
mod negotiate;
mod respond;
mod table;
mod tls;
mod watch;
mod websocket;

pub use chain::Edge;
pub use health::parse_duration;
pub use listener::Listener;
pub use tls::{Tls, TlsError};
