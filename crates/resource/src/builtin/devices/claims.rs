//! ResourceClaims, their templates, and DeviceClasses.

use std::collections::HashMap;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::super::checks::{duplicates, entries, invalid_internal, is_oversized, is_set, items, labels, list, text};
use super::fields::{self, Errors};
use super::selectors;

const LIST_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const PARAMETERS_BYTES_MAX: usize = 10 * 1024;
const ALLOCATION_MODES: [&str; 2] = ["All", "ExactCount"];

/// The label of namespaces whose claims may have admin access.
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

pub fn validate_class(class: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), class.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    let is_stored = |name: &str| old.is_some_and(|old| old.at(&["spec", name]) == spec.get(name));
    selectors::check(spec, is_stored("selectors"), &path, &mut errors);
    if !is_oversized(spec, "config", LIST_MAX, &path, &mut errors) {
        for (path, config) in items(spec, "config", &path) {
            configuration(config, is_stored("config"), &path, &mut errors);
        }
    }
    let name = text(spec, "extendedResourceName");
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    let is_extended =
        !is_native && !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty();
    if is_set(spec, "extendedResourceName") && !is_extended {
        let why = "must be a valid extended resource name";
        errors.push(FieldError::invalid(&path.child("extendedResourceName"), &Value::from(name), why));
    }
    errors
}

/// Whether two objects of a type have the same spec. Empty lists equal absent ones.
fn is_same_spec(old: &Value, new: &Value, go: &'static str) -> bool {
    schema::shape::same_fields(old, new, schema::shape::named(go), &["apiVersion", "kind", "metadata", "status"])
}

/// The spec of a ResourceClaim is immutable.
pub fn validate_claim(claim: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, path) = (vec![], FieldPath::new("spec"));
    match old {
        Some(old) if !is_same_spec(old, claim, "resource.v1.ResourceClaim") => {
            let spec = claim.get("spec").unwrap_or(&Value::Null);
            errors.push(invalid_internal(&path, spec, "resource.ResourceClaimSpec", "field is immutable"));
        }
        Some(_) => {}
        None => {
            device_claim(claim.at(&["spec", "devices"]).unwrap_or(&Value::Null), &path.child("devices"), &mut errors)
        }
    }
    errors
}

/// The spec of a ResourceClaimTemplate is immutable.
pub fn validate_claim_template(template: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, path) = (vec![], FieldPath::new("spec"));
    template_metadata(template.at(&["spec", "metadata"]).unwrap_or(&Value::Null), &path.child("metadata"), &mut errors);
    let devices = path.child("spec").child("devices");
    device_claim(template.at(&["spec", "spec", "devices"]).unwrap_or(&Value::Null), &devices, &mut errors);
    let spec = template.get("spec");
    if old.is_some_and(|old| !is_same_spec(old, template, "resource.v1.ResourceClaimTemplate")) {
        let (spec, go) = (spec.unwrap_or(&Value::Null), "resource.ResourceClaimTemplateSpec");
        errors.push(invalid_internal(&path, spec, go, "field is immutable"));
    }
    errors
}

/// The metadata of a template may only have labels and annotations.
fn template_metadata(metadata: &Value, path: &FieldPath, errors: &mut Errors) {
    for (key, _) in entries(metadata, &["annotations"]) {
        let path = path.child("annotations");
        super::super::checks::invalid_each(&path, key, names::qualified_name(&key.to_lowercase()), errors);
    }
    labels(metadata.get("labels").unwrap_or(&Value::Null), &path.child("labels"), errors);
    for (name, value) in entries(metadata, &[]) {
        if !["labels", "annotations"].contains(&name.as_str()) && !value.is_null() {
            // errors show the name of the Go field with its first letter in lower case
            let name = if name == "uid" { "uID" } else { name.as_str() };
            errors.push(FieldError::forbidden(&path.child(name), "cannot be set"));
        }
    }
}

