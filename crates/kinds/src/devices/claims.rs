//! ResourceClaims, their templates, and DeviceClasses.

use std::collections::{HashMap, HashSet};

use machinery::field::{FieldError, FieldPath};
use machinery::{Map, Value, names};

use crate::devices::fields::{self, Novelty};
use crate::devices::selectors;
use resource::builtin::checks::labels;
use schema::at::At;

const LIST_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const PARAMETERS_BYTES_MAX: usize = 10 * 1024;

/// The label of namespaces whose claims may have admin access.
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

pub fn validate_class(at: At) {
    let spec = at.field("spec");
    let novelty = |at: At| if at.old == Some(at.value) { Novelty::Stored } else { Novelty::New };
    selectors::check(spec, novelty(spec.field("selectors")));
    if spec.field("config").max_items(LIST_MAX) {
        spec.items_of("config").for_each(|config| configuration(config, novelty(spec.field("config"))));
    }
    let resource = spec.field("extendedResourceName");
    let name = resource.as_text();
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    let is_extended =
        !is_native && !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty();
    resource.invalid_if(resource.is_given() && !is_extended, "must be a valid extended resource name");
}

/// Whether two objects of a type have the same spec. Empty lists equal absent ones.
fn is_same_spec(old: &Value, new: &Value, go: &'static str) -> bool {
    schema::shape::same_fields(old, new, schema::shape::named(go), &["apiVersion", "kind", "metadata", "status"])
}

/// The spec of a ResourceClaim is immutable.
pub fn validate_claim(at: At) {
    match at.old {
        Some(old) if !is_same_spec(old, at.value, "resource.v1.ResourceClaim") => {
            at.field("spec").shown_as_go("resource.ResourceClaimSpec").invalid("field is immutable");
        }
        Some(_) => {}
        None => device_claim(at.field("spec.devices")),
    }
}

/// The spec of a ResourceClaimTemplate is immutable.
pub fn validate_claim_template(at: At) {
    template_metadata(at.field("spec.metadata"));
    device_claim(at.field("spec.spec.devices"));
    if at.old.is_some_and(|old| !is_same_spec(old, at.value, "resource.v1.ResourceClaimTemplate")) {
        at.field("spec").shown_as_go("resource.ResourceClaimTemplateSpec").invalid("field is immutable");
    }
}

/// The metadata of a template may only have labels and annotations.
fn template_metadata(metadata: At) {
    let annotations = metadata.field("annotations");
    for (key, _) in metadata.entries_of("annotations") {
        annotations.shown_as_text(key).invalid_each(names::qualified_name(&key.to_lowercase()));
    }
    labels(metadata.field("labels"));
    for name in metadata.value.as_object().into_iter().flat_map(Map::keys) {
        if !["labels", "annotations"].contains(&name.as_str()) && metadata.has(name) {
            // errors show the name of the Go field with its first letter in lower case
            metadata.field(if name == "uid" { "uID" } else { name.as_str() }).forbidden("cannot be set");
        }
    }
}

/// The path at which an object asks for admin access to devices, which only some namespaces may have.
pub fn admin_access(object: &Value) -> Option<FieldPath> {
    let of = |path: &[&str]| object.at(path).and_then(Value::as_array).unwrap_or_default();
    let requests = [of(&["spec", "devices", "requests"]), of(&["spec", "spec", "devices", "requests"])].concat();
    // in v1beta1 the field is in the request itself
    let is_admin = |request: &Value| {
        [&["exactly", "adminAccess"][..], &["adminAccess"]].iter().any(|path| request.is_true_at(path))
    };
    let place = requests.iter().position(is_admin)?;
    Some(FieldPath::new(format!("spec.devices.requests[{place}].adminAccess")))
}

/// The error of admin access in a namespace without the label for it.
pub fn admin_access_error(path: &FieldPath, namespace: Option<&Value>) -> Option<FieldError> {
    let label = namespace.and_then(|namespace| namespace.at(&["metadata", "labels", ADMIN_LABEL])?.as_str());
    let why = format!("admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace");
    (label != Some("true")).then(|| FieldError::forbidden(path, why))
}

