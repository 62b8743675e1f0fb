//! Priority: sets the priority and the preemption policy of a Pod, or of a group of Pods, from its PriorityClass.

use machinery::Value;

use super::{Decision, PluginRequest};
use crate::admission::Operation;

const PREEMPT: &str = "PreemptLowerPriority";
const API_GROUP: &str = "scheduling.k8s.io";
const PLURAL: &str = "priorityclasses";

pub fn admit(call: &PluginRequest<'_>, object: &mut Value) -> Decision {
    match (call.attributes.plural().as_str(), call.attributes.operation) {
        ("pods", Operation::Create) => resolve(call, object, &POD),
        ("podgroups", Operation::Create) => resolve(call, object, &POD_GROUP),
        ("compositepodgroups", Operation::Create) => resolve(call, object, &COMPOSITE_POD_GROUP),
        ("pods", _) => {
            keep(call.old(), object);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A kind whose objects have a priority.
struct Prioritized {
    /// Its name in messages.
    what: &'static str,
    /// Whether its preemption policy is set only with the feature gate `PodGroupPreemptionPolicy`.
    is_gated: bool,
}

const POD: Prioritized = Prioritized { what: "pod", is_gated: false };
const POD_GROUP: Prioritized = Prioritized { what: "pod group", is_gated: true };
const COMPOSITE_POD_GROUP: Prioritized = Prioritized { what: "composite pod group", is_gated: true };

/// Keeps the priority and the preemption policy of a Pod in updates that omit them.
fn keep(old: &Value, pod: &mut Value) {
    for field in ["priority", "preemptionPolicy"] {
        if pod.at(&["spec", field]).is_none()
            && let Some(value) = old.at(&["spec", field])
        {
            pod.set_at(&["spec", field], value.clone());
        }
    }
}

fn resolve(call: &PluginRequest<'_>, object: &mut Value, kind: &Prioritized) -> Decision {
    let name = object.str_at(&["spec", "priorityClassName"]);
    let class = match name {
        "" => default_class(call),
        name => match call.get(API_GROUP, PLURAL, name) {
            Some(class) => Some(class),
            None => return Err(format!("no PriorityClass with name {name} was found").into()),
        },
    };
    let priority = class.as_ref().and_then(|class| class.get("value")).and_then(Value::as_int).unwrap_or_default();
    let policy = match &class {
        Some(class) => class.get("preemptionPolicy").and_then(Value::as_str).map(str::to_owned),
        None => Some(PREEMPT.to_owned()),
    };
    if let Some(given) = object.at(&["spec", "priority"]).and_then(Value::as_int)
        && given != priority
    {
        let what = kind.what;
        return Err(match what {
            "pod" => format!("the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"),
            _ => format!("priority set in the {what} ({given}) must match the priority computed ({priority}) based on the priority class set in the spec"),
        }.into());
    }
    let omits_policy =
        kind.is_gated && !call.attributes.cluster.registry.gates().has(base::request::Feature::GroupPreemptionPolicy);
    let policy = policy.filter(|_| !omits_policy);
    let given = object.at(&["spec", "preemptionPolicy"]).and_then(Value::as_str);
    if let (Some(policy), Some(given)) = (&policy, given)
        && given != policy
    {
        return Err(format!("the string value of PreemptionPolicy ({given}) must not be provided in {} spec; priority admission controller computed {policy} from the given PriorityClass name", kind.what).into());
    }
    if let Some(class) = class {
        object.set_at(&["spec", "priorityClassName"], Value::from(class.str_at(&["metadata", "name"])));
    }
    object.set_at(&["spec", "priority"], Value::Int(priority));
    if let Some(policy) = policy {
        object.set_at(&["spec", "preemptionPolicy"], Value::from(policy));
    }
    Ok(())
}

/// The default class. Concurrent writes can pass [`validate`] together; of several defaults, the one with the lowest
/// value counts.
fn default_class(call: &PluginRequest<'_>) -> Option<Value> {
    let classes = call.all(API_GROUP, PLURAL).into_iter().map(|stored| stored.body.to_value(stored.revision));
    let defaults = classes.filter(|class| class.is_true_at(&["globalDefault"]));
    defaults.min_by_key(|class| class.int_at(&["value"]))
}

/// Rejects a second default class.
pub fn validate(call: &PluginRequest<'_>) -> Decision {
    let class = call.object();
    if call.attributes.plural() != PLURAL || class.get("globalDefault").and_then(Value::as_bool) != Some(true) {
        return Ok(());
    }
    let Some(other) = default_class(call) else { return Ok(()) };
    let other = other.str_at(&["metadata", "name"]);
    if !call.is_create() && other == class.str_at(&["metadata", "name"]) {
        return Ok(());
    }
    Err(format!("PriorityClass {other} is already marked as default. Only one default can exist").into())
}
