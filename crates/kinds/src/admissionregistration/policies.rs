//! ValidatingAdmissionPolicy and ValidatingAdmissionPolicyBinding.

use std::collections::HashSet;

use cel::{Type, is_identifier};
use machinery::jsonpath::JsonPath;
use machinery::{Text, Value, names};

use crate::admissionregistration::admission as shared;
use crate::admissionregistration::expressions::{Scope, compile, expression};
use crate::limits;
use resource::builtin::checks::{self, label_selector};
use schema::at::At;

/// Only the server writes the status.
pub fn prepare_policy(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["status"], Value::object());
    }
}

/// The status of a policy: the findings of the type checker, and conditions.
pub fn validate_status(at: At) {
    for warning in at.field("status").items_of("typeChecking.expressionWarnings") {
        warning.field_or_empty("warning").require_text("");
        let reference = warning.field_or_empty("fieldRef");
        let path = reference.as_text().trim();
        if path.is_empty() {
            reference.required("");
        } else if let Err(why) = JsonPath::parse(path) {
            reference.shown_as_text(path).invalid(format!("invalid JSONPath: {why}"));
        }
    }
    checks::validate_conditions(at);
}

pub fn validate_policy(at: At) {
    let spec = at.field("spec");
    let scope = constraints(spec);
    shared::match_conditions(spec, scope);
    let variables = variable_types(spec, scope);
    let scope = Scope { variables: (!spec.list("variables").is_empty()).then_some(variables.as_slice()), ..scope };
    if spec.list("validations").is_empty() && spec.list("auditAnnotations").is_empty() {
        for name in ["validations", "auditAnnotations"] {
            spec.field(name).required("validations or auditAnnotations must contain at least one item");
        }
    }
    spec.items_of("validations").for_each(|at| validation(at, scope));
    audit_annotations(spec, at.text("metadata.name"), scope);
}

/// Validates `failurePolicy`, `paramKind` and `matchConstraints`. Returns the scope of the expressions.
pub fn constraints(spec: At) -> Scope<'static> {
    spec.field("failurePolicy").shown_as_json().one_of(&["Fail", "Ignore"]);
    spec.field_if_given("paramKind").into_iter().for_each(param_kind);
    let constraints = spec.field("matchConstraints");
    match constraints.is_given() {
        false => constraints.required(""),
        true => {
            matched(constraints);
            constraints.field("resourceRules").required_if(constraints.list("resourceRules").is_empty(), "");
        }
    }
    Scope { params: spec.has("paramKind"), authorizer: true, variables: None, mutations: false }
}

fn param_kind(at: At) {
    let (version_at, kind) = (at.field("apiVersion"), at.field("kind"));
    let api_version = version_at.as_text();
    if api_version.matches('/').count() > 1 {
        version_at.invalid(format!("unexpected GroupVersion string: {api_version}"));
    } else if !api_version.is_empty() {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let problems = names::dns1123_subdomain(group);
        if !group.is_empty() && !problems.is_empty() {
            version_at.shown_as_text(group).invalid(problems.join(","));
        }
        let problems = names::dns1035_label(version);
        if version.is_empty() {
            version_at.invalid("version must be specified");
        } else if !problems.is_empty() {
            version_at.shown_as_text(version).invalid(problems.join(","));
        }
    }
    let problems = names::dns1035_label(&kind.as_text().to_lowercase());
    if !kind.as_text().is_empty() && !problems.is_empty() {
        kind.invalid(format!("may have mixed case, but should otherwise match: {}", problems.join(",")));
    }
    version_at.require_text("");
    kind.require_text("");
}

/// Validates the resources that a policy or a binding matches.
fn matched(resources: At) {
    resources.field("matchPolicy").shown_as_json().one_of(&["Equivalent", "Exact"]);
    label_selector(resources.field("namespaceSelector"));
    label_selector(resources.field("objectSelector"));
    for rule in ["resourceRules", "excludeResourceRules"].iter().flat_map(|name| resources.items_of(name)) {
        let mut known = HashSet::new();
        for name in rule.items_of("resourceNames") {
            name.check_text(names::path_segment);
            name.unique(&mut known);
        }
        shared::rule(rule);
    }
}

