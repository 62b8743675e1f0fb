//! The subresources `binding` and `eviction` of Pods.

use std::sync::Arc;

use base::clock;
use base::request::{DeleteOptions, IGNORE_READ_ERRORS, WriteOptions, invalid_options};
use machinery::field::{FieldError, FieldPath};
use machinery::{Result, Status, Text, Value, json, names};
use objects::Stored;
use resource::{Resource, Subresource};
use schema::definition::replace_condition;

use super::budgets;
use crate::verbs::admit::Admit;
use crate::verbs::change::{Change, Write};
use crate::verbs::context::Context;
use crate::verbs::deletion::check_preconditions;
use crate::verbs::outcome::Outcome;
use crate::verbs::request::Request;

/// The Status of success, which is the response to a POST.
fn done() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

fn pods(context: &Context) -> Result<Arc<Resource>> {
    context.registry.get("", "pods").ok_or_else(|| Status::internal("Pods are not served"))
}

fn find(context: &Context, request: &Request, name: &str) -> Result<Arc<Stored>> {
    let pods = pods(context)?;
    let stored = pods.collection.get(&pods.key(request.namespace(), name).path);
    stored.ok_or_else(|| Status::not_found("", "pods", name))
}

fn set_condition(pod: &mut Value, kind: &str, reason: &str, message: &str) {
    let mut condition = json!({"type": kind, "status": "True", "lastProbeTime": (Value::Null)});
    for (field, text) in [("reason", reason), ("message", message)] {
        condition.put_text(&[field], text);
    }
    replace_condition(pod, condition, &clock::now_rfc3339());
}

