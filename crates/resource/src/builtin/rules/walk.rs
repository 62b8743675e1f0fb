//! The walk over an object, in the order of its Go structs.

use machinery::field::{FieldError, FieldPath};
use machinery::types::{GoField, Printed};
use machinery::{Map, Value};

use super::Ruled;
use super::table::RuledField;

/// The errors of an object, which replaces `old`, if there is one.
pub fn errors(
    pass: Pass,
    object: &Value,
    old: Option<&Value>,
    of: Option<&'static Ruled>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut walk = Walk { pass, is_update: old.is_some(), errors: vec![] };
    if let Some(of) = of.filter(|of| of.is_enforced || pass != Pass::Declared) {
        walk.structure(object, old, of, path, &[]);
    }
    walk.errors
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// The checks that kube-apiserver implements as functions. The status has an endpoint of its own.
    Written { of_status: bool },
    /// The checks that tags of the types declare.
    Declared,
}

/// A walk over an object.
pub struct Walk {
    pub pass: Pass,
    pub is_update: bool,
    pub errors: Vec<FieldError>,
}

impl Walk {
    /// Checks a struct, except its `hidden` fields.
    pub fn structure(
        &mut self,
        value: &Value,
        old: Option<&Value>,
        of: &'static Ruled,
        path: &FieldPath,
        hidden: &[&str],
    ) {
        match self.pass {
            Pass::Declared => self.declared(value, old, of, path),
            Pass::Written { of_status } => {
                let Some(object) = value.as_object() else { return };
                let is_root = path.as_str().is_empty();
                let fields = of.fields.iter().filter(|field| !is_root || (field.go.name == "status") == of_status);
                for field in fields.filter(|field| !hidden.contains(&field.go.name)) {
                    self.written(object, old, (of, field), path);
                }
                if !is_root {
                    self.empty_union(object, of, path);
                }
            }
        }
    }

    /// Checks the structs in a field. `outer` is the object that has the field, some of whose fields may be hidden.
    pub fn inner(
        &mut self,
        outer: Option<&Map>,
        given: &Value,
        before: Option<&Value>,
        field: &'static RuledField,
        path: &FieldPath,
    ) {
        let Some(of) = field.inner() else { return };
        let rules = field.rules.as_deref();
        let hidden = |item: &Value| -> Option<&[&str]> {
            let (is_hidden, names) = rules?.hides.as_ref()?;
            is_hidden(outer?, item).then_some(&names[..])
        };
        match given {
            Value::Array(items) => {
                let keys = rules.and_then(|rules| rules.declared.unique.as_deref()).unwrap_or_default();
                for (i, item) in items.iter().enumerate() {
                    let old = before.filter(|_| self.pass == Pass::Declared).and_then(|old| same_item(old, item, keys));
                    if old.is_none_or(|old| old != item) {
                        self.structure(item, old, of, &path.index(i), hidden(item).unwrap_or_default());
                    }
                }
            }
            Value::Object(map) if field.is_map() => {
                for (key, item) in Map::iter(map) {
                    let old = before.filter(|_| self.pass == Pass::Declared).and_then(|before| before.get(key));
                    if old.is_none_or(|old| old != item) {
                        self.structure(item, old, of, &path.key(key), hidden(item).unwrap_or_default());
                    }
                }
            }
            value => self.structure(value, before, of, path, hidden(value).unwrap_or_default()),
        }
    }
}

/// The item of a list with the same keys.
pub fn same_item<'a>(list: &'a Value, item: &Value, keys: &[&str]) -> Option<&'a Value> {
    let same = |other: &&Value| !keys.is_empty() && keys.iter().all(|key| other.get(key) == item.get(key));
    list.as_array().unwrap_or_default().iter().find(same)
}

pub fn is_pointer(field: &GoField) -> bool {
    matches!(field.printed, Printed::Set | Printed::SetOrNull)
}

/// Whether two values of a field are equal, where empty lists and maps equal absent ones.
pub fn is_same(of: &Ruled, field: &GoField, given: Option<&Value>, before: Option<&Value>) -> bool {
    let shape = || schema::shape::named(of.name).field(field.name);
    given == before || shape().is_some_and(|shape| schema::shape::same(given, before, shape))
}
