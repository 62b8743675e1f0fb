//! What a JSON patch puts into a document stands there as it was written, with its order and its duplicate keys, until
//! the document is decoded again: that is what errors show, and where duplicates are reported once more.

use super::json_patch::{self, JsonPatch};
use crate::limits::RAW_STEPS_MAX;
use crate::value::skim::{Omitted, outline};
use crate::value::{Text, Value};

/// A patched document in which written values stand aside.
pub struct Raw {
    /// With a mark in the place of each written value.
    document: Value,
    /// The written values by their operations.
    written: Vec<(usize, String)>,
    /// The paths of the operations, as an object.
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

/// The paths of the operations, as an object in which they lead to null.
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

fn mark(operation: usize) -> String {
    format!("\u{1}{operation}\u{1}")
}

impl Raw {
    /// The document with the patch in it whose body is `source`; `None` if an operation looks into a written value.
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
                operation.value = Some(Value::from(mark(i)));
            }
        }
        let part = |name: &str| document.get(name).cloned().unwrap_or_default();
        let before = [("apiVersion", part("apiVersion")), ("kind", part("kind"))].into();
        let document = json_patch::apply(document, &marked).ok()?;
        Some(Raw { document, written, touched: touched(patch), before })
    }

    /// The document as it is written: a built-in one with the fields that the patch has not touched in the order of
    /// their type.
    pub fn text(&self, kind: RawKind) -> String {
        let mut text = match kind {
            RawKind::Custom => self.document.to_json(),
            RawKind::BuiltIn => crate::types::merged_text(&self.document, &self.before, &self.touched),
        };
        for (operation, written) in &self.written {
            text = text.replace(&Value::from(mark(*operation)).to_json(), written);
        }
        text
    }

    /// The duplicate keys of the document, as paths: those that the patch wrote.
    pub fn duplicates(&self, patch: &JsonPatch) -> Vec<String> {
        let mut out = vec![];
        for (operation, _) in &self.written {
            let before = format!("[{operation}].value");
            let Some(path) = path_of(&self.document, &mark(*operation)) else { continue };
            let duplicates = patch.strict_errors.iter().filter(|error| error.is_duplicate);
            let inside = duplicates.filter_map(|error| error.path.strip_prefix(&before));
            out.extend(inside.filter(|rest| !rest.is_empty()).map(|rest| format!("{path}{rest}")));
        }
        out
    }
}

/// The position of a text.
fn path_of(value: &Value, text: &str) -> Option<String> {
    match value {
        Value::String(found) => (found == text).then(String::new),
        Value::Object(members) => members.iter().find_map(|(key, value): (&Text, &Value)| {
            let rest = path_of(value, text)?;
            let dot = if rest.is_empty() || rest.starts_with('[') { "" } else { "." };
            Some(format!("{key}{dot}{rest}"))
        }),
        Value::Array(items) => items.iter().enumerate().find_map(|(i, value)| {
            let rest = path_of(value, text)?;
            let dot = if rest.is_empty() || rest.starts_with('[') { "" } else { "." };
            Some(format!("[{i}]{dot}{rest}"))
        }),
        _ => None,
    }
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
