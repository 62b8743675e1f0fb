//! A small client of Kubernetes API servers, for `pintle`'s own commands and for benchmarks.
//!
//! [`Access`] is read from a kubeconfig, [`Client`] opens connections over TLS, and a [`Connection`] sends one [`Call`]
//! after the other over HTTP/1.1, or many at once over HTTP/2. A [`JsonClient`] does the same with objects as bodies. Commands that
//! fail return a [`Failure`].

mod access;
mod connection;
mod error;
mod exec;
mod failure;
mod json;
mod tls;

pub use access::Access;
pub use connection::{Call, Client, Connection, Options, Protocol, Request, Response, Streamed, connect};
pub use error::{AccessError, Error, SettingsError};
pub use failure::{Context, Failure, Result, fail};
pub use hyper::Method;
pub use json::{JSON, JsonClient, JsonResponse, next_page};
pub use tokio_rustls::client::TlsStream;
