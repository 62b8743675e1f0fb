//! APIServices, which stand for groups and versions.

pub mod apiservices;

use crate::names::path_segment;
use resource::builtin::{Behaviour, Part};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[Behaviour {
    of: "apiregistration.k8s.io/APIService",
    prepare: apiservices::prepare,
    validate: apiservices::validate,
    name: path_segment,
    status: Part { validate: apiservices::validate_status, ..Part::PLAIN },
    ..NONE
}];
