//! Checks the rules that tags of the Go types declare. kube-apiserver applies them only to values that are new or have
//! changed.

use std::collections::HashSet;

use machinery::field::FieldError;
use machinery::types::{Container, GoBase, GoField, published_json};
use machinery::{Map, Value};

use super::Ruled;
use super::table::RuledField;
use super::walk::{Walk, field, is_pointer, is_same, same_item};
use super::words::Declared;
use schema::at::At;

impl Walk {
    /// Checks the fields of a struct.
    pub fn declared(self, at: At, of: &'static Ruled) {
        presence(at, of);
        let name = at.field("metadata.name");
        let was = name.old_text();
        if let Some(rules) = of.object_name.as_deref().map(|rules| &rules.declared)
            && (rules.is_required || !name.as_text().is_empty())
            && (!at.is_update() || name.as_text() != was)
        {
            rules.formats.iter().for_each(|format| format(name.as_text(), name));
        }
        for ruled in &of.fields {
            let place = field(&at, ruled.go.name);
            let given = Some(place.value).filter(|_| place.is_given());
            let is_checked = ruled.rules.is_some() || matches!(ruled.go.go_type.base, GoBase::Struct(_));
            if is_checked && (!at.is_update() || !is_same(of, ruled.go, given, place.old)) {
                self.changed(place, ruled);
            }
        }
    }

    /// Checks a field that is new or has changed.
    fn changed(self, at: At, field: &'static RuledField) {
        let (go, rules, found) = (field.go, field.rules.as_deref().map(|rules| &rules.declared), at.count());
        if let Some(rules) = rules {
            self.short_circuit(at, go, rules);
        }
        if at.count() > found {
            return;
        }
        let nothing = Value::object();
        // the fields of a struct that is not a pointer are checked even if the struct is absent
        let is_plain_struct =
            matches!(go.go_type.base, GoBase::Struct(_)) && go.go_type.container == Container::None && !is_pointer(go);
        let at = if at.is_given() || !is_plain_struct { at } else { at.with_value(&nothing) };
        if !at.is_given() || !is_plain_struct && !is_pointer(go) && is_empty(at.value) {
            return;
        }
        if let Some(rules) = rules {
            scalar(at, at.old.filter(|_| self.is_update), rules);
            if let Some(keys) = &rules.unique {
                repeated(at, keys, go);
            }
            let is_new = |key: &&machinery::Text| at.old.is_none_or(|before| before.get(key).is_none());
            let keys = at.value.as_object().into_iter().flat_map(Map::keys);
            keys.filter(is_new).for_each(|key| rules.keys.iter().for_each(|format| format(key, at)));
        }
        self.inner(None, at, field);
    }

    /// Checks the rules after which the validation of a field ends if they have found errors.
    fn short_circuit(self, at: At, go: &GoField, rules: &Declared) {
        let given = Some(at.value).filter(|_| at.is_given());
        let is_set = |value: Option<&Value>| value.is_some_and(|value| is_pointer(go) || !is_empty(value));
        let (is_given, was_given) = (is_set(given), is_set(at.old));
        let fixed = |is_broken: bool, why: &str| {
            at.shown_verbatim("null").invalid_if(is_broken && self.is_update, why);
        };
        fixed(rules.is_immutable, "field is immutable");
        fixed(rules.no_modify && is_given && was_given, "field cannot be modified once set");
        fixed(rules.no_set && is_given && !was_given, "field cannot be set once created");
        fixed(rules.no_unset && was_given && !is_given, "field cannot be cleared once set");
        let is_zero = |value: &Value| is_empty(value) || *value == Value::Int(0);
        at.required_if(rules.is_required && given.is_none_or(|given| !is_pointer(go) && is_zero(given)), "");
        if let Some(most) = rules.items_max {
            at.max_items(most);
        }
        if rules.no_items && self.is_update {
            fixed_items(at, rules.unique.as_deref().unwrap_or_default());
        }
    }
}

