//! MutatingAdmissionPolicy and MutatingAdmissionPolicyBinding (KEP-3962): `v1` since 1.36, and earlier versions by
//! `--runtime-config`. The feature gate decides whether they have an effect.

use cel::Type;
use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Text, Value};
use schema::shape::{Merge, OBJECT_META, Shape, Struct, TEXT, always, given, non_empty};

use super::admission::{self as shared, KIND};
use super::checks::{items, list, one_of, text};
use super::defaults::set_default;
use super::expressions::{Scope, expression_error};
use super::policies::{self, MATCH_RESOURCES, PARAM_KIND, PARAM_REF, VARIABLE};
use super::{BuiltIn, Form, StoredAs, columns, in_version};

/// The version in which they are stored.
const STORED: &str = "admissionregistration.k8s.io/v1beta1";

static EXPRESSION: Struct = Struct { name: "ApplyConfiguration", fields: &[non_empty("expression", TEXT)] };
static JSON_PATCH: Struct = Struct { name: "JSONPatch", fields: &[non_empty("expression", TEXT)] };

static MUTATION: Struct = Struct {
    name: "Mutation",
    fields: &[
        given("applyConfiguration", Shape::Struct(&EXPRESSION)),
        given("jsonPatch", Shape::Struct(&JSON_PATCH)),
        always("patchType", Shape::Text("v1.PatchType")),
    ],
};

static POLICY_SPEC: Struct = Struct {
    name: "MutatingAdmissionPolicySpec",
    fields: &[
        shared::FAILURE_POLICY,
        shared::MATCH_CONDITIONS,
        given("matchConstraints", Shape::Struct(&MATCH_RESOURCES)).merged(Merge::Atomic),
        non_empty("mutations", Shape::List("[]v1.Mutation", &Shape::Struct(&MUTATION))),
        given("paramKind", Shape::Struct(&PARAM_KIND)).merged(Merge::Atomic),
        non_empty("reinvocationPolicy", Shape::Text("v1.ReinvocationPolicyType")),
        non_empty("variables", Shape::List("[]v1.Variable", &Shape::Struct(&VARIABLE))),
    ],
};

static POLICY_SHAPE: Struct = Struct {
    name: "MutatingAdmissionPolicy",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
        always("spec", Shape::Struct(&POLICY_SPEC)),
    ],
};

static BINDING_SPEC: Struct = Struct {
    name: "MutatingAdmissionPolicyBindingSpec",
    fields: &[
        given("matchResources", Shape::Struct(&MATCH_RESOURCES)).merged(Merge::Atomic),
        given("paramRef", Shape::Struct(&PARAM_REF)).merged(Merge::Atomic),
        non_empty("policyName", TEXT),
    ],
};

static BINDING_SHAPE: Struct = Struct {
    name: "MutatingAdmissionPolicyBinding",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
        always("spec", Shape::Struct(&BINDING_SPEC)),
    ],
};

/// MutatingAdmissionPolicies. They are stored in `v1beta1`.
pub static POLICIES: [BuiltIn; 3] = [
    BuiltIn { since: Release::V1_36, stored_as: Some(&STABLE), on_by_default: true, ..POLICY },
    BuiltIn {
        version: "v1beta1",
        deprecation: "admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicy is deprecated in v1.37+, unavailable in v1.40+; use admissionregistration.k8s.io/v1 MutatingAdmissionPolicy",
        removed_release: "1.40",
        ..POLICY
    },
    BuiltIn {
        version: "v1alpha1",
        stored_as: Some(&ALPHA),
        deprecation: "admissionregistration.k8s.io/v1alpha1 MutatingAdmissionPolicy is deprecated in v1.35+, unavailable in v1.38+",
        removed_release: "1.38",
        ..POLICY
    },
];

/// MutatingAdmissionPolicyBindings, in the same versions.
pub static BINDINGS: [BuiltIn; 3] = [
    BuiltIn { since: Release::V1_36, stored_as: Some(&STABLE), on_by_default: true, ..BINDING },
    BuiltIn {
        version: "v1beta1",
        deprecation: "admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicyBinding is deprecated in v1.37+, unavailable in v1.40+; use admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding",
        removed_release: "1.40",
        ..BINDING
    },
    BuiltIn {
        version: "v1alpha1",
        stored_as: Some(&ALPHA),
        default: |binding| {
            policies::default_resources(binding, "matchResources");
            if binding.at(&["spec", "paramRef"]).is_some_and(|reference| !reference.is_null()) {
                set_default(binding, &["spec", "paramRef", "parameterNotFoundAction"], Value::from("Deny"));
            }
        },
        deprecation: "admissionregistration.k8s.io/v1alpha1 MutatingAdmissionPolicyBinding is deprecated in v1.35+, unavailable in v1.38+",
        removed_release: "1.38",
        ..BINDING
    },
];

