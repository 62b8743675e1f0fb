//! The words of the table of rules: what a rule requires of a field. The head of `kinds/src/meta/rules.txt` describes each word.

use base::request::FeatureGates;
use machinery::Value;
use machinery::field::FieldErrorKind;

use super::super::formats::{self, Format};
use super::super::source::{Check, Condition, Sources};
use schema::at::CheckStage;

/// The rules of a field.
#[derive(std::default::Default)]
pub struct Rules {
    pub default: Option<Default>,
    /// The feature gate without which the field is dropped; empty if it is always dropped.
    pub gate: Option<&'static str>,
    /// The detail of the error if the field is empty.
    pub required: Option<&'static str>,
    pub values: Vec<&'static str>,
    pub range: Option<NumberRange>,
    pub checks: Vec<(Check, Checked)>,
    pub is_immutable: bool,
    /// Whether the error of an update that changes the field shows null instead of the value.
    pub is_unshown: bool,
    pub union: Option<&'static Union>,
    /// The name of the field in the error of the union, if it is not its own.
    pub called: Option<&'static str>,
    /// Whether the field of a union may be set together with another one.
    pub may_stand_beside: bool,
    pub is_on_create: bool,
    /// Whether what is below the field is not checked.
    pub is_content_unchecked: bool,
    /// Fields of each struct in this field that are not checked if the condition holds.
    pub hides: Option<(Condition, Vec<&'static str>)>,
    /// The order of the errors in the field, if it is not the order of the struct.
    pub order: Option<Order>,
    pub declared: Declared,
}

/// The value of a field that is not set.
pub struct Default {
    /// The value; the current time if there is none.
    pub value: Option<Value>,
    /// Another field, and the values of it for which the default applies.
    pub condition: Option<(&'static str, Vec<&'static str>)>,
}

/// The rules that tags of the Go type declare.
#[derive(std::default::Default)]
pub struct Declared {
    pub is_required: bool,
    /// When the field may be set: the name of another field, the value that it must have, and whether this field is
    /// then required.
    pub condition: Option<(&'static str, &'static str, bool)>,
    pub items_max: Option<usize>,
    pub formats: Vec<Format>,
    pub keys: Option<Format>,
    pub values: Vec<&'static str>,
    pub bytes_max: Option<usize>,
    pub length_max: Option<usize>,
    /// The keys by which items must be unique; empty if whole items are compared.
    pub unique: Option<Vec<&'static str>>,
    pub min: Option<i64>,
    pub max: Option<i64>,
    pub is_immutable: bool,
    pub no_modify: bool,
    pub no_set: bool,
    pub no_unset: bool,
    pub no_items: bool,
    pub is_monotonic: bool,
    pub union: Option<Vec<&'static str>>,
}

/// The numbers that a field may have.
pub struct NumberRange {
    pub min: i64,
    pub max: i64,
    /// The detail of the error of a number outside the range.
    pub detail: String,
}

/// The values to which a check applies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    NonEmpty,
    /// Values that are given, even if they are empty.
    Given,
    /// All values. An absent one is null.
    All,
}

/// Fields of a struct of which exactly one must be set.
pub struct Union {
    /// The kind of the fields, as errors name it.
    pub what: &'static str,
    pub names: Vec<&'static str>,
}

/// The order of errors in a struct: names of fields, and which errors of each. If there are none, the order is that of the
/// struct.
pub type Order = Vec<(&'static str, OrderedErrors)>;

/// Which errors of a field an entry of an order is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OrderedErrors {
    All,
    Kind(FieldErrorKind),
    CheckStage(CheckStage),
}

impl OrderedErrors {
    fn named(of: &Sources, name: &str) -> Result<OrderedErrors, String> {
        use FieldErrorKind::{Duplicate, Forbidden, NotFound, Required, TooLong};
        let kinds = [Duplicate, Forbidden, NotFound, Required, TooLong];
        let kind = kinds.into_iter().find(|kind| format!("{kind:?}") == name).map(OrderedErrors::Kind);
        let stage = || of.stage(name).map(OrderedErrors::CheckStage);
        kind.or_else(stage).ok_or_else(|| format!("unknown kind or stage of errors {name:?}"))
    }
}

pub fn order(of: &Sources, fields: &'static str) -> Result<Order, String> {
    let field = |field: &'static str| match field.split_once(':') {
        None => Ok((field, OrderedErrors::All)),
        Some((name, which)) => Ok((name, OrderedErrors::named(of, which)?)),
    };
    if fields.is_empty() { Ok(vec![]) } else { fields.split(',').map(field).collect() }
}

