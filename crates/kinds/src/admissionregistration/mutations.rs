//! MutatingAdmissionPolicy and MutatingAdmissionPolicyBinding (KEP-3962): `v1` since 1.36, and earlier versions by
//! `--runtime-config`. The feature gate decides whether they have an effect.

use cel::Type;
use machinery::Value;

use crate::admissionregistration::expressions::{Scope, expression};
use crate::admissionregistration::{admission as shared, policies};
use resource::builtin::checks::list;
use resource::builtin::defaults::set_default;
use schema::at::At;

/// The defaults of bindings in `v1alpha1`.
pub fn default_alpha_binding(binding: &mut Value) {
    if binding.at(&["spec", "paramRef"]).is_some_and(|reference| !reference.is_null()) {
        set_default(binding, &["spec", "paramRef", "parameterNotFoundAction"], Value::from("Deny"));
    }
}

pub fn validate_policy(at: At) {
    let spec = at.field("spec");
    let scope = policies::constraints(spec);
    operations(spec.field("matchConstraints"));
    shared::match_conditions(spec, scope);
    let variables = policies::variable_types(spec, scope);
    let scope = Scope { variables: Some(&variables), mutations: true, ..scope };
    spec.field("mutations").required_if(spec.list("mutations").is_empty(), "mutations must contain at least one item");
    spec.items_of("mutations").for_each(|at| mutation(at, scope));
}

pub fn validate_binding(at: At) {
    policies::binding(at.field("spec"));
    operations(at.field("spec.matchResources"));
}

/// Rejects the operation `DELETE`: deleted objects cannot be mutated. The path names no index, as in kube-apiserver.
fn operations(resources: At) {
    let all = resources.field("resourceRules.operations");
    for operation in resources.list("resourceRules").iter().flat_map(|rule| list(rule, "operations")) {
        all.with_value(operation).one_of(&["*", "CONNECT", "CREATE", "UPDATE"]);
    }
}

/// Each `patchType` requires its own field and forbids the other.
fn mutation(at: At, scope: Scope<'_>) {
    let patch_type = at.field("patchType");
    let (own, other, of) = match patch_type.as_text() {
        "" => return patch_type.required(""),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Type::Made("Object".into())),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Type::list(Type::Made("JSONPatch".into()))),
        _ => return patch_type.shown_as_json().one_of(&["ApplyConfiguration", "JSONPatch"]),
    };
    if at.has(other) {
        let why = format!("must not be specified when patchType is {}", patch_type.as_text());
        at.field(other).shown_as_text(&format!("{{{other}}}")).invalid(why);
    }
    let Some(patch) = at.field_if_given(own) else {
        return at.field(own).required(format!("must be specified when patchType is {}", patch_type.as_text()));
    };
    let text = patch.field("expression");
    match text.as_text().trim() {
        "" => text.required(""),
        _ => expression(text, text.as_text(), scope, &[of]),
    }
}
