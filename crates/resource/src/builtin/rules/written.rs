//! Checks the rules that kube-apiserver implements as functions, which it calls for all fields at each write.

use machinery::Value;
use machinery::types::{Container, GoBase, GoField, Printed};

use super::Ruled;
use super::table::RuledField;
use super::walk::{Pass, Walk, field, is_pointer, is_same};
use super::words::{Checked, Rules, Union};
use schema::at::{At, CheckStage};

impl Walk {
    /// Checks a field of a struct and everything below it.
    pub fn written(self, outer: At, of: &'static Ruled, ruled: &'static RuledField) {
        let (go, at) = (ruled.go, field(&outer, ruled.go.name));
        let value = Some(at.value).filter(|_| at.is_given());
        if ruled.rules.is_none() && (value.is_none() || ruled.inner().is_none()) {
            return;
        }
        let mut is_below_checked = true;
        if let Some(rules) = ruled.rules.as_deref() {
            if let Some(union) =
                rules.union.filter(|union| !rules.may_stand_beside && is_superfluous(outer, go.name, union))
            {
                let why = format!("may not specify more than 1 {} type", union.what);
                return at.with_name(rules.called.unwrap_or(go.name)).forbidden(why);
            }
            let is_skipped = self.is_update && rules.is_on_create;
            if !is_skipped && self.pass != Pass::Conditional {
                check(at, rules, go);
            }
            if self.is_update && rules.is_immutable && !is_same(of, go, value, at.old) {
                immutable(at, rules, go);
            }
            is_below_checked = !rules.is_content_unchecked && !is_skipped;
        }
        if value.is_some() && is_below_checked {
            self.inner(Some(outer.value), at, ruled);
        }
    }
}

fn check(at: At, rules: &Rules, go: &GoField) {
    let is_empty = match at.value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Int(0) => !is_pointer(go),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    let is_missing = is_empty && rules.required.is_some();
    if let Some(detail) = rules.required.filter(|_| is_missing) {
        at.required(detail);
    }
    let number = at.value.as_int().or((go.printed == Printed::Always).then_some(0));
    if let (Some(range), Some(number), false) = (&rules.range, number, is_missing)
        && !(range.min..=range.max).contains(&number)
    {
        at.shown_verbatim(&number.to_string()).invalid(&range.detail);
    }
    if let Some(text) = at.value.as_str()
        && !rules.values.is_empty()
        && !(text.is_empty() && (rules.required.is_some() || go.printed == Printed::NonEmpty))
    {
        let is_named = go.go_type.container == Container::None && go.go_type.alias.is_some_and(|of| of != "string");
        if is_named { at.shown_as_json() } else { at }.one_of(&rules.values);
    }
    for (check, checked) in &rules.checks {
        let is_checked = match checked {
            Checked::NonEmpty => !is_empty,
            Checked::Given => at.is_given(),
            Checked::All => true,
        };
        if is_checked {
            check(at);
        }
    }
}

impl Ruled {
    /// The union of the fields.
    pub fn union(&self) -> Option<&'static Union> {
        self.fields.iter().find_map(|field| field.rules.as_ref()?.union)
    }
}

/// Reports a changed immutable field.
fn immutable(at: At, rules: &Rules, go: &GoField) {
    let is_single = go.go_type.container == Container::None;
    let at = at.in_stage(CheckStage::Change);
    let at = match (is_single, go.go_type.base) {
        _ if rules.is_unshown => return at.shown_verbatim("null").invalid(IMMUTABLE),
        (true, GoBase::Text) if !is_pointer(go) => at.or_empty(),
        (true, GoBase::Struct(name @ "meta.v1.LabelSelector")) if at.value.as_object().is_some() => {
            return at.shown_verbatim(&machinery::types::published_json(at.value, name)).invalid(IMMUTABLE);
        }
        _ => at,
    };
    at.invalid(IMMUTABLE);
}

const IMMUTABLE: &str = "field is immutable";

/// Whether a field of a union is set although another field before it is set, too.
fn is_superfluous(at: At, name: &str, union: &Union) -> bool {
    let first = union.names.iter().find(|name| at.has(name));
    at.has(name) && first.is_some_and(|first| *first != name)
}
