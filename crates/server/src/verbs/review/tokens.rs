//! TokenReview, and TokenRequest of ServiceAccounts.

use access::authentication::{Bound, Reference};
use base::clock;
use machinery::field::{FieldError, FieldPath};
use machinery::{Result, Status, Value, json};
use objects::Stored;

use crate::verbs::admit::Admit;
use crate::verbs::context::Context;
use crate::verbs::request::Request;

/// Authenticates the token of a TokenReview and sets its user and audiences.
pub async fn review(admit: &Admit<'_>, mut object: Value) -> Result<Value> {
    let context = admit.context;
    let token = object.str_at(&["spec", "token"]);
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    admit.validate(Some(&object), None).await?;
    let audiences = object.text_list_at(&["spec", "audiences"]);
    let status: Value = match context.authentication.token(&context.objects, token, &audiences).await {
        Ok(identity) => {
            let audiences: Value = identity.audiences.iter().map(Value::from).collect();
            json!({"audiences": audiences, "authenticated": true, "user": (identity.user.to_value("username"))})
        }
        Err(why) => json!({"error": why, "user": {}}),
    };
    object.set_at(&["status"], status);
    Ok(object)
}

/// Issues a token for the ServiceAccount of the path.
pub async fn issue(admit: &Admit<'_>, mut object: Value) -> Result<Value> {
    let (context, request) = (admit.context, admit.request);
    let (group, kind, name) = (&request.resource.group, &request.resource.kind, request.name());
    let given = object.str_at(&["metadata", "name"]);
    if !given.is_empty() && given != name {
        let why = "must match the service account name if specified";
        let error = FieldError::invalid(&FieldPath::new("metadata").child("name"), &Value::from(given), why);
        return Err(Status::invalid(group, kind, name, &[error]));
    }
    let account = find(context, request, "serviceaccounts", name)?;
    let (wanted, uid) = (object.str_at(&["metadata", "uid"]), &account.meta.uid);
    if !wanted.is_empty() && wanted != *uid {
        let why =
            format!("the UID in the token request ({wanted}) does not match the UID of the service account ({uid})");
        return Err(Status::conflict(group, kind, name, &why));
    }
    let accounts = &context.authentication.accounts;
    let mut audiences = object.text_list_at(&["spec", "audiences"]);
    if audiences.is_empty() {
        audiences = accounts.audiences().to_vec();
    }
    let now = clock::now_seconds();
    object.set_at(&["metadata", "name"], Value::from(name));
    object.set_at(&["metadata", "uid"], Value::from(&account.meta.uid));
    object.set_at(&["metadata", "creationTimestamp"], Value::from(machinery::time::rfc3339(now)));
    object.set_at(&["spec", "audiences"], audiences.iter().map(Value::from).collect());
    object.set_at(&["status"], [("expirationTimestamp", Value::Null), ("token", Value::from(""))].into());
    let errors = request.strategy.validate(&object).errors;
    if !errors.is_empty() {
        return Err(Status::invalid(group, kind, "", &errors));
    }
    admit.validate(Some(&object), None).await?;
    let bound = bound_object(context, request, &object)?;
    let mut seconds = object.int_at(&["spec", "expirationSeconds"]);
    let most = accounts.max_expiration();
    if most > 0 && seconds > most {
        request.warn(format!("requested expiration of {seconds} seconds shortened to {most} seconds"));
        seconds = most;
    }
    let issued = accounts.issue(&account, bound.as_ref(), &audiences, now, seconds).await;
    let (token, credential) = issued.map_err(Status::internal)?;
    request.audit(|audit| audit.annotate("authentication.kubernetes.io/issued-credential-id", credential));
    object.set_at(&["spec", "expirationSeconds"], Value::Int(seconds));
    let until = machinery::time::rfc3339(now.saturating_add(seconds));
    object.set_at(&["status"], [("expirationTimestamp", Value::from(until)), ("token", Value::from(token))].into());
    Ok(object)
}

/// An object of the core group in the namespace of the request.
fn find(context: &Context, request: &Request, plural: &str, name: &str) -> Result<std::sync::Arc<Stored>> {
    let resource = context.registry.get("", plural);
    let found = resource.and_then(|resource| {
        let path = resource.key(request.namespace(), name).path;
        resource.collection.get(&path)
    });
    found.ok_or_else(|| Status::not_found("", plural, name))
}

fn bound_object(context: &Context, request: &Request, object: &Value) -> Result<Option<Bound>> {
    let Some(reference) = object.at(&["spec", "boundObjectRef"]).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let (kind, name, wanted) = (reference.str_at(&["kind"]), reference.str_at(&["name"]), reference.str_at(&["uid"]));
    let api_version = reference.str_at(&["apiVersion"]);
    let (group, version) = match api_version.matches('/').count() {
        0 => ("", api_version),
        1 => api_version.split_once('/').unwrap_or_default(),
        // an invalid apiVersion is treated as the core group
        _ => ("", ""),
    };
    let plural = match (group, kind) {
        ("", "Secret") => "secrets",
        ("", "Pod") => "pods",
        ("", "Node") => "nodes",
        _ => return Err(not_bindable(group, version, kind)),
    };
    if name.is_empty() {
        // as for a get without a name
        return Err(Status::bad_request("Name parameter required."));
    }
    let found = find(context, request, plural, name)?;
    let itself = Reference { name: found.meta.name.clone(), uid: found.meta.uid.clone() };
    let bound = match plural {
        "pods" => Bound::Pod { pod: itself, node: node_of(context, request, &found)? },
        "nodes" => Bound::Node(itself),
        _ => Bound::Secret(itself),
    };
    if !wanted.is_empty() && wanted != found.meta.uid {
        let why = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict("", kind, name, &why));
    }
    Ok(Some(bound))
}

/// The error of a reference to an object of another kind.
fn not_bindable(group: &str, version: &str, kind: &str) -> Status {
    let mut why = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
    let is_webhook = matches!(kind, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration");
    if is_webhook && (group, version) == ("admissionregistration.k8s.io", "v1") {
        why.push_str(" (feature gate APIServerWebhookAuthenticationToken is disabled)");
    }
    Status::bad_request(why)
}

/// The Node of the Pod that a token is bound to, if the Pod has one; without a uid if the Node does not exist. The Pod
/// must run as the ServiceAccount of the request.
fn node_of(context: &Context, request: &Request, pod: &Stored) -> Result<Option<Reference>> {
    let pod = pod.body.to_value(0);
    let account = request.name();
    if pod.str_at(&["spec", "serviceAccountName"]) != account {
        let account = machinery::value::quote(account);
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {account} to pod running with different serviceaccount name."
        )));
    }
    let name = pod.str_at(&["spec", "nodeName"]);
    if name.is_empty() {
        return Ok(None);
    }
    let uid = find(context, request, "nodes", name).map(|node| node.meta.uid.clone()).unwrap_or_default();
    Ok(Some(Reference { name: name.into(), uid }))
}
