//! PodDisruptionBudgets: whether they allow an eviction, and how their status records it.

use std::sync::Arc;

use base::clock;
use machinery::selector::LabelSelector;
use machinery::status::{Cause, Details, Reason};
use machinery::{Map, Result, Status, Value, json};
use objects::Stored;
use resource::Subresource;
use schema::definition::{find_condition, replace_condition};

use crate::limits;
use crate::verbs::context::Context;

pub fn of(context: &Context, pod: &Value) -> Vec<Value> {
    let Some(budgets) = context.registry.get("policy", "poddisruptionbudgets") else { return vec![] };
    let (root, _) = budgets.collection.latest();
    let empty = Map::new();
    let labels = pod.at(&["metadata", "labels"]).and_then(Value::as_object).unwrap_or(&empty);
    let selects = |budget: &Value| {
        let selector = budget.at(&["spec", "selector"]).filter(|selector| !selector.is_null());
        let selector = selector.and_then(LabelSelector::from_value);
        selector.is_some_and(|selector| selector.matches(|key| labels.get(key).and_then(Value::as_str)))
    };
    let same = |stored: &&Arc<Stored>| stored.meta.namespace == pod.str_at(&["metadata", "namespace"]);
    root.values().filter(same).map(|stored| stored.body.to_value(stored.revision)).filter(selects).collect()
}

/// Whether a Pod that is not ready can be evicted without charging its budget.
pub fn spares(budget: &Value, pod: &Value) -> bool {
    let conditions = pod.items_at(&["status", "conditions"]);
    let is_ready = |c: &Value| c.str_at(&["type"]) == "Ready" && c.str_at(&["status"]) == "True";
    if conditions.iter().any(is_ready) {
        return false;
    }
    let (current, desired) =
        (budget.int_at(&["status", "currentHealthy"]), budget.int_at(&["status", "desiredHealthy"]));
    budget.str_at(&["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow" || (current >= desired && desired > 0)
}

/// The type of the condition that says whether a budget allows disruptions.
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

fn cause(message: String) -> Vec<Cause> {
    vec![Cause { reason: "DisruptionBudget".into(), message, field: String::new() }]
}

/// Fails unless a budget allows a disruption.
fn check(budget: &Value) -> Result<()> {
    let name = budget.str_at(&["metadata", "name"]);
    let status = |field: &str| budget.int_at(&["status", field]);
    let refused = |retry_after_seconds: u32, causes: Vec<Cause>| {
        let details = Details { retry_after_seconds, causes, ..Details::default() };
        Err(Status::new(Reason::TooManyRequests, REFUSED).with_details(details))
    };
    let forbidden = |why: &str| Err(Status::forbidden("policy", "poddisruptionbudget", name, why));
    let disrupted = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object).map_or(0, Map::len);
    if status("observedGeneration") < budget.int_at(&["metadata", "generation"]) {
        return refused(10, cause(format!("The disruption budget {name} is still being processed by the server.")));
    }
    if status("disruptionsAllowed") < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if disrupted > limits::DISRUPTED_PODS_MAX {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if status("disruptionsAllowed") == 0 { refused(0, cause(why_not(budget))) } else { Ok(()) }
}

/// Records the disruption of a Pod in the status of a budget that allows it.
fn record(budget: &mut Value, pod: &str) {
    let allowed = budget.int_at(&["status", "disruptionsAllowed"]) - 1;
    budget.set_at(&["status", "disruptionsAllowed"], Value::Int(allowed));
    budget.set_at(&["status", "disruptedPods", pod], Value::from(clock::now_rfc3339()));
    if allowed == 0 {
        set_exhausted(budget);
    }
}

/// Sets the condition of a budget that allows no more disruptions.
fn set_exhausted(budget: &mut Value) {
    let condition = json!({
        "type": DISRUPTION_ALLOWED, "status": "False", "reason": "InsufficientPods", "message": "",
        "observedGeneration": (budget.int_at(&["status", "observedGeneration"]))
    });
    replace_condition(budget, condition, &clock::now_rfc3339());
}

/// Charges the disruption of a Pod to a budget; fails if the budget allows none. The check and the change are one
/// write, which is repeated on a conflict, so that concurrent evictions cannot exceed the budget together.
pub async fn charge(context: &Context, budget: &Value, pod: &str, dry_run: bool) -> Result<()> {
    check(budget)?;
    if dry_run {
        return Ok(());
    }
    let budgets = context.registry.get("policy", "poddisruptionbudgets");
    let budgets = budgets.ok_or_else(|| Status::internal("PodDisruptionBudgets are not served"))?;
    let [namespace, name] = ["namespace", "name"].map(|field| budget.str_at(&["metadata", field]));
    let change = |budget: &mut Value| {
        check(budget)?;
        record(budget, pod);
        Ok(())
    };
    context.as_server(&budgets, namespace, name).through(Subresource::Status).edit(change).await
}

/// The reason for which a budget allows no disruption.
fn why_not(budget: &Value) -> String {
    let name = budget.str_at(&["metadata", "name"]);
    let condition = find_condition(budget, DISRUPTION_ALLOWED);
    let text = |field: &str| condition.map(|c| c.str_at(&[field])).unwrap_or_default();
    let explained = text("status") == "False" && !text("message").is_empty();
    let (current, desired) =
        (budget.int_at(&["status", "currentHealthy"]), budget.int_at(&["status", "desiredHealthy"]));
    let currently = format!("The disruption budget {name} does not allow evicting pods currently");
    if explained && text("reason") == "SyncFailed" {
        format!("{currently} because it failed sync: {}", text("message"))
    } else if current <= desired {
        format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
    } else if explained {
        format!("{currently} ({}): {}", text("reason"), text("message"))
    } else {
        currently
    }
}
