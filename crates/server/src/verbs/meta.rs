//! The metadata of written objects: system fields, namespaces, names and owner references.

use std::collections::HashSet;

use base::clock;
use machinery::{Result, Status, Value};

use super::request::Request;

pub const MANAGED: [&str; 2] = ["metadata", "managedFields"];

/// The fields that are removed from a new object.
const SYSTEM: [&str; 5] = ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Removes the system fields of a new object and sets its namespace.
pub fn wipe_system_fields(request: &Request, object: &mut Value) -> Result<()> {
    place_in(object, request.scope())?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in SYSTEM {
            metadata.remove(key);
        }
    }
    Ok(())
}

/// Sets the system fields of a new object. Called after mutating admission, which must not see them.
pub fn fill_system_fields(object: &mut Value) {
    object.remove_at(&["metadata", "selfLink"]);
    let uid = clock::uid(|| seed_key_of(object, object.str_at(&["metadata", "name"])));
    object.set_at(&["metadata", "uid"], Value::from(uid));
    object.set_at(&["metadata", "creationTimestamp"], Value::from(clock::now_rfc3339()));
}

/// The key under which a seed's counter for an object is kept: group, kind, namespace and name.
fn seed_key_of(object: &Value, name: &str) -> String {
    let group = object.str_at(&["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    seed_key(group, object.str_at(&["kind"]), object.str_at(&["metadata", "namespace"]), name)
}

/// The key under which a seed's counter for an object is kept, from its parts.
pub fn seed_key(group: &str, kind: &str, namespace: &str, name: &str) -> String {
    format!("{group}/{kind}/{namespace}/{name}")
}

/// Sets the namespace of an object to the request's. Fails if the object names another one.
pub fn place_in(object: &mut Value, namespace: &str) -> Result<()> {
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

/// Fails unless an updated object has the name in the URL.
pub fn check_name(object: &Value, name: &str) -> Result<()> {
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

/// Where the name of a new object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOrigin {
    Client,
    Generated,
}

pub fn generate_name(object: &mut Value) -> NameOrigin {
    const BASE_MAX: usize = 58;
    let base = object.str_at(&["metadata", "generateName"]).to_owned();
    if base.is_empty() || !object.str_at(&["metadata", "name"]).is_empty() {
        return NameOrigin::Client;
    }
    let cut = base.char_indices().map(|(i, _)| i).take_while(|i| *i <= BASE_MAX).last().unwrap_or_default();
    let base = if base.len() > BASE_MAX { &base[..cut] } else { base.as_str() };
    let suffix = clock::name_suffix(|| seed_key_of(object, base));
    object.set_at(&["metadata", "name"], Value::from(format!("{base}{suffix}")));
    NameOrigin::Generated
}

/// The stage of a write at which duplicate owner references are found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    BeforeMutation,
    AfterMutation,
}

/// Removes duplicate owner references, with a warning.
pub fn dedup_owners(request: &Request, object: &mut Value, stage: Stage) {
    let Some(owners) = object.get_mut("metadata").and_then(|m| m.get_mut("ownerReferences")) else { return };
    let Some(owners) = owners.as_array_mut() else { return };
    let uids = remove_duplicates(owners);
    if !uids.is_empty() {
        let when = if stage == Stage::AfterMutation { " after mutating admission happens" } else { "" };
        request.warn(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            uids.join(", ")
        ));
    }
}

/// Removes owner references that equal an earlier one. Returns their uids.
fn remove_duplicates(owners: &mut Vec<Value>) -> Vec<String> {
    let (mut seen, mut uids) = (HashSet::new(), vec![]);
    owners.retain(|owner| {
        let is_new = seen.insert(owner.to_json());
        if !is_new {
            uids.push(owner.str_at(&["uid"]).to_owned());
        }
        is_new
    });
    uids
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn equal_owner_references_are_removed() {
        let owner = |uid: &str, name: &str| json!({"uid": uid, "name": name});
        let mut owners = vec![owner("1", "a"), owner("2", "b"), owner("1", "a"), owner("1", "c"), owner("1", "a")];
        assert_eq!(remove_duplicates(&mut owners), ["1", "1"]);
        assert_eq!(owners, [owner("1", "a"), owner("2", "b"), owner("1", "c")]);
    }
}
