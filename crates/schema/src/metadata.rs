//! `ObjectMeta` of any object: coercion into its shape and the rules for its fields.
//!
//! Used for embedded resources and for definitions here; the server uses it for the metadata of every object.

use std::collections::BTreeSet;

pub use crate::limits::ANNOTATIONS_BYTES_MAX;
use crate::limits::MANAGER_BYTES_MAX;
use crate::limits::SUBRESOURCE_BYTES_MAX;
use machinery::value::PATHS_BYTES_MAX;
use machinery::{FieldError, FieldPath, Map, Release, Text, Value, names};

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
pub fn validate_common(metadata: &Value, path: &FieldPath, release: Release, errors: &mut Vec<FieldError>) {
    non_negative_generation(metadata, path, errors);
    labels(metadata, &path.child("labels"), errors);
    annotation_errors(metadata, &path.child("annotations"), errors);
    owner_references(metadata, &path.child("ownerReferences"), release, errors);
    finalizers(metadata, &path.child("finalizers"), errors);
    managed_fields(metadata, &path.child("managedFields"), release, errors);
}

fn non_negative_generation(metadata: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(generation @ Value::Int(i)) = metadata.get("generation")
        && *i < 0
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("generation"), generation, detail));
    }
}

/// How the resource of an object is served, on which the rules of metadata depend.
#[derive(Clone, Copy, Debug)]
pub struct MetadataContext {
    pub namespaced: bool,
    pub release: Release,
}

/// The checks that every update passes before the rules of its kind: the metadata as if it were new, then the change.
/// The rules of the kind check the change again, so that upstream reports its errors twice.
pub fn validate_before_update(new: &Value, old: &Value, context: MetadataContext) -> Vec<FieldError> {
    let MetadataContext { namespaced, release } = context;
    let path = FieldPath::new("metadata");
    let mut errors = vec![];
    let generate = new.str_at(&["generateName"]);
    let problems = names::path_segment_prefix(generate);
    invalid_each(&path.child("generateName"), &Value::from(generate), problems, &mut errors);
    let name = new.str_at(&["name"]);
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name or generateName is required"));
    } else {
        invalid_each(&path.child("name"), &Value::from(name), names::path_segment(name), &mut errors);
    }
    let namespace = new.str_at(&["namespace"]);
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(&path.child("namespace"), "")),
        (true, false) => {
            let value = Value::from(namespace);
            invalid_each(&path.child("namespace"), &value, names::dns1123_label(namespace), &mut errors);
        }
        (false, true) => {}
        (false, false) => errors.push(FieldError::forbidden(&path.child("namespace"), "not allowed on this type")),
    }
    let found = errors.len();
    validate_common(new, &path, release, &mut errors);
    if errors.len() == found {
        // the rules for the new metadata alone have just found nothing
        validate_change(new, old, &path, release, &mut errors);
    } else {
        validate_update(new, old, &path, release, &mut errors);
    }
    errors
}

/// The rules for a change of metadata, in upstream's order. The server has already restored the fields that clients may
/// leave out.
pub fn validate_update(new: &Value, old: &Value, path: &FieldPath, release: Release, errors: &mut Vec<FieldError>) {
    validate_change(new, old, path, release, errors);
    labels(new, &path.child("labels"), errors);
    annotation_errors(new, &path.child("annotations"), errors);
    owner_references(new, &path.child("ownerReferences"), release, errors);
    managed_fields(new, &path.child("managedFields"), release, errors);
}

/// The rules of [`validate_update`] that depend on the old metadata, and the rules for numbers.
fn validate_change(new: &Value, old: &Value, path: &FieldPath, release: Release, errors: &mut Vec<FieldError>) {
    if old.get("deletionTimestamp").is_some() {
        no_new_finalizers(new, old, &path.child("finalizers"), errors);
    }
    if new.str_at(&["resourceVersion"]).is_empty() {
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid(&path.child("resourceVersion"), &Value::from(""), detail));
    }
    let generation = |meta: &Value| meta.int_at(&["generation"]);
    if release >= Release::V1_37 {
        non_negative_generation(new, path, errors);
    }
    if generation(new) < generation(old) {
        let value = Value::Int(generation(new));
        errors.push(FieldError::invalid(&path.child("generation"), &value, "must not be decremented"));
    }
    let texts = ["name", "namespace", "uid"];
    let others = ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for key in texts.into_iter().chain(others) {
        if new.get(key) != old.get(key) {
            let absent = if texts.contains(&key) { Value::from("") } else { Value::Null };
            let value = new.get(key).cloned().unwrap_or(absent);
            errors.push(FieldError::invalid(&path.child(key), &value, "field is immutable"));
        }
    }
}

