//! ResourceQuota: limits of the number of objects in a namespace and of the resources that they use.

mod devices;
mod pods;
mod scopes;
mod usage;

use std::borrow::Cow;

use base::clock;
use machinery::quantity::Quantity;
use machinery::{Status, Text, Value};

use super::measure::Step;
use super::plugins::pod_resources::{Amounts, amounts};
use super::{Admission, Attributes, Operation};
pub use devices::Devices;
pub use scopes::scopes;
pub use usage::{Counting, counted_kinds, counting};

/// The new usage of a quota, which is written before the object.
#[derive(Debug, PartialEq)]
pub struct Charge {
    pub quota: Text,
    /// The revision of the quota that it is based on.
    pub revision: u64,
    /// The new `status.used`.
    pub used: Value,
}

/// Whether a quota limits an object: it names a resource of the object's kind, and all of its scopes contain the object.
fn applies_to(quota: &Value, counting: &Counting, object: &Value, devices: &Devices<'_>) -> bool {
    let names = amounts(quota.at(&["status", "hard"]));
    names.keys().any(|name| counting.has(name, devices)) && in_scopes(quota, counting, object)
}

/// Whether a write may change the usage of its object. Of the updates of a Pod, only a `resize` does, and one that adds
/// or removes the deadline.
fn may_charge(attributes: &Attributes<'_>, counting: &Counting) -> bool {
    let is_of_pods = (attributes.group().as_str(), attributes.plural().as_str()) == ("", "pods");
    let has_deadline = |pod: Option<&Value>| {
        pod.is_some_and(|pod| pod.at(&["spec", "activeDeadlineSeconds"]).is_some_and(|at| !at.is_null()))
    };
    match (attributes.operation, attributes.subresource) {
        (Operation::Create, "") => true,
        (Operation::Update, "resize") => is_of_pods,
        (Operation::Update, "") if is_of_pods => has_deadline(attributes.object) != has_deadline(attributes.old),
        (Operation::Update, "") => counting.updates,
        _ => false,
    }
}

pub fn in_scopes(quota: &Value, counting: &Counting, object: &Value) -> bool {
    scopes(quota).iter().all(|scope| (counting.is_in_scope)(scope, object))
}

impl Admission {
    /// The usages of the quotas of a namespace after a write; an error if one is exceeded.
    pub fn charges(&self, attributes: &Attributes<'_>) -> Result<Vec<Charge>, Status> {
        let resource = attributes.resource;
        // an update of a custom resource changes no count
        let is_counted = attributes.operation == Operation::Create || !resource.is_custom();
        if !is_counted || !resource.namespaced || !self.runs("ResourceQuota") {
            return Ok(vec![]);
        }
        let quotas = attributes.cluster.objects.collection(&Text::new_static(""), &Text::new_static("resourcequotas"));
        if quotas.is_empty() {
            return Ok(vec![]);
        }
        let Some(counting) = counting(attributes.group(), attributes.plural()) else { return Ok(vec![]) };
        if !may_charge(attributes, &counting) {
            return Ok(vec![]);
        }
        let step = Step::begin("ResourceQuota", "validate", attributes.operation);
        let quotas = quotas.in_namespace(attributes.namespace).into_iter();
        let quotas = quotas.map(|stored| (stored.body.to_value(stored.revision), stored));
        let row = resource.built_in;
        let form = |object| row.map_or(Cow::Borrowed(object), |row| row.checked_form(object));
        let (object, old) = (form(attributes.object.unwrap_or(&Value::Null)), attributes.old.map(form));
        let devices = Devices::new(
            attributes.cluster.objects,
            attributes.cluster.registry.gates().has(base::request::Feature::ExtendedResource),
        );
        let applicable: Vec<_> = quotas.filter(|(quota, _)| applies_to(quota, &counting, &object, &devices)).collect();
        let compute = || {
            applicable.iter().try_for_each(|(quota, _)| check(quota, &counting, &object, &devices))?;
            let more = difference(&counting, &object, old.as_deref(), &devices);
            let mut charges = vec![];
            for (quota, stored) in &applicable {
                if let Some(used) = charged(quota, &more)? {
                    charges.push(Charge { quota: stored.meta.name.clone(), revision: stored.revision, used });
                }
            }
            Ok(charges)
        };
        step.end(compute().map_err(|why: String| attributes.forbidden(&why)))
    }
}

