//! The conversion of `resource.k8s.io/v1beta1` from and to `v1`. `v1` nests some fields of requests and devices that
//! are flat in `v1beta1`.

use machinery::{Map, Value};

use crate::devices::items_mut;
use resource::builtin::defaults::set_default;

/// The fields of a request that `v1` has in `exactly`.
const REQUEST: [&str; 8] = [
    "adminAccess", "allocationMode", "capacity", "count", "derivedAttributes", "deviceClassName", "selectors",
    "tolerations",
];

/// The fields of a device that `v1beta1` has in `basic`.
const DEVICE: [&str; 12] = [
    "allNodes", "allowMultipleAllocations", "attributes", "bindingConditions", "bindingFailureConditions",
    "bindsToNode", "capacity", "consumesCounters", "nodeAllocatableResources", "nodeName", "nodeSelector", "taints",
];

/// The paths of the lists of requests in a claim and in a template.
const REQUESTS: [&[&str]; 2] = [&["spec", "devices", "requests"], &["spec", "spec", "devices", "requests"]];
const DEVICES: &[&str] = &["spec", "devices"];

/// Moves fields to another object.
fn moved(from: &mut Map, to: &mut Value, names: &[&str]) {
    for name in names {
        if let (Some(value), Value::Object(to)) = (from.remove(name), &mut *to) {
            to.insert(*name, value);
        }
    }
}

/// Whether a field of a request differs from its zero value in Go.
fn is_given(name: &str, value: &Value) -> bool {
    match (name, value) {
        (_, Value::Null | Value::Int(0)) => false,
        (_, Value::String(text)) => !text.is_empty(),
        _ => true,
    }
}

/// Converts an object from `v1beta1` to `v1`.
pub fn to_stable(mut object: Value) -> Value {
    object.set_at(&["apiVersion"], Value::from("resource.k8s.io/v1"));
    for path in REQUESTS {
        for request in items_mut(&mut object, path).filter_map(Value::as_object_mut) {
            let mut exactly = Value::object();
            moved(request, &mut exactly, &REQUEST);
            let fields = exactly.fields();
            if fields.into_iter().any(|(name, value)| is_given(name, value)) {
                request.insert("exactly", exactly);
            }
        }
    }
    for device in items_mut(&mut object, DEVICES).filter_map(Value::as_object_mut) {
        if let Some(Value::Object(mut basic)) = device.remove("basic") {
            let mut inner = Value::Object(std::mem::take(device));
            moved(&mut basic, &mut inner, &DEVICE);
            if let Value::Object(inner) = inner {
                *device = inner;
            }
        }
    }
    // these are pointers in v1, and are not set where v1beta1 has zero values
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        for (name, zero) in [("nodeName", Value::from("")), ("allNodes", Value::Bool(false))] {
            if spec.get(name) == Some(&zero) {
                spec.remove(name);
            }
        }
    }
    object
}

/// Converts an object from `v1` to `v1beta1`.
pub fn to_flat(mut object: Value) -> Value {
    object.set_at(&["apiVersion"], Value::from("resource.k8s.io/v1beta1"));
    for path in REQUESTS {
        for request in items_mut(&mut object, path) {
            let exactly = request.as_object_mut().and_then(|request| request.remove("exactly"));
            if let Some(Value::Object(mut exactly)) = exactly {
                moved(&mut exactly, request, &REQUEST);
            }
            // this field is shown even if it is empty
            if request.get("deviceClassName").is_none() && request.as_object().is_some() {
                request.set_at(&["deviceClassName"], Value::from(""));
            }
        }
    }
    for device in items_mut(&mut object, DEVICES).filter_map(Value::as_object_mut) {
        let mut basic = Value::object();
        moved(device, &mut basic, &DEVICE);
        device.insert("basic", basic);
    }
    object
}

/// Converts the path of a field from `v1beta1` to `v1`.
pub fn stable_path(path: &str) -> String {
    let Some((list, rest)) = path.split_once("].") else { return path.to_owned() };
    let field = rest.split(['.', '[']).next().unwrap_or_default();
    match list.rsplit_once('[').map(|(list, _)| list) {
        Some("spec.devices.requests" | "spec.spec.devices.requests") if REQUEST.contains(&field) => {
            format!("{list}].exactly.{rest}")
        }
        Some("spec.devices") => format!("{list}].{}", rest.strip_prefix("basic.").unwrap_or(rest)),
        _ => path.to_owned(),
    }
}

