//! Walks over values by their [`TypeSchema`]: validate, compare, merge, collect paths, remove paths.
//!
//! If a value does not fit its type, a walk returns an error or skips the value; none panics.

mod collect;
mod compare;
mod merge;
mod reconcile;
mod remove;
mod validate;

pub(crate) use collect::{collect, with_declared_fields};
pub(crate) use compare::{Changes, compare};
pub(crate) use merge::merge;
pub(crate) use reconcile::reconcile;
pub(crate) use remove::remove;
pub(crate) use validate::{Duplicates, validate, validate_beside, validate_foreign};

use super::fieldpath::PathElement;
use super::types::{ListRelation, ListType, TypeSchema};
use machinery::value::quote;
use machinery::{Text, Value};

/// The error of a value that does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub path: String,
    pub message: String,
}

impl Mismatch {
    fn new(path: &str, message: String) -> Mismatch {
        Mismatch { path: path.to_owned(), message }
    }

    fn text(&self) -> String {
        if self.path.is_empty() { self.message.clone() } else { format!("{}: {}", self.path, self.message) }
    }
}

pub(crate) fn errors_text(errors: &[Mismatch]) -> String {
    match errors {
        [one] => one.text(),
        many => {
            let mut text = "errors:".to_owned();
            for error in many {
                text.push_str("\n  ");
                text.push_str(&error.text());
            }
            text
        }
    }
}

/// The identity of an item of a set or of a list with keys.
fn item_element(types: &TypeSchema, list: &ListType, item: &Value) -> Result<PathElement, String> {
    match &list.kind {
        ListRelation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListRelation::Set => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
            scalar => Ok(PathElement::Value(Box::new(scalar.clone()))),
        },
        ListRelation::Map(keys) => keyed_element(types, list, keys, item),
    }
}

/// Why an item has no identity. Cheaper than [`item_element`] if only that matters.
fn item_error(types: &TypeSchema, list: &ListType, item: &Value) -> Option<String> {
    let identified = match (&list.kind, item) {
        (ListRelation::Set, Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_)) => true,
        (ListRelation::Map(keys), Value::Object(map)) => keys.iter().all(|key| map.contains_key(key)),
        _ => false,
    };
    if identified { None } else { item_element(types, list, item).err() }
}

fn keyed_element(types: &TypeSchema, list: &ListType, keys: &[Text], item: &Value) -> Result<PathElement, String> {
    let map = match item {
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        Value::Object(map) => map,
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut found: Vec<(Text, Value)> = Vec::with_capacity(keys.len());
    for key in keys {
        if let Some(value) = map.get(key) {
            found.push((key.clone(), value.clone()));
        } else if !types.has_map_items(list) {
            let why = "associative list may not have non-map types";
            return Err(format!("couldn't find default value for {key}: {why}"));
        } else if let Some(default) = types.key_default(list, key) {
            found.push((key.clone(), default.clone()));
        }
    }
    if found.is_empty() {
        let keys: Vec<String> = keys.iter().map(|k| quote(k)).collect();
        let keys = keys.join(" ");
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{keys}] (and doesn't have default values for any key fields)"
        ));
    }
    found.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
    Ok(PathElement::Key(found.into_boxed_slice()))
}
