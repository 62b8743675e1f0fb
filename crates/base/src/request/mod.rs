//! RequestInfo, options and users: pure values, parsed from method, path, query and credentials.

mod gates;
mod info;
mod options;
mod query;
mod user;

pub use gates::FeatureGates;
pub use info::{RequestInfo, Verb};
pub use options::{
    DeleteOptions, FieldValidation, ListOptions, VersionMatch, WriteOptions, WriteVerb, parse_int, parse_uint,
};
pub use query::{Query, encode_path, percent_decode};
pub use user::User;
