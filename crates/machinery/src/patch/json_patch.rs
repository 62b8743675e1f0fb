//! JSON Patch (RFC 6902) with the quirks of the library that the reference server uses.
//!
//! Indices may be negative; `replace` of a missing member adds it; `copy` of a missing member copies null; a pointer
//! without leading slash loses its first segment; only `test` and `replace` know the whole document.

use super::Unknown;
use crate::status::{Reason, Status};
use crate::value::{Map, Text, Value, decode, decode_strict};

/// Operations of one patch.
pub const OPERATIONS_MAX: usize = 10_000;

/// Bytes that the `copy` operations of one patch may make together.
pub const COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// One operation; what is missing or of the wrong type fails when it is applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    pub op: Option<Text>,
    pub path: Option<Text>,
    pub from: Option<Text>,
    pub value: Option<Value>,
}

/// A decoded document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    pub operations: Vec<Operation>,
    /// What strict field validation says of the document, such as `json patch unknown field "[0].x"`.
    pub strict_errors: Vec<String>,
}

/// Decodes the body of a request.
pub fn decode_patch(bytes: &[u8], unknown: Unknown) -> Result<Patch, Status> {
    let patch = match unknown {
        Unknown::Told => told(bytes).map_err(|why| Status::bad_request(format!("error decoding patch: {why}")))?,
        Unknown::Ignored => ignored(bytes).map_err(Status::bad_request)?,
    };
    let count = patch.operations.len();
    if count > OPERATIONS_MAX {
        let what = "Request entity too large: The allowed maximum operations in a JSON patch is";
        let why = format!("{what} {OPERATIONS_MAX}, got {count}");
        return Err(Status::new(Reason::RequestEntityTooLarge, why));
    }
    Ok(patch)
}

fn cannot(value: &Value, what: &str) -> String {
    format!("json: cannot unmarshal {} into Go {what}", value.json_type())
}

fn told(bytes: &[u8]) -> Result<Patch, String> {
    let decoded = decode_strict(bytes).map_err(|e| e.message)?;
    let items = match decoded.value {
        Value::Null => vec![],
        Value::Array(items) => items,
        other => return Err(cannot(&other, "value of type []handlers.jsonPatchOp")),
    };
    let mut strict: Vec<(String, bool)> = vec![];
    for path in &decoded.duplicates {
        strict.push((path.clone(), true));
    }
    let mut operations = Vec::with_capacity(items.len());
    for (i, item) in items.into_iter().enumerate() {
        let members = match item {
            Value::Null => Map::new(),
            Value::Object(members) => members,
            other => return Err(cannot(&other, "value of type handlers.jsonPatchOp")),
        };
        for name in ["op", "path", "from"] {
            match members.get(name) {
                None | Some(Value::Null | Value::String(_)) => {}
                Some(other) => return Err(cannot(other, &format!("struct field jsonPatchOp.{name} of type string"))),
            }
        }
        for name in members.keys().filter(|name| !matches!(name.as_str(), "op" | "path" | "from" | "value")) {
            strict.push((format!("[{i}].{name}"), false));
        }
        operations.push(operation(members));
    }
    // in the order of the document, as far as operations go
    let index = |path: &str| path.trim_start_matches('[').split(']').next().and_then(|i| i.parse::<usize>().ok());
    strict.sort_by_key(|(path, _)| index(path));
    let strict_errors = strict.into_iter().map(|(path, duplicate)| {
        format!("json patch {} field \"{path}\"", if duplicate { "duplicate" } else { "unknown" })
    });
    Ok(Patch { operations, strict_errors: strict_errors.collect() })
}

