//! The members of metadata that the server owns, and the rules that updates add (api-machinery 4).

use machinery::field::{FieldError, FieldPath};
use machinery::{Status, Value, names};

use super::{Request, Subresource, definitions};
use crate::clock;
use crate::resource::builtin::NameRule;

/// What a create wipes before anything else.
const SYSTEM: [&str; 5] = ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Takes from a new object what only the server gives it, and puts it into its namespace.
pub fn wipe_system_fields(request: &Request, object: &mut Value) -> Result<(), Status> {
    let namespace = if request.resource.namespaced { request.namespace().as_str() } else { "" };
    place_in(object, namespace)?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in SYSTEM {
            metadata.remove(key);
        }
    }
    Ok(())
}

/// Gives a new object what the server gives it; what changes writes has not seen it.
pub fn fill_system_fields(object: &mut Value) {
    object.remove_at(&["metadata", "selfLink"]);
    object.set_at(&["metadata", "uid"], Value::from(clock::uuid()));
    object.set_at(&["metadata", "creationTimestamp"], Value::from(clock::now_rfc3339()));
}

/// Puts the object into the namespace of the request; objects of the cluster have none.
pub fn place_in(object: &mut Value, namespace: &str) -> Result<(), Status> {
    if !object.get("metadata").is_some_and(|m| matches!(m, Value::Object(_))) {
        object.set_at(&["metadata"], Value::object());
    }
    if namespace.is_empty() {
        object.remove_at(&["metadata", "namespace"]);
        return Ok(());
    }
    let given = object.str_at(&["metadata", "namespace"]);
    if !given.is_empty() && given != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    object.set_at(&["metadata", "namespace"], Value::from(namespace));
    Ok(())
}

/// The name of an update must be that of the URL.
pub fn check_name(object: &Value, name: &str) -> Result<(), Status> {
    let given = object.str_at(&["metadata", "name"]);
    if given.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if given != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// Makes up a name where only generateName is given. True if it did.
pub fn generate_name(object: &mut Value) -> bool {
    const BASE_MAX: usize = 58;
    let base = object.str_at(&["metadata", "generateName"]).to_owned();
    if base.is_empty() || !object.str_at(&["metadata", "name"]).is_empty() {
        return false;
    }
    let cut = base.char_indices().map(|(i, _)| i).take_while(|i| *i <= BASE_MAX).last().unwrap_or_default();
    let base = if base.len() > BASE_MAX { &base[..cut] } else { base.as_str() };
    object.set_at(&["metadata", "name"], Value::from(format!("{base}{}", clock::name_suffix())));
    true
}

/// The errors of the name, in the kind's own rule.
fn name_errors(request: &Request, metadata: &Value, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("metadata.name");
    let rule = |name: &str| match request.resource.shipped().map(|s| s.name_rule) {
        Some(NameRule::Label) if name.contains('.') && names::dns1123_subdomain(name).is_empty() => {
            vec!["must not contain dots".to_owned()]
        }
        Some(NameRule::Label) => names::dns1123_label(name),
        Some(NameRule::OldLabel) => names::dns1035_label(name),
        Some(NameRule::Path) => names::path_segment(name),
        _ => names::dns1123_subdomain(name),
    };
    let generate = metadata.str_at(&["generateName"]);
    let name = metadata.str_at(&["name"]);
    if !generate.is_empty() {
        // the base may end in a dash where the random part begins: an `a` stands for the last two bytes
        let base = match generate.as_bytes() {
            [head @ .., _, b'-'] => format!("{}a", String::from_utf8_lossy(head)),
            _ => generate.to_owned(),
        };
        let path = FieldPath::new("metadata.generateName");
        let value = Value::from(generate);
        errors.extend(rule(&base).into_iter().map(|message| FieldError::invalid(&path, &value, message)));
    }
    if name.is_empty() {
        errors.push(FieldError::required(&path, "name or generateName is required"));
    } else {
        let value = Value::from(name);
        errors.extend(rule(name).into_iter().map(|message| FieldError::invalid(&path, &value, message)));
    }
}

/// The errors of the metadata of a new object.
pub fn validate_create(request: &Request, object: &Value) -> Vec<FieldError> {
    if definitions::is_definition(&request.resource) {
        // definitions have rules for their names, and check all of it themselves
        return vec![];
    }
    let empty = Value::object();
    let metadata = object.get("metadata").unwrap_or(&empty);
    let mut errors = vec![];
    name_errors(request, metadata, &mut errors);
    if request.resource.namespaced && request.namespace().is_empty() {
        errors.push(FieldError::required(&FieldPath::new("metadata.namespace"), ""));
    }
    schema::metadata::validate_common(metadata, &FieldPath::new("metadata"), &mut errors);
    standard_finalizers(request, metadata, &mut errors);
    errors
}

/// Finalizers of some kinds are standard names or qualified ones.
fn standard_finalizers(request: &Request, metadata: &Value, errors: &mut Vec<FieldError>) {
    if !request.shipped().is_some_and(|shipped| shipped.standard_finalizers) {
        return;
    }
    let list = metadata.get("finalizers").and_then(Value::as_array).unwrap_or_default();
    for (i, finalizer) in list.iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        let standard = matches!(name, "orphan" | "foregroundDeletion" | "kubernetes");
        if !name.contains('/') && !standard {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&FieldPath::new("metadata.finalizers").index(i), finalizer, why));
        }
    }
}