/// The names of requests, each with the names of its alternatives.
pub struct RequestNames<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> RequestNames<'a> {
    pub fn of(devices: At<'_, 'a>) -> RequestNames<'a> {
        let all =
            devices.items_of("requests").map(|request| (request.text("name"), request.texts("firstAvailable", "name")));
        RequestNames(all.collect())
    }

    fn has(&self, reference: &str) -> bool {
        match reference.split_once('/') {
            None => self.0.contains_key(reference),
            Some((request, sub)) => self.0.get(request).is_some_and(|alternatives| alternatives.contains(&sub)),
        }
    }

    /// Checks a reference to a request or to one of its alternatives.
    pub fn check(&self, at: At) {
        const WHY: &str =
            "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
        let parts: Vec<&str> = at.as_text().split('/').collect();
        if parts.len() <= 2 {
            parts.iter().for_each(|part| at.shown_as_text(part).invalid_each(names::dns1123_label(part)));
        }
        at.or_empty().invalid_if(parts.len() > 2 || !self.has(at.as_text()), WHY);
    }

    /// Checks the references in a constraint or a configuration.
    pub fn check_all(&self, object: At) {
        if object.field("requests").max_items(LIST_MAX) {
            let mut known = HashSet::new();
            object.items_of("requests").for_each(|reference| self.check(reference));
            object.items_of("requests").for_each(|reference| reference.unique(&mut known));
        }
    }
}

/// Reports items of a list that have the name of an earlier item.
fn unique_names(list: At) {
    let mut known = HashSet::new();
    list.items().for_each(|item| item.with_value(item.field_or_empty("name").value).unique(&mut known));
}

fn device_claim(devices: At) {
    let names = RequestNames::of(devices);
    let [requests, constraints, config] = ["requests", "constraints", "config"].map(|name| devices.field(name));
    if requests.max_items(LIST_MAX) {
        requests.items().for_each(device_request);
        unique_names(requests);
    }
    if constraints.max_items(LIST_MAX) {
        constraints.items().for_each(|at| constraint(at, &names));
    }
    if config.max_items(LIST_MAX) {
        for config in config.items() {
            names.check_all(config);
            configuration(config, Novelty::New);
        }
    }
}

fn device_request(request: At) {
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    let (exactly, alternatives) = (request.field("exactly"), request.field("firstAvailable"));
    fields::label(request.field("name"));
    match (exactly.is_given(), alternatives.items().len() > 0) {
        (false, false) => request.required(ONE),
        (true, true) => request.shown_verbatim("null").invalid(format!("{ONE}, but multiple fields are set")),
        (true, false) => devices_of(exactly),
        (false, true) => {
            if alternatives.max_items(ALTERNATIVES_MAX) {
                for alternative in alternatives.items() {
                    fields::label(alternative.field("name"));
                    devices_of(alternative);
                }
                unique_names(alternatives);
            }
        }
    }
}

/// Validates which devices a request is for, and how many.
fn devices_of(request: At) {
    request.field("deviceClassName").check_required_text(names::dns1123_subdomain);
    selectors::check(request, Novelty::New);
    let (mode, count) = (request.field_or_empty("allocationMode"), request.field_or_zero("count"));
    match (mode.as_text(), count.value.as_int().unwrap_or_default()) {
        ("All", 0) | ("ExactCount", 1..) => {}
        ("All", _) => count.invalid("must not be specified when allocationMode is 'All'"),
        ("ExactCount", _) => count.invalid("must be greater than zero"),
        _ => mode.unsupported(&["All", "ExactCount"]),
    }
    fields::tolerations(request);
}

fn constraint(constraint: At, names: &RequestNames<'_>) {
    names.check_all(constraint);
    match ["matchAttribute", "distinctAttribute"].iter().find(|name| constraint.has(name)) {
        Some(name) => fields::fully_qualified_name(constraint.field(name)),
        // upstream words both errors like this
        None => constraint.required(
            "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set",
        ),
    }
}

/// Validates the configuration of a driver. The size of a stored one is not checked again.
pub fn configuration(config: At, novelty: Novelty) {
    let opaque = config.field("opaque");
    if !opaque.is_given() {
        return opaque.required("");
    }
    fields::driver(opaque.field("driver"));
    fields::raw_object(opaque.field("parameters"), (novelty == Novelty::New).then_some(PARAMETERS_BYTES_MAX));
}