static STABLE: StoredAs = StoredAs {
    group: KIND.group,
    to_stored: |shown| in_version(shown, STORED),
    to_shown: |stored| in_version(stored, "admissionregistration.k8s.io/v1"),
};

static ALPHA: StoredAs = StoredAs {
    group: KIND.group,
    to_stored: |shown| in_version(shown, STORED),
    to_shown: |stored| in_version(stored, "admissionregistration.k8s.io/v1alpha1"),
};

const POLICY: BuiltIn = BuiltIn {
    kind: "MutatingAdmissionPolicy",
    plural: "mutatingadmissionpolicies",
    singular: "mutatingadmissionpolicy",
    form: Form::Typed(&POLICY_SHAPE),
    default: default_policy,
    validate: validate_policy,
    columns: &[columns::MUTATIONS, columns::PARAM_KIND, columns::AGE],
    ..KIND
};

const BINDING: BuiltIn = BuiltIn {
    kind: "MutatingAdmissionPolicyBinding",
    plural: "mutatingadmissionpolicybindings",
    singular: "mutatingadmissionpolicybinding",
    form: Form::Typed(&BINDING_SHAPE),
    default: |object| policies::default_resources(object, "matchResources"),
    validate: validate_binding,
    columns: &[columns::POLICY_NAME, columns::PARAM_REF, columns::AGE],
    ..KIND
};

fn default_policy(object: &mut Value) {
    policies::default_resources(object, "matchConstraints");
    if let Some(spec) = object.get_mut("spec") {
        set_default(spec, &["failurePolicy"], Value::from("Fail"));
    }
}

fn validate_policy(new: &Value, _: Option<&Value>, _: Release) -> Vec<FieldError> {
    let empty = Value::object();
    let (path, spec) = (FieldPath::new("spec"), new.get("spec").unwrap_or(&empty));
    let mut errors = vec![];
    let scope = policies::constraint_errors(spec, &path, &mut errors);
    operation_errors(spec, "matchConstraints", &mut errors);
    shared::match_condition_errors(spec, &path, scope, &mut errors);
    let variables: Vec<(Text, Type)> = policies::variable_types(spec, scope, &path, &mut errors);
    let scope = Scope { variables: Some(&variables), mutations: true, ..scope };
    if list(spec, "mutations").is_empty() {
        errors.push(FieldError::required(&path.child("mutations"), "mutations must contain at least one item"));
    }
    for (path, mutation) in items(spec, "mutations", &path) {
        mutation_errors(mutation, scope, &path, &mut errors);
    }
    match text(spec, "reinvocationPolicy") {
        "" => errors.push(FieldError::required(&path.child("reinvocationPolicy"), "")),
        _ => one_of(spec, "reinvocationPolicy", &path, &["IfNeeded", "Never"], &mut errors),
    }
    errors
}

fn validate_binding(new: &Value, _: Option<&Value>, _: Release) -> Vec<FieldError> {
    let empty = Value::object();
    let spec = new.get("spec").unwrap_or(&empty);
    let mut errors = policies::binding_errors(spec);
    operation_errors(spec, "matchResources", &mut errors);
    errors
}

/// Rejects the operation `DELETE`: deleted objects cannot be mutated. The path names no index, as in kube-apiserver.
fn operation_errors(spec: &Value, field: &str, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    let path = FieldPath::new("spec").child(field).child("resourceRules").child("operations");
    let rules = spec.get(field).map_or(&[][..], |resources| list(resources, "resourceRules"));
    let operations = rules.iter().flat_map(|rule| list(rule, "operations"));
    let unknown = operations.filter(|operation| !operation.as_str().is_some_and(|name| KNOWN.contains(&name)));
    errors.extend(unknown.map(|operation| FieldError::not_supported(&path, operation, &KNOWN)));
}

/// Each `patchType` requires its own field and forbids the other.
fn mutation_errors(mutation: &Value, scope: Scope<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (own, other, of) = match text(mutation, "patchType") {
        "" => return errors.push(FieldError::required(&path.child("patchType"), "")),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Type::Made("Object".into())),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Type::list(Type::Made("JSONPatch".into()))),
        _ => return one_of(mutation, "patchType", path, &["ApplyConfiguration", "JSONPatch"], errors),
    };
    let patch_type = text(mutation, "patchType");
    if mutation.get(other).is_some() {
        let why = format!("must not be specified when patchType is {patch_type}");
        errors.push(FieldError::invalid(&path.child(other), &Value::from(format!("{{{other}}}")), why));
    }
    let Some(patch) = mutation.get(own) else {
        let why = format!("must be specified when patchType is {patch_type}");
        return errors.push(FieldError::required(&path.child(own), why));
    };
    let (expression, path) = (text(patch, "expression"), path.child(own).child("expression"));
    match expression.trim() {
        "" => errors.push(FieldError::required(&path, "")),
        _ => errors.extend(expression_error(expression, &path, scope, &[of])),
    }
}