fn ignored(bytes: &[u8]) -> Result<Patch, String> {
    let items = match decode(bytes).map_err(|e| e.message)? {
        Value::Null => vec![],
        Value::Array(items) => items,
        other => return Err(cannot(&other, "value of type jsonpatch.Patch")),
    };
    let mut operations = Vec::with_capacity(items.len());
    for item in items {
        operations.push(match item {
            Value::Null => Operation::default(),
            Value::Object(members) => operation(members),
            other => return Err(cannot(&other, "value of type jsonpatch.Operation")),
        });
    }
    Ok(Patch { operations, strict_errors: vec![] })
}

fn operation(mut members: Map) -> Operation {
    let mut text = |name: &str| match members.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    Operation { op: text("op"), path: text("path"), from: text("from"), value: members.remove("value") }
}

/// Why an operation failed; clients aren't told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failed;

/// The document with all operations applied in turn. That one of them fails is a 422 without details.
pub fn apply(document: Value, patch: &Patch) -> Result<Value, Status> {
    let mut document = document;
    let mut copied = 0;
    for operation in &patch.operations {
        step(&mut document, operation, &mut copied).map_err(|Failed| Status::generic_invalid())?;
    }
    Ok(document)
}

/// The same where it is told which operation failed, and why, in the words of the reference's library.
pub fn apply_or_tell(document: Value, patch: &Patch) -> Result<Value, String> {
    let mut document = document;
    let mut copied = 0;
    for operation in &patch.operations {
        step(&mut document, operation, &mut copied).map_err(|Failed| failure(&document, operation))?;
    }
    Ok(document)
}

/// Why an operation does not apply to a document.
fn failure(document: &Value, operation: &Operation) -> String {
    let (op, path) = (operation.op.as_deref().unwrap_or_default(), operation.path.as_deref());
    let from = operation.from.as_deref().unwrap_or_default();
    let Some(path) = path.filter(|_| matches!(op, "add" | "remove" | "replace" | "test" | "move" | "copy")) else {
        return match op {
            "add" | "remove" | "replace" | "test" | "move" | "copy" => {
                format!("{op} operation failed to decode path: missing value")
            }
            other => format!("Unexpected kind: {other}"),
        };
    };
    let (parts, key) = split(path).unwrap_or_default();
    let has_place = container(document, &parts).is_ok();
    match op {
        "replace" if path.is_empty() => "replace operation value must be object or array: %!w(<nil>)".to_owned(),
        "replace" if has_place => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        "replace" => format!("replace operation does not apply: doc is missing path: {path}: missing value"),
        "remove" if has_place => {
            format!("error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value")
        }
        "add" | "remove" => format!("{op} operation does not apply: doc is missing path: \"{path}\": missing value"),
        "test" => format!("testing value {path} failed: test failed"),
        _ => format!("{op} operation does not apply: doc is missing from path: {from}: missing value"),
    }
}

fn step(document: &mut Value, operation: &Operation, copied: &mut usize) -> Result<(), Failed> {
    let path = operation.path.as_deref();
    let from = operation.from.as_deref();
    let value = || operation.value.clone().unwrap_or_default();
    match operation.op.as_deref() {
        Some("add") => add(document, path.ok_or(Failed)?, value()),
        Some("remove") => remove(document, path.ok_or(Failed)?).map(drop),
        Some("replace") => replace(document, path.ok_or(Failed)?, operation.value.as_ref()),
        Some("test") => test(document, path.ok_or(Failed)?, operation.value.as_ref()),
        Some("move") => {
            let value = remove(document, from.ok_or(Failed)?)?;
            add(document, path.ok_or(Failed)?, value)
        }
        Some("copy") => {
            let value = get(document, from.ok_or(Failed)?)?.cloned();
            if let Some(value) = &value {
                *copied += value.to_json().len();
            }
            if *copied > COPY_BYTES_MAX {
                return Err(Failed);
            }
            add(document, path.ok_or(Failed)?, value.unwrap_or_default())
        }
        _ => Err(Failed),
    }
}

/// A segment of a pointer; unknown escapes stay as they are.
fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('~') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let (replacement, length) = match after.as_bytes().get(1) {
            Some(b'1') => ("/", 2),
            Some(b'0') => ("~", 2),
            _ => ("~", 1),
        };
        out.push_str(replacement);
        rest = after.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The segments before the last, and the last. What stands before the first slash is lost.
