//! Defaulting of the linked address and family fields of a Service, before addresses are allocated.
//!
//! Clients leave out what was allocated for them, and set `clusterIP` without `clusterIPs`. [`complete`] derives what
//! they mean, from the Service and the one that it replaces.

use std::collections::{HashMap, HashSet};

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};

use crate::core::services::{HEADLESS, is_external_name, node_ports, validate};
use crate::ip::{self, Family};
use resource::builtin::checks::{list, text};
use schema::at::errors_at;

/// The families in which this server allocates addresses.
#[derive(Clone, Copy, Debug)]
pub struct Families {
    pub primary: Family,
    /// Whether ranges of both families are configured.
    pub dual: bool,
}

impl Families {
    fn has(self, family: Family) -> bool {
        self.dual || family == self.primary
    }
}

/// Completes the addresses, families and node ports of the `spec` of a Service from the one that it replaces, if any.
/// Errors reject the Service before it is validated as a whole.
pub fn complete(
    spec: &mut Value,
    old: Option<&Value>,
    families: Families,
    release: Release,
) -> Result<(), Vec<FieldError>> {
    if let Some(old) = old {
        keep_allocated(spec, old);
    }
    match_lists(spec, old);
    if is_external_name(spec) { Ok(()) } else { complete_families(spec, old, families, release) }
}

fn same(a: &Value, b: &Value, name: &str) -> bool {
    a.get(name) == b.get(name)
}

/// Restores allocated values that the update omits.
fn keep_allocated(spec: &mut Value, old: &Value) {
    if !is_external_name(spec) && !is_external_name(old) {
        for name in ["clusterIP", "clusterIPs"] {
            if let (None, Some(value)) = (spec.get(name), old.get(name)) {
                spec.set_at(&[name], value.clone());
            }
        }
    }
    if allocates_node_ports(spec) && allocates_node_ports(old) {
        keep_node_ports(spec, old);
    }
    if crate::core::services::needs_health_check(spec)
        && crate::core::services::needs_health_check(old)
        && spec.get("healthCheckNodePort").is_none()
        && let Some(port) = old.get("healthCheckNodePort")
    {
        spec.set_at(&["healthCheckNodePort"], port.clone());
    }
}

fn allocates_node_ports(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    }
}

/// A port keeps its node port by its name, unless another port uses that node port now.
fn keep_node_ports(spec: &mut Value, old: &Value) {
    let used: HashSet<i64> = node_ports(spec).into_iter().collect();
    // of several ports with the same name, the last one wins
    let before: HashMap<&str, &Value> = list(old, "ports").iter().map(|port| (text(port, "name"), port)).collect();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.get("nodePort").is_some() {
            continue;
        }
        let number = before.get(text(port, "name")).and_then(|before| before.get("nodePort")?.as_int());
        if let Some(number) = number.filter(|number| !used.contains(number)) {
            port.set_at(&["nodePort"], Value::Int(number));
        }
    }
}

/// Makes `clusterIPs` agree with `clusterIP`.
fn match_lists(spec: &mut Value, old: Option<&Value>) {
    let one = spec.get("clusterIP").cloned();
    let Some(old) = old else {
        if let (Some(one), None) = (one, spec.get("clusterIPs")) {
            spec.set_at(&["clusterIPs"], Value::Array(vec![one]));
        }
        return;
    };
    if same(spec, old, "clusterIP") {
        if let (None, Some(all)) = (spec.get("clusterIPs"), old.get("clusterIPs")) {
            spec.set_at(&["clusterIPs"], all.clone());
        }
        return;
    }
    if !same(spec, old, "clusterIPs") {
        return;
    }
    spec.put_at(&["clusterIPs"], one.map(|one| Value::Array(vec![one])));
}

/// Whether an update leaves the addresses and families of a Service with `PreferDualStack` unchanged. They are then
/// kept even if the server's ranges have changed.
pub fn keeps_addresses(spec: &Value, old: &Value) -> bool {
    let preferred = |spec: &Value| matches!(text(spec, "ipFamilyPolicy"), "PreferDualStack");
    same(spec, old, "type")
        && preferred(spec)
        && (old.get("ipFamilyPolicy").is_none() || preferred(old))
        && same(spec, old, "clusterIPs")
        && same(spec, old, "ipFamilies")
}

