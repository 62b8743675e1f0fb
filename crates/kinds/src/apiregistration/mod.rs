//! APIServices, which stand for groups and versions.

pub mod apiservices;

use crate::names::path_segment;
use machinery::names;
use resource::builtin::{Behaviour, Check, Named, Part};

pub static KINDS: &[Behaviour] = &[Behaviour::of("apiregistration.k8s.io/APIService")
    .prepare(apiservices::prepare)
    .validate(apiservices::validate)
    .name(path_segment)
    .status(Part::PLAIN.validate(apiservices::validate_status))];

pub const CHECKS: Named<Check> =
    &[("dns-1035-label", |at| at.check_text(names::dns1035_label)), ("no-bundle", apiservices::no_bundle)];
