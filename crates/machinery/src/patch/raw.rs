//! Patched documents as text. A value that a JSON patch adds keeps its text, including the order and the duplicates of
//! its keys, until kube-apiserver decodes the patched document: errors show that text, and its duplicate keys are
//! reported again.

use super::json_patch::{self, JsonPatch};
use crate::limits::RAW_STEPS_MAX;
use crate::value::skim::{Omitted, outline};
use crate::value::{Paths, Value};
use std::collections::HashMap;

/// A patched document, with the text of the values that the patch wrote.
pub struct Raw {
    /// The patched document, with a marker in place of each written value.
    document: Value,
    /// The text of each written value, with the index of its operation.
    written: Vec<(usize, String)>,
    /// The paths of the operations as an object, in which each path leads to null.
    touched: Value,
    /// The type of the document before the patch.
    before: Value,
}

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawKind {
    /// A custom resource.
    Custom,
    /// An object of a built-in kind, which Go decodes by its type.
    BuiltIn,
}

/// The paths of the operations as an object, in which each path leads to null.
fn touched(patch: &JsonPatch) -> Value {
    let mut out = Value::object();
    for path in patch.operations.iter().filter_map(|operation| operation.path.as_deref()) {
        let steps: Vec<String> = path
            .split('/')
            .skip(1)
            .take(RAW_STEPS_MAX)
            .map(|step| step.replace("~1", "/").replace("~0", "~"))
            .collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        if !steps.is_empty() && out.at(&steps).is_none() {
            out.set_at(&steps, Value::Null);
        }
    }
    out
}

/// JSON without white space between tokens.
fn compact(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut quoted, mut escaped) = (false, false);
    for byte in bytes {
        if quoted || !byte.is_ascii_whitespace() {
            out.push(*byte);
        }
        quoted ^= *byte == b'"' && !escaped;
        escaped = quoted && *byte == b'\\' && !escaped;
    }
    out
}

fn marker(operation: usize) -> String {
    format!("\u{1}{operation}\u{1}")
}

impl Raw {
    /// Applies `patch`, whose text is `source`, to `document`. Returns `None` if an operation refers to a part of a
    /// value that the patch itself has written.
    pub fn of(document: Value, patch: &JsonPatch, source: &[u8]) -> Option<Raw> {
        let source = compact(source);
        let (operations, places) = outline(&source, Omitted { placed: "value", dropped: "" })?;
        let place = |i: usize| {
            let number = operations.as_array()?.get(i)?.get("value")?.as_int()?;
            places.get(usize::try_from(number).ok()?).cloned()
        };
        let mut marked = patch.clone();
        let mut written = vec![];
        for (i, operation) in marked.operations.iter_mut().enumerate() {
            let puts = matches!(operation.op.as_deref(), Some("add" | "replace"));
            let whole = operation.path.as_deref().is_none_or(str::is_empty);
            if puts && !whole && matches!(operation.value, Some(Value::Object(_) | Value::Array(_))) {
                written.push((i, std::str::from_utf8(&source[place(i)?]).ok()?.to_owned()));
                operation.value = Some(Value::from(marker(i)));
            }
        }
        let part = |name: &str| document.get(name).cloned().unwrap_or_default();
        let before = [("apiVersion", part("apiVersion")), ("kind", part("kind"))].into();
        let document = json_patch::apply(document, &marked).ok()?;
        Some(Raw { document, written, touched: touched(patch), before })
    }

    /// The JSON text of the document. In built-in kinds, fields that the patch has not touched have the order of their
    /// Go type.
    pub fn text(&self, kind: RawKind) -> String {
        let text = match kind {
            RawKind::Custom => self.document.to_json(),
            RawKind::BuiltIn => crate::types::merged_text(&self.document, &self.before, &self.touched),
        };
        let (open, close) = ("\"\\u0001", "\\u0001\"");
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(open) {
            let (before, after) = (&rest[..at], &rest[at + open.len()..]);
            out.push_str(before);
            let marked = after.split_once(close).and_then(|(number, after)| Some((self.written(number)?, after)));
            let (written, after) = marked.unwrap_or((open, after));
            out.push_str(written);
            rest = after;
        }
        out.push_str(rest);
        out
    }

    /// The text that an operation wrote, by its number.
    fn written(&self, number: &str) -> Option<&str> {
        let operation: usize = number.parse().ok()?;
        let at = self.written.binary_search_by_key(&operation, |(operation, _)| *operation).ok()?;
        self.written.get(at).map(|(_, text)| text.as_str())
    }

