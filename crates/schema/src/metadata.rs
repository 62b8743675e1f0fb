//! `ObjectMeta` of any object: coercion into its shape and the rules for its fields.
//!
//! Used for embedded resources and for definitions here; the server uses it for the metadata of every object.

use std::collections::BTreeSet;

pub use crate::limits::ANNOTATIONS_BYTES_MAX;
use crate::limits::{MANAGER_BYTES_MAX, SUBRESOURCE_BYTES_MAX};
use machinery::value::PATHS_BYTES_MAX;
use machinery::{Map, Release, Value, names};

use crate::at::At;
use crate::shape::{self, object_meta};

/// How metadata with wrong types is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is refused: for requests.
    Refuse,
    /// The wrong parts are dropped: for objects that are read from storage.
    Drop,
    /// It is refused, except for null, which validation reports: for applied objects, whose other types have been
    /// checked.
    RefuseExceptNull,
}

/// Makes the field `metadata` of an object, if it has one, a well-formed `ObjectMeta`. Unknown fields are dropped, and
/// their paths (`metadata.x`) are returned. Null becomes `{}`. Fields of wrong types are refused or dropped.
pub fn coerce(object: &mut Map, malformed: Malformed) -> Result<Vec<String>, String> {
    if object.get("metadata").is_some_and(|metadata| shape::is_exact(metadata, object_meta())) {
        // that of nearly every stored object
        return Ok(vec![]);
    }
    if let Some(metadata) = object.get_mut("metadata") {
        shape::convert_whole_numbers(metadata, object_meta());
    }
    let Some(metadata) = object.get("metadata") else { return Ok(vec![]) };
    let mut read = shape::read(metadata, object_meta());
    if let Some(error) = read.error {
        if malformed != Malformed::Drop {
            return Err(error);
        }
        let Value::Object(fields) = metadata else {
            return Ok(vec![]);
        };
        read.value = well_formed(fields);
    }
    object.insert("metadata", read.value);
    Ok(read.unknown.into_iter().map(|path| format!("metadata.{path}")).collect())
}

/// Why metadata is not an `ObjectMeta`, in the words of Go's conversion from maps to structs; `None` if it is one.
pub fn conversion_error(metadata: &Value) -> Option<String> {
    let mut metadata = metadata.clone();
    shape::convert_whole_numbers(&mut metadata, object_meta());
    let errors = shape::read(&metadata, object_meta()).errors;
    shape::first_conversion_error(&errors, &metadata, "meta.v1.ObjectMeta")
}

/// The fields of metadata that have the right types.
fn well_formed(fields: &Map) -> Value {
    let mut out = Map::new();
    for (name, value) in fields.iter() {
        let single = Value::Object([(name.clone(), value.clone())].into_iter().collect());
        let read = shape::read(&single, object_meta());
        if let (None, Value::Object(map)) = (read.error, read.value) {
            map.into_iter().for_each(|(k, v)| {
                out.insert(k, v);
            });
        }
    }
    Value::Object(out)
}

/// The rules for labels, annotations, owner references, finalizers and managedFields, in upstream's order. The rules
/// for names and namespaces depend on the kind.
pub fn validate_common(metadata: At) {
    non_negative_generation(metadata);
    validate_texts(metadata);
    owner_references(metadata.field("ownerReferences"));
    finalizers(metadata.field("finalizers"));
    managed_fields(metadata);
}

fn non_negative_generation(metadata: At) {
    metadata.field("generation").at_least(0, "must be greater than or equal to 0");
}

/// How the resource of an object is served, on which the rules of metadata depend.
#[derive(Clone, Copy, Debug)]
pub struct MetadataContext {
    pub namespaced: bool,
    pub release: Release,
}

/// The checks that every update passes before the rules of its kind: the metadata as if it were new, then the change.
/// The rules of the kind check the change again, so that upstream reports its errors twice.
pub fn validate_before_update(metadata: At, is_namespaced: bool) {
    metadata.field("generateName").check_text(names::path_segment_prefix);
    let name = metadata.field("name");
    name.require_text("name or generateName is required");
    name.check_text_unless_empty(names::path_segment);
    let namespace = metadata.field("namespace");
    match is_namespaced {
        true => namespace.check_required_text(names::dns1123_label),
        false => namespace.forbidden_if(!namespace.as_text().is_empty(), "not allowed on this type"),
    }
    let found = metadata.count();
    validate_common(metadata);
    if metadata.count() == found {
        // the rules for the new metadata alone have just found nothing
        validate_change(metadata);
    } else {
        validate_update(metadata);
    }
}

