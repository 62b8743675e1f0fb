//! Rules that hold under a condition on other fields: the lines with `if`.

use machinery::quantity::Quantity;
use machinery::types::{Container, GoBase, GoField, GoStruct, Printed, go_struct};
use machinery::{Map, Release, Value};

use super::super::source::{Check, Sources};
use schema::at::{At, CheckStage, find};

/// A rule that holds if all terms of its condition do.
pub struct Conditional {
    /// The field that errors are about.
    pub field: Operand,
    condition: Vec<Term>,
    finding: Finding,
    stage: CheckStage,
}

/// A field of the struct, or of a struct in it.
#[derive(Clone, Copy)]
pub struct Operand {
    /// Its path; `.` for the struct itself.
    pub path: &'static str,
    /// The value that Go has in place of an absent one.
    zero: &'static Value,
    /// Whether its type is a string with a name of its own, which errors show as JSON.
    is_named: bool,
}

/// A part of a condition.
struct Term {
    is_negated: bool,
    /// Whether the stored object is meant.
    is_old: bool,
    test: Test,
}

enum Test {
    Update,
    Since(Release),
    Given(Operand),
    Changed(Operand),
    /// Whether a list or a map has entries.
    Filled(Operand),
    /// Whether a text, number or boolean is one of these.
    Is(Operand, Vec<&'static str>),
    /// Whether the field of an item of a list has one of these texts.
    Some(Operand, &'static str, Vec<&'static str>),
    /// Whether a condition of this type is true.
    Holds(Operand, &'static str),
    Exceeds(Operand, Bound),
    IsBelow(Operand, Bound),
    /// Whether a list has more items than this.
    Longer(Operand, usize),
}

/// The other side of a comparison of a number or an amount.
enum Bound {
    Number(Value),
    Field(Operand),
    /// A field of the stored object.
    Old(Operand),
}

enum Finding {
    Required(&'static str),
    Forbidden(&'static str),
    Invalid(&'static str, Shown),
    In(Vec<&'static str>),
    Check(Check),
}

/// How an error shows the value.
#[derive(Clone, Copy)]
enum Shown {
    Value,
    /// The value of a named string as that of a plain one.
    Plain,
    Text(&'static str),
    Verbatim(&'static str),
    Go(&'static str),
}

static NULL: Value = Value::Null;
static NO_TEXT: Value = Value::String(machinery::Text::new_static(""));
static ZERO: Value = Value::Int(0);
static FALSE: Value = Value::Bool(false);

impl Operand {
    /// The field at a path below a struct with these fields; `.` is `own`.
    fn parse(fields: &[&'static GoField], path: &'static str, own: Option<Operand>) -> Result<Operand, String> {
        if path == "." {
            return Ok(own.unwrap_or(Operand { path, zero: &NULL, is_named: false }));
        }
        let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        let field = fields.iter().find(|field| field.name == name).ok_or("unknown field")?;
        match (rest, field.go_type.base) {
            (None, base) => {
                let is_single = field.go_type.container == Container::None;
                let zero = match base {
                    _ if !is_single || matches!(field.printed, Printed::Set | Printed::SetOrNull) => &NULL,
                    GoBase::Text => &NO_TEXT,
                    GoBase::Int32 | GoBase::Int64 => &ZERO,
                    GoBase::Bool => &FALSE,
                    _ => &NULL,
                };
                let is_named = is_single && field.go_type.alias.is_some_and(|alias| alias != "string");
                Ok(Operand { path, zero, is_named })
            }
            (Some(rest), GoBase::Struct(inner)) => {
                let fields = go_struct(inner).map(fields_of).unwrap_or_default();
                Ok(Operand { path, ..Operand::parse(&fields, rest, None)? })
            }
            _ => Err("unknown field".to_owned()),
        }
    }

    fn value<'v>(&self, object: &'v Value) -> &'v Value {
        let value = if self.path == "." { object } else { find(object, self.path) };
        if value.is_null() { self.zero } else { value }
    }
}

/// The fields of a struct and of those that it embeds.
fn fields_of(of: &'static GoStruct) -> Vec<&'static GoField> {
    let fields = of.fields.iter().flat_map(|field| match (field.go_type.container, field.go_type.base) {
        (Container::Embedded, GoBase::Struct(inner)) => go_struct(inner).map(fields_of).unwrap_or_default(),
        _ => vec![field],
    });
    fields.collect()
}

impl Conditional {
    /// Parses `if[@STAGE] CONDITION FINDING`, a rule of a field at a path.
    pub fn parse(
        of: &Sources,
        fields: &[&'static GoField],
        path: &'static str,
        line: &'static str,
    ) -> Result<Conditional, String> {
        let (word, rest) = line.split_once(' ').ok_or("no condition")?;
        let (condition, finding) = rest.split_once(' ').ok_or("no finding")?;
        let stage = match word.split_once('@') {
            None => CheckStage::Field,
            Some((_, stage)) => of.stage(stage).ok_or("unknown stage")?,
        };
        let field = Operand::parse(fields, path, None)?;
        let terms = condition.split(',').filter(|term| *term != "any");
        let condition = terms.map(|term| Term::parse(fields, field, term)).collect::<Result<_, _>>()?;
        Ok(Conditional { field, condition, finding: Finding::parse(of, finding)?, stage })
    }

    pub fn check(&self, at: At) {
        if !self.condition.iter().all(|term| term.holds(at)) {
            return;
        }
        let whole = at.in_stage(self.stage);
        let at = if self.field.path == "." { whole } else { whole.field(self.field.path) };
        let at = if at.is_given() { at } else { at.with_value(self.field.zero) };
        let is_plain = matches!(self.finding, Finding::Invalid(_, Shown::Plain));
        let at = if self.field.is_named && !is_plain { at.shown_as_json() } else { at };
        match &self.finding {
            Finding::Required(why) => at.required(*why),
            Finding::Forbidden(why) => at.forbidden(*why),
            Finding::In(values) => at.one_of(values),
            Finding::Check(check) => check(at),
            Finding::Invalid(why, shown) => match shown {
                Shown::Value | Shown::Plain => at.invalid(*why),
                Shown::Text(text) => at.shown_as_text(text).invalid(*why),
                Shown::Verbatim(text) => at.shown_verbatim(text).invalid(*why),
                Shown::Go(go) => at.shown_as_go(go).invalid(*why),
            },
        }
    }
}

impl Finding {
    fn parse(of: &Sources, text: &'static str) -> Result<Finding, String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (word, shown) = word.split_once(':').unwrap_or((word, "value"));
        let shown = match shown {
            "value" => Shown::Value,
            "text" => Shown::Plain,
            "empty" => Shown::Text(""),
            "nothing" => Shown::Verbatim(""),
            "null" => Shown::Verbatim("null"),
            go if go.contains('.') => Shown::Go(go),
            _ => return Err("unknown form of a value".to_owned()),
        };
        Ok(match word {
            "required" => Finding::Required(rest),
            "forbidden" => Finding::Forbidden(rest),
            "invalid" => Finding::Invalid(rest, shown),
            "in" => Finding::In(rest.split(',').collect()),
            "check" => Finding::Check(of.check(rest).ok_or("unknown check")?),
            _ => return Err("unknown finding".to_owned()),
        })
    }
}

impl Term {
    fn parse(fields: &[&'static GoField], own: Operand, text: &'static str) -> Result<Term, String> {
        let (is_negated, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (is_old, rest) = rest.strip_prefix("was:").map_or((false, rest), |rest| (true, rest));
        let operand = |path: &'static str| Operand::parse(fields, path, Some(own));
        let bound = |text: &'static str| match text.parse() {
            Ok(number) => Ok(Bound::Number(Value::Int(number))),
            Err(_) => match text.strip_prefix("was:") {
                Some(path) => operand(path).map(Bound::Old),
                None => operand(text).map(Bound::Field),
            },
        };
        let list = |text: &'static str| text.split('|').collect::<Vec<_>>();
        let test = if rest == "update" {
            Test::Update
        } else if let Some(release) = rest.strip_prefix("since=") {
            Test::Since(release.parse().map_err(|_| "no release")?)
        } else if let Some(path) = rest.strip_prefix("changed:") {
            Test::Changed(operand(path)?)
        } else if let Some((path, most)) = rest.strip_prefix('#').and_then(|rest| rest.split_once('>')) {
            Test::Longer(operand(path)?, most.parse().map_err(|_| "no number")?)
        } else if let Some((path, kind)) = rest.strip_suffix('}').and_then(|rest| rest.split_once('{')) {
            Test::Holds(operand(path)?, kind)
        } else if let Some((path, item)) = rest.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
            match item.split_once('=') {
                None if item.is_empty() => Test::Filled(operand(path)?),
                None => return Err("no field and values".to_owned()),
                Some((name, values)) => Test::Some(operand(path)?, name, list(values)),
            }
        } else if let Some((path, values)) = rest.split_once("!=") {
            return Ok(Term { is_negated: !is_negated, is_old, test: Test::Is(operand(path)?, list(values)) });
        } else if let Some((path, values)) = rest.split_once('=') {
            Test::Is(operand(path)?, list(values))
        } else if let Some((path, least)) = rest.split_once('>') {
            Test::Exceeds(operand(path)?, bound(least)?)
        } else if let Some((path, most)) = rest.split_once('<') {
            Test::IsBelow(operand(path)?, bound(most)?)
        } else {
            Test::Given(operand(rest)?)
        };
        Ok(Term { is_negated, is_old, test })
    }

    fn holds(&self, at: At) -> bool {
        let object = if self.is_old { at.old.unwrap_or(&NULL) } else { at.value };
        self.is_negated != self.test.holds(at, object)
    }
}

impl Test {
    fn holds(&self, at: At, object: &Value) -> bool {
        let items = |list: &Operand| list.value(object).as_array().unwrap_or_default();
        match self {
            Test::Update => at.is_update(),
            Test::Since(release) => at.release() >= *release,
            Test::Given(field) => {
                let value = if field.path == "." { object } else { find(object, field.path) };
                !value.is_null()
            }
            Test::Changed(field) => at.old.is_some_and(|old| field.value(old) != field.value(object)),
            Test::Filled(field) => match field.value(object) {
                Value::Array(items) => !items.is_empty(),
                Value::Object(map) => !Map::is_empty(map),
                _ => false,
            },
            Test::Is(field, values) => is_one_of(field.value(object), values),
            Test::Some(list, name, values) => items(list).iter().any(|item| values.contains(&item.str_at(&[name]))),
            Test::Holds(list, kind) => {
                items(list).iter().any(|item| item.str_at(&["type"]) == *kind && item.str_at(&["status"]) == "True")
            }
            Test::Exceeds(field, bound) => is_greater(field.value(object), bound.value(at, object)),
            Test::IsBelow(field, bound) => is_greater(bound.value(at, object), field.value(object)),
            Test::Longer(list, most) => items(list).len() > *most,
        }
    }
}

impl Bound {
    fn value<'v>(&'v self, at: At<'_, 'v>, object: &'v Value) -> &'v Value {
        match self {
            Bound::Number(number) => number,
            Bound::Field(field) => field.value(object),
            Bound::Old(field) => field.value(at.old.unwrap_or(&NULL)),
        }
    }
}

/// Whether a value is shown as one of these texts.
fn is_one_of(value: &Value, texts: &[&str]) -> bool {
    match value {
        Value::Null => texts.contains(&""),
        Value::String(text) => texts.contains(&text.as_str()),
        value => texts.contains(&value.to_json().as_str()),
    }
}

/// Whether a number, an amount or a time is greater than another one. Absent ones are neither greater nor less.
fn is_greater(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Int(value), Value::Int(other)) => value > other,
        _ => match (Quantity::of(value), Quantity::of(other)) {
            (Ok(value), Ok(other)) => value.compare(&other).is_gt(),
            // times in UTC are in the order of their texts
            _ => value.as_str() > other.as_str() && other.as_str().is_some(),
        },
    }
}
