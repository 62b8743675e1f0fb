//! Pintle inside a Rust program: the Kubernetes API as a library.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), pintle::Error> {
//! use pintle::{Server, json};
//!
//! let server = Server::ephemeral().start().await?;
//! let workspace = server.workspace().await?;
//! let boat = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argo"}, "data": {"crew": "50"}});
//! workspace.apply_object(&boat).await?;
//! # Ok(())
//! # }
//! ```
//!
//! With kube-rs, a client is `kube::Client::new(workspace.api(), "default")`. The page [Rust](https://github.com/pintle/pintle/blob/main/docs/src/guides/rust.md)
//! has more. Without the feature `cli`, which the program needs, the library has a third of the dependencies.

pub use embed::{Api, Builder, Clock, Error, Fault, ResponseBody, Server, Value, Workspace, json};

/// The examples of the page are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/src/guides/rust.md")]
struct Page;