/// The path at which an object asks for admin access to devices, which only some namespaces may have.
pub fn admin_access(object: &Value) -> Option<FieldPath> {
    let of = |path: &[&str]| object.at(path).and_then(Value::as_array).unwrap_or_default();
    let requests = [of(&["spec", "devices", "requests"]), of(&["spec", "spec", "devices", "requests"])].concat();
    // in v1beta1 the field is in the request itself
    let is_admin = |request: &Value| {
        [&["exactly", "adminAccess"][..], &["adminAccess"]]
            .iter()
            .any(|path| request.at(path) == Some(&Value::Bool(true)))
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
    pub fn of(devices: &'a Value) -> RequestNames<'a> {
        let alternatives =
            |request: &'a Value| list(request, "firstAvailable").iter().map(|sub| text(sub, "name")).collect();
        RequestNames(
            list(devices, "requests").iter().map(|request| (text(request, "name"), alternatives(request))).collect(),
        )
    }

    fn has(&self, reference: &str) -> bool {
        match reference.split_once('/') {
            None => self.0.contains_key(reference),
            Some((request, sub)) => self.0.get(request).is_some_and(|alternatives| alternatives.contains(&sub)),
        }
    }

    /// Checks a reference to a request or to one of its alternatives.
    pub fn check(&self, reference: &str, path: &FieldPath, errors: &mut Errors) {
        const WHY: &str =
            "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
        let parts: Vec<&str> = reference.split('/').collect();
        if parts.len() <= 2 {
            parts.iter().for_each(|part| fields::label(part, path, errors));
        }
        if parts.len() > 2 || !self.has(reference) {
            errors.push(FieldError::invalid(path, &Value::from(reference), WHY));
        }
    }

    /// Checks the references in a constraint or a configuration.
    pub fn check_all(&self, object: &Value, path: &FieldPath, errors: &mut Errors) {
        if is_oversized(object, "requests", LIST_MAX, path, errors) {
            return;
        }
        let references =
            || items(object, "requests", path).map(|(path, name)| (path, name.as_str().unwrap_or_default()));
        references().for_each(|(path, name)| self.check(name, &path, errors));
        duplicates(references(), errors);
    }
}

fn device_claim(devices: &Value, path: &FieldPath, errors: &mut Errors) {
    let names = RequestNames::of(devices);
    if !is_oversized(devices, "requests", LIST_MAX, path, errors) {
        items(devices, "requests", path).for_each(|(path, request)| device_request(request, &path, errors));
        duplicates(items(devices, "requests", path).map(|(path, request)| (path, text(request, "name"))), errors);
    }
    if !is_oversized(devices, "constraints", LIST_MAX, path, errors) {
        items(devices, "constraints", path).for_each(|(path, item)| constraint(item, &names, &path, errors));
    }
    if !is_oversized(devices, "config", LIST_MAX, path, errors) {
        for (path, config) in items(devices, "config", path) {
            names.check_all(config, &path, errors);
            configuration(config, false, &path, errors);
        }
    }
}

fn device_request(request: &Value, path: &FieldPath, errors: &mut Errors) {
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    fields::label(text(request, "name"), &path.child("name"), errors);
    match (request.get("exactly").filter(|exactly| !exactly.is_null()), list(request, "firstAvailable").is_empty()) {
        (None, true) => errors.push(FieldError::required(path, ONE)),
        (Some(_), false) => {
            let why = format!("{ONE}, but multiple fields are set");
            errors.push(FieldError::invalid(path, &Value::Null, why));
        }
        (Some(exactly), true) => devices_of(exactly, &path.child("exactly"), errors),
        (None, false) => {
            if is_oversized(request, "firstAvailable", ALTERNATIVES_MAX, path, errors) {
                return;
            }
            let all = || items(request, "firstAvailable", path);
            for (path, alternative) in all() {
                fields::label(text(alternative, "name"), &path.child("name"), errors);
                devices_of(alternative, &path, errors);
            }
            duplicates(all().map(|(path, alternative)| (path, text(alternative, "name"))), errors);
        }
    }
}

/// Validates which devices a request is for, and how many.
fn devices_of(request: &Value, path: &FieldPath, errors: &mut Errors) {
    let class = text(request, "deviceClassName");
    let class_path = path.child("deviceClassName");
    match class {
        "" => errors.push(FieldError::required(&class_path, "")),
        _ => super::super::checks::invalid_each(&class_path, class, names::dns1123_subdomain(class), errors),
    }
    selectors::check(request, false, path, errors);
    let count = request.get("count").and_then(Value::as_int).unwrap_or_default();
    let mut invalid = |why: &str| errors.push(FieldError::invalid(&path.child("count"), &Value::Int(count), why));
    match text(request, "allocationMode") {
        "All" if count != 0 => invalid("must not be specified when allocationMode is 'All'"),
        "ExactCount" if count <= 0 => invalid("must be greater than zero"),
        "All" | "ExactCount" => {}
        other => {
            let path = path.child("allocationMode");
            errors.push(FieldError::not_supported(&path, &Value::from(other), &ALLOCATION_MODES));
        }
    }
    fields::tolerations(request, path, errors);
}

fn constraint(constraint: &Value, names: &RequestNames<'_>, path: &FieldPath, errors: &mut Errors) {
    names.check_all(constraint, path, errors);
    let attribute = ["matchAttribute", "distinctAttribute"].into_iter().find(|name| is_set(constraint, name));
    match attribute {
        Some(name) => fields::fully_qualified_name(text(constraint, name), &path.child(name), errors),
        // upstream words both errors like this
        None => errors.push(FieldError::required(
            path,
            "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set",
        )),
    }
}

/// Validates the configuration of a driver. The size of a stored one is not checked again.
pub fn configuration(config: &Value, is_stored: bool, path: &FieldPath, errors: &mut Errors) {
    let path = path.child("opaque");
    let Some(opaque) = config.get("opaque").filter(|opaque| !opaque.is_null()) else {
        return errors.push(FieldError::required(&path, ""));
    };
    fields::driver(text(opaque, "driver"), &path.child("driver"), errors);
    let most = (!is_stored).then_some(PARAMETERS_BYTES_MAX);
    fields::raw_object(opaque.get("parameters"), most, &path.child("parameters"), errors);
}
