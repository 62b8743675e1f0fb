//! The Kubernetes API inside a Rust program.
//!
//! [`Server::ephemeral`] starts a whole API server in this process: CRDs with CEL, built-in kinds, watches, server-side apply,
//! admission policies, RBAC, garbage collection. Requests are function calls: there is no socket, no certificate and no port, unless
//! [`Builder::port`] asks for one. Each test takes a [`Workspace`], an API of its own, which begins empty or as a fork.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), embed::Error> {
//! use embed::{Server, json};
//!
//! let server = Server::ephemeral().start().await?;
//! let workspace = server.workspace().await?;
//! let path = "/api/v1/namespaces/default/configmaps";
//! let created = workspace.post(path, &json!({"metadata": {"name": "greeting"}, "data": {"text": "hello"}})).await?;
//! assert_eq!(created.str_at(&["data", "text"]), "hello");
//! let listed = workspace.get(path).await?;
//! assert_eq!(listed.items_at(&["items"]).len(), 1);
//! server.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! A client of kube-rs takes [`Workspace::api`], which is a `tower::Service`:
//! `kube::Client::new(workspace.api(), "default")`.

#[doc(hidden)]
pub mod captures;
mod clock;
mod configuration;
mod embedded;
mod error;
mod limits;
mod manifests;
mod service;
#[doc(hidden)]
pub mod sets;
mod workspace;

pub use clock::Clock;
pub use embedded::{Builder, Server};
pub use error::Error;
pub use machinery::{Value, json};
pub use service::{Api, ResponseBody};
pub use workspace::{Fault, Workspace};
