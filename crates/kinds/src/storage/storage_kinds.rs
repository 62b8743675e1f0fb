//! Classes, drivers and attachments of storage.

use std::collections::HashSet;

use machinery::{Value, names};

use crate::core::volumes;
use crate::limits::{TOKEN_SECONDS_MAX, TOKEN_SECONDS_MIN};
use crate::rule_checks;
use resource::builtin::checks::selector_operators;
use schema::at::{At, CheckStage};

pub fn validate_driver(at: At) {
    let (spec, mut audiences) = (at.field("spec"), HashSet::new());
    let modes = spec.field("volumeLifecycleModes");
    modes.items().for_each(|mode| modes.with_value(mode.value).shown_as_json().one_of(&["Persistent", "Ephemeral"]));
    for request in spec.items_of("tokenRequests") {
        let (audience, seconds) = (request.field_or_empty("audience"), request.field("expirationSeconds"));
        if !audiences.insert(audience.as_text()) {
            audience.duplicate();
            continue;
        }
        match seconds.value.as_int() {
            Some(..TOKEN_SECONDS_MIN) => seconds.invalid("may not specify a duration less than 10 minutes"),
            Some(given) if given > TOKEN_SECONDS_MAX => {
                seconds.invalid("may not specify a duration larger than 2^32 seconds");
            }
            _ => {}
        }
    }
    let secrets = spec.field("serviceAccountTokenInSecrets");
    if secrets.is_given() && audiences.is_empty() {
        secrets.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified");
    }
    const PERIOD_MIN: i64 = 10;
    let period = spec.field("nodeAllocatableUpdatePeriodSeconds");
    period.at_least(PERIOD_MIN, "must be greater than or equal to 10 seconds");
    // kube-apiserver misspells the first of these fields
    spec.field("attachRequired").with_name("attachedRequired").immutable();
    modes.immutable();
}

pub fn validate_node(at: At) {
    const ID_BYTES_MAX: usize = 256;
    let (spec, mut known) = (at.field("spec"), HashSet::new());
    spec.items_of("drivers").for_each(|driver| driver.field_or_empty("name").unique(&mut known));
    for driver in spec.items_of("drivers") {
        driver.field("nodeID").invalid_if(driver.text("nodeID").len() > ID_BYTES_MAX, "must be 256 characters or less");
        // upstream reports keys at the path of their driver
        let mut known = HashSet::new();
        for key in driver.items_of("topologyKeys").map(|key| driver.with_value(key.value)) {
            key.unique(&mut known);
            key.require_text("");
            key.check_text(names::qualified_name);
        }
    }
    let before = spec.field("drivers").old_items();
    before.iter().for_each(|before| changed_drivers(spec.field("drivers"), before));
}

/// If a Node already has a driver, only the number of its allocatable volumes may change.
fn changed_drivers(drivers: At, before: &Value) {
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        driver.remove_at(&["allocatable"]);
        driver
    };
    for driver in drivers.items().filter(|driver| driver.text("name") == before.str_at(&["name"])) {
        let now = fixed(driver.value);
        if now != fixed(before) {
            drivers.showing(&now, |at| at.shown_as_go("storage.CSINodeDriver").invalid("field is immutable"));
        }
    }
}

pub fn validate_class(at: At) {
    let mut known_terms = HashSet::new();
    for term in at.items_of("allowedTopologies") {
        let (expressions, mut known) = (term.field("matchLabelExpressions"), HashSet::new());
        expressions.items().for_each(|requirement| requirement.field_or_empty("key").unique(&mut known));
        for requirement in expressions.items() {
            let mut known = HashSet::new();
            requirement.items_of("values").for_each(|value| value.unique(&mut known));
        }
        // an empty term counts as a repetition
        let is_empty = expressions.items().len() == 0;
        if is_empty || !known_terms.insert(expressions.value.to_json()) {
            expressions.shown_as_text("").duplicate();
        }
    }
}

pub fn validate_capacity(at: At) {
    selector_operators(at.field("nodeTopology"));
}

pub fn validate_attachment_status(at: At) {
    const METADATA_BYTES_MAX: usize = 256 << 10;
    const MESSAGE_BYTES_MAX: usize = 1024;
    let status = at.field("status");
    let metadata = status.entries_of("attachmentMetadata");
    if metadata.map(|(key, value)| key.len() + value.as_text().len()).sum::<usize>() > METADATA_BYTES_MAX {
        status.field("attachmentMetadata").too_long(METADATA_BYTES_MAX);
    }
    for error in ["attachError", "detachError"] {
        let error = status.field(error);
        if error.text("message").len() > MESSAGE_BYTES_MAX {
            error.field("message").too_long(MESSAGE_BYTES_MAX);
        }
    }
}

pub fn validate_attachment(at: At) {
    const NO_SINGLE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let source = at.field("spec.source");
    let (inline, name) = (source.field("inlineVolumeSpec"), source.field("persistentVolumeName"));
    match (inline.is_given(), name.is_given()) {
        (false, false) => source.required(NO_SINGLE_SOURCE),
        (true, true) => source.forbidden(NO_SINGLE_SOURCE),
        (true, false) => volumes::inline(inline),
        (false, true) if name.as_text().is_empty() => name.required("must specify non empty persistentVolumeName"),
        (false, true) => {}
    }
    name.check_text_if_given(names::dns1123_subdomain);
    let attacher = at.field("spec.attacher");
    if !attacher.as_text().is_empty() {
        // the declared rules replace the others
        let check = if at.is_update() { rule_checks::csi_driver } else { rule_checks::driver_name };
        check(attacher);
    }
    let spec = at.field("spec");
    if spec.old.is_some_and(|old| old != spec.value) {
        spec.in_stage(CheckStage::Change).shown_verbatim("null").invalid("field is immutable");
    }
}