fn split(path: &str) -> Result<(Vec<String>, String), Failed> {
    let mut parts: Vec<String> = path.split('/').skip(1).map(segment).collect();
    let last = parts.pop().ok_or(Failed)?;
    Ok((parts, last))
}

/// An index as Go's `Atoi` reads it.
fn index(text: &str) -> Result<i64, Failed> {
    text.parse().map_err(|_| Failed)
}

/// The position of an existing item.
fn position(text: &str, length: usize) -> Result<usize, Failed> {
    let index = index(text)?;
    let at = if index < 0 { index.checked_add(length as i64).ok_or(Failed)? } else { index };
    usize::try_from(at).ok().filter(|at| *at < length).ok_or(Failed)
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

/// A member or item; `None` for members that are absent.
fn child<'v>(container: &'v Value, key: &str) -> Result<Option<&'v Value>, Failed> {
    match container {
        Value::Object(map) => Ok(map.get(key)),
        Value::Array(items) => position(key, items.len()).map(|at| items.get(at)),
        _ => Err(Failed),
    }
}

fn container<'v>(document: &'v Value, parts: &[String]) -> Result<&'v Value, Failed> {
    let mut node = document;
    for part in parts {
        node = child(node, part)?.filter(|n| is_container(n)).ok_or(Failed)?;
    }
    is_container(node).then_some(node).ok_or(Failed)
}

fn container_mut<'v>(document: &'v mut Value, parts: &[String]) -> Result<&'v mut Value, Failed> {
    let mut node = document;
    for part in parts {
        let next = match node {
            Value::Object(map) => map.get_mut(part),
            Value::Array(items) => {
                let at = position(part, items.len())?;
                items.get_mut(at)
            }
            _ => None,
        };
        node = next.filter(|n| is_container(n)).ok_or(Failed)?;
    }
    if is_container(node) { Ok(node) } else { Err(Failed) }
}

