//! Role aggregation (`clusterrole-aggregation-controller`): writes the rules that a ClusterRole aggregates into its `rules`.
//! Authorization does not depend on this, since the authorizer aggregates rules itself.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use access::authorization::GROUP;
use base::task;
use machinery::selector::LabelSelector;
use machinery::{Result, Value, json};
use objects::{Event, Key, Stored};
use tokio::sync::watch;

use super::reconciler::Reconciler;
use crate::limits;
use crate::verbs::{Context, PatchKind};

const USER: &str = "system:serviceaccount:kube-system:clusterrole-aggregation-controller";
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The controller; it runs after every change of a ClusterRole.
pub struct RoleAggregation;

impl Reconciler for RoleAggregation {
    const NAME: &'static str = "role aggregation";
    const SETTLED: [Duration; 2] = [limits::AGGREGATION_GRACE; 2];
    type Memory = ();

    fn observe(&self, key: &Key, _: &Event) -> bool {
        key.group == GROUP && key.plural == "clusterroles"
    }

    async fn reconcile(&self, context: &Arc<Context>, _: &watch::Receiver<bool>, _: &mut ()) -> Option<Duration> {
        let status = aggregate_all(context).await.err()?;
        tracing::warn!(error = %status, "the rules of a ClusterRole cannot be aggregated; will retry");
        Some(limits::AGGREGATION_GRACE)
    }
}

async fn aggregate_all(context: &Context) -> Result<()> {
    let Some(resource) = context.registry.get(GROUP, "clusterroles") else { return Ok(()) };
    let (root, _) = resource.collection.latest();
    for stored in root.values().filter(|stored| stored.body.has("aggregationRule", "clusterRoleSelectors")) {
        let role = stored.body.to_managed_value(0);
        if selectors(&role).is_empty() {
            continue;
        }
        // roles are visited in the order of their names, which is the order of the map
        let rules = task::blocking(|| aggregated(&role, || root.values().map(|stored| &**stored)));
        if role.items_at(&["rules"]) == rules.as_slice() {
            continue;
        }
        let name = stored.meta.name.as_str();
        let mut applied = json!({
            "apiVersion": (resource.api_version(resource.storage_version())), "kind": "ClusterRole",
            "metadata": {"name": name}
        });
        // a role that selects no rules keeps the rules that it has
        if !rules.is_empty() {
            applied.set_at(&["rules"], Value::Array(rules));
        }
        let own = context.as_user(USER, &resource, "", name).with_query(format!("fieldManager={MANAGER}&force=true"));
        own.patch(PatchKind::Apply, &applied).await?;
    }
    Ok(())
}

fn selectors(role: &Value) -> Vec<LabelSelector> {
    let list = role.at(&["aggregationRule", "clusterRoleSelectors"]).and_then(Value::as_array);
    list.unwrap_or_default().iter().filter_map(LabelSelector::from_value).collect()
}

/// The rules of the other roles that a role selects, without duplicates, in the order of its selectors.
fn aggregated<'a, I: Iterator<Item = &'a Stored>>(role: &Value, all: impl Fn() -> I) -> Vec<Value> {
    let (selectors, name) = (selectors(role), role.str_at(&["metadata", "name"]));
    let (mut rules, mut known) = (vec![], HashSet::new());
    let others = || all().filter(|stored| stored.meta.name != name);
    let matches = |selector: &LabelSelector, stored: &Stored| selector.selects(&stored.meta.labels);
    let selected = |selector| others().filter(move |stored| matches(selector, stored));
    for stored in selectors.iter().flat_map(selected) {
        for rule in stored.body.to_managed_value(0).items_at(&["rules"]) {
            if known.insert(rule.to_json()) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::{Body, Meta};

    #[test]
    fn aggregated_rules_are_ordered_and_unique() {
        let rule = |verb: &str| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]});
        let role = |name: &str, label: &str, rules: Value| json!({"metadata": {"name": name, "labels": {"to": label}}, "rules": rules});
        let rule_of = |label: &str| json!({"clusterRoleSelectors": [{"matchLabels": {"to": label}}]});
        let mut aggregating = role("b", "x", json!([(rule("old"))]));
        aggregating.set_at(&["aggregationRule"], rule_of("x"));
        let all = [
            role("a", "x", json!([(rule("get")), (rule("list"))])),
            aggregating.clone(),
            role("c", "x", json!([(rule("list")), (rule("watch"))])),
            role("d", "y", json!([(rule("delete"))])),
        ];
        let stored: Vec<Stored> = all.iter().map(|role| Stored::new(1, Body::encode(role), Meta::of(role))).collect();
        let found = aggregated(&aggregating, || stored.iter());
        assert_eq!(found, [rule("get"), rule("list"), rule("watch")]);
        let both = json!({"clusterRoleSelectors": [{"matchLabels": {"to": "y"}}, {"matchLabels": {"to": "x"}}]});
        aggregating.set_at(&["aggregationRule"], both);
        let found = aggregated(&aggregating, || stored.iter());
        assert_eq!(found, [rule("delete"), rule("get"), rule("list"), rule("watch")]);
    }
}
