//! Reconciles default roles and bindings at each start: adds missing rules and subjects, and keeps all others.
//! Objects with the annotation `…/autoupdate: "false"` are not changed.

use access::authorization::{PolicyRule, missing};
use machinery::{Value, json};

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// How an existing role or binding is reconciled.
#[derive(Debug, PartialEq)]
pub enum Repair {
    Nothing,
    /// The merge patch that adds missing rules or subjects.
    Patch(Value),
    /// Deletes and recreates a binding that refers to another role, because the role of a binding cannot be changed.
    Replace,
}

/// The repair that makes `existing` grant everything that `wanted` grants.
pub fn change(existing: &Value, wanted: &Value) -> Repair {
    if existing.str_at(&["metadata", "annotations", AUTOUPDATE]) == "false" {
        return Repair::Nothing;
    }
    let reference = |object: &Value| {
        let part = |key: &str| object.str_at(&["roleRef", key]).to_owned();
        (part("kind"), part("name"))
    };
    if wanted.get("roleRef").is_some() && reference(existing) != reference(wanted) {
        return Repair::Replace;
    }
    let mut patch = Value::object();
    for field in ["labels", "annotations"] {
        let all = wanted.at(&["metadata", field]).and_then(Value::as_object).into_iter();
        for (key, value) in all.flat_map(machinery::Map::iter) {
            if existing.at(&["metadata", field, key]).is_none() {
                patch.set_at(&["metadata", field, key], value.clone());
            }
        }
    }
    let list = |object: &Value, path: &[&str]| object.items_at(path).to_vec();
    let mut complete = |path: &[&str], is_there: &dyn Fn(&Value) -> bool| {
        let absent: Vec<Value> = list(wanted, path).into_iter().filter(|item| !is_there(item)).collect();
        if !absent.is_empty() {
            patch.set_at(path, list(existing, path).into_iter().chain(absent).collect());
        }
    };
    let selectors = ["aggregationRule", "clusterRoleSelectors"];
    let known = list(existing, &selectors);
    complete(&selectors, &|selector| known.contains(selector));
    let rules = PolicyRule::of_role(existing);
    complete(&["rules"], &|rule| missing(&rules, &[PolicyRule::parse(rule)]) == Ok(vec![]));
    let subjects = list(existing, &["subjects"]);
    let same =
        |a: &Value, b: &Value| ["kind", "namespace", "name"].iter().all(|key| a.str_at(&[key]) == b.str_at(&[key]));
    complete(&["subjects"], &|subject| subjects.iter().any(|other| same(other, subject)));
    if patch == json!({}) { Repair::Nothing } else { Repair::Patch(patch) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rules_are_added() {
        let rule = |verb: &str| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]});
        let role = |rules: Value| json!({"metadata": {"name": "r", "labels": {"a": "b"}}, "rules": rules});
        let binding = |role: &str, subjects: Value| json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": subjects});
        let group = |name: &str| json!({"kind": "Group", "name": name});
        let (get, list, all) = (rule("get"), rule("list"), rule("*"));
        let mut protected = role(json!([]));
        protected.set_at(&["metadata", "annotations", AUTOUPDATE], Value::from("false"));
        let bare = json!({"metadata": {"name": "r"}, "rules": [(get.clone())]});
        let cases = [
            (role(json!([(get.clone())])), role(json!([(get.clone())])), Repair::Nothing),
            (role(json!([(all)])), role(json!([(get.clone()), (list.clone())])), Repair::Nothing),
            (
                role(json!([(list.clone())])),
                role(json!([(get.clone())])),
                Repair::Patch(json!({"rules": [(list), (get.clone())]})),
            ),
            (bare, role(json!([(get.clone())])), Repair::Patch(json!({"metadata": {"labels": {"a": "b"}}}))),
            (protected, role(json!([(get)])), Repair::Nothing),
            (
                binding("r", json!([(group("x"))])),
                binding("r", json!([(group("y"))])),
                Repair::Patch(json!({"subjects": [(group("x")), (group("y"))]})),
            ),
            (binding("other", json!([])), binding("r", json!([])), Repair::Replace),
        ];
        for (existing, wanted, want) in cases {
            assert_eq!(change(&existing, &wanted), want, "{existing:?}");
        }
    }
}
