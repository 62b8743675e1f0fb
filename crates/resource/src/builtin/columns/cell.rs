//! The language of cells: a source, and stages that its values pass. The head of `columns.txt` describes it.

use std::borrow::Cow;

use machinery::jsonpath::{JsonPath, columns};
use machinery::{Map, Value};

use super::super::source::{CellFunction, Sources};
use super::parts::shortened;
use super::selectors::selector_text;

/// The content of a column for an object.
#[derive(Clone)]
pub struct Cell {
    source: Source,
    stages: Vec<Stage>,
}

#[derive(Clone)]
enum Source {
    Path(JsonPath),
    Text(Template),
    Function(CellFunction),
}

#[derive(Clone)]
enum Stage {
    Or(&'static str),
    /// `if` (true) or `unless` (false): replaces the values by the text if the path finds a value that is set, or finds none.
    If(bool, JsonPath, &'static str),
    Each(Template),
    Combine(Combiner),
}

type Values<'v> = Vec<Cow<'v, Value>>;

/// Combines all values into one. The number is the current time, in microseconds since the Unix epoch.
type Combiner = fn(&[Cow<'_, Value>], i64) -> Value;

impl Cell {
    pub fn of(function: CellFunction) -> Cell {
        Cell { source: Source::Function(function), stages: vec![] }
    }

    pub fn parse(sources: &Sources, text: &'static str) -> Result<Cell, String> {
        let mut parts = text.split(" | ");
        let source = Source::parse(sources, parts.next().unwrap_or_default())?;
        Ok(Cell { source, stages: parts.map(Stage::parse).collect::<Result<_, _>>()? })
    }

    pub fn value(&self, object: &Value, now: i64) -> Value {
        let values = match &self.source {
            Source::Path(path) => path.find_all(object),
            Source::Text(template) => vec![Cow::Owned(Value::from(template.text(object)))],
            Source::Function(function) => vec![Cow::Owned(function(object, now))],
        };
        let values = self.stages.iter().fold(values, |values, stage| stage.apply(values, object, now));
        let shown = values.into_iter().next().filter(|value| !value.is_null());
        shown.map_or_else(|| Value::from(""), Cow::into_owned)
    }
}

impl Source {
    fn parse(sources: &Sources, text: &'static str) -> Result<Source, String> {
        match text.chars().next() {
            Some('"') => Template::parse(text).map(Source::Text),
            Some('.' | '[') => JsonPath::parse(text).map(Source::Path),
            _ => sources.cell(text).map(Source::Function).ok_or_else(|| format!("unknown function {text}")),
        }
    }
}

impl Stage {
    fn parse(text: &'static str) -> Result<Stage, String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        Ok(match (word, rest) {
            ("or", text) if !text.is_empty() => Stage::Or(text),
            ("if" | "unless", _) => {
                let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
                Stage::If(word == "if", JsonPath::parse(path)?, text)
            }
            ("each", template) => Stage::Each(Template::parse(template)?),
            (_, "") => Stage::Combine(combiner(word).ok_or_else(|| format!("unknown stage {text}"))?),
            _ => return Err(format!("unknown stage {text}")),
        })
    }

    fn apply<'v>(&self, values: Values<'v>, object: &Value, now: i64) -> Values<'v> {
        let one = |value: Value| vec![Cow::Owned(value)];
        match self {
            Stage::Or(text) if !values.first().is_some_and(|value| is_set(value)) => one(Value::from(*text)),
            Stage::If(wanted, path, text) if path.find_all(object).iter().any(|value| is_set(value)) == *wanted => {
                one(Value::from(*text))
            }
            Stage::Or(_) | Stage::If(..) => values,
            Stage::Each(template) => values.iter().map(|value| Cow::Owned(Value::from(template.text(value)))).collect(),
            Stage::Combine(combine) => one(combine(&values, now)),
        }
    }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// The stages that combine all values.
fn combiner(word: &str) -> Option<Combiner> {
    Some(match word {
        "int" => |values, _| Value::Int(int(values)),
        "flag" => |values, _| Value::Bool(values.first().and_then(|value| value.as_bool()).unwrap_or_default()),
        "count" => |values, _| Value::Int(values.iter().map(|value| length(value)).sum()),
        "age" => |values, now| Value::from(columns::age(first_text(values), now)),
        "duration" => |values, _| Value::from(columns::human_duration(int(values).saturating_mul(1_000_000_000))),
        "join" => |values, _| Value::from(texts(values).join(",")),
        "list" => |values, _| Value::from(texts(values).join(", ")),
        "three" => |values, _| Value::from(shortened(&texts(values))),
        "selector" => |values, _| Value::from(first_map(values).map(selector_text).unwrap_or_default()),
        "pairs" => |values, _| Value::from(first_map(values).map(pairs).unwrap_or_default()),
        "modes" => |values, _| Value::from(access_modes(&texts(values))),
        "lowercase" => |values, _| Value::from(first_text(values).to_lowercase()),
        "trim" => |values, _| Value::from(first_text(values).trim()),
        _ => return None,
    })
}

fn int(values: &[Cow<'_, Value>]) -> i64 {
    values.first().and_then(|value| value.as_int()).unwrap_or_default()
}

fn texts<'a>(values: &'a [Cow<'_, Value>]) -> Vec<&'a str> {
    values.iter().filter_map(|value| value.as_str()).collect()
}

fn first_text<'a>(values: &'a [Cow<'_, Value>]) -> &'a str {
    values.first().and_then(|value| value.as_str()).unwrap_or_default()
}

fn first_map<'a>(values: &'a [Cow<'_, Value>]) -> Option<&'a Map> {
    values.first().and_then(|value| value.as_object())
}

fn length(value: &Value) -> i64 {
    let length = match value {
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn pairs(map: &Map) -> String {
    let pairs = map.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(",")
}

/// The access modes of a volume, abbreviated and in an order of their own, as kube-apiserver prints them.
fn access_modes(given: &[&str]) -> String {
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    known.into_iter().filter(|(mode, _)| given.contains(mode)).map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

/// A text with holes, which values fill.
#[derive(Clone)]
struct Template(Vec<Piece>);

#[derive(Clone)]
enum Piece {
    Text(&'static str),
    Hole { before: &'static str, paths: Vec<JsonPath>, absent: &'static str },
}

impl Template {
    fn parse(quoted: &'static str) -> Result<Template, String> {
        let mut rest =
            quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).ok_or("expected a text in quotes")?;
        let mut pieces = vec![];
        while let Some((before, hole)) = rest.split_once('{') {
            let (hole, after) = hole.split_once('}').ok_or("a hole has no closing brace")?;
            pieces.extend([Piece::Text(before), Piece::hole(hole)?]);
            rest = after;
        }
        pieces.push(Piece::Text(rest));
        Ok(Template(pieces))
    }

    fn text(&self, value: &Value) -> String {
        self.0.iter().map(|piece| piece.text(value)).collect()
    }
}

impl Piece {
    fn hole(hole: &'static str) -> Result<Piece, String> {
        let quoted = hole.strip_prefix('"').and_then(|hole| hole.split_once("\"+"));
        let (before, hole) = quoted.unwrap_or(("", hole));
        let (mut paths, mut absent) = (vec![], "");
        for part in hole.split('|') {
            if part.starts_with('.') { paths.push(JsonPath::parse(part)?) } else { absent = part }
        }
        Ok(Piece::Hole { before, paths, absent })
    }

    fn text(&self, value: &Value) -> Cow<'static, str> {
        match self {
            Piece::Text(text) => Cow::Borrowed(text),
            Piece::Hole { before, paths, absent } => {
                let mut found = paths.iter().flat_map(|path| path.find_all(value)).filter(|found| !found.is_null());
                match found.next().as_deref() {
                    Some(Value::String(text)) if !text.is_empty() => Cow::Owned(format!("{before}{text}")),
                    Some(Value::Int(number)) => Cow::Owned(format!("{before}{number}")),
                    // a text that is empty, and a value without a text, are not absent: they show nothing
                    Some(_) => Cow::default(),
                    None => Cow::Borrowed(absent),
                }
            }
        }
    }
}
