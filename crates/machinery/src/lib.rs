//! Kubernetes vocabulary: values, encodings, metadata, `Status`, selectors, patches, names.
//!
//! Invariants: no I/O, no clock, no randomness, no threads, no logging. Input of any shape returns a value or an
//! error, never a panic.
//!
//! ```
//! use machinery::quantity::Quantity;
//! use machinery::{json, yaml};
//!
//! let pod = yaml::decode(b"spec: {containers: [{name: web, image: nginx}]}").unwrap().value;
//! assert_eq!(pod, json!({"spec": {"containers": [{"name": "web", "image": "nginx"}]}}));
//!
//! let sum = Quantity::parse("500m").unwrap().plus(&Quantity::parse("1.5").unwrap());
//! assert_eq!(sum.to_string(), "2");
//! ```

#![deny(missing_docs)]

pub mod cbor;
pub mod cron;
mod decode;
pub mod difflines;
pub mod field;
pub mod jsonpath;
mod limits;
pub mod names;
pub mod network;
pub mod patch;
pub mod priority;
pub mod protobuf;
pub mod quantity;
pub mod release;
pub mod selector;
pub mod status;
pub mod time;
pub mod types;
pub mod url;
pub mod value;
pub mod work;
pub mod yaml;

pub use decode::DecodeError;
pub use field::{FieldError, FieldPath};
pub use release::Release;
pub use status::{Result, Status};
pub use value::{Map, Text, Value};

/// Runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