/// Sets the defaults of requests in `v1beta1`. Only requests that name a device class have any.
pub fn default(object: &mut Value) {
    for path in REQUESTS {
        let has_class = |request: &&mut Value| !request.str_at(&["deviceClassName"]).is_empty();
        for request in items_mut(object, path).filter(has_class) {
            if request.str_at(&["allocationMode"]).is_empty() {
                request.set_at(&["allocationMode"], Value::from("ExactCount"));
            }
            if request.str_at(&["allocationMode"]) == "ExactCount" {
                set_default(request, &["count"], Value::Int(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    fn claim(version: &str, request: Value) -> Value {
        let api_version = format!("resource.k8s.io/{version}");
        json!({"apiVersion": (api_version), "spec": {"devices": {"requests": [request]}}})
    }

    #[test]
    fn requests_are_nested_and_flat() {
        let flat = json!({"name": "r", "deviceClassName": "c", "count": 2, "adminAccess": true});
        let nested = json!({"name": "r", "exactly": {"deviceClassName": "c", "count": 2, "adminAccess": true}});
        let (flat, nested) = (claim("v1beta1", flat), claim("v1", nested));
        assert_eq!(to_stable(flat.clone()), nested);
        assert_eq!(to_flat(nested), flat);
        let alternatives = json!({"name": "r", "deviceClassName": "", "firstAvailable": [{"name": "s"}]});
        let stable = json!({"name": "r", "firstAvailable": [{"name": "s"}]});
        let (flat, stable) = (claim("v1beta1", alternatives), claim("v1", stable));
        assert_eq!(to_stable(flat.clone()), stable);
        assert_eq!(to_flat(stable), flat);
        let empty = json!({"name": "r", "selectors": [], "count": 0});
        let given = json!({"name": "r", "exactly": {"selectors": [], "count": 0}});
        assert_eq!(to_stable(claim("v1beta1", empty)), claim("v1", given));
    }

    #[test]
    fn devices_are_flat_and_nested() {
        let slice = |version: &str, spec: Value| {
            let api_version = format!("resource.k8s.io/{version}");
            json!({"apiVersion": (api_version), "spec": (spec)})
        };
        let beta = json!({"nodeName": "n", "devices": [{"name": "d", "basic": {"attributes": {"a": {"int": 1}}}}]});
        let stable = json!({"nodeName": "n", "devices": [{"name": "d", "attributes": {"a": {"int": 1}}}]});
        assert_eq!(to_stable(slice("v1beta1", beta.clone())), slice("v1", stable.clone()));
        assert_eq!(to_flat(slice("v1", stable)), slice("v1beta1", beta));
        let zero = json!({"nodeName": "", "allNodes": false, "devices": [{"name": "d"}]});
        assert_eq!(to_stable(slice("v1beta1", zero)), slice("v1", json!({"devices": [{"name": "d"}]})));
    }

    #[test]
    fn paths_are_those_of_the_stable_version() {
        let cases = [
            ("spec.devices.requests[3].selectors[1]", "spec.devices.requests[3].exactly.selectors[1]"),
            ("spec.spec.devices.requests[0].count", "spec.spec.devices.requests[0].exactly.count"),
            ("spec.devices.requests[3].firstAvailable[0].name", "spec.devices.requests[3].firstAvailable[0].name"),
            ("spec.devices[2].basic.taints[0].effect", "spec.devices[2].taints[0].effect"),
            ("spec.devices[2].name", "spec.devices[2].name"),
            ("spec.driver", "spec.driver"),
        ];
        for (path, want) in cases {
            assert_eq!(stable_path(path), want);
        }
    }

    #[test]
    fn defaults_need_a_class() {
        let defaulted = |request: Value| {
            let mut claim = claim("v1beta1", request);
            default(&mut claim);
            claim.at(&["spec", "devices", "requests"]).and_then(Value::as_array).unwrap()[0].clone()
        };
        let want = json!({"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1});
        assert_eq!(defaulted(json!({"deviceClassName": "c"})), want);
        assert_eq!(defaulted(json!({"name": "r"})), json!({"name": "r"}));
    }
}