fn no_new_finalizers(new: &Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let finalizers = |metadata| items(metadata, "finalizers").iter().filter_map(Value::as_str).collect();
    let (new, old): (BTreeSet<&str>, BTreeSet<&str>) = (finalizers(new), finalizers(old));
    let added: Vec<&str> = new.difference(&old).copied().collect();
    if !added.is_empty() {
        let list: Vec<String> = added.into_iter().map(machinery::value::quote).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            list.join(", ")
        );
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn entries<'a>(metadata: &'a Value, key: &str) -> impl Iterator<Item = (&'a Text, &'a Value)> {
    metadata.fields_at(&[key])
}

fn items<'a>(metadata: &'a Value, key: &str) -> &'a [Value] {
    metadata.items_at(&[key])
}

pub(crate) fn invalid_each(path: &FieldPath, value: &Value, messages: Vec<String>, errors: &mut Vec<FieldError>) {
    errors.extend(messages.into_iter().map(|message| FieldError::invalid(path, value, message)));
}

fn labels(metadata: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (key, value) in entries(metadata, "labels") {
        invalid_each(path, &Value::from(key), names::qualified_name(key), errors);
        invalid_each(path, value, names::label_value(value.as_str().unwrap_or_default()), errors);
    }
}

/// Validates the annotations in `metadata`; `path` is that of the annotations.
pub fn annotation_errors(metadata: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in entries(metadata, "annotations") {
        invalid_each(path, &Value::from(key), names::qualified_name(&key.to_lowercase()), errors);
        bytes += key.len() + value.as_str().unwrap_or_default().len();
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_BYTES_MAX));
    }
}

/// The errors of the labels and annotations of metadata.
pub fn validate_texts(metadata: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = vec![];
    labels(metadata, &path.child("labels"), &mut errors);
    annotation_errors(metadata, &path.child("annotations"), &mut errors);
    errors
}

fn owner_references(metadata: &Value, path: &FieldPath, release: Release, errors: &mut Vec<FieldError>) {
    let references = items(metadata, "ownerReferences");
    let mut controller: Option<String> = None;
    let mut shown_bytes = 0;
    for (i, reference) in references.iter().enumerate() {
        match release {
            Release::V1_35 | Release::V1_36 => unnumbered_owner_reference(reference, path, errors),
            _ => owner_reference(reference, &path.index(i), errors),
        }
        if reference.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let name = format!("{}/{}", reference.str_at(&["kind"]), reference.str_at(&["name"]));
        match &controller {
            None => controller = Some(name),
            // each error shows all references, so their total size is bounded
            Some(first) if shown_bytes < PATHS_BYTES_MAX => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                let value = references_text(references);
                shown_bytes += value.len();
                errors.push(FieldError { value, ..FieldError::invalid(path, &Value::Null, detail) });
            }
            Some(_) => {}
        }
    }
}

/// Owner references as messages show them: with their fields in the order of the Go type.
fn references_text(references: &[Value]) -> String {
    const FIELDS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let one = |reference: &Value| {
        let field = |key: &&str| reference.get(key).map(|value| format!("\"{key}\":{}", value.to_json()));
        format!("{{{}}}", FIELDS.iter().filter_map(field).collect::<Vec<_>>().join(","))
    };
    format!("[{}]", references.iter().map(one).collect::<Vec<_>>().join(","))
}

fn owner_reference(reference: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let api_version = reference.str_at(&["apiVersion"]);
    let has_version = group_version(api_version).is_ok_and(|(_, version)| !version.is_empty());
    if !api_version.is_empty() && !has_version {
        let detail = "must be <group>/<version> or <version>";
        errors.push(FieldError::invalid(&path.child("apiVersion"), &Value::from(api_version), detail));
    }
    for key in ["apiVersion", "kind", "name", "uid"] {
        if reference.str_at(&[key]).is_empty() {
            errors.push(FieldError::required(&path.child(key), "must not be empty"));
        }
    }
    banned_owner(reference, path, errors);
}

