//! Maintains the bootstrap objects of API priority and fairness as kube-apiserver does: creates missing ones, and
//! restores the specs that no client has taken over.

use access::flow::defaults;
use base::request::FieldValidation;
use kinds::FLOW_GROUP;
use machinery::{Result, Value, json};
use resource::builtin::is_same;

use super::context::Context;
use super::upkeep::{FLOW, create_of};
use resource::Document;

/// The objects whose specs clients cannot change.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// The annotation that says whether the server maintains the spec.
const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// The plural of a kind, its Go type, and its bootstrap objects.
type FlowKind = (&'static str, &'static str, fn() -> Vec<Value>);

const KINDS: [FlowKind; 2] = [
    ("prioritylevelconfigurations", "flowcontrol.v1.PriorityLevelConfiguration", defaults::levels),
    ("flowschemas", "flowcontrol.v1.FlowSchema", defaults::schemas),
];

/// Which objects to maintain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Creates missing mandatory objects only, as soon as they are missing.
    MissingMandatory,
    /// Maintains all objects, as kube-apiserver does every minute.
    All,
}

/// Creates missing objects, and restores specs that differ.
pub async fn keep_flows(context: &Context, kept: Kept) -> Result<()> {
    for (plural, kind, objects) in KINDS {
        let wanted = objects().into_iter().filter(|object| kept == Kept::All || is_mandatory(object));
        create_of(context, FLOW, FLOW_GROUP, plural, wanted).await?;
        if kept == Kept::All {
            for (wanted, revised) in revisions(context, plural, kind, objects) {
                restore(context, plural, wanted.str_at(&["metadata", "name"]), &revised).await?;
            }
        }
    }
    Ok(())
}

/// Whether an object is missing, or its spec has to be restored.
pub fn are_flows_changed(context: &Context) -> bool {
    KINDS.into_iter().any(|(plural, kind, objects)| {
        let Some(resource) = context.registry.get(FLOW_GROUP, plural) else { return false };
        let is_missing = |object: &Value| resource.collection.get(object.str_at(&["metadata", "name"])).is_none();
        objects().iter().any(is_missing) || !revisions(context, plural, kind, objects).is_empty()
    })
}

fn is_mandatory(object: &Value) -> bool {
    MANDATORY.contains(&object.str_at(&["metadata", "name"]))
}

/// The stored bootstrap objects that have to change, each with its next form.
fn revisions(context: &Context, plural: &str, kind: &'static str, objects: fn() -> Vec<Value>) -> Vec<(Value, Value)> {
    let Some(resource) = context.registry.get(FLOW_GROUP, plural) else { return vec![] };
    let request = context.as_server(&resource, "", "").request(&http::Method::PUT);
    let codec = request.strategy.codec();
    let revise = |wanted: Value| {
        let stored = resource.collection.get(wanted.str_at(&["metadata", "name"]))?;
        let complete = json!({
            "apiVersion": (codec.api_version()), "kind": (codec.kind()), "metadata": (wanted.get("metadata")?.clone()),
            "spec": (wanted.get("spec")?.clone())
        });
        let wanted = codec.decode(&Document::json(&complete), FieldValidation::Ignore, &|_| {}).ok()?;
        let revised = revised(kind, &stored.body.to_value(stored.revision), &wanted)?;
        Some((wanted, revised))
    };
    objects().into_iter().filter_map(revise).collect()
}

/// The next form of a stored object; `None` if it stays as it is. `wanted` is the bootstrap object, with defaults.
fn revised(kind: &'static str, stored: &Value, wanted: &Value) -> Option<Value> {
    let is_updated = is_mandatory(wanted) || is_updated(stored);
    let mut next = stored.clone();
    if is_updated {
        let mut spec = wanted.get("spec").cloned().unwrap_or_default();
        if let Some(shares) = stored.at(&["spec", "exempt"]).filter(|_| spec.get("exempt").is_some()) {
            // clients may configure the shares of the exempt level
            spec.set_at(&["exempt"], shares.clone());
        }
        next.set_at(&["spec"], spec);
    }
    let mut is_changed = !is_same(kind, &next, stored);
    if annotation(stored) != Some(is_updated) {
        next.set_at(&["metadata", "annotations", AUTOUPDATE], Value::from(is_updated.to_string()));
        is_changed = true;
    }
    is_changed.then_some(next)
}

