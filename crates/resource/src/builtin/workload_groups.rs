//! Workloads, PodGroups and CompositePodGroups (`scheduling.k8s.io`), which define what Pods are scheduled together.
//!
//! The rules here are those that kube-apiserver writes by hand; those that its types declare are in `rules/rules.txt`.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};

use super::checks::{items, list, text};
use super::routing;

/// The maximum number of levels of templates in a Workload, including those of PodGroups.
const LEVELS_MAX: usize = 4;

const GROUPS: &str = "podGroupTemplates";
const COMPOSITES: &str = "compositePodGroupTemplates";

pub fn validate_workload(workload: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), workload.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    let mut names: HashSet<&str> = list(spec, GROUPS).iter().map(|group| text(group, "name")).collect();
    repeated_names(spec, &path, &mut names, &mut errors);
    for (path, template) in items(spec, COMPOSITES, &path) {
        if levels(template) >= LEVELS_MAX {
            let shown = machinery::types::internal_json(
                template.get(COMPOSITES).unwrap_or(&Value::Null),
                "[]scheduling.CompositePodGroupTemplate",
                false,
            );
            let why = format!("maximum template hierarchy depth is {LEVELS_MAX}");
            errors.push(super::checks::invalid_shown(&path, shown, why));
        }
    }
    errors.extend(different_priorities(spec, &path));
    items(spec, COMPOSITES, &path).for_each(|(path, template)| without_children(template, &path, &mut errors));
    errors
}

/// Reports names of templates below a template or spec that another list already has.
fn repeated_names<'a>(parent: &'a Value, path: &FieldPath, names: &mut HashSet<&'a str>, errors: &mut Vec<FieldError>) {
    add_names(parent, COMPOSITES, path, names, errors);
    for (path, template) in items(parent, COMPOSITES, path) {
        add_names(template, GROUPS, &path, names, errors);
        repeated_names(template, &path, names, errors);
    }
}

/// Adds the names of a list, and reports those that are already known.
fn add_names<'a>(
    parent: &'a Value,
    field: &str,
    path: &FieldPath,
    names: &mut HashSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    for (path, template) in items(parent, field, path).filter(|(_, template)| names.contains(text(template, "name"))) {
        errors.push(FieldError::duplicate(&path.child("name"), &Value::from(text(template, "name"))));
    }
    names.extend(list(parent, field).iter().map(|template| text(template, "name")));
}

fn levels(template: &Value) -> usize {
    1 + list(template, COMPOSITES).iter().map(levels).max().unwrap_or_default()
}

/// All templates must have the same priority.
fn different_priorities(spec: &Value, path: &FieldPath) -> Option<FieldError> {
    let of = |template: &Value| (text(template, "priorityClassName").to_owned(), template.get("priority").cloned());
    let groups: Vec<_> = list(spec, GROUPS).iter().map(of).collect();
    let invalid = |why: &str| Some(FieldError::invalid(path, &Value::Null, why));
    if groups.iter().any(|priority| *priority != groups[0]) {
        return invalid("detected multiple priority configurations");
    }
    let mut all = groups;
    let mut left: Vec<&Value> = list(spec, COMPOSITES).iter().collect();
    while let Some(template) = left.pop() {
        all.push(of(template));
        all.extend(list(template, GROUPS).iter().map(of));
        left.extend(list(template, COMPOSITES));
    }
    let why = "all priority and priorityClassName values must be identical, detected multiple values";
    if all.iter().any(|priority| *priority != all[0]) { invalid(why) } else { None }
}

fn without_children(template: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if list(template, GROUPS).is_empty() && list(template, COMPOSITES).is_empty() {
        let why = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate";
        errors.push(FieldError::invalid(path, &Value::from(text(template, "name")), why));
    }
    items(template, COMPOSITES, path).for_each(|(path, template)| without_children(template, &path, errors));
}

pub fn validate_group(group: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let is_set = |name: &str| group.at(&["spec", name]).is_some_and(|value| !value.is_null());
    let is_missing = old.is_none() && is_set("parentCompositePodGroupName") && !is_set("workloadRef");
    let path = FieldPath::new("spec").child("workloadRef");
    let error = || FieldError::required(&path, "must be set when parentCompositePodGroupName is set");
    is_missing.then(error).into_iter().collect()
}

pub fn validate_group_status(group: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let mut errors = super::at::errors_of(group, Some(old), release, routing::validate_conditions);
    let (status, spec) = (group.get("status").unwrap_or(&Value::Null), group.get("spec").unwrap_or(&Value::Null));
    let is_known = |name: &str| list(spec, "resourceClaims").iter().any(|claim| text(claim, "name") == name);
    for (path, claim) in items(status, "resourceClaimStatuses", &FieldPath::new("status")) {
        let name = text(claim, "name");
        if !is_known(name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&path.child("name"), &Value::from(name), why));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    fn found(spec: Value) -> Vec<String> {
        let errors = validate_workload(&json!({"spec": (spec)}), None, Release::NEWEST);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn templates_have_names_of_their_own_and_children() {
        let group = json!({"name": "a"});
        assert_eq!(found(json!({"podGroupTemplates": [(group.clone())]})), [""; 0]);
        let nested = json!({"name": "b", "podGroupTemplates": [(group.clone())]});
        assert_eq!(found(json!({"compositePodGroupTemplates": [(nested.clone())]})), [""; 0]);
        assert_eq!(
            found(json!({"podGroupTemplates": [(group)], "compositePodGroupTemplates": [(nested), {"name": "c"}]})),
            [
                "spec.compositePodGroupTemplates[0].podGroupTemplates[0].name: Duplicate value: \"a\"",
                "spec.compositePodGroupTemplates[1]: Invalid value: \"c\": must have at least one child PodGroupTemplate or CompositePodGroupTemplate",
            ]
        );
    }

    #[test]
    fn templates_share_a_priority() {
        let group = |name: &str, priority: i64| json!({"name": (name), "priority": priority});
        let found = found(json!({"podGroupTemplates": [(group("a", 1)), (group("b", 2))]}));
        assert_eq!(found, ["spec: Invalid value: null: detected multiple priority configurations"]);
    }

    #[test]
    fn templates_are_not_deeper_than_four_levels() {
        let mut template = json!({"name": "x", "podGroupTemplates": [{"name": "y"}]});
        for i in 0..LEVELS_MAX {
            assert_eq!(levels(&template), i + 1);
            template = json!({"name": (format!("n{i}")), "compositePodGroupTemplates": [template]});
        }
        let found = found(json!({"compositePodGroupTemplates": [template]}));
        assert!(found[0].ends_with("maximum template hierarchy depth is 4"), "{found:?}");
    }
}
