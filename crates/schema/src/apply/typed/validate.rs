//! Checks whether a value fits its type.

use super::super::fieldpath::PathElement;
use super::super::types::{Atom, ListRelation, ListType, MapType, Part, Scalar, TypeId, TypeSchema};
use super::{Mismatch, item_element, item_error};
use cel::Foreign;
use machinery::patch::gotext;
use machinery::value::PATHS_BYTES_MAX;
use machinery::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Whether a set may contain an item twice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicates {
    Refused,
    Allowed,
}

/// Reports the first error of each independent part of the value, in the order of the value.
pub(crate) fn validate(types: &TypeSchema, value: &Value, duplicates: Duplicates) -> Result<(), Vec<Mismatch>> {
    validate_foreign(types, value, &BTreeMap::new(), duplicates)
}

/// As [`validate`], for an object beside one that fits the type. Fields that are the same in both are not checked again.
pub(crate) fn validate_beside(
    types: &TypeSchema,
    value: &Value,
    valid: &Value,
    duplicates: Duplicates,
) -> Result<(), Vec<Mismatch>> {
    let foreign = BTreeMap::new();
    let walk = ValidationWalk { beside: valid.as_object(), ..ValidationWalk::new(types, &foreign, duplicates) };
    walk.run(value)
}

/// As [`validate`], for a value with parts that are not JSON, given by their places. The value has nulls in these
/// places.
pub(crate) fn validate_foreign(
    types: &TypeSchema,
    value: &Value,
    foreign: &BTreeMap<String, Foreign>,
    duplicates: Duplicates,
) -> Result<(), Vec<Mismatch>> {
    ValidationWalk::new(types, foreign, duplicates).run(value)
}

/// The position of the walk, as a chain on the stack. It becomes text only for errors.
enum TypedPath<'a> {
    Root,
    TypeField(&'a TypedPath<'a>, &'a str),
    Item(&'a TypedPath<'a>, &'a ListType, usize, &'a Value),
}

impl TypedPath<'_> {
    /// The path, with the indexes of list items.
    fn place(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::TypeField(parent, name) => format!("{}.{name}", parent.place()),
            Self::Item(parent, _, index, _) => format!("{}[{index}]", parent.place()),
        }
    }

    fn write(&self, types: &TypeSchema, out: &mut String) {
        match self {
            Self::Root => {}
            Self::TypeField(parent, name) => {
                parent.write(types, out);
                out.push('.');
                out.push_str(name);
            }
            Self::Item(parent, list, index, item) => {
                parent.write(types, out);
                let element = item_element(types, list, item).unwrap_or(PathElement::Index(*index as i64));
                let _ = write!(out, "{element}");
            }
        }
    }
}

struct ValidationWalk<'a> {
    types: &'a TypeSchema,
    duplicates: Duplicates,
    foreign: &'a BTreeMap<String, Foreign>,
    /// The fields of the root that need no check if they have these values.
    beside: Option<&'a Map>,
    errors: Vec<Mismatch>,
    /// The total size of the errors in bytes. Errors beyond [`PATHS_BYTES_MAX`] are dropped.
    error_bytes: usize,
}

impl<'a> ValidationWalk<'a> {
    fn new(types: &'a TypeSchema, foreign: &'a BTreeMap<String, Foreign>, duplicates: Duplicates) -> Self {
        ValidationWalk { types, duplicates, foreign, beside: None, errors: vec![], error_bytes: 0 }
    }

    fn run(mut self, value: &Value) -> Result<(), Vec<Mismatch>> {
        self.node(self.types.root(), value, &TypedPath::Root);
        if self.errors.is_empty() { Ok(()) } else { Err(self.errors) }
    }

    fn error(&mut self, path: &TypedPath<'_>, message: String) {
        if self.error_bytes > PATHS_BYTES_MAX {
            return;
        }
        let mut text = String::new();
        path.write(self.types, &mut text);
        self.error_bytes += text.len() + message.len();
        self.errors.push(Mismatch::new(&text, message));
    }