/// Validates an owner reference as releases before 1.37 do, whose errors do not show its index.
fn unnumbered_owner_reference(reference: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let api_version = reference.str_at(&["apiVersion"]);
    if group_version(api_version).map_or("", |(_, version)| version).is_empty() {
        let value = Value::from(api_version);
        errors.push(FieldError::invalid(&path.child("apiVersion"), &value, "version must not be empty"));
    }
    for key in ["kind", "name", "uid"] {
        if reference.str_at(&[key]).is_empty() {
            errors.push(FieldError::invalid(&path.child(key), &Value::from(""), "must not be empty"));
        }
    }
    banned_owner(reference, path, errors);
}

fn banned_owner(reference: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if reference.str_at(&["apiVersion"]) == "v1" && reference.str_at(&["kind"]) == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid(path, reference, detail));
    }
}

fn finalizers(metadata: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let finalizers = items(metadata, "finalizers");
    for finalizer in finalizers {
        invalid_each(path, finalizer, names::qualified_name(finalizer.as_str().unwrap_or_default()), errors);
    }
    let has = |name: &str| finalizers.iter().any(|f| f.as_str() == Some(name));
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, &Value::Array(finalizers.to_vec()), detail));
    }
}

fn managed_fields(metadata: &Value, path: &FieldPath, release: Release, errors: &mut Vec<FieldError>) {
    for (i, entry) in items(metadata, "managedFields").iter().enumerate() {
        let path = |field: &str| path.index(i).child(field);
        let operation = entry.str_at(&["operation"]);
        if !matches!(operation, "Apply" | "Update") {
            errors.push(unknown_operation(operation, &path("operation"), release));
        }
        let fields_type = entry.str_at(&["fieldsType"]);
        if !matches!(fields_type, "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.push(FieldError::invalid(&path("fieldsType"), &Value::from(fields_type), detail));
        }
        if entry.str_at(&["manager"]).len() > MANAGER_BYTES_MAX {
            errors.push(FieldError::too_long(&path("manager"), MANAGER_BYTES_MAX));
        }
        if entry.str_at(&["subresource"]).len() > SUBRESOURCE_BYTES_MAX {
            errors.push(FieldError::too_long(&path("subresource"), SUBRESOURCE_BYTES_MAX));
        }
    }
}

fn unknown_operation(operation: &str, path: &FieldPath, release: Release) -> FieldError {
    match operation {
        _ if release < Release::V1_37 => {
            FieldError::invalid(path, &Value::from(operation), "must be `Apply` or `Update`")
        }
        "" => FieldError::required(path, "must not be empty"),
        _ => FieldError::not_supported(path, &Value::from(operation), &["Apply", "Update"]),
    }
}

/// The group and version of an `apiVersion`.
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
    use machinery::json;

    /// Each of these errors shows all references; without a bound they took 25 GB.
    #[test]
    fn errors_about_many_controllers_are_bounded() {
        let owner = |i: usize| json!({"apiVersion": "v1", "kind": "A", "name": (format!("a{i}")), "uid": "u", "controller": true});
        let metadata = json!({"ownerReferences": ((0..20_000).map(owner).collect::<Value>())});
        let mut errors = vec![];
        owner_references(&metadata, &FieldPath::new("m"), Release::NEWEST, &mut errors);
        let bytes: usize = errors.iter().map(|error| error.value.len()).sum();
        assert!(!errors.is_empty() && bytes < 2 * PATHS_BYTES_MAX, "{bytes}");
    }

    #[test]
    fn added_finalizers_are_reported_once_and_sorted() {
        let of = |finalizers: &[&str]| json!({"finalizers": (finalizers.iter().map(|name| Value::from(*name)).collect::<Value>())});
        let mut errors = vec![];
        no_new_finalizers(&of(&["c", "a", "b", "a"]), &of(&["b"]), &FieldPath::new("f"), &mut errors);
        assert!(errors[0].detail.ends_with(r#"found new finalizers []string{"a", "c"}"#), "{}", errors[0].detail);
    }
}
