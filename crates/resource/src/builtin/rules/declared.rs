//! Checks the rules that tags of the Go types declare. kube-apiserver applies them only to values that are new or have
//! changed.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::types::{Container, GoBase, GoField, published_json};
use machinery::{Map, Value};

use super::Ruled;
use super::table::RuledField;
use super::walk::{Walk, is_pointer, is_same, same_item};
use super::words::Declared;

impl Walk {
    /// Checks the fields of a struct.
    pub fn declared(&mut self, value: &Value, old: Option<&Value>, of: &'static Ruled, path: &FieldPath) {
        self.members(value, old, of, path);
        let name = [value, old.unwrap_or(&Value::Null)].map(|object| object.str_at(&["metadata", "name"]));
        if let Some(rules) = of.object_name.as_deref().map(|rules| &rules.declared)
            && (rules.is_required || !name[0].is_empty())
            && (old.is_none() || name[0] != name[1])
        {
            let path = path.child("metadata").child("name");
            rules.formats.iter().for_each(|format| self.errors.extend(format(name[0], &path)));
        }
        for field in &of.fields {
            let given = value.get(field.go.name).filter(|value| !value.is_null());
            let before = old.and_then(|old| old.get(field.go.name)).filter(|value| !value.is_null());
            let is_checked = field.rules.is_some() || matches!(field.go.go_type.base, GoBase::Struct(_));
            if is_checked && (old.is_none() || !is_same(of, field.go, given, before)) {
                self.changed(given, before, field, &path.child(field.go.name));
            }
        }
    }

    /// Checks which fields of a struct may or must be set.
    fn members(&mut self, value: &Value, old: Option<&Value>, of: &Ruled, path: &FieldPath) {
        let mut rules = of.fields.iter().filter_map(|field| Some((field.go.name, &field.rules.as_ref()?.declared)));
        for (name, rules) in rules.clone() {
            let Some((field, wanted, is_required)) = rules.condition else { continue };
            let is_set = value.get(name).is_some_and(|value| !value.is_null());
            match value.str_at(&[field]) == wanted {
                false if is_set => self.errors.push(FieldError::forbidden(&path.child(name), "")),
                true if is_required && !is_set => self.errors.push(FieldError::required(&path.child(name), "")),
                _ => {}
            }
        }
        let union = rules.find_map(|(_, rules)| rules.union.as_ref());
        self.errors.extend(union.and_then(|names| union_error(value, old, names, path)));
    }

    /// Checks a field that is new or has changed.
    fn changed(&mut self, given: Option<&Value>, before: Option<&Value>, field: &'static RuledField, path: &FieldPath) {
        let (go, rules, found) = (field.go, field.rules.as_deref().map(|rules| &rules.declared), self.errors.len());
        if let Some(rules) = rules {
            self.short(given, before, go, rules, path);
        }
        if self.errors.len() > found {
            return;
        }
        let nothing = Value::object();
        // the fields of a struct that is not a pointer are checked even if the struct is absent
        let is_plain_struct =
            matches!(go.go_type.base, GoBase::Struct(_)) && go.go_type.container == Container::None && !is_pointer(go);
        let given = given.or_else(|| is_plain_struct.then_some(&nothing));
        let Some(given) = given.filter(|given| is_plain_struct || is_pointer(go) || !is_empty(given)) else {
            return;
        };
        if let Some(rules) = rules {
            scalar(given, before.filter(|_| self.is_update), rules, path, &mut self.errors);
            if let Some(keys) = &rules.unique {
                repeated(given, keys, go, path, &mut self.errors);
            }
            let is_new = |key: &str| before.is_none_or(|before| before.get(key).is_none());
            let map = given.as_object().into_iter().flat_map(Map::iter);
            let keys = map.filter_map(|(key, _)| Some((rules.keys?, key))).filter(|(_, key)| is_new(key));
            keys.for_each(|(format, key)| self.errors.extend(format(key, path)));
        }
        self.inner(None, given, before, field, path);
    }