/// The errors of the metadata of an update: what any update is checked for, then what the kind checks once more; the
/// reference server tells all it finds (corrections crud 20).
pub fn validate_update(request: &Request, object: &Value, old: &Value) -> Vec<FieldError> {
    let empty = Value::object();
    let (new, old) = (object.get("metadata").unwrap_or(&empty), old.get("metadata").unwrap_or(&empty));
    let mut errors = schema::metadata::validate_before_update(new, old, request.resource.namespaced);
    let shipped = request.resource.shipped();
    if shipped.is_some_and(|s| s.rechecks_metadata) && request.subresource == Subresource::None {
        schema::metadata::validate_common(new, &FieldPath::new("metadata"), &mut errors);
        standard_finalizers(request, new, &mut errors);
    }
    if !definitions::is_definition(&request.resource) && shipped.is_none_or(|s| s.rechecks_change) {
        schema::metadata::validate_update(new, old, &FieldPath::new("metadata"), &mut errors);
        standard_finalizers(request, new, &mut errors);
    }
    errors
}

/// Restores what updates can't touch. `deletionTimestamp` and its grace period may only be repeated.
pub fn restore_system_fields(object: &mut Value, old: &Value) {
    let deleting = old.at(&["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null());
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let empty = Value::object();
    let old = old.get("metadata").unwrap_or(&empty);
    let mut restore = |key: &str| match old.get(key) {
        Some(value) => {
            metadata.insert(key, value.clone());
        }
        None => {
            metadata.remove(key);
        }
    };
    restore("creationTimestamp");
    restore("generation");
    restore("selfLink");
    if deleting {
        restore("deletionTimestamp");
    }
    for key in ["uid", "deletionGracePeriodSeconds"] {
        let absent = metadata.get(key).is_none_or(|v| v.is_null() || v.as_str() == Some(""));
        if absent && let Some(value) = old.get(key) {
            metadata.insert(key, value.clone());
        }
    }
}

/// Collapses owner references that are the same, with a warning.
pub fn dedup_owners(request: &Request, object: &mut Value, after_mutation: bool) {
    let Some(owners) = object.get_mut("metadata").and_then(|m| m.get_mut("ownerReferences")) else { return };
    let Some(owners) = owners.as_array_mut() else { return };
    let mut kept: Vec<Value> = vec![];
    let mut again: Vec<String> = vec![];
    for owner in std::mem::take(owners) {
        if kept.contains(&owner) {
            let uid = owner.str_at(&["uid"]).to_owned();
            if !again.contains(&uid) {
                again.push(uid);
            }
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    if !again.is_empty() {
        let when = if after_mutation { " after mutating admission happens" } else { "" };
        request.warn(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            again.join(", ")
        ));
    }
}

/// Warnings about finalizers that are new and not domain-qualified (crd.md 14.1).
pub fn warn_finalizers(request: &Request, object: &Value, old: Option<&Value>) {
    let list = |o: &Value| -> Vec<String> {
        let items = o.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let known = old.map(list).unwrap_or_default();
    let mut added: Vec<String> = list(object).into_iter().filter(|f| !known.contains(f)).collect();
    added.sort();
    added.dedup();
    for finalizer in added {
        if finalizer.contains('/')
            || !names::qualified_name(&finalizer).is_empty()
            || matches!(finalizer.as_str(), "orphan" | "foregroundDeletion" | "kubernetes")
        {
            continue;
        }
        let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
        request.warn(format!(
            "metadata.finalizers: {}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers",
            machinery::value::quote(&finalizer)
        ));
    }
}