fn complete_families(
    spec: &mut Value,
    old: Option<&Value>,
    families: Families,
    release: Release,
) -> Result<(), Vec<FieldError>> {
    if old.is_some_and(|old| keeps_addresses(spec, old)) {
        return Ok(());
    }
    let without_selector = text(spec, "clusterIP") == HEADLESS
        && spec.get("selector").and_then(Value::as_object).is_none_or(machinery::Map::is_empty);
    if spec.get("ipFamilyPolicy").is_none() {
        let before = old.and_then(|old| old.get("ipFamilyPolicy")).cloned();
        let policy = if without_selector { "RequireDualStack" } else { "SingleStack" };
        spec.set_at(&["ipFamilyPolicy"], before.unwrap_or_else(|| Value::from(policy)));
    }
    let errors = errors_at(&FieldPath::new("spec"), spec, old, release, validate::linked);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut errors = vec![];
    if let Some(old) = old {
        reduce(spec, old, &mut errors);
    }
    infer_families(spec, families, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    if !without_selector {
        configured(spec, families)?;
    }
    if list(spec, "ipFamilies").is_empty() {
        spec.set_at(&["ipFamilies"], Value::Array(vec![Value::from(families.primary.as_str())]));
    }
    if without_selector || families.dual {
        add_second_family(spec);
    }
    Ok(())
}

const POLICY: &str = "ipFamilyPolicy";

/// Drops the secondary address and family of a Service that becomes `SingleStack`, and rejects any other update that
/// omits them.
fn reduce(spec: &mut Value, old: &Value, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("spec").child(POLICY);
    let single = text(spec, POLICY) == "SingleStack";
    for (name, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let count = list(spec, name).len();
        if single && same(spec, old, name) {
            let kept: Vec<Value> = list(spec, name).iter().take(1).cloned().collect();
            if count > 1 {
                spec.set_at(&[name], Value::Array(kept));
            }
        } else if !single && count > 0 && count < list(old, name).len() {
            let why = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(FieldError::invalid(&path, &spec.get(POLICY).cloned().unwrap_or_default(), why));
        }
    }
}

/// Derives families from the addresses that are given.
fn infer_families(spec: &mut Value, families: Families, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("spec");
    let policy = spec.get(POLICY).cloned().unwrap_or_default();
    for (name, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if policy.as_str() == Some("SingleStack") && list(spec, name).len() == 2 {
            let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.push(FieldError::invalid(&path.child(POLICY), &policy, why));
        }
    }
    let addresses = spec.get("clusterIPs").cloned().unwrap_or_default();
    let mut named = list(spec, "ipFamilies").to_vec();
    for (i, address) in addresses.as_array().unwrap_or_default().iter().enumerate() {
        if address.as_str() == Some(HEADLESS) {
            break;
        }
        let Some(address) = address.as_str().and_then(ip::parse) else { continue };
        if i < named.len() {
            continue;
        }
        let family = Family::of(address);
        if families.has(family) {
            named.push(Value::from(family.as_str()));
        } else {
            let why = format!("{} is not configured on this cluster", family.as_str());
            errors.push(FieldError::invalid(&path.child("clusterIPs").index(i), &addresses, why));
        }
    }
    if !named.is_empty() {
        spec.set_at(&["ipFamilies"], Value::Array(named));
    }
}

/// Rejects a Service that asks for IP families that are not configured.
fn configured(spec: &Value, families: Families) -> Result<(), Vec<FieldError>> {
    let (path, mut errors) = (FieldPath::new("spec"), vec![]);
    let policy = spec.get(POLICY).cloned().unwrap_or_default();
    if policy.as_str() == Some("RequireDualStack") && !families.dual {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(&path.child(POLICY), &policy, why));
    }
    for (i, family) in list(spec, "ipFamilies").iter().enumerate() {
        if !family.as_str().and_then(Family::parse).is_some_and(|family| families.has(family)) {
            let path = path.child("ipFamilies").index(i);
            errors.push(FieldError::invalid(&path, family, "not configured on this cluster"));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Adds the missing family to a dual-stack Service.
fn add_second_family(spec: &mut Value) {
    let [first] = list(spec, "ipFamilies") else { return };
    let Some(first) = first.as_str().and_then(Family::parse) else { return };
    if text(spec, POLICY) != "SingleStack" {
        let both = [first, first.other()].map(|family| Value::from(family.as_str()));
        spec.set_at(&["ipFamilies"], Value::Array(both.into()));
    }
}

/// Whether a Service gets cluster IPs from the ranges.
pub fn allocates_addresses(spec: &Value) -> bool {
    !is_external_name(spec) && list(spec, "clusterIPs").first().and_then(Value::as_str) != Some(HEADLESS)
}