/// Fails if the object lacks an amount that the quota limits, or if the usage of the quota has not been computed yet.
fn check(quota: &Value, counting: &Counting, object: &Value, devices: &Devices<'_>) -> Result<(), String> {
    let name = quota.str_at(&["metadata", "name"]);
    let (hard, used) = (amounts(quota.at(&["status", "hard"])), amounts(quota.at(&["status", "used"])));
    let names: Vec<&str> = hard.keys().map(String::as_str).filter(|name| counting.has(name, devices)).collect();
    if counting.count == "count/pods" {
        let missing = pods::missing(object, &names);
        if !missing.is_empty() {
            let missing: Vec<String> = missing.iter().map(|(name, of)| format!("{name} for: {of}")).collect();
            return Err(format!("failed quota: {name}: must specify {}", missing.join("; ")));
        }
    }
    if names.iter().any(|name| !used.contains_key(*name)) {
        return Err(format!("status unknown for quota: {name}, resources: {}", names.join(",")));
    }
    Ok(())
}

/// The additional usage of an object over the one that it replaces. Reduced usage stays counted until the controller
/// recomputes it.
fn difference(counting: &Counting, object: &Value, old: Option<&Value>, devices: &Devices<'_>) -> Amounts {
    let now = clock::now_seconds();
    let mut more = counting.of(object, now, devices);
    for (name, old_amount) in old.map(|old| counting.of(old, now, devices)).unwrap_or_default() {
        let added = more.get(&name).cloned().unwrap_or_else(|| Quantity::from_int(0)).minus(&old_amount);
        more.insert(name, added);
    }
    more.retain(|_, amount| amount.signum() > 0);
    more
}

/// `status.used` of a quota with more usage; `None` if the quota does not count any of it.
fn charged(quota: &Value, more: &Amounts) -> Result<Option<Value>, String> {
    let (hard, current) = (amounts(quota.at(&["status", "hard"])), amounts(quota.at(&["status", "used"])));
    let mut used = quota.at(&["status", "used"]).cloned().unwrap_or_default();
    let requested: Vec<(&String, &Quantity)> = more.iter().filter(|(name, _)| hard.contains_key(*name)).collect();
    if requested.is_empty() {
        return Ok(None);
    }
    let mut exceeded = vec![];
    for (name, amount) in requested {
        let next = current.get(name).map_or_else(|| amount.clone(), |current| current.plus(amount));
        if hard.get(name).is_some_and(|hard| next.compare(hard).is_gt()) {
            exceeded.push(name);
        }
        used.set_at(&[name], Value::from(next.to_string()));
    }
    if exceeded.is_empty() {
        return Ok(Some(used));
    }
    let list = |amounts: &Amounts| -> String {
        let texts = exceeded.iter().filter_map(|name| Some(format!("{name}={}", amounts.get(*name)?)));
        texts.collect::<Vec<_>>().join(",")
    };
    let name = quota.str_at(&["metadata", "name"]);
    let (requested, used, limited) = (list(more), list(&current), list(&hard));
    Err(format!("exceeded quota: {name}, requested: {requested}, used: {used}, limited: {limited}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn quotas_count_and_refuse() {
        let counting = counting("", "secrets").unwrap();
        let more = counting.of(&Value::object(), 0, &Devices::none());
        let quota =
            |hard: Value, used: Value| json!({"metadata": {"name": "q"}, "status": {"hard": (hard), "used": (used)}});
        let cases = [
            (quota(json!({"pods": "1"}), json!({})), Ok(None)),
            (quota(json!({"secrets": "2"}), json!({"secrets": "1"})), Ok(Some(json!({"secrets": "2"})))),
            (quota(json!({"secrets": "1k"}), json!({"secrets": "1"})), Ok(Some(json!({"secrets": "2"})))),
            (quota(json!({"secrets": "2"}), json!({})), Err("status unknown for quota: q, resources: secrets")),
            (
                quota(json!({"secrets": "2", "count/secrets": "3"}), json!({"secrets": "2", "count/secrets": "2"})),
                Err("exceeded quota: q, requested: secrets=1, used: secrets=2, limited: secrets=2"),
            ),
        ];
        for (quota, want) in cases {
            let got =
                check(&quota, &counting, &Value::object(), &Devices::none()).and_then(|()| charged(&quota, &more));
            assert_eq!(got, want.map_err(str::to_owned), "{}", quota.to_json());
        }
    }

    #[test]
    fn updates_are_charged_by_their_difference() {
        let counting = counting("", "persistentvolumeclaims").unwrap();
        let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        let more = difference(&counting, &claim("3Gi"), Some(&claim("1Gi")), &Devices::none());
        let more: Vec<String> = more.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        assert_eq!(more, ["requests.storage=2Gi"]);
    }
}
