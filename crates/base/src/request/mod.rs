//! RequestInfo, options and users: pure values, parsed from method, path, query and credentials.

mod gates;
mod info;
mod options;
mod query;
mod user;

pub use gates::{Feature, FeatureGates};
pub use info::{RequestInfo, Verb};
pub use options::{
    DeleteOptions, FieldValidation, IGNORE_READ_ERRORS, ListOptions, VersionMatch, WriteOptions, WriteVerb,
    invalid_options, parse_int, parse_uint,
};
pub use query::Query;
pub use user::User;