/// The names and types of variables. Each variable may use those before it.
pub fn variable_types(spec: At, scope: Scope<'_>) -> Vec<(Text, Type)> {
    let mut known: Vec<(Text, Type)> = vec![];
    for variable in spec.items_of("variables") {
        let (name, expression) = (variable.field("name"), variable.field("expression"));
        if name.as_text().trim().is_empty() || name.as_text() == "_" {
            name.required("name is not specified");
        } else if !is_identifier(name.as_text()) {
            name.invalid("must be a valid CEL identifier");
        }
        let text = expression.as_text();
        if text.trim().is_empty() {
            expression.required("expression is not specified");
            continue;
        }
        let found = compile(text, Scope { variables: Some(&known), ..scope });
        // later expressions may use an invalid variable, which then has the type `dyn`
        let found = found.unwrap_or_else(|fault| {
            fault.report(text, expression);
            Type::Dyn
        });
        known.push((Text::from(name.as_text()), found));
    }
    known
}

/// Validates an expression that must not be blank.
fn needed(at: At, missing: &str, scope: Scope<'_>, wanted: &[Type]) {
    if at.as_text().trim().is_empty() { at.required(missing) } else { expression(at, at.as_text(), scope, wanted) }
}

fn validation(at: At, scope: Scope<'_>) {
    needed(at.field("expression"), "expression is not specified", scope, &[Type::Bool]);
    let is_blank = |at: At| !at.as_text().is_empty() && at.as_text().trim().is_empty();
    let (computed, message) = (at.field("messageExpression"), at.field("message"));
    if is_blank(computed) {
        computed.invalid("must be non-empty if specified");
    } else if !computed.as_text().is_empty() {
        expression(computed, computed.as_text(), Scope { authorizer: false, ..scope }, &[Type::String]);
    }
    message.invalid_if(is_blank(message), "must be non-empty if specified");
    message.invalid_if(message.as_text().trim().contains(['\n', '\r']), "must not contain line breaks");
    at.field("reason").shown_as_json().one_of(&["Forbidden", "Invalid", "RequestEntityTooLarge"]);
}

/// Validates audit annotations. The name of the policy qualifies their keys.
fn audit_annotations(spec: At, policy: &str, scope: Scope<'_>) {
    let annotations = spec.field("auditAnnotations");
    if annotations.items().len() > limits::AUDIT_ANNOTATIONS_MAX {
        // the value is shown with the names of its Go fields
        let shown = |annotation: At| -> Value {
            let field = |name: &str| Value::from(annotation.text(name));
            [("Key", field("key")), ("ValueExpression", field("valueExpression"))].into()
        };
        let why = format!("must not have more than {} auditAnnotations", limits::AUDIT_ANNOTATIONS_MAX);
        annotations.shown_verbatim(&annotations.items().map(shown).collect::<Value>().to_json()).invalid(why);
    }
    let mut known = HashSet::new();
    for annotation in annotations.items() {
        let key = annotation.field_or_empty("key");
        if policy.is_empty() {
            key.invalid("requires metadata.name be non-empty");
        } else {
            let whole = format!("{policy}/{}", key.as_text());
            key.shown_as_text(&whole).invalid_each(names::qualified_name(&whole));
        }
        let missing = "valueExpression is not specified";
        needed(annotation.field("valueExpression"), missing, scope, &[Type::String, Type::Null]);
        key.unique(&mut known);
    }
}

pub fn validate_binding(at: At) {
    binding(at.field("spec"));
    actions(at.field("spec.validationActions"));
}

/// Validates the spec of a binding, for both kinds of policies.
pub fn binding(spec: At) {
    spec.field("policyName").check_required_text(names::dns1123_subdomain);
    spec.field_if_given("paramRef").into_iter().for_each(param_ref);
    spec.field_if_given("matchResources").into_iter().for_each(matched);
}

fn param_ref(reference: At) {
    let (name, selector) = (reference.field("name"), reference.field("selector"));
    name.check_text(names::path_segment);
    match (name.as_text().is_empty(), selector.is_given()) {
        (true, false) => reference.required("one of name or selector must be specified"),
        (false, true) => {
            [name, selector].iter().for_each(|at| at.forbidden("name and selector are mutually exclusive"));
        }
        _ => {}
    }
    label_selector(selector);
    let action = reference.field("parameterNotFoundAction");
    action.shown_as_json().require_one_of(&["Deny", "Allow"]);
}

fn actions(at: At) {
    at.required_if(at.items().len() == 0, "at least one validation action is required");
    let mut known = HashSet::new();
    for action in at.items() {
        action.one_of(&["Audit", "Deny", "Warn"]);
        action.unique(&mut known);
    }
    let has = |name: &str| at.items().any(|action| action.as_text() == name);
    if has("Deny") && has("Warn") {
        at.invalid("must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)");
    }
}