    /// The paths of the duplicate keys that the patch wrote into the document.
    pub fn duplicates(&self, patch: &JsonPatch) -> Vec<String> {
        let mut inside: HashMap<usize, Vec<&str>> = HashMap::new();
        for error in patch.strict_errors.iter().filter(|error| error.is_duplicate) {
            let parts = error.path.strip_prefix('[').and_then(|path| path.split_once("].value"));
            if let Some((operation, rest)) = parts.filter(|(_, rest)| !rest.is_empty())
                && let Ok(operation) = operation.parse()
            {
                inside.entry(operation).or_default().push(rest);
            }
        }
        let mut places = HashMap::new();
        places_of(&self.document, &mut vec![], &mut |steps, operation| {
            if inside.contains_key(&operation) {
                places.entry(operation).or_insert_with(|| path_text(steps));
            }
        });
        let mut out = Paths::default();
        for (operation, _) in &self.written {
            if let (Some(rests), Some(path)) = (inside.get(operation), places.get(operation)) {
                rests.iter().for_each(|rest| out.add(|| format!("{path}{rest}")));
            }
        }
        out.into_list()
    }
}

/// A step from a value to a part of it.
enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

/// Calls `found` with the steps to each marker, and the operation that it stands for.
fn places_of<'a>(value: &'a Value, steps: &mut Vec<Step<'a>>, found: &mut impl FnMut(&[Step<'a>], usize)) {
    match value {
        Value::String(text) => {
            let number = text.strip_prefix('\u{1}').and_then(|rest| rest.strip_suffix('\u{1}'));
            if let Some(operation) = number.and_then(|number| number.parse().ok()) {
                found(steps, operation);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields.iter() {
                steps.push(Step::Field(key));
                places_of(value, steps, found);
                steps.pop();
            }
        }
        Value::Array(items) => {
            for (i, value) in items.iter().enumerate() {
                steps.push(Step::Item(i));
                places_of(value, steps, found);
                steps.pop();
            }
        }
        _ => {}
    }
}

fn path_text(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for (depth, step) in steps.iter().enumerate() {
        path += &match step {
            Step::Field(key) if depth == 0 => (*key).to_owned(),
            Step::Field(key) => format!(".{key}"),
            Step::Item(i) => format!("[{i}]"),
        };
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::patch::Unknown;

    #[test]
    fn scalars_keep_their_source_text() {
        let document = json!({"a": [{"b": 1}], "c": {"z": 1, "y": 2}});
        for (source, text, duplicates) in [
            (
                r#"[{"op":"add", "path":"/a/0/x", "value": {"k" : 1, "b": [2, 3], "k": "\" {"}}]"#,
                r#"{"a":[{"b":1,"x":{"k":1,"b":[2,3],"k":"\" {"}}],"c":{"y":2,"z":1}}"#,
                vec!["a[0].x.k"],
            ),
            (
                r#"[{"op":"replace","path":"/c","value":[{"k":1,"k":2}]},{"op":"remove","path":"/a"}]"#,
                r#"{"c":[{"k":1,"k":2}]}"#,
                vec!["c[0].k"],
            ),
            (
                r#"[{"op":"add","path":"/c/x","value":"\u00010\u0001"},{"op":"replace","path":"/c","value":{"":"\u0001"}}]"#,
                r#"{"a":[{"b":1}],"c":{"":"\u0001"}}"#,
                vec![],
            ),
            (r#"[{"op":"add","path":"/c/y","value":"t"}]"#, r#"{"a":[{"b":1}],"c":{"y":"t","z":1}}"#, vec![]),
        ] {
            let patch = json_patch::decode_patch(source.as_bytes(), Unknown::Reported).unwrap();
            let raw = Raw::of(document.clone(), &patch, source.as_bytes()).unwrap();
            assert_eq!(
                (raw.text(RawKind::Custom).as_str(), raw.duplicates(&patch)),
                (text, duplicates.iter().map(|d| (*d).to_owned()).collect())
            );
        }
        let looks_inside = r#"[{"op":"add","path":"/d","value":{}},{"op":"add","path":"/d/e","value":1}]"#;
        let patch = json_patch::decode_patch(looks_inside.as_bytes(), Unknown::Reported).unwrap();
        assert!(Raw::of(document, &patch, looks_inside.as_bytes()).is_none());
    }
}