/// Whether the server maintains the spec of a suggested object. Without the annotation, it does until a client has
/// changed the spec.
fn is_updated(stored: &Value) -> bool {
    annotation(stored).unwrap_or_else(|| stored.at(&["metadata", "generation"]) == Some(&Value::Int(1)))
}

/// The value of the annotation, in any form that Go parses as a boolean.
fn annotation(stored: &Value) -> Option<bool> {
    match stored.str_at(&["metadata", "annotations", AUTOUPDATE]) {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

async fn restore(context: &Context, plural: &str, name: &str, revised: &Value) -> Result<()> {
    let Some(resource) = context.registry.get(FLOW_GROUP, plural) else { return Ok(()) };
    let set = |object: &mut Value| {
        for path in [&["spec"][..], &["metadata", "annotations"]] {
            object.set_at(path, revised.at(path).cloned().unwrap_or_default());
        }
    };
    context.as_server(&resource, "", name).managed_by(FLOW.manager()).change(set).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "flowcontrol.v1.PriorityLevelConfiguration";

    #[test]
    fn specs_are_restored_unless_they_are_taken_over() {
        let level = |name: &str, annotation: &str, generation: i64, shares: i64| {
            let mut level = json!({
                "metadata": {"name": name, "generation": generation},
                "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": shares}}
            });
            level.put_text(&["metadata", "annotations", AUTOUPDATE], annotation);
            level
        };
        for (name, annotation, generation, shares, want) in [
            ("a", "true", 1, 5, None),
            ("a", "true", 2, 7, Some(("true", 5))),
            ("a", "T", 2, 7, Some(("T", 5))),
            ("a", "false", 2, 7, None),
            ("a", "", 1, 5, Some(("true", 5))),
            ("a", "", 2, 7, Some(("false", 7))),
            ("a", "maybe", 1, 7, Some(("true", 5))),
            ("catch-all", "false", 2, 7, Some(("true", 5))),
        ] {
            let stored = level(name, annotation, generation, shares);
            let found = revised(KIND, &stored, &level(name, "true", 0, 5));
            let shown = found.as_ref().map(|next| {
                let shares = next.at(&["spec", "limited", "nominalConcurrencyShares"]).and_then(Value::as_int);
                (next.str_at(&["metadata", "annotations", AUTOUPDATE]), shares.unwrap_or_default())
            });
            assert_eq!(shown, want, "{name} {annotation:?} {generation} {shares}");
        }
        let exempt = |shares: i64| json!({"metadata": {"name": "exempt", "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}}, "spec": {"type": "Exempt", "exempt": {"lendablePercent": shares}}});
        assert_eq!(revised(KIND, &exempt(50), &exempt(0)), None);
    }

    #[tokio::test]
    async fn suggested_objects_come_back() {
        let context = crate::test_server::TestServer::start().await.context;
        keep_flows(&context, Kept::All).await.unwrap();
        assert!(!are_flows_changed(&context));
        let levels = context.registry.get(FLOW_GROUP, "prioritylevelconfigurations").unwrap();
        let shares = |name: &str| {
            let stored = levels.collection.get(name).map(|stored| stored.body.to_value(0));
            stored.and_then(|level| level.at(&["spec", "limited", "nominalConcurrencyShares"]).and_then(Value::as_int))
        };
        let before = shares("workload-low");
        let mut edited = levels.collection.get("workload-low").unwrap().body.to_value(0);
        edited.set_at(&["spec", "limited", "nominalConcurrencyShares"], Value::Int(7));
        restore(&context, "prioritylevelconfigurations", "workload-low", &edited).await.unwrap();
        context.as_server(&levels, "", "global-default").delete(&json!({})).await.unwrap();
        assert!(are_flows_changed(&context) && shares("workload-low") == Some(7));
        keep_flows(&context, Kept::MissingMandatory).await.unwrap();
        assert_eq!((shares("workload-low"), shares("global-default")), (Some(7), None));
        keep_flows(&context, Kept::All).await.unwrap();
        assert_eq!(shares("workload-low"), before);
        assert!(shares("global-default").is_some() && !are_flows_changed(&context));
    }
}