    fn node(&mut self, id: TypeId, value: &Value, path: &TypedPath<'_>) {
        let types = self.types;
        if value.is_null()
            && !self.foreign.is_empty()
            && let Some(foreign) = self.foreign.get(&path.place())
        {
            return self.foreign(types.atom(id), foreign, path);
        }
        match types.atom(id).part_of(value) {
            Some(Part::Map(map)) => match value {
                // any object fits the type of `fieldsV1`
                Value::Null | Value::Encoded(_) => {}
                Value::Object(fields) => self.map(map, fields, path),
                other => self.error(path, format!("expected map, got &{{{}}}", gotext::plain(other))),
            },
            Some(Part::Scalar(scalar)) => self.scalar(scalar, value, path),
            Some(Part::List(list)) => match value {
                Value::Null => {}
                Value::Array(items) => self.list(list, items, path),
                other => self.error(path, format!("expected list, got &{{{}}}", gotext::plain(other))),
            },
            None => self.error(path, "schema error: invalid atom: inlined".to_owned()),
        }
    }

    /// Reports a part that is not JSON, which no type allows.
    fn foreign(&mut self, atom: &Atom, value: &Foreign, path: &TypedPath<'_>) {
        let Foreign { plain, source, of } = value;
        let message = match atom.part_of(&Value::Null) {
            Some(Part::Map(_)) => format!("expected map, got &{{{plain}}}"),
            Some(Part::Scalar(Scalar::Numeric)) => format!("expected numeric (int or float), got {of}"),
            Some(Part::Scalar(Scalar::String)) => {
                format!("expected string, got &value.valueUnstructured{{Value:{source}}}")
            }
            Some(Part::Scalar(Scalar::Boolean)) => format!("expected boolean, got &{{{plain}}}"),
            Some(Part::Scalar(Scalar::Untyped)) => format!("expected any scalar, got &{{{plain}}}"),
            Some(Part::List(_)) => format!("expected list, got &{{{plain}}}"),
            None => "schema error: invalid atom: inlined".to_owned(),
        };
        self.error(path, message);
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value, path: &TypedPath<'_>) {
        let fits = match value {
            Value::Null => true,
            Value::Int(_) | Value::Float(_) => matches!(scalar, Scalar::Numeric | Scalar::Untyped),
            Value::String(_) => matches!(scalar, Scalar::String | Scalar::Untyped),
            Value::Bool(_) => matches!(scalar, Scalar::Boolean | Scalar::Untyped),
            Value::Array(_) | Value::Object(_) | Value::Encoded(_) => false,
        };
        if fits {
            return;
        }
        let message = match scalar {
            Scalar::Numeric => format!("expected numeric (int or float), got {}", gotext::type_of(value)),
            Scalar::String => {
                format!("expected string, got &value.valueUnstructured{{Value:{}}}", gotext::source(value))
            }
            Scalar::Boolean => format!("expected boolean, got &{{{}}}", gotext::plain(value)),
            Scalar::Untyped => format!("expected any scalar, got &{{{}}}", gotext::plain(value)),
        };
        self.error(path, message);
    }

    fn map(&mut self, map: &MapType, fields: &Map, path: &TypedPath<'_>) {
        let beside = self.beside.take();
        for (name, value) in fields.iter() {
            let is_skipped = self.duplicates == Duplicates::Allowed && map.skips(name);
            if is_skipped || beside.is_some_and(|beside| beside.get(name) == Some(value)) {
                continue;
            }
            let path = TypedPath::TypeField(path, name);
            match map.child(name) {
                Some(child) => self.node(child, value, &path),
                None => return self.error(&path, "field not declared in schema".to_owned()),
            }
        }
    }

    fn list(&mut self, list: &ListType, items: &[Value], path: &TypedPath<'_>) {
        let mut seen = BTreeSet::new();
        let types = self.types;
        for (i, item) in items.iter().enumerate() {
            match (&list.kind, self.duplicates) {
                (ListRelation::Atomic, _) => {}
                (_, Duplicates::Allowed) => {
                    if let Some(why) = item_error(types, list, item) {
                        return self.error(path, format!("element {i}: {why}"));
                    }
                }
                (_, Duplicates::Refused) => match item_element(types, list, item) {
                    Err(why) => return self.error(path, format!("element {i}: {why}")),
                    Ok(element) if seen.contains(&element) => {
                        self.error(path, format!("duplicate entries for key {element}"));
                    }
                    Ok(element) => drop(seen.insert(element)),
                },
            }
            self.node(list.element, item, &TypedPath::Item(path, list, i, item));
        }
    }
}