fn get<'v>(document: &'v Value, path: &str) -> Result<Option<&'v Value>, Failed> {
    let (parts, key) = split(path)?;
    child(container(document, &parts)?, &key)
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), Failed> {
    let (parts, key) = split(path)?;
    match container_mut(document, &parts)? {
        Value::Object(map) => drop(map.insert(key, value)),
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = index(&key)?;
            let length = items.len() as i64 + 1;
            let at = if index < 0 { index.checked_add(length).ok_or(Failed)? } else { index };
            let at = usize::try_from(at).ok().filter(|at| *at <= items.len()).ok_or(Failed)?;
            items.insert(at, value);
        }
        _ => return Err(Failed),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, Failed> {
    let (parts, key) = split(path)?;
    match container_mut(document, &parts)? {
        Value::Object(map) => map.remove(&key).ok_or(Failed),
        Value::Array(items) => {
            let at = position(&key, items.len())?;
            Ok(items.remove(at))
        }
        _ => Err(Failed),
    }
}

fn replace(document: &mut Value, path: &str, value: Option<&Value>) -> Result<(), Failed> {
    if path.is_empty() {
        *document = value.filter(|v| is_container(v)).ok_or(Failed)?.clone();
        return Ok(());
    }
    let (parts, key) = split(path)?;
    let value = value.cloned().unwrap_or_default();
    match container_mut(document, &parts)? {
        Value::Object(map) => drop(map.insert(key, value)),
        Value::Array(items) => {
            let at = position(&key, items.len())?;
            *items.get_mut(at).ok_or(Failed)? = value;
        }
        _ => return Err(Failed),
    }
    Ok(())
}

fn test(document: &Value, path: &str, want: Option<&Value>) -> Result<(), Failed> {
    let found = if path.is_empty() { Some(document) } else { get(document, path)? };
    let same = match (found, want) {
        (None | Some(Value::Null), None | Some(Value::Null)) => true,
        (Some(found), Some(want)) => found == want,
        _ => false,
    };
    if same { Ok(()) } else { Err(Failed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(document: &str, patch: &str) -> String {
        let patch = match decode_patch(patch.as_bytes(), Unknown::Told) {
            Ok(patch) => patch,
            Err(status) => return status.message.clone(),
        };
        match apply(decode(document.as_bytes()).expect("JSON"), &patch) {
            Ok(value) => value.to_json(),
            Err(status) => status.code.to_string(),
        }
    }

    #[test]
    fn operations_follow_the_library() {
        let document = r#"{"l":["a","b"],"m":{"n":null,"t~u":2,"x/y":1},"s":3}"#;
        let member = |text: &str| text.to_owned();
        let cases = [
            (r#"[{"op":"add","path":"/l/-1","value":"c"}]"#, member(r#""l":["a","b","c"]"#)),
            (r#"[{"op":"add","path":"/l/-2","value":"c"}]"#, member(r#""l":["a","c","b"]"#)),
            (r#"[{"op":"add","path":"/l/2","value":"c"}]"#, member(r#""l":["a","b","c"]"#)),
            (r#"[{"op":"add","path":"/l/3","value":"c"}]"#, member("422")),
            (r#"[{"op":"add","path":"/l/00","value":"c"}]"#, member(r#""l":["c","a","b"]"#)),
            (r#"[{"op":"add","path":"/m/k"}]"#, member(r#""k":null"#)),
            (r#"[{"op":"add","path":"m/k","value":1}]"#, member(r#""k":1,"l""#)),
            (r#"[{"op":"add","path":"/s/k","value":1}]"#, member("422")),
            (r#"[{"op":"add","path":"/m/n/k","value":1}]"#, member("422")),
            (r#"[{"op":"add","path":"","value":{}}]"#, member("422")),
            (r#"[{"op":"replace","path":"","value":{"z":1}}]"#, member(r#"{"z":1}"#)),
            (r#"[{"op":"replace","path":"","value":"z"}]"#, member("422")),
            (r#"[{"op":"replace","path":"/q","value":1}]"#, member(r#""q":1"#)),
            (r#"[{"op":"replace","path":"/l/-","value":1}]"#, member("422")),
            (r#"[{"op":"remove","path":"/l/-1"}]"#, member(r#""l":["a"]"#)),
            (r#"[{"op":"remove","path":"/q"}]"#, member("422")),
            (r#"[{"op":"copy","from":"/q","path":"/r"}]"#, member(r#""r":null"#)),
            (r#"[{"op":"move","from":"/m/x~1y","path":"/m/t~0u"}]"#, member(r#""t~u":1"#)),
            (r#"[{"op":"test","path":"/s","value":3.0}]"#, member("422")),
            (r#"[{"op":"test","path":"/q","value":null}]"#, member(document)),
            (r#"[{"op":"ADD","path":"/q","value":null}]"#, member("422")),
            ("null", member(document)),
            ("[null]", member("422")),
        ];
        for (patch, want) in cases {
            let got = run(document, patch);
            assert!(got.contains(&want), "{patch}: {got}");
        }
    }

    #[test]
    fn documents_are_checked() {
        let cases = [
            ("{}", "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
            ("[1]", "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
            (
                r#"[{"op":"add","path":5}]"#,
                "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
            ),
            ("", "error decoding patch: unexpected end of JSON input"),
        ];
        for (patch, want) in cases {
            assert_eq!(run("{}", patch), want);
        }
        let patch =
            decode_patch(br#"[{},{"op":"add","why":1,"value":{"a":1,"a":2}}]"#, Unknown::Told).expect("decodes");
        let want = [r#"json patch duplicate field "[1].value.a""#, r#"json patch unknown field "[1].why""#];
        assert_eq!(patch.strict_errors, want);
    }
}