    /// Checks the rules after which the validation of a field ends if they have found errors.
    fn short(
        &mut self,
        given: Option<&Value>,
        before: Option<&Value>,
        go: &GoField,
        rules: &Declared,
        path: &FieldPath,
    ) {
        let is_set = |value: Option<&Value>| value.is_some_and(|value| is_pointer(go) || !is_empty(value));
        let (is_given, was_given) = (is_set(given), is_set(before));
        let mut fixed = |is_broken: bool, why: &str| {
            if is_broken && self.is_update {
                self.errors.push(FieldError::invalid(path, &Value::Null, why));
            }
        };
        fixed(rules.is_immutable, "field is immutable");
        fixed(rules.no_modify && is_given && was_given, "field cannot be modified once set");
        fixed(rules.no_set && is_given && !was_given, "field cannot be set once created");
        fixed(rules.no_unset && was_given && !is_given, "field cannot be cleared once set");
        let is_zero = |value: &Value| is_empty(value) || *value == Value::Int(0);
        if rules.is_required && given.is_none_or(|given| !is_pointer(go) && is_zero(given)) {
            self.errors.push(FieldError::required(path, ""));
        }
        let count = given.and_then(Value::as_array).map_or(0, <[Value]>::len);
        if let Some(most) = rules.items_max.filter(|most| count > *most) {
            self.errors.push(FieldError::too_many(path, count, most));
        }
        if rules.no_items && self.is_update {
            self.fixed_items([given, before], rules.unique.as_deref().unwrap_or_default(), path);
        }
    }

    /// Reports items of a list that an update must not add, and then those that it must not remove.
    fn fixed_items(&mut self, lists: [Option<&Value>; 2], keys: &[&str], path: &FieldPath) {
        let nothing = Value::Array(vec![]);
        let [given, before] = lists.map(|list| list.unwrap_or(&nothing));
        for (i, item) in given.as_array().unwrap_or_default().iter().enumerate() {
            if same_item(before, item, keys).is_none() {
                self.errors.push(FieldError::forbidden(&path.index(i), "item may not be added"));
            }
        }
        for item in before.as_array().unwrap_or_default() {
            if same_item(given, item, keys).is_none() {
                self.errors.push(FieldError::forbidden(path, "item may not be removed"));
            }
        }
    }
}

fn scalar(given: &Value, before: Option<&Value>, rules: &Declared, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(number) = given.as_int() {
        for (bound, is_met, word) in [
            (rules.min, number >= rules.min.unwrap_or(number), "greater"),
            (rules.max, number <= rules.max.unwrap_or(number), "less"),
        ] {
            if let Some(bound) = bound.filter(|_| !is_met) {
                errors.push(FieldError::invalid(path, given, format!("must be {word} than or equal to {bound}")));
            }
        }
        let least = before.and_then(Value::as_int).filter(|before| rules.is_monotonic && number < *before);
        if let Some(least) = least {
            errors.push(FieldError::invalid(path, given, format!("may not be decreased from {least}")));
        }
    }
    let Some(text) = given.as_str() else { return };
    rules.formats.iter().for_each(|format| errors.extend(format(text, path)));
    if let Some(most) = rules.length_max.filter(|most| text.chars().count() > *most) {
        let mut error = FieldError::too_long(path, most);
        error.detail = format!("may not be more than {most} characters");
        errors.push(error);
    }
    if let Some(most) = rules.bytes_max.filter(|most| text.len() > *most) {
        errors.push(FieldError::too_long(path, most));
    }
    if !rules.values.is_empty() && !rules.values.contains(&text) {
        errors.push(FieldError::not_supported(path, given, &rules.values));
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
fn repeated(list: &Value, keys: &[&str], go: &GoField, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for (i, item) in list.as_array().unwrap_or_default().iter().enumerate() {
        let key = match keys {
            [] => item.to_json(),
            keys => {
                keys.iter().map(|key| item.get(key).unwrap_or(&Value::Null).to_json()).collect::<Vec<_>>().join(",")
            }
        };
        if !seen.insert(key) {
            let error = FieldError::duplicate(&path.index(i), item);
            errors.push(match go.go_type.base {
                GoBase::Struct(name) => FieldError { value: published_json(item, name), ..error },
                _ => error,
            });
        }
    }
}

fn union_error(value: &Value, old: Option<&Value>, names: &[&str], path: &FieldPath) -> Option<FieldError> {
    let is_set = |field: &Value| !field.is_null() && field.as_array().is_none_or(|items| !items.is_empty());
    let set = |object: &Value| -> Vec<bool> { names.iter().map(|name| object.get(name).is_some_and(is_set)).collect() };
    let given = set(value);
    if old.is_some_and(|old| set(old) == given) {
        return None;
    }
    let quoted = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let found: Vec<&str> = names.iter().zip(&given).filter_map(|(name, is_set)| is_set.then_some(*name)).collect();
    match found[..] {
        [] => Some(FieldError::invalid(path, &Value::from(""), format!("must specify one of: {quoted}"))),
        [_] => None,
        _ => {
            let shown = Value::from(format!("{{{}}}", found.join(", ")));
            Some(FieldError::invalid(path, &shown, format!("must specify exactly one of: {quoted}")))
        }
    }
}
