//! Shared by webhook configurations and admission policies: rules, match conditions, defaults.

use std::collections::HashSet;

use machinery::names;

use crate::admissionregistration::expressions::{Scope, expression};
use crate::limits;
use schema::at::At;

/// Validates a rule of resources and operations.
pub fn rule(rule: At) {
    alone(rule.field("operations"), "operations");
    rule.items_of("operations").for_each(|at| at.one_of(&["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]));
    alone(rule.field("apiGroups"), "API groups");
    alone(rule.field("apiVersions"), "API versions");
    rule.items_of("apiVersions").for_each(|version| version.require_text(""));
    resources_of(rule);
    rule.field("scope").shown_as_json().one_of(&["*", "Cluster", "Namespaced"]);
}

/// Validates a list that must not be empty, and in which `*` must be the only item.
fn alone(list: At, what: &str) {
    list.required_if(list.items().len() == 0, "");
    if list.items().len() > 1 && list.items().any(|item| item.as_text() == "*") {
        list.invalid(format!("if '*' is present, must not specify other {what}"));
    }
}

fn resources_of(rule: At) {
    let all = rule.field("resources");
    all.required_if(all.items().len() == 0, "");
    // the resources and the subresources that `parent/*` and `*/subresource` cover
    let (mut parents, mut subresources): (HashSet<&str>, HashSet<&str>) = (HashSet::new(), HashSet::new());
    let mut ends_without_subresource = false;
    for at in all.items() {
        let resource = at.as_text();
        if resource.is_empty() {
            at.required("");
            continue;
        }
        let Some((parent, subresource)) = resource.split_once('/') else {
            ends_without_subresource = resource != "*";
            continue;
        };
        let covered = |by: String| at.invalid(format!("if '{by}' is present, must not specify {resource}"));
        if parents.contains(parent) {
            covered(format!("{parent}/*"));
        }
        if subresources.contains(subresource) {
            covered(format!("*/{subresource}"));
        }
        if subresource == "*" {
            parents.insert(parent);
        }
        if parent == "*" {
            subresources.insert(subresource);
        }
    }
    let has = |what: &str| all.items().any(|resource| resource.as_text() == what);
    all.invalid_if(all.items().len() > 1 && has("*/*"), "if '*/*' is present, must not specify other resources");
    if has("*") && ends_without_subresource {
        all.invalid("if '*' is present, must not specify other resources without subresources");
    }
}

pub fn match_conditions(object: At, scope: Scope<'_>) {
    object.field("matchConditions").max_items(limits::MATCH_CONDITIONS_MAX);
    let mut known = HashSet::new();
    for condition in object.items_of("matchConditions") {
        let at = condition.field("expression");
        match at.as_text().trim() {
            "" => at.required(""),
            text => expression(at, text, scope, &[cel::Type::Bool]),
        }
        let name = condition.field("name");
        name.check_required_text(names::qualified_name);
        if !name.as_text().is_empty() {
            name.unique(&mut known);
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::{Release, Value};

    use super::*;
    use machinery::json;
    use schema::at::errors_of;

    #[test]
    fn resources_of_rules() {
        let cases: [(Value, &[&str]); 8] = [
            (json!([]), &["resources"]),
            (json!(["*"]), &[]),
            (json!(["*", "a/b"]), &[]),
            (json!(["*", "a"]), &["resources"]),
            (json!(["a/*", "a/b"]), &["resources[1]"]),
            (json!(["*/b", "a/b"]), &["resources[1]"]),
            (json!(["*/*", "a/b"]), &["resources"]),
            (json!([""]), &["resources[0]"]),
        ];
        for (resources, want) in cases {
            let rule = json!({"resources": (resources.clone())});
            let errors = errors_of(&rule, None, Release::NEWEST, resources_of);
            let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields, want, "{resources:?}");
        }
    }
}
