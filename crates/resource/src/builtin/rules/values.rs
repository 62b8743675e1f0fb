//! Defaults, and the fields of features whose gates are off.

use machinery::types::Printed;
use machinery::{Map, Value};

use super::Ruled;
use super::table::RuledField;
use super::walk::is_pointer;
use super::words::Default;

pub fn drop_gated(value: &mut Value, old: Option<&Value>, of: &'static Ruled, is_on: &dyn Fn(&str) -> bool) {
    let Some(object) = value.as_object_mut() else { return };
    for field in &of.fields {
        let name = field.go.name;
        let old = old.and_then(|old| old.get(name)).filter(|value| !value.is_null());
        if old.is_none() && is_off(field, is_on) {
            match field.go.printed {
                // shown as null
                Printed::SetOrNull if object.get(name).is_some() => drop(object.insert(name, Value::Null)),
                _ => drop(object.remove(name)),
            }
        }
        if let Some(value) = object.get_mut(name).filter(|_| !field.is_map())
            && let Some(inner) = field.inner()
        {
            let before = |i: usize| old.and_then(Value::as_array).and_then(|old| old.get(i));
            match value {
                Value::Array(items) => {
                    items.iter_mut().enumerate().for_each(|(i, item)| drop_gated(item, before(i), inner, is_on));
                }
                value => drop_gated(value, old, inner, is_on),
            }
        }
    }
}

pub fn set_defaults(value: &mut Value, of: &'static Ruled, is_on: &dyn Fn(&str) -> bool) {
    let Some(object) = value.as_object_mut() else { return };
    for field in &of.fields {
        let default = field.rules.as_ref().and_then(|rules| rules.default.as_ref());
        if let Some(default) = default.filter(|_| !is_off(field, is_on))
            && is_unset(object.get(field.go.name), field)
            && default.counts(object)
        {
            object.insert(field.go.name, default.value());
        }
        if let Some(value) = object.get_mut(field.go.name)
            && let Some(inner) = field.inner()
        {
            match (field.is_map(), value) {
                (_, Value::Array(items)) => items.iter_mut().for_each(|item| set_defaults(item, inner, is_on)),
                (true, Value::Object(map)) => map.iter_mut().for_each(|(_, item)| set_defaults(item, inner, is_on)),
                (_, value) => set_defaults(value, inner, is_on),
            }
        }
    }
}

impl Default {
    fn counts(&self, object: &Map) -> bool {
        let given = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        self.condition.as_ref().is_none_or(|(name, values)| values.contains(&given(name)))
    }

    fn value(&self) -> Value {
        self.value.clone().unwrap_or_else(|| Value::from(base::clock::now_rfc3339()))
    }
}

/// Whether a field is that of a feature whose gate is not on.
fn is_off(field: &RuledField, is_on: &dyn Fn(&str) -> bool) -> bool {
    field.rules.as_ref().and_then(|rules| rules.gate).is_some_and(|gate| !is_on(gate))
}

/// Whether a field is not set: a pointer if it is absent, and any other field if it is empty.
fn is_unset(value: Option<&Value>, field: &RuledField) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => !is_pointer(field.go) && text.is_empty(),
        Some(Value::Int(0)) => !is_pointer(field.go),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}
