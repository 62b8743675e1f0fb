//! The walk over an object, in the order of its Go structs.

use machinery::Value;
use machinery::types::{GoField, Printed};

use super::Ruled;
use super::table::RuledField;
use schema::at::{At, CheckStage};

/// Reports the errors of an object.
pub fn check(pass: Pass, at: At, of: Option<&'static Ruled>) {
    if let Some(of) = of.filter(|of| of.is_enforced || pass != Pass::Declared) {
        let at = at.in_stage(CheckStage::Rule);
        Walk { pass, is_update: at.is_update() }.structure(at, of, &[]);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// The checks that kube-apiserver implements as functions: of the status, which has an endpoint of its own, or of all
    /// other fields.
    Written { of_status: bool },
    /// Of those, the checks that depend on other fields.
    Conditional,
    /// The checks that tags of the types declare.
    Declared,
}

/// A walk over an object. A place has an old value if the old object has a value there.
#[derive(Clone, Copy)]
pub struct Walk {
    pub pass: Pass,
    pub is_update: bool,
}

/// The place of a field.
pub fn field<'q, 'v>(at: &'q At<'_, 'v>, name: &'static str) -> At<'q, 'v> {
    let field = at.field(name);
    field.with_old(field.old.filter(|old| !old.is_null()))
}

impl Walk {
    /// Checks a struct, except its `hidden` fields.
    pub fn structure(self, at: At, of: &'static Ruled, hidden: &[&str]) {
        match self.pass {
            Pass::Declared => self.declared(at, of),
            Pass::Written { .. } | Pass::Conditional => {
                let of_status = self.pass == Pass::Written { of_status: true };
                if at.value.as_object().is_none() {
                    return;
                }
                let is_root = at.is_root();
                for rule in &of.conditional {
                    let field = rule.field.path.split('.').next().unwrap_or_default();
                    if !hidden.contains(&field) && (!is_root || (field == "status") == of_status) {
                        rule.check(at);
                    }
                }
                let fields = of.fields.iter().filter(|field| !is_root || (field.go.name == "status") == of_status);
                for field in fields.filter(|field| !hidden.contains(&field.go.name)) {
                    self.written(at, of, field);
                }
                if !is_root && self.pass != Pass::Conditional {
                    empty_union(at, of);
                }
            }
        }
    }

    /// Checks the structs in a field. `outer` is the struct that has the field, some of whose fields may be hidden.
    pub fn inner(self, outer: Option<&Value>, at: At, field: &'static RuledField) {
        let Some(of) = field.inner() else { return };
        let rules = field.rules.as_deref();
        let hidden = |item: &Value| -> Option<&[&str]> {
            let (is_hidden, names) = rules?.hides.as_ref()?;
            is_hidden(outer?.as_object()?, item).then_some(&names[..])
        };
        let check = |item: At, old: Option<&Value>| {
            if old.is_none_or(|old| old != item.value) {
                self.structure(item.with_old(old), of, hidden(item.value).unwrap_or_default());
            }
        };
        let before = at.old.filter(|_| self.pass == Pass::Declared);
        match at.value {
            Value::Array(_) => {
                let keys = rules.and_then(|rules| rules.declared.unique.as_deref()).unwrap_or_default();
                at.items().for_each(|item| check(item, before.and_then(|old| same_item(old, item.value, keys))));
            }
            Value::Object(map) if field.is_map() => {
                map.keys().for_each(|key| check(at.entry(key), before.and_then(|before| before.get(key))));
            }
            value => self.structure(at, of, hidden(value).unwrap_or_default()),
        }
    }
}

/// Reports a union in which no field is set.
fn empty_union(at: At, of: &Ruled) {
    if let Some(union) = of.union().filter(|union| !union.names.iter().any(|name| at.has(name))) {
        at.required(format!("must specify a {} type", union.what));
    }
}

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
