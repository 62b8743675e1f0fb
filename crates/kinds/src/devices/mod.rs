//! Devices: classes, claims and their templates, slices and taints (`resource.k8s.io`).
//!
//! The rules here are those that kube-apiserver writes by hand; those that its types declare are in `declared.txt`.

mod capacity;
mod claims;
mod fields;
pub mod flat;
mod pool_requests;
mod results;
mod selectors;
mod slices;

pub use claims::{admin_access, admin_access_error, validate_claim, validate_claim_template, validate_class};
pub use results::{admin_results, keep_allocated, validate_status};
pub use slices::{slice_warnings, validate_slice};

use machinery::{Map, Value};

use crate::names::declared_name;
use resource::builtin::checks::validate_conditions;
use resource::builtin::defaults::at_mut;
use resource::builtin::{Behaviour, Hooks, Part, StoredAs};
use schema::at::At;

/// The time of a taint follows its effect.
pub fn prepare_taint_rule(rule: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return };
    let (effect, added) = (["spec", "taint", "effect"], ["spec", "taint", "timeAdded"]);
    if rule.at(&effect) != old.at(&effect) && rule.at(&added) == old.at(&added) {
        rule.set_at(&added, Value::from(base::clock::now_rfc3339()));
    }
}

/// Drops values of attributes that a feature gate adds.
pub fn prepare_slice(slice: &mut Value, old: Option<&Value>) {
    const GATED: [&str; 4] = ["bools", "ints", "strings", "versions"];
    let uses = |slice: &Value| {
        let devices = slice.items_at(&["spec", "devices"]);
        let attributes = devices.iter().filter_map(|device| device.get("attributes")?.as_object()).flat_map(Map::iter);
        attributes.into_iter().any(|(_, value)| GATED.iter().any(|name| value.get(name).is_some()))
    };
    if old.is_some_and(uses) {
        return;
    }
    for device in items_mut(slice, &["spec", "devices"]) {
        let attributes = device.get_mut("attributes").and_then(Value::as_object_mut);
        for (_, value) in attributes.into_iter().flat_map(Map::iter_mut) {
            if let Some(value) = value.as_object_mut() {
                GATED.iter().for_each(|name| drop(value.remove(name)));
            }
        }
    }
}

pub fn validate_taint_rule(at: At) {
    at.field_if_given("spec.deviceSelector").into_iter().for_each(fields::device_selector);
    fields::taint(at.field("spec.taint"));
}

fn items_mut<'a>(object: &'a mut Value, path: &[&str]) -> impl Iterator<Item = &'a mut Value> {
    at_mut(object, path).and_then(Value::as_array_mut).into_iter().flatten()
}

/// `resource.k8s.io/v1beta1` has a form of its own; its objects are prepared and validated in the form of v1.
const FLAT: StoredAs = StoredAs {
    is_canonical: true,
    checked_path: Some(flat::stable_path),
    ..StoredAs::new(flat::to_stable, flat::to_flat)
};

const RESOURCE_CLAIM: Behaviour = Behaviour::of("resource.k8s.io/ResourceClaim")
    .validate(validate_claim)
    .status(Part::PLAIN.prepare(keep_allocated).validate(validate_status))
    .hooks(Hooks::ResourceClaim);

const RESOURCE_SLICE: Behaviour = Behaviour::of("resource.k8s.io/ResourceSlice")
    .prepare(prepare_slice)
    .validate(validate_slice)
    .warnings(slice_warnings);

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("resource.k8s.io/DeviceClass").validate(validate_class).name(declared_name),
    Behaviour::of("resource.k8s.io/v1beta1/DeviceClass").conversion(FLAT),
    Behaviour::of("resource.k8s.io/DeviceTaintRule")
        .prepare(prepare_taint_rule)
        .validate(validate_taint_rule)
        .status(Part::PLAIN.validate(validate_conditions)),
    RESOURCE_CLAIM,
    RESOURCE_CLAIM.like("resource.k8s.io/v1beta1/ResourceClaim").default(flat::default).conversion(FLAT),
    Behaviour::of("resource.k8s.io/ResourceClaimTemplate")
        .validate(validate_claim_template)
        .hooks(Hooks::ResourceClaim),
    Behaviour::of("resource.k8s.io/v1beta1/ResourceClaimTemplate")
        .default(flat::default)
        .conversion(FLAT)
        .hooks(Hooks::ResourceClaim),
    RESOURCE_SLICE,
    RESOURCE_SLICE.like("resource.k8s.io/v1beta1/ResourceSlice").conversion(FLAT),
    Behaviour::of("resource.k8s.io/ResourcePoolStatusRequest")
        .status(Part::PLAIN.validate(pool_requests::validate_status)),
];
