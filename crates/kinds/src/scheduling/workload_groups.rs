//! Workloads, PodGroups and CompositePodGroups (`scheduling.k8s.io`), which define which Pods are scheduled
//! together.
//!
//! The rules here are those that kube-apiserver writes by hand; those that its types declare are in `declared.txt`.

use std::collections::HashSet;

use machinery::Value;

use resource::builtin::checks::{self, list, text};
use schema::at::At;

/// The maximum number of levels of templates in a Workload, including those of PodGroups.
const LEVELS_MAX: usize = 4;

const GROUPS: &str = "podGroupTemplates";
const COMPOSITES: &str = "compositePodGroupTemplates";

pub fn validate_workload(at: At) {
    let spec = at.field("spec");
    let mut names: HashSet<&str> = spec.texts(GROUPS, "name");
    repeated_names(spec, &mut names);
    for template in spec.items_of(COMPOSITES).filter(|template| levels(template.value) >= LEVELS_MAX) {
        let inner = template.field(COMPOSITES).value;
        let shown = template.with_value(inner).shown_as_go("[]scheduling.CompositePodGroupTemplate");
        shown.invalid(format!("maximum template hierarchy depth is {LEVELS_MAX}"));
    }
    if let Some(why) = different_priorities(spec.value) {
        spec.shown_verbatim("null").invalid(why);
    }
    spec.items_of(COMPOSITES).for_each(without_children);
}

/// Reports names of templates below a template or spec that another list already has.
fn repeated_names<'v>(parent: At<'_, 'v>, names: &mut HashSet<&'v str>) {
    add_names(parent, COMPOSITES, names);
    for template in parent.items_of(COMPOSITES) {
        add_names(template, GROUPS, names);
        repeated_names(template, names);
    }
}

/// Adds the names of a list, and reports those that are already known.
fn add_names<'v>(parent: At<'_, 'v>, field: &str, names: &mut HashSet<&'v str>) {
    for template in parent.items_of(field).filter(|template| names.contains(template.text("name"))) {
        template.field_or_empty("name").duplicate();
    }
    names.extend(parent.items_of(field).map(|template| template.text("name")));
}

fn levels(template: &Value) -> usize {
    1 + list(template, COMPOSITES).iter().map(levels).max().unwrap_or_default()
}

/// All templates must have the same priority.
fn different_priorities(spec: &Value) -> Option<&'static str> {
    let of = |template: &Value| (text(template, "priorityClassName").to_owned(), template.get("priority").cloned());
    let mut all: Vec<_> = list(spec, GROUPS).iter().map(of).collect();
    if all.iter().any(|priority| *priority != all[0]) {
        return Some("detected multiple priority configurations");
    }
    let mut left: Vec<&Value> = list(spec, COMPOSITES).iter().collect();
    while let Some(template) = left.pop() {
        all.push(of(template));
        all.extend(list(template, GROUPS).iter().map(of));
        left.extend(list(template, COMPOSITES));
    }
    let why = "all priority and priorityClassName values must be identical, detected multiple values";
    all.iter().any(|priority| *priority != all[0]).then_some(why)
}

fn without_children(template: At) {
    if template.list(GROUPS).is_empty() && template.list(COMPOSITES).is_empty() {
        let why = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate";
        template.shown_as_text(template.text("name")).invalid(why);
    }
    template.items_of(COMPOSITES).for_each(without_children);
}

pub fn validate_group_status(at: At) {
    checks::validate_conditions(at);
    let known: HashSet<&str> = at.texts("spec.resourceClaims", "name");
    for claim in at.items_of("status.resourceClaimStatuses").filter(|claim| !known.contains(claim.text("name"))) {
        claim.field_or_empty("name").invalid("must match the name of an entry in `spec.resourceClaims`");
    }
}

#[cfg(test)]
mod tests {
    use machinery::{Release, json};

    use super::*;
    use schema::at::errors_of;

    fn found(spec: Value) -> Vec<String> {
        let errors = errors_of(&json!({"spec": (spec)}), None, Release::NEWEST, validate_workload);
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