/// Assigns a Pod to a Node.
pub async fn bind(admit: &Admit<'_>, binding: Value) -> Result<Value> {
    let (context, request) = (admit.context, admit.request);
    let name = binding.str_at(&["metadata", "name"]).to_owned();
    if !request.name().is_empty() && *request.name() != name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let errors = binding_errors(&binding);
    if !errors.is_empty() {
        return Err(Status::untyped(500, machinery::status::aggregate(&errors)));
    }
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    admit.validate(Some(&binding), None).await?;
    let stored = find(context, request, &name)?;
    let pod = stored.body.to_value(stored.revision);
    let refused = |why: String| Err(Status::conflict("", "pods/binding", &name, &why));
    let (uid, version) = (binding.str_at(&["metadata", "uid"]), binding.str_at(&["metadata", "resourceVersion"]));
    let node = pod.str_at(&["spec", "nodeName"]);
    let (found_uid, found_version) = (&stored.meta.uid, stored.revision.to_string());
    // a POST to `bindings` drops the uid as that of a new object
    let broken = if !request.name().is_empty() && !uid.is_empty() && uid != found_uid {
        Some(format!("UID in precondition: {uid}, UID in object meta: {found_uid}"))
    } else if !version.is_empty() && version != found_version {
        Some(format!("ResourceVersion in precondition: {version}, ResourceVersion in object meta: {found_version}"))
    } else {
        None
    };
    let pods = pods(context)?;
    let own = context.as_server(&pods, request.namespace(), &name).through(Subresource::Own("binding"));
    if let Some(why) = broken {
        return Err(own.request(&http::Method::PUT).broken_precondition(admit.dry_run, &why));
    }
    if stored.meta.deleting {
        return refused(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if !node.is_empty() {
        return refused(format!("pod {name} is already assigned to node \"{node}\""));
    }
    if pod.at(&["spec", "schedulingGates"]).and_then(Value::as_array).is_some_and(|gates| !gates.is_empty()) {
        return refused(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    if !admit.dry_run {
        own.change(|pod| assign(pod, &binding)).await?;
    }
    Ok(done())
}

fn assign(pod: &mut Value, binding: &Value) {
    if !pod.str_at(&["spec", "nodeName"]).is_empty() {
        return;
    }
    pod.set_at(&["spec", "nodeName"], Value::from(binding.str_at(&["target", "name"])));
    pod.remove_at(&["status", "nominatedNodeName"]);
    for field in ["annotations", "labels"] {
        let given = binding.at(&["metadata", field]).and_then(Value::as_object);
        for (key, value) in given.into_iter().flat_map(machinery::Map::iter) {
            pod.set_at(&["metadata", field, key], value.clone());
        }
    }
    set_condition(pod, "PodScheduled", "", "");
}

fn binding_errors(binding: &Value) -> Vec<FieldError> {
    let (mut errors, path) = (vec![], FieldPath::new("target"));
    let kind = binding.str_at(&["target", "kind"]);
    let is_node = ["", "Node"].contains(&kind);
    if !is_node {
        errors.push(FieldError::not_supported(&path.child("kind"), &Value::from(kind), &["Node", "<empty>"]));
    }
    let (name, path) = (binding.str_at(&["target", "name"]), path.child("name"));
    if name.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else if is_node {
        let problems = names::dns1123_subdomain(name).into_iter();
        errors.extend(problems.map(|problem| FieldError::invalid(&path, &Value::from(name), problem)));
    }
    errors
}

/// Deletes a Pod unless a PodDisruptionBudget forbids it.
pub async fn evict(admit: &Admit<'_>, eviction: Value) -> Result<Value> {
    let (context, request) = (admit.context, admit.request);
    let name = request.name().clone();
    if eviction.str_at(&["metadata", "name"]) != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let (mut options, errors) = deletion_of(admit, &eviction)?;
    admit.validate(Some(&eviction), None).await?;
    let stored = find(context, request, &name)?;
    let pod = stored.body.to_value(stored.revision);
    let phase = pod.str_at(&["status", "phase"]);
    let is_unprotected = ["Succeeded", "Failed", "Pending"].contains(&phase) || stored.meta.deleting;
    if !is_unprotected {
        let budgets = budgets::of(context, &pod);
        if budgets.len() > 1 {
            let message =
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::untyped(500, message));
        }
        if let Some(budget) = budgets.first().filter(|budget| !budgets::spares(budget, &pod)) {
            budgets::charge(context, budget, &name, options.dry_run).await?;
        }
    }
    if !options.dry_run {
        mark(context, request.namespace(), &name, &mut options).await?;
    }
    if !errors.is_empty() {
        return Err(invalid_options("DeleteOptions", &errors));
    }
    delete(context, request, &name, options).await?;
    Ok(done())
}

/// The options of the deletion of an eviction, and their errors, which the deletion itself reports.
fn deletion_of(admit: &Admit<'_>, eviction: &Value) -> Result<(DeleteOptions, Vec<FieldError>)> {
    let name = admit.request.name();
    let Some(given) = eviction.get("deleteOptions").filter(|options| !options.is_null()) else {
        return Ok((DeleteOptions { dry_run: admit.dry_run, ..DeleteOptions::default() }, vec![]));
    };
    let given = DeleteOptions::read(given, &[])?;
    if given.is_true_at(&[IGNORE_READ_ERRORS]) {
        let path = FieldPath::new("deleteOptions").child(IGNORE_READ_ERRORS);
        let why = "can not be set for pod eviction, try after removing the option";
        let error = FieldError::invalid(&path, &Value::Bool(true), why);
        return Err(Status::invalid("policy", "Eviction", name, &[error]));
    }
    let dry_run: Vec<&str> = given.texts_at(&["dryRun"]).collect();
    if admit.dry_run && !dry_run.is_empty() && dry_run != ["All"] {
        let given = dry_run.join(" ");
        let why = format!("Non-matching dry-run options in request and content: [All] and [{given}]");
        return Err(Status::untyped(500, why));
    }
    let (mut options, errors) = DeleteOptions::unvalidated(&given, admit.context.registry.gates());
    options.dry_run |= admit.dry_run;
    Ok((options, errors))
}

/// Writes the condition of an eviction if the preconditions hold. A precondition on the resourceVersion then requires
/// the version of this write.
async fn mark(context: &Context, namespace: &str, name: &str, options: &mut DeleteOptions) -> Result<()> {
    let pods = pods(context)?;
    let own = context.as_server(&pods, namespace, name).through(Subresource::Own("eviction"));
    let request = own.request(&http::Method::PUT);
    let change = |pod: &mut Value| {
        check_preconditions(&request, options, pod)?;
        set_condition(pod, "DisruptionTarget", "EvictionByEvictionAPI", "Eviction API: evicting");
        Ok(())
    };
    let outcome = Write::new(context, &request, Change::Edit(&change), &WriteOptions::default()).run().await?;
    if let (Some(version), Outcome::Object(_, pod)) = (&mut options.resource_version, outcome) {
        *version = Text::from(pod.to_value().str_at(&["metadata", "resourceVersion"]));
    }
    Ok(())
}

/// Deletes the Pod of an allowed eviction.
async fn delete(context: &Context, request: &Request, name: &Text, options: DeleteOptions) -> Result<()> {
    let pods = pods(context)?;
    let request = context.as_server(&pods, request.namespace(), name).request(&http::Method::DELETE);
    let write_options = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
    Box::pin(Write::new(context, &request, Change::Delete(options), &write_options).run()).await.map(drop)
}
