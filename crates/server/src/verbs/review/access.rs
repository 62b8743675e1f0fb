//! Reviews of access: SelfSubjectAccessReview, SubjectAccessReview, LocalSubjectAccessReview.

use access::authorization::{AccessAttributes, Selection};
use base::request::User;
use machinery::selector::{FieldSelector, LabelSelector};
use machinery::{Result, Status, Value};

use crate::verbs::admit::Admit;

/// Authorizes the attributes of the review for `caller`, or for the user that the review names.
pub async fn review(admit: &Admit<'_>, mut object: Value, caller: Option<User>) -> Result<Value> {
    let (context, request) = (admit.context, admit.request);
    let errors = request.strategy.validate(&object).errors;
    if !errors.is_empty() {
        // as in kube-apiserver, this error has no kind
        return Err(Status::invalid(&request.resource.group, "", "", &errors));
    }
    admit.validate(Some(&object), None).await?;
    let user = caller.unwrap_or_else(|| User::from_value(object.get("spec").unwrap_or(&Value::Null), "user"));
    let attributes = attributes(object.get("spec").unwrap_or(&Value::Null));
    let decision = context.authorizer.decide(&user, &attributes).await;
    let mut status: Value = [("allowed", Value::from(decision.allowed()))].into();
    if decision.is_denied() {
        status.set_at(&["denied"], Value::Bool(true));
    }
    let mut failures = ignored_selectors(&object);
    failures.splice(0..0, decision.error());
    for (key, text) in [("evaluationError", failures.join("; ")), ("reason", decision.reason())] {
        status.put_text(&[key], &text);
    }
    object.set_at(&["status"], status);
    Ok(object)
}

fn attributes(spec: &Value) -> AccessAttributes<'_> {
    if let Some(resource) = spec.get("resourceAttributes").filter(|value| !value.is_null()) {
        return AccessAttributes {
            verb: resource.str_at(&["verb"]),
            is_resource: true,
            group: resource.str_at(&["group"]),
            version: match resource.str_at(&["version"]) {
                "" => "*",
                version => version,
            },
            resource: resource.str_at(&["resource"]),
            subresource: resource.str_at(&["subresource"]),
            namespace: resource.str_at(&["namespace"]),
            name: resource.str_at(&["name"]),
            path: "",
            fields: selection(resource, "fieldSelector"),
            labels: selection(resource, "labelSelector"),
        };
    }
    AccessAttributes {
        verb: spec.str_at(&["nonResourceAttributes", "verb"]),
        path: spec.str_at(&["nonResourceAttributes", "path"]),
        ..AccessAttributes::default()
    }
}

fn selection<'a>(attributes: &'a Value, name: &str) -> Selection<'a> {
    match (attributes.str_at(&[name, "rawSelector"]), attributes.at(&[name, "requirements"])) {
        ("", Some(requirements)) => Selection::Requirements(requirements),
        ("", None) => Selection::All,
        (text, _) => Selection::Text(text),
    }
}

/// The usable requirements of a selector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usable {
    All,
    Part,
    Nothing,
}

/// The evaluation errors of selectors that cannot be used, or only partially.
fn ignored_selectors(review: &Value) -> Vec<String> {
    let attributes = review.at(&["spec", "resourceAttributes"]);
    let usable = |name: &str| {
        let selector = attributes.and_then(|attributes| attributes.get(name))?;
        let raw = selector.str_at(&["rawSelector"]);
        let of_label = name == "labelSelector";
        if !raw.is_empty() {
            let parses = if of_label { LabelSelector::parse(raw).is_ok() } else { FieldSelector::parse(raw).is_ok() };
            return Some(if parses { Usable::All } else { Usable::Nothing });
        }
        let requirements = selector.items_at(&["requirements"]);
        let known = requirements.iter().filter(|requirement| is_known(requirement, of_label)).count();
        Some(match known {
            count if count == requirements.len() => Usable::All,
            0 => Usable::Nothing,
            _ => Usable::Part,
        })
    };
    let mut out = vec![];
    for name in ["fieldSelector", "labelSelector"] {
        let how = match usable(name) {
            Some(Usable::Part) => "partially ignored",
            Some(Usable::Nothing) => "ignored",
            Some(Usable::All) | None => continue,
        };
        out.push(format!("spec.resourceAttributes.{name} {how} due to parse error"));
    }
    out
}

/// Whether the operator of a requirement is known: for fields, only with a single value.
fn is_known(requirement: &Value, of_label: bool) -> bool {
    let values = requirement.get("values").and_then(Value::as_array).map_or(0, <[Value]>::len);
    match requirement.str_at(&["operator"]) {
        "In" | "NotIn" => of_label || values == 1,
        "Exists" | "DoesNotExist" => of_label,
        _ => false,
    }
}
