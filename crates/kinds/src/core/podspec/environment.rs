//! Variables of containers.

use machinery::names;

use crate::core::downward::{VARIABLES, container_amount, field_path};
use crate::rule_checks;
use resource::rules::label_name;
use schema::at::At;

/// The sources of a variable's value, in the order in which errors name them.
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

pub(super) fn environment(variable: At) {
    let Some(source) = variable.field_if_given("valueFrom") else { return };
    match SOURCES.iter().filter(|name| source.has(name)).count() {
        0 => source.shown_as_text("").invalid(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        _ if !variable.text("value").is_empty() => {
            source.shown_as_text("").invalid("may not be specified when `value` is not empty");
        }
        1 => {}
        _ => source.shown_as_text("").invalid("may not have more than one field specified at a time"),
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        source.field_if_given(name).into_iter().for_each(|key| key.field("name").check_text(names::dns1123_subdomain));
    }
    source.field_if_given("fileKeyRef").into_iter().for_each(file_key);
    source.field_if_given("fieldRef").into_iter().for_each(|field| field_path(field, &VARIABLES));
    source.field_if_given("resourceFieldRef").into_iter().for_each(container_amount);
}

fn file_key(reference: At) {
    rule_checks::env_name(reference.field("key"));
    reference.field("volumeName").check_text_unless_empty(label_name);
    rule_checks::no_backsteps(reference.field("path"));
}

pub(super) fn environment_source(source: At) {
    match (source.has("configMapRef"), source.has("secretRef")) {
        (false, false) => source.shown_as_text("").invalid("must specify one of: `configMapRef` or `secretRef`"),
        (true, true) => source.shown_as_text("").invalid("may not have more than one field specified at a time"),
        _ => {}
    }
}
