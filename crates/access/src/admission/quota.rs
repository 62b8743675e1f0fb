//! ResourceQuota: limits of the number of objects of a namespace.

use machinery::quantity::Quantity;
use machinery::{Status, Text, Value};

use super::measure::Step;
use super::{Admission, Attributes, Operation, World};

/// Kinds that are counted under their own name too.
const NAMED: [&str; 4] = ["configmaps", "resourcequotas", "secrets", "services"];

/// The usage of a quota with one more object, which is written before the object.
#[derive(Debug, PartialEq)]
pub struct Charge {
    pub quota: Text,
    /// The revision of the quota that it is based on.
    pub revision: u64,
    /// The new `status.used`.
    pub used: Value,
}

/// The names under which objects of a resource are counted, in order. Events are not counted.
pub fn counted_as(group: &str, plural: &str) -> Vec<String> {
    match group {
        "" | "events.k8s.io" if plural == "events" => vec![],
        "" if NAMED.contains(&plural) => {
            let mut names = vec![format!("count/{plural}"), plural.to_owned()];
            names.sort();
            names
        }
        "" => vec![format!("count/{plural}")],
        _ => vec![format!("count/{plural}.{group}")],
    }
}

/// Whether a quota has scopes, which no object here matches.
pub fn is_scoped(quota: &Value) -> bool {
    let scopes = quota.at(&["spec", "scopes"]).and_then(Value::as_array).unwrap_or_default();
    let selectors = quota.at(&["spec", "scopeSelector", "matchExpressions"]).and_then(Value::as_array);
    !scopes.is_empty() || !selectors.unwrap_or_default().is_empty()
}

fn amount(value: Option<&Value>) -> Option<Quantity> {
    Quantity::parse(value?.as_str()?).ok()
}

impl Admission {
    /// The usages of the quotas of a namespace after a creation; an error if one is exceeded.
    pub fn charges(&self, world: &World<'_>, attributes: &Attributes<'_>) -> Result<Vec<Charge>, Status> {
        let creates = attributes.operation == Operation::Create && attributes.subresource.is_empty();
        if !self.runs("ResourceQuota") || !creates || !attributes.resource.namespaced {
            return Ok(vec![]);
        }
        let quotas = world.objects.collection(&Text::new_static(""), &Text::new_static("resourcequotas"));
        if quotas.is_empty() {
            return Ok(vec![]);
        }
        let step = Step::begin("ResourceQuota", "validate", attributes.operation);
        let names = counted_as(attributes.group(), attributes.plural());
        let (root, _) = quotas.latest();
        let of_namespace = root.values().filter(|stored| stored.meta.namespace == *attributes.namespace);
        let charge = |stored: &std::sync::Arc<objects::Stored>| {
            let quota = stored.body.to_value(stored.revision);
            let used = charged(&quota, &names).map_err(|why| attributes.forbidden(&why))?;
            Ok(used.map(|used| Charge { quota: stored.meta.name.clone(), revision: stored.revision, used }))
        };
        step.end(of_namespace.filter_map(|stored| charge(stored).transpose()).collect())
    }
}

/// `status.used` of a quota with one more object; `None` if the quota does not count such objects.
fn charged(quota: &Value, names: &[String]) -> Result<Option<Value>, String> {
    let name = quota.str_at(&["metadata", "name"]);
    let member = |part: &str, key: &str| quota.at(&["status", part]).and_then(|map| map.get(key));
    let counted: Vec<&String> = names.iter().filter(|key| member("hard", key).is_some()).collect();
    if counted.is_empty() || is_scoped(quota) {
        return Ok(None);
    }
    if counted.iter().any(|key| member("used", key).is_none()) {
        let keys: Vec<&str> = counted.iter().map(|key| key.as_str()).collect();
        return Err(format!("status unknown for quota: {name}, resources: {}", keys.join(",")));
    }
    let mut used = quota.at(&["status", "used"]).cloned().unwrap_or_default();
    let mut exceeded = vec![];
    for key in counted {
        let (one, held) = (Quantity::from_int(1), amount(member("used", key)));
        let next = held.map_or(one.clone(), |held| held.plus(&one));
        if amount(member("hard", key)).is_some_and(|hard| next.compare(&hard).is_gt()) {
            exceeded.push(key);
        }
        used.set_at(&[key], Value::from(next.to_string()));
    }
    if exceeded.is_empty() {
        return Ok(Some(used));
    }
    let all = |show: &dyn Fn(&str) -> String| -> String {
        let parts: Vec<String> = exceeded.iter().map(|key| format!("{key}={}", show(key))).collect();
        parts.join(",")
    };
    let shown =
        |part: &'static str| all(&|key| member(part, key).and_then(Value::as_str).unwrap_or_default().to_owned());
    let requested = all(&|_| "1".to_owned());
    Err(format!("exceeded quota: {name}, requested: {requested}, used: {}, limited: {}", shown("used"), shown("hard")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn quotas_count_and_refuse() {
        let names = counted_as("", "secrets");
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
            assert_eq!(charged(&quota, &names), want.map_err(str::to_owned), "{}", quota.to_json());
        }
        assert_eq!(counted_as("g.io", "foos"), ["count/foos.g.io"]);
        assert!(counted_as("", "events").is_empty() && counted_as("events.k8s.io", "events").is_empty());
        assert_eq!(counted_as("", "configmaps"), ["configmaps", "count/configmaps"]);
    }
}
