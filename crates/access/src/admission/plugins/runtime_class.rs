//! RuntimeClass: sets the overhead and the scheduling of a Pod's class.

use machinery::quantity::Quantity;
use machinery::{Status, Value, names};

use super::tolerations::merged;
use super::{Decision, PluginRefusal, PluginRequest};

const OVERHEAD: [&str; 2] = ["spec", "overhead"];
const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn class_of(call: &PluginRequest<'_>, pod: &Value) -> Result<Option<Value>, PluginRefusal> {
    let Some(name) = pod.at(&["spec", "runtimeClassName"]).and_then(Value::as_str) else { return Ok(None) };
    match call.get("node.k8s.io", "runtimeclasses", name) {
        Some(class) => Ok(Some(class)),
        None if name.is_empty() => Err(Status::untyped(500, "resource name may not be empty").into()),
        None => match names::path_segment(name)[..] {
            [] => Err(format!("pod rejected: RuntimeClass {name:?} not found").into()),
            // kube-apiserver looks the class up by a request
            ref problems => {
                let why = format!("invalid resource name {name:?}: [{}]", problems.join(" "));
                Err(Status::untyped(500, why).into())
            }
        },
    }
}

pub fn admit(call: &PluginRequest<'_>, pod: &mut Value) -> Decision {
    let Some(class) = class_of(call, pod)? else { return Ok(()) };
    if class.get("overhead").is_some() {
        let fixed = class.at(&["overhead", "podFixed"]);
        let given = pod.at(&OVERHEAD).filter(|given| given.as_object().is_some_and(|given| !given.is_empty()));
        if given.is_some() && !are_equal(given, fixed) {
            return Err(MISMATCH.to_owned().into());
        }
        pod.put_at(&OVERHEAD, fixed.cloned());
    }
    match class.get("scheduling") {
        Some(scheduling) => schedule(scheduling, pod),
        None => Ok(()),
    }
}

fn schedule(scheduling: &Value, pod: &mut Value) -> Decision {
    let selector = scheduling.get("nodeSelector").and_then(Value::as_object);
    for (key, value) in selector.into_iter().flat_map(|selector| selector.iter()) {
        let given = pod.at(&["spec", "nodeSelector", key]);
        if let Some(given) = given.filter(|given| *given != value) {
            let (value, given) = (value.as_str().unwrap_or_default(), given.as_str().unwrap_or_default());
            return Err(format!("conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {given}").into());
        }
        pod.set_at(&["spec", "nodeSelector", key], value.clone());
    }
    let tolerations = merged(pod.items_at(&["spec", "tolerations"]), scheduling.items_at(&["tolerations"]));
    if !tolerations.is_empty() {
        pod.set_at(&["spec", "tolerations"], Value::Array(tolerations));
    }
    Ok(())
}

pub fn validate(call: &PluginRequest<'_>) -> Decision {
    let pod = call.object();
    let class = class_of(call, pod)?;
    let overhead = pod.at(&OVERHEAD);
    match class.as_ref().and_then(|class| class.get("overhead")) {
        Some(defined) if are_equal(defined.get("podFixed"), overhead) => Ok(()),
        Some(_) => Err(MISMATCH.to_owned().into()),
        None if overhead.is_some() => {
            Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead".to_owned().into())
        }
        None => Ok(()),
    }
}

/// Whether two lists of resources have equal amounts, in any notation.
fn are_equal(a: Option<&Value>, b: Option<&Value>) -> bool {
    let is_equal = |a: &Value, b: &Value| match (Quantity::of(a), Quantity::of(b)) {
        (Ok(a), Ok(b)) => a.compare(&b).is_eq(),
        _ => a == b,
    };
    match (a.and_then(Value::as_object), b.and_then(Value::as_object)) {
        (Some(a), Some(b)) => a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_equal(a, b))),
        (a, b) => a.or(b).is_none_or(|list| list.is_empty()),
    }
}