/// The rules for a change of metadata, in upstream's order. The server has already restored the fields that clients may
/// leave out.
pub fn validate_update(metadata: At) {
    validate_change(metadata);
    validate_texts(metadata);
    owner_references(metadata.field("ownerReferences"));
    managed_fields(metadata);
}

/// The rules of [`validate_update`] that depend on the old metadata, and the rules for numbers.
fn validate_change(metadata: At) {
    if metadata.field("deletionTimestamp").old.is_some_and(|time| !time.is_null()) {
        no_new_finalizers(metadata.field("finalizers"));
    }
    let version = metadata.field_or_empty("resourceVersion");
    version.invalid_if(version.as_text().is_empty(), "must be specified for an update");
    if metadata.release() >= Release::V1_37 {
        non_negative_generation(metadata);
    }
    let generation = metadata.field_or_zero("generation");
    let is_decremented = generation.value.as_int() < generation.old.map(|old| old.as_int().unwrap_or_default());
    generation.invalid_if(is_decremented, "must not be decremented");
    ["name", "namespace", "uid"].iter().for_each(|field| metadata.field_or_empty(field).immutable());
    let others = ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    others.iter().for_each(|field| metadata.field(field).immutable());
}

fn no_new_finalizers(finalizers: At) {
    let new: BTreeSet<&str> = finalizers.items().map(|name| name.as_text()).collect();
    let old = finalizers.old_items().iter().filter_map(Value::as_str).collect();
    let added: Vec<String> = new.difference(&old).map(|name| machinery::value::quote(name)).collect();
    if !added.is_empty() {
        finalizers.forbidden(format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        ));
    }
}

/// Validates the labels and annotations of metadata.
pub fn validate_texts(metadata: At) {
    labels(metadata.field("labels"));
    annotations(metadata.field("annotations"));
}

/// Validates labels of objects or of selectors. Errors have the path of the map.
pub fn labels(map: At) {
    for (key, value) in map.value.fields() {
        map.shown_as_text(key).invalid_each(names::qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        map.shown_as_text(value).invalid_each(names::label_value(value));
    }
}

/// Validates annotations. Errors have the path of the map.
pub fn annotations(map: At) {
    let mut bytes = 0;
    for (key, value) in map.value.fields() {
        map.shown_as_text(key).invalid_each(names::qualified_name(&key.to_lowercase()));
        bytes += key.len() + value.as_str().unwrap_or_default().len();
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        map.too_long(ANNOTATIONS_BYTES_MAX);
    }
}

fn owner_references(references: At) {
    let mut controller: Option<String> = None;
    let mut shown_bytes = 0;
    for reference in references.items() {
        match references.release() {
            Release::V1_35 | Release::V1_36 => unnumbered_owner_reference(references.with_value(reference.value)),
            _ => owner_reference(reference),
        }
        if !reference.is_true("controller") {
            continue;
        }
        let name = format!("{}/{}", reference.text("kind"), reference.text("name"));
        match &controller {
            None => controller = Some(name),
            // each error shows all references, so their total size is bounded
            Some(first) if shown_bytes < PATHS_BYTES_MAX => {
                let shown = references_text(references);
                shown_bytes += shown.len();
                references.shown_verbatim(&shown).invalid(format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                ));
            }
            Some(_) => {}
        }
    }
}

/// Owner references as messages show them: with their fields in the order of the Go type.
fn references_text(references: At) -> String {
    const FIELDS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let one = |reference: At| {
        let field = |key: &&str| reference.value.get(key).map(|value| format!("\"{key}\":{}", value.to_json()));
        format!("{{{}}}", FIELDS.iter().filter_map(field).collect::<Vec<_>>().join(","))
    };
    format!("[{}]", references.items().map(one).collect::<Vec<_>>().join(","))
}