/// Checks which fields of a struct may or must be set.
fn presence(at: At, of: &Ruled) {
    let mut rules = of.fields.iter().filter_map(|field| Some((field.go.name, &field.rules.as_ref()?.declared)));
    for (name, rules) in rules.clone() {
        let Some((other, wanted, is_required)) = rules.condition else { continue };
        match (at.text(other) == wanted, at.has(name)) {
            (false, true) => at.field(name).forbidden(""),
            (true, false) if is_required => at.field(name).required(""),
            _ => {}
        }
    }
    rules.find_map(|(_, rules)| rules.union.as_ref()).into_iter().for_each(|names| union(at, names));
}

/// Reports items of a list that an update must not add, and then those that it must not remove.
fn fixed_items(at: At, keys: &[&str]) {
    let before = at.old.unwrap_or(&Value::Null);
    for item in at.items().filter(|item| same_item(before, item.value, keys).is_none()) {
        item.forbidden("item may not be added");
    }
    let before = before.as_array().unwrap_or_default().iter();
    before
        .filter(|item| same_item(at.value, item, keys).is_none())
        .for_each(|_| at.forbidden("item may not be removed"));
}

fn scalar(at: At, before: Option<&Value>, rules: &Declared) {
    if let Some(number) = at.value.as_int() {
        for (bound, is_met, word) in [
            (rules.min, number >= rules.min.unwrap_or(number), "greater"),
            (rules.max, number <= rules.max.unwrap_or(number), "less"),
        ] {
            if let Some(bound) = bound.filter(|_| !is_met) {
                at.invalid(format!("must be {word} than or equal to {bound}"));
            }
        }
        let least = before.and_then(Value::as_int).filter(|before| rules.is_monotonic && number < *before);
        if let Some(least) = least {
            at.invalid(format!("may not be decreased from {least}"));
        }
    }
    let Some(text) = at.value.as_str() else { return };
    rules.formats.iter().for_each(|format| format(text, at));
    if let Some(most) = rules.length_max.filter(|most| text.chars().count() > *most) {
        let detail = format!("may not be more than {most} characters");
        at.push(FieldError { detail, ..FieldError::too_long(&at.path(), most) });
    }
    rules.bytes_max.into_iter().for_each(|most| at.max_bytes(most));
    if !rules.values.is_empty() {
        at.one_of(&rules.values);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Reports items of a list that repeat an earlier item, or its keys if there are any.
fn repeated(at: At, keys: &[&str], go: &GoField) {
    let mut seen = HashSet::new();
    for item in at.items() {
        let of = |key: &&str| item.field(key).value.to_json();
        let key =
            if keys.is_empty() { item.value.to_json() } else { keys.iter().map(of).collect::<Vec<_>>().join(",") };
        if !seen.insert(key) {
            let error = FieldError::duplicate(&item.path(), item.value);
            item.push(match go.go_type.base {
                GoBase::Struct(name) => FieldError { value: published_json(item.value, name), ..error },
                _ => error,
            });
        }
    }
}

fn union(at: At, names: &[&str]) {
    let is_set = |field: &Value| !field.is_null() && field.as_array().is_none_or(|items| !items.is_empty());
    let set = |object: &Value| -> Vec<bool> { names.iter().map(|name| object.get(name).is_some_and(is_set)).collect() };
    let given = set(at.value);
    if at.old.is_some_and(|old| set(old) == given) {
        return;
    }
    let quoted = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let found: Vec<&str> = names.iter().zip(&given).filter_map(|(name, is_set)| is_set.then_some(*name)).collect();
    match found[..] {
        [] => at.shown_as_text("").invalid(format!("must specify one of: {quoted}")),
        [_] => {}
        _ => {
            at.shown_as_text(&format!("{{{}}}", found.join(", ")))
                .invalid(format!("must specify exactly one of: {quoted}"));
        }
    }
}
