//! Checks the rules that kube-apiserver implements as functions, which it calls for all fields at each write.

use machinery::field::{FieldError, FieldPath};
use machinery::types::{Container, GoBase, GoField, Printed};
use machinery::{Map, Value};

use super::Ruled;
use super::table::RuledField;
use super::walk::{Walk, is_pointer, is_same};
use super::words::{Checked, Rules, Union};
use crate::builtin::checks::named;

impl Walk {
    /// Checks a field and everything below it.
    pub fn written(
        &mut self,
        object: &Map,
        old: Option<&Value>,
        (of, field): (&'static Ruled, &'static RuledField),
        parent: &FieldPath,
    ) {
        let go = field.go;
        let value = object.get(go.name).filter(|value| !value.is_null());
        if field.rules.is_none() && (value.is_none() || field.inner().is_none()) {
            return;
        }
        let (old, path) =
            (old.and_then(|old| old.get(go.name)).filter(|value| !value.is_null()), parent.child(go.name));
        let mut is_below_checked = true;
        if let Some(rules) = field.rules.as_deref() {
            if let Some(union) = rules.union.filter(|union| !rules.is_beside && is_superfluous(object, go.name, union))
            {
                let why = format!("may not specify more than 1 {} type", union.what);
                let shown = rules.called.map_or(path, |name| parent.child(name));
                return self.errors.push(FieldError::forbidden(&shown, why));
            }
            let is_skipped = self.is_update && rules.is_on_create;
            if !is_skipped {
                self.value(value, rules, go, &path);
            }
            if self.is_update && rules.is_immutable && !is_same(of, go, value, old) {
                self.errors.push(immutable(value, rules, go, &path));
            }
            is_below_checked = !rules.is_unchecked && !is_skipped;
        }
        if let Some(value) = value.filter(|_| is_below_checked) {
            self.inner(Some(object), value, old, field, &path);
        }
    }

    /// Reports a union in which no field is set.
    pub fn empty_union(&mut self, object: &Map, of: &Ruled, path: &FieldPath) {
        let union = of.union().filter(|union| !union.names.iter().any(|name| is_set(object, name)));
        self.errors
            .extend(union.map(|union| FieldError::required(path, format!("must specify a {} type", union.what))));
    }

    fn value(&mut self, value: Option<&Value>, rules: &Rules, go: &GoField, path: &FieldPath) {
        let is_empty = match value {
            None => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Int(0)) => !is_pointer(go),
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            Some(_) => false,
        };
        let is_missing = is_empty && rules.required.is_some();
        if let Some(detail) = rules.required.filter(|_| is_missing) {
            self.errors.push(FieldError::required(path, detail));
        }
        let number = value.and_then(Value::as_int).or((go.printed == Printed::Always).then_some(0));
        if let (Some(range), Some(number), false) = (&rules.range, number, is_missing)
            && !(range.min..=range.max).contains(&number)
        {
            self.errors.push(FieldError::invalid(path, &Value::Int(number), &range.detail));
        }
        if let Some(text) = value.and_then(Value::as_str)
            && !rules.values.is_empty()
            && !rules.values.contains(&text)
            && !(text.is_empty() && (rules.required.is_some() || go.printed == Printed::NonEmpty))
        {
            let (error, given) =
                (FieldError::not_supported(path, &Value::from(text), &rules.values), Value::from(text));
            let is_named = go.go_type.container == Container::None && go.go_type.alias.is_some_and(|of| of != "string");
            self.errors.push(if is_named { named(error, &given) } else { error });
        }
        for (check, checked) in &rules.checks {
            let is_checked = match checked {
                Checked::NonEmpty => !is_empty,
                Checked::Given => value.is_some(),
                Checked::All => true,
            };
            if is_checked {
                check(value.unwrap_or(&Value::Null), path, &mut self.errors);
            }
        }
    }
}

impl Ruled {
    /// The union of the fields.
    pub fn union(&self) -> Option<&'static Union> {
        self.fields.iter().find_map(|field| field.rules.as_ref()?.union)
    }
}

/// The error of a changed immutable field.
fn immutable(value: Option<&Value>, rules: &Rules, go: &GoField, path: &FieldPath) -> FieldError {
    let (is_single, is_pointer) = (go.go_type.container == Container::None, is_pointer(go));
    let shown = match value {
        _ if rules.is_unshown => Value::Null,
        Some(value) => value.clone(),
        None if is_single && go.go_type.base == GoBase::Text && !is_pointer => Value::from(""),
        None => Value::Null,
    };
    let mut error = FieldError::invalid(path, &shown, "field is immutable");
    if let (true, GoBase::Struct("meta.v1.LabelSelector"), Value::Object(_)) = (is_single, go.go_type.base, &shown) {
        error.value = machinery::types::published_json(&shown, "meta.v1.LabelSelector");
    }
    error
}

fn is_set(object: &Map, name: &str) -> bool {
    object.get(name).is_some_and(|value| !value.is_null())
}

/// Whether a field of a union is set although another field before it is set, too.
fn is_superfluous(object: &Map, name: &str, union: &Union) -> bool {
    let first = union.names.iter().find(|name| is_set(object, name));
    is_set(object, name) && first.is_some_and(|first| *first != name)
}
