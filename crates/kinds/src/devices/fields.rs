//! Names, taints and other fields that several kinds of `resource.k8s.io` share.

use std::collections::HashSet;

use machinery::{Value, names};

use resource::builtin::formats::identifier;
use schema::at::At;

const LABEL_BYTES_MAX: usize = 63;
const POOL_BYTES_MAX: usize = 253;
const BINDING_CONDITIONS_MAX: usize = 4;

pub const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// Whether the stored object has a value, too. It is then not checked for its cost and size again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    New,
    Stored,
}

/// The name of a driver.
pub fn driver(at: At) {
    driver_name(at.as_text(), at);
}

fn driver_name(name: &str, at: At) {
    if name.is_empty() {
        return at.required("");
    }
    if name.len() > LABEL_BYTES_MAX {
        at.too_long(LABEL_BYTES_MAX);
    }
    at.shown_as_text(name).invalid_each(names::dns1123_subdomain(&name.to_lowercase()));
}

/// Validates the name of a pool: DNS subdomains that are separated by slashes.
pub fn pool(at: At) {
    if at.as_text().is_empty() {
        return at.required("");
    }
    at.max_bytes(POOL_BYTES_MAX);
    at.as_text().split('/').for_each(|part| at.shown_as_text(part).invalid_each(names::dns1123_subdomain(part)));
}

pub fn label(at: At) {
    at.check_text(names::dns1123_label);
}

/// Validates the name of an attribute or a capacity: an identifier, usually with a domain in front of it.
pub fn qualified_name(name: &str, at: At) {
    match name.split('/').collect::<Vec<_>>()[..] {
        [own] => identifier(own, at),
        [domain, own] => {
            match domain {
                "" => at.shown_as_text("").invalid("the domain must not be empty"),
                _ => driver_name(domain, at),
            }
            match own {
                "" => at.shown_as_text("").invalid("the name must not be empty"),
                _ => identifier(own, at),
            }
        }
        // upstream accepts more than one slash
        _ => {}
    }
}

/// Validates a name that must have a domain.
pub fn fully_qualified_name(at: At) {
    qualified_name(at.as_text(), at);
    if !at.as_text().contains('/') {
        at.invalid("a fully qualified name must be a domain and a name separated by a slash");
    }
}

/// Validates the selector of the devices that a rule taints.
pub fn device_selector(selector: At) {
    selector.field_if_given("driver").into_iter().for_each(driver);
    selector.field_if_given("pool").into_iter().for_each(pool);
    selector.field_if_given("device").into_iter().for_each(label);
}

pub fn taint(taint: At) {
    taint.field("key").check_text(names::qualified_name);
    taint.field("value").check_text_unless_empty(names::label_value);
    let effect = taint.field("effect");
    match effect.as_text() {
        given if effect.old.is_some_and(|old| old.as_str().unwrap_or_default() == given) => {}
        "" => effect.required(""),
        _ => effect.one_of(&EFFECTS),
    }
}

pub fn tolerations(object: At) {
    for toleration in object.items_of("tolerations") {
        let (value, operator, effect) =
            (toleration.field("value"), toleration.field("operator"), toleration.field("effect"));
        toleration.field("key").check_text_unless_empty(names::qualified_name);
        match operator.as_text() {
            "Exists" if !value.as_text().is_empty() => value.invalid("must be empty for operator `Exists`"),
            "Exists" => {}
            "Equal" => value.check_text(names::label_value),
            "" => operator.required(""),
            _ => operator.unsupported(&["Equal", "Exists"]),
        }
        if !effect.as_text().is_empty() {
            effect.one_of(&EFFECTS);
        }
    }
}

/// The conditions that a device needs before it is bound, and those that end the attempt, must both be given or both be
/// absent.
pub fn binding_conditions(object: At) {
    const NAMES: [&str; 2] = ["bindingConditions", "bindingFailureConditions"];
    let [bound, failed] = NAMES.map(|name| object.field(name));
    for list in [bound, failed] {
        if list.max_items(BINDING_CONDITIONS_MAX) {
            list.items().for_each(|condition| condition.check_text(names::qualified_name));
        }
    }
    let mut seen = HashSet::new();
    bound.items().for_each(|condition| condition.unique(&mut seen));
    let (of_bound, mut seen) = (seen, HashSet::new());
    for condition in failed.items() {
        condition.unique(&mut seen);
        if of_bound.contains(condition.as_text()) {
            condition.invalid("bindingFailureConditions must not overlap with bindingConditions");
        }
    }
    for (missing, given, [name, other]) in [(bound, failed, NAMES), (failed, bound, [NAMES[1], NAMES[0]])] {
        if missing.items().len() == 0 && given.items().len() > 0 {
            missing.shown_verbatim("null").invalid(format!("{name} are required to use {other}"));
        }
    }
}

/// Validates the data of a driver: a JSON object of bounded size.
pub fn raw_object(at: At, bytes_max: Option<usize>) {
    match (at.value, bytes_max) {
        (Value::Null, _) => at.required(""),
        (value, Some(most)) if value.to_json().len() > most => at.too_long(most),
        (Value::Object(_), _) => {}
        _ => at.shown_as_text("<value omitted>").invalid("must be a valid JSON object"),
    }
}