fn has_version(reference: At) -> bool {
    group_version(reference.text("apiVersion")).is_ok_and(|(_, version)| !version.is_empty())
}

fn owner_reference(reference: At) {
    let version = reference.field("apiVersion");
    let is_wrong = !version.as_text().is_empty() && !has_version(reference);
    version.invalid_if(is_wrong, "must be <group>/<version> or <version>");
    ["apiVersion", "kind", "name", "uid"].iter().for_each(|key| reference.field(key).require_text("must not be empty"));
    banned_owner(reference);
}

/// Validates an owner reference as releases before 1.37 do, whose errors do not show its index.
fn unnumbered_owner_reference(reference: At) {
    reference.field_or_empty("apiVersion").invalid_if(!has_version(reference), "version must not be empty");
    for key in ["kind", "name", "uid"] {
        reference.field_or_empty(key).invalid_if(reference.text(key).is_empty(), "must not be empty");
    }
    banned_owner(reference);
}

fn banned_owner(reference: At) {
    let is_event = reference.text("apiVersion") == "v1" && reference.text("kind") == "Event";
    reference.invalid_if(is_event, "/v1, Kind=Event is disallowed from being an owner");
}

fn finalizers(list: At) {
    list.items().for_each(|finalizer| list.with_value(finalizer.value).check_text(names::qualified_name));
    let has = |name: &str| list.items().any(|finalizer| finalizer.as_text() == name);
    let has_both = has("orphan") && has("foregroundDeletion");
    list.invalid_if(has_both, "finalizer orphan and foregroundDeletion cannot be both set");
}

fn managed_fields(metadata: At) {
    for entry in metadata.items_of("managedFields") {
        operation(entry.field_or_empty("operation"));
        let fields_type = entry.field("fieldsType");
        fields_type.invalid_if(!matches!(fields_type.as_text(), "" | "FieldsV1"), "must be `FieldsV1`");
        entry.field("manager").max_bytes(MANAGER_BYTES_MAX);
        entry.field("subresource").max_bytes(SUBRESOURCE_BYTES_MAX);
    }
}

fn operation(at: At) {
    match at.as_text() {
        "Apply" | "Update" => {}
        _ if at.release() < Release::V1_37 => at.invalid("must be `Apply` or `Update`"),
        "" => at.required("must not be empty"),
        _ => at.unsupported(&["Apply", "Update"]),
    }
}

pub(crate) fn group_version(api_version: &str) -> Result<(&str, &str), String> {
    match api_version.matches('/').count() {
        _ if api_version.is_empty() || api_version == "/" => Ok(("", "")),
        0 => Ok(("", api_version)),
        1 => Ok(api_version.split_once('/').unwrap_or_default()),
        _ => Err(format!("unexpected GroupVersion string: {api_version}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::at::errors_of;
    use machinery::json;

    /// Each of these errors shows all references; without a bound they took 25 GB.
    #[test]
    fn errors_about_many_controllers_are_bounded() {
        let owner = |i: usize| json!({"apiVersion": "v1", "kind": "A", "name": (format!("a{i}")), "uid": "u", "controller": true});
        let metadata = json!({"ownerReferences": ((0..20_000).map(owner).collect::<Value>())});
        let errors = errors_of(&metadata, None, Release::NEWEST, |at| owner_references(at.field("ownerReferences")));
        let bytes: usize = errors.iter().map(|error| error.value.len()).sum();
        assert!(!errors.is_empty() && bytes < 2 * PATHS_BYTES_MAX, "{bytes}");
    }

    #[test]
    fn added_finalizers_are_reported_once_and_sorted() {
        let of = |finalizers: &[&str]| json!({"finalizers": (finalizers.iter().map(|name| Value::from(*name)).collect::<Value>())});
        let (new, old) = (of(&["c", "a", "b", "a"]), of(&["b"]));
        let errors = errors_of(&new, Some(&old), Release::NEWEST, |at| no_new_finalizers(at.field("finalizers")));
        assert!(errors[0].detail.ends_with(r#"found new finalizers []string{"a", "c"}"#), "{}", errors[0].detail);
    }
}