impl Rules {
    /// Adds the rule of a line about `fields`.
    pub fn add(&mut self, of: &Sources, rule: &'static str, fields: &'static str) -> Result<(), String> {
        let (word, rest) = rule.split_once(' ').unwrap_or((rule, ""));
        match (word, rest) {
            ("=", _) => self.default = Some(Default::parse(rest)?),
            ("gated", gate) if gate.is_empty() || FeatureGates::is_known(gate) => self.gate = Some(gate),
            ("gated", _) => return Err("unknown gate".to_owned()),
            ("required", _) => self.required = Some(rest),
            ("in", _) => self.values = names(rest)?,
            ("min", _) => {
                let min = number(rest)?;
                self.range(min, i64::MAX, format!("must be greater than or equal to {min}"));
            }
            ("positive", "") => self.range(1, i64::MAX, "must be greater than zero".to_owned()),
            ("range", _) => {
                let (min, rest) = rest.split_once(' ').ok_or("not two numbers")?;
                let (max, detail) = rest.split_once(' ').unwrap_or((rest, ""));
                let detail = match detail {
                    "" => format!("must be between {min} and {max}, inclusive"),
                    given => given.to_owned(),
                };
                self.range(number(min)?, number(max)?, detail);
            }
            ("check", _) => self.checks.push((check(of, rest)?, Checked::NonEmpty)),
            ("check?", _) => self.checks.push((check(of, rest)?, Checked::Given)),
            ("check!", _) => self.checks.push((check(of, rest)?, Checked::All)),
            ("immutable", "" | "unshown") => (self.is_immutable, self.is_unshown) = (true, !rest.is_empty()),
            ("union", what) if !what.is_empty() => {
                self.union = Some(Box::leak(Box::new(Union { what, names: names(fields)? })));
            }
            ("called", name) if !name.is_empty() => self.called = Some(name),
            ("beside", "") => self.may_stand_beside = true,
            ("on-create", "") => self.is_on_create = true,
            ("unchecked", "") => self.is_content_unchecked = true,
            ("hides", _) => {
                let (name, hidden) = rest.split_once(' ').ok_or("no condition and fields")?;
                self.hides = Some((of.condition(name).ok_or("unknown condition")?, names(hidden)?));
            }
            ("order", _) => self.order = Some(order(of, rest)?),
            _ => self.declared.add(word.strip_prefix('+').ok_or("unknown rule")?, rest, fields)?,
        }
        Ok(())
    }

    fn range(&mut self, min: i64, max: i64, detail: String) {
        self.range = Some(NumberRange { min, max, detail });
    }
}

impl Default {
    fn parse(text: &'static str) -> Result<Default, String> {
        let (value, condition) = text.split_once(" if ").map_or((text, None), |(value, when)| (value, Some(when)));
        let condition = match condition {
            Some(when) => {
                let (field, values) = when.split_once('=').ok_or("no field and values")?;
                Some((field, names(values)?))
            }
            None => None,
        };
        let decoded = || machinery::value::decode(value.as_bytes()).map_err(|_| "no JSON");
        Ok(Default { value: if value == "now" { None } else { Some(decoded()?) }, condition })
    }
}

impl Declared {
    fn add(&mut self, word: &str, rest: &'static str, fields: &'static str) -> Result<(), String> {
        let condition = |is_required| {
            let (field, value) = rest.split_once('=').ok_or("no field and value")?;
            Ok::<_, String>(Some((field, value, is_required)))
        };
        match (word, rest) {
            ("required", "") => self.is_required = true,
            ("if", _) => self.condition = condition(true)?,
            ("only-if", _) => self.condition = condition(false)?,
            ("max-items", _) => self.items_max = Some(number(rest)?),
            ("format", _) => self.formats.push(formats::named(rest).ok_or("unknown format")?),
            ("keys", _) => self.keys = Some(formats::named(rest).ok_or("unknown format")?),
            ("in", _) => self.values = names(rest)?,
            ("max-bytes", _) => self.bytes_max = Some(number(rest)?),
            ("max-length", _) => self.length_max = Some(number(rest)?),
            ("unique", "") => self.unique = Some(vec![]),
            ("unique", _) => self.unique = Some(names(rest)?),
            ("min", _) => self.min = Some(number(rest)?),
            ("max", _) => self.max = Some(number(rest)?),
            ("immutable", "") => self.is_immutable = true,
            ("no-modify", "") => self.no_modify = true,
            ("no-set", "") => self.no_set = true,
            ("no-unset", "") => self.no_unset = true,
            ("no-items", "") => self.no_items = true,
            ("monotonic", "") => self.is_monotonic = true,
            ("union", "") => self.union = Some(names(fields)?),
            _ => return Err("unknown rule".to_owned()),
        }
        Ok(())
    }
}

fn names(list: &'static str) -> Result<Vec<&'static str>, String> {
    let names: Vec<_> = list.split(',').collect();
    if names.contains(&"") { Err("an empty name".to_owned()) } else { Ok(names) }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "no number".to_owned())
}

fn check(of: &Sources, name: &str) -> Result<Check, String> {
    of.check(name).ok_or_else(|| "unknown check".to_owned())
}
