//! JSON Patch (RFC 6902) with the quirks of the library that kube-apiserver uses.
//!
//! Indices may be negative; `replace` of a missing field adds it; `copy` of a missing field copies null; a pointer
//! without leading slash loses its first segment; only `test` and `replace` accept the pointer to the whole document.

pub use crate::limits::COPY_BYTES_MAX;
pub use crate::limits::OPERATIONS_MAX;
use std::num::IntErrorKind;

use super::Unknown;
use super::error::{PatchError, PatchPart, StrictError};
use crate::status::Status;
use crate::value::{Map, Text, Value, decode, decode_strict, key_order, quote};
use crate::work;

/// One operation. A missing field, or one of the wrong type, is an error when the operation is applied, not before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// The operation: `add`, `remove`, `replace`, `move`, `copy` or `test`.
    pub op: Option<Text>,
    /// The JSON pointer of the target.
    pub path: Option<Text>,
    /// The JSON pointer of the source of `move` and `copy`.
    pub from: Option<Text>,
    /// The value of `add`, `replace` and `test`.
    pub value: Option<Value>,
}

/// The fields of an operation that are strings.
const TEXTS: [&str; 3] = ["op", "path", "from"];
/// The field of an operation that may be anything.
const VALUE: &str = "value";

/// A decoded document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonPatch {
    /// The operations, in their order.
    pub operations: Vec<Operation>,
    /// Unknown and duplicate fields, in the order of the document.
    pub strict_errors: Vec<StrictError>,
}

/// Decodes the body of a request.
///
/// # Errors
///
/// The bytes are not JSON, an operation is malformed, or there are more than [`OPERATIONS_MAX`].
pub fn decode_patch(bytes: &[u8], unknown: Unknown) -> Result<JsonPatch, PatchError> {
    let patch = match unknown {
        Unknown::Reported => decode_reporting(bytes)?,
        Unknown::Ignored => decode_leniently(bytes)?,
    };
    let count = patch.operations.len();
    if count > OPERATIONS_MAX { Err(PatchError::TooManyOperations { count }) } else { Ok(patch) }
}

fn wrong_type(found: &Value, part: PatchPart) -> PatchError {
    PatchError::WrongType { found: found.json_type(), part }
}

fn decode_items(document: Value) -> Result<Vec<Value>, PatchError> {
    match document {
        Value::Null => Ok(vec![]),
        Value::Array(items) => Ok(items),
        other => Err(wrong_type(&other, PatchPart::Operations)),
    }
}

fn decode_reporting(bytes: &[u8]) -> Result<JsonPatch, PatchError> {
    let decoded = decode_strict(bytes)?;
    let of_known = decoded.duplicates.into_iter().filter(|path| is_of_known_field(path));
    let mut strict: Vec<StrictError> = of_known.map(|path| StrictError { path, is_duplicate: true }).collect();
    let items = decode_items(decoded.value)?;
    let mut operations = Vec::with_capacity(items.len());
    for (i, item) in items.into_iter().enumerate() {
        let fields = match item {
            Value::Null => Map::new(),
            Value::Object(fields) => fields,
            other => return Err(wrong_type(&other, PatchPart::Operation)),
        };
        for name in TEXTS {
            match fields.get(name) {
                None | Some(Value::Null | Value::String(_)) => {}
                Some(other) => return Err(wrong_type(other, PatchPart::OperationField(name))),
            }
        }
        for name in fields.keys().filter(|name| name.as_str() != VALUE && !TEXTS.contains(&name.as_str())) {
            strict.push(StrictError { path: format!("[{i}].{name}"), is_duplicate: false });
        }
        operations.push(operation(fields));
    }
    if strict.len() > 1 {
        let order = key_order(bytes);
        let place = |error: &StrictError| match error.is_duplicate {
            true => order.again(&error.path),
            false => order.first(&error.path),
        };
        strict.sort_by_key(place);
    }
    Ok(JsonPatch { operations, strict_errors: strict })
}

/// Whether a path leads to a field of an operation, or into its value. Unknown fields are not searched.
fn is_of_known_field(path: &str) -> bool {
    let Some((_, field)) = path.split_once("].") else { return false };
    let in_value = || field.strip_prefix(VALUE).is_some_and(|rest| rest.starts_with(['.', '[']));
    field == VALUE || TEXTS.contains(&field) || in_value()
}

fn decode_leniently(bytes: &[u8]) -> Result<JsonPatch, PatchError> {
    let items = decode_items(decode(bytes)?)?;
    let mut operations = Vec::with_capacity(items.len());
    for item in items {
        operations.push(match item {
            Value::Null => Operation::default(),
            Value::Object(fields) => operation(fields),
            other => return Err(wrong_type(&other, PatchPart::Operation)),
        });
    }
    Ok(JsonPatch { operations, strict_errors: vec![] })
}

fn operation(mut fields: Map) -> Operation {
    let mut text = |name: &str| match fields.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    Operation { op: text("op"), path: text("path"), from: text("from"), value: fields.remove("value") }
}

/// The failure of an operation.
struct Failed {
    /// The message of kube-apiserver.
    why: String,
    /// Whether the operation is a `test` whose values differ.
    is_test: bool,
}

type Outcome<T> = Result<T, Failed>;

fn failed(why: String) -> Failed {
    Failed { why, is_test: false }
}

fn missing(what: impl std::fmt::Display) -> Failed {
    failed(format!("{what}: missing value"))
}

/// Units of work for moving an entry of a list or an object.
const ENTRY_UNITS: u64 = 4;

/// Counts the entries that an insertion or removal moves. At the deadline, the patch fails and its result is discarded.
fn count_moved(entries: usize) -> Outcome<()> {
    if work::spend(entries as u64 * ENTRY_UNITS) { Err(failed("the patch is interrupted".to_owned())) } else { Ok(()) }
}

fn within(what: impl std::fmt::Display) -> impl FnOnce(Failed) -> Failed {
    move |Failed { why, is_test }| Failed { why: format!("{what}: {why}"), is_test }
}

/// Applies all operations in turn. If one of them fails, the error is a 422 without details.
pub fn apply(document: Value, patch: &JsonPatch) -> Result<Value, Status> {
    let mut document = document;
    run(&mut document, patch).map_err(|_| Status::generic_invalid())?;
    Ok(document)
}

/// As [`apply`]; the error is kube-apiserver's message about the operation that failed.
pub fn apply_or_report(document: Value, patch: &JsonPatch) -> Result<Value, String> {
    let mut document = document;
    run(&mut document, patch).map_err(|failed| failed.why)?;
    Ok(document)
}

/// As [`apply_or_report`], but a failed `test` is not an error: the document stays as it is, and the result is `None`.
pub fn apply_if_tested(document: Value, patch: &JsonPatch) -> Result<Option<Value>, String> {
    let mut document = document;
    match run(&mut document, patch) {
        Ok(()) => Ok(Some(document)),
        Err(Failed { is_test: true, .. }) => Ok(None),
        Err(Failed { why, .. }) => Err(why),
    }
}

fn run(document: &mut Value, patch: &JsonPatch) -> Outcome<()> {
    let mut copied = 0;
    document.decode_parts();
    patch.operations.iter().try_for_each(|operation| step(document, operation, &mut copied))
}

fn step(document: &mut Value, operation: &Operation, copied: &mut usize) -> Outcome<()> {
    let op = operation.op.as_deref().unwrap_or("unknown");
    let value = || operation.value.clone().unwrap_or_default();
    let absent = |what: &str| missing(format!("{op} operation failed to decode {what}"));
    let missing_path = || match op {
        "add" | "remove" | "copy" => absent("path"),
        _ => failed(format!("{op} operation failed to decode path: operation missing path field: missing value")),
    };
    let path = || operation.path.as_deref().ok_or_else(missing_path);
    let from = || {
        let missing_from =
            || failed(format!("{op} operation failed to decode from: operation, missing from field: missing value"));
        operation.from.as_deref().ok_or_else(missing_from)
    };
    match op {
        "add" => add(document, path()?, value()),
        "remove" => remove(document, path()?),
        "replace" => replace(document, path()?, operation.value.as_ref()),
        "test" => test(document, path()?, operation.value.as_ref()),
        "move" => {
            let from = from()?;
            let (container, key) = parent_mut(document, from).ok_or_else(|| no_parent(op, "from ", from))?;
            let value = take(container, &key).map_err(within(format!("error in move for path: '{key}'")))?;
            let path = path()?;
            let (container, key) = parent_mut(document, path).ok_or_else(|| no_parent(op, "destination ", path))?;
            insert(container, &key, value).map_err(within(format!("error in move for path: '{path}'")))
        }
        "copy" => {
            let from = from()?;
            let (container, key) = parent(document, from).ok_or_else(|| no_parent(op, "from ", from))?;
            let value = child(container, &key).map_err(within(format!("error in copy for from: '{from}'")))?.cloned();
            let path = path()?;
            *copied += value.as_ref().map_or(0, |value| value.to_json().len());
            if *copied > COPY_BYTES_MAX {
                return Err(failed(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {COPY_BYTES_MAX}"
                )));
            }
            let (container, key) = parent_mut(document, path).ok_or_else(|| no_parent(op, "destination ", path))?;
            insert(container, &key, value.unwrap_or_default()).map_err(within("error while adding value during copy"))
        }
        other => Err(failed(format!("Unexpected kind: {other}"))),
    }
}

/// The error of a path whose parent does not exist.
fn no_parent(op: &str, which: &str, path: &str) -> Failed {
    missing(format!("{op} operation does not apply: doc is missing {which}path: {path}"))
}

/// Unescapes a segment of a pointer; unknown escapes stay as they are.
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

/// The segments before the last one, and the last one. As upstream does, ignores text before the first slash.
fn split(path: &str) -> Option<(Vec<String>, String)> {
    let mut parts: Vec<String> = path.split('/').skip(1).map(segment).collect();
    let last = parts.pop()?;
    Some((parts, last))
}

/// An index as Go's `Atoi` reads it.
fn index(text: &str) -> Outcome<i64> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        failed(format!("strconv.Atoi: parsing {}: {why}", quote(text)))
    })
}

fn out_of_range(index: i64) -> Failed {
    failed(format!("Unable to access invalid index: {index}: invalid index referenced"))
}

/// The position that an index names; negative ones count from the end.
fn position(index: i64, length: usize) -> Outcome<usize> {
    let at = if index < 0 { index.checked_add(length as i64).unwrap_or(-1) } else { index };
    usize::try_from(at).ok().filter(|at| *at < length).ok_or_else(|| out_of_range(index))
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

/// A field or an item; `None` if the field is absent.
fn child<'v>(container: &'v Value, key: &str) -> Outcome<Option<&'v Value>> {
    match container {
        Value::Array(items) => position(index(key)?, items.len()).map(|at| items.get(at)),
        other => Ok(other.get(key)),
    }
}

/// The container of the value at a path, and the value's key in it.
fn parent<'v>(document: &'v Value, path: &str) -> Option<(&'v Value, String)> {
    let (parts, key) = split(path)?;
    let mut node = document;
    for part in parts {
        node = child(node, &part).ok()?.filter(|n| is_container(n))?;
    }
    is_container(node).then_some((node, key))
}

fn parent_mut<'v>(document: &'v mut Value, path: &str) -> Option<(&'v mut Value, String)> {
    let (parts, key) = split(path)?;
    let mut node = document;
    for part in parts {
        let next = match node {
            Value::Array(items) => {
                let at = position(index(&part).ok()?, items.len()).ok()?;
                items.get_mut(at)
            }
            other => other.get_mut(&part),
        };
        node = next.filter(|n| is_container(n))?;
    }
    is_container(node).then_some((node, key))
}

/// Inserts a value into a list, or sets a field of an object.
fn insert(container: &mut Value, key: &str, value: Value) -> Outcome<()> {
    match container {
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = index(key).map_err(within(format!("value was not a proper array index: '{key}'")))?;
            let at = position(index, items.len() + 1)?;
            count_moved(items.len() - at)?;
            items.insert(at, value);
        }
        Value::Object(map) => {
            count_moved(map.len())?;
            map.insert(key, value);
        }
        _ => {}
    }
    Ok(())
}

fn take(container: &mut Value, key: &str) -> Outcome<Value> {
    match container {
        Value::Array(items) => {
            let at = position(index(key)?, items.len())?;
            count_moved(items.len() - at)?;
            Ok(items.remove(at))
        }
        Value::Object(map) => {
            count_moved(map.len())?;
            map.remove(key).ok_or_else(|| missing(format!("Unable to remove nonexistent key: {key}")))
        }
        _ => Ok(Value::Null),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Outcome<()> {
    let no_parent = || missing(format!("add operation does not apply: doc is missing path: \"{path}\""));
    let (container, key) = parent_mut(document, path).ok_or_else(no_parent)?;
    insert(container, &key, value).map_err(within(format!("error in add for path: '{path}'")))
}

fn remove(document: &mut Value, path: &str) -> Outcome<()> {
    let no_parent = || missing(format!("remove operation does not apply: doc is missing path: \"{path}\""));
    let (container, key) = parent_mut(document, path).ok_or_else(no_parent)?;
    take(container, &key).map(drop).map_err(within(format!("error in remove for path: '{path}'")))
}

fn replace(document: &mut Value, path: &str, value: Option<&Value>) -> Outcome<()> {
    if path.is_empty() {
        let not_one = || failed("replace operation value must be object or array: %!w(<nil>)".to_owned());
        *document = value.filter(|v| is_container(v)).ok_or_else(not_one)?.clone();
        return Ok(());
    }
    let (container, key) = parent_mut(document, path).ok_or_else(|| no_parent("replace", "", path))?;
    let value = value.cloned().unwrap_or_default();
    match container {
        Value::Array(items) => {
            let at = index(&key).and_then(|index| position(index, items.len()));
            let no_parent = |_| missing(format!("replace operation does not apply: doc is missing key: {path}"));
            *items.get_mut(at.map_err(no_parent)?).ok_or_else(|| out_of_range(0))? = value;
        }
        other => other.set_at(&[&key], value),
    }
    Ok(())
}

fn test(document: &Value, path: &str, want: Option<&Value>) -> Outcome<()> {
    let held = if path.is_empty() {
        Some(document)
    } else {
        let no_parent = || missing(format!("test operation does not apply: is missing path: {path}"));
        let (container, key) = parent(document, path).ok_or_else(no_parent)?;
        child(container, &key).map_err(within(format!("error in test for path: '{path}'")))?
    };
    let same = match (held, want) {
        (None | Some(Value::Null), None | Some(Value::Null)) => true,
        (Some(held), Some(want)) => held == want,
        _ => false,
    };
    if same { Ok(()) } else { Err(Failed { why: format!("testing value {path} failed: test failed"), is_test: true }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(document: &str, patch: &str) -> String {
        let patch = decode_patch(patch.as_bytes(), Unknown::Reported).expect("a patch");
        match apply(decode(document.as_bytes()).expect("JSON"), &patch) {
            Ok(value) => value.to_json(),
            Err(status) => status.code.to_string(),
        }
    }

    #[test]
    fn json_patch_operations_match_upstream() {
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
    fn failure_messages_match_the_json_patch_library() {
        let document = r#"{"l":["a"],"m":{},"s":3}"#;
        let cases = [
            (
                r#"[{"op":"add","path":"/x/y","value":1}]"#,
                r#"add operation does not apply: doc is missing path: "/x/y": missing value"#,
            ),
            (
                r#"[{"op":"add","path":"/l/7","value":1}]"#,
                "error in add for path: '/l/7': Unable to access invalid index: 7: invalid index referenced",
            ),
            (
                r#"[{"op":"add","path":"/l/x","value":1}]"#,
                r#"error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax"#,
            ),
            (
                r#"[{"op":"remove","path":"/m/k"}]"#,
                "error in remove for path: '/m/k': Unable to remove nonexistent key: k: missing value",
            ),
            (
                r#"[{"op":"remove","path":"/s/k"}]"#,
                r#"remove operation does not apply: doc is missing path: "/s/k": missing value"#,
            ),
            (
                r#"[{"op":"replace","path":"/l/1","value":1}]"#,
                "replace operation does not apply: doc is missing key: /l/1: missing value",
            ),
            (
                r#"[{"op":"replace","path":"","value":1}]"#,
                "replace operation value must be object or array: %!w(<nil>)",
            ),
            (
                r#"[{"op":"move","path":"/m/z","from":"/m/k"}]"#,
                "error in move for path: 'k': Unable to remove nonexistent key: k: missing value",
            ),
            (
                r#"[{"op":"move","path":"/x/z","from":"/s"}]"#,
                "move operation does not apply: doc is missing destination path: /x/z: missing value",
            ),
            (
                r#"[{"op":"copy","path":"/m/z","from":"/x/k"}]"#,
                "copy operation does not apply: doc is missing from path: /x/k: missing value",
            ),
            (
                r#"[{"op":"test","path":"/x/k","value":1}]"#,
                "test operation does not apply: is missing path: /x/k: missing value",
            ),
            (r#"[{"op":"test","path":"/s","value":1}]"#, "testing value /s failed: test failed"),
            (r#"[{"op":"grow","path":"/s"}]"#, "Unexpected kind: grow"),
        ];
        for (patch, want) in cases {
            let patch = decode_patch(patch.as_bytes(), Unknown::Ignored).expect("decodes");
            assert_eq!(apply_or_report(decode(document.as_bytes()).expect("JSON"), &patch).expect_err(want), want);
        }
    }

    #[test]
    fn interrupt_ends_patches_that_move_many_entries() {
        let list = Value::Array(vec![Value::Int(0); 100_000]);
        let patch = |operation: &str, count: usize| {
            let operations = vec![operation; count].join(",");
            decode_patch(format!("[{operations}]").as_bytes(), Unknown::Ignored).expect("decodes")
        };
        for operation in [r#"{"op":"add","path":"/l/0","value":1}"#, r#"{"op":"remove","path":"/l/0"}"#] {
            let document = || Value::from([("l", list.clone())]);
            let run = |count| work::interruptible(|| true, || apply_or_report(document(), &patch(operation, count)));
            assert!(run(2).is_ok());
            assert!(run(1_000).is_err_and(|why| why.ends_with("the patch is interrupted")));
        }
    }

    #[test]
    fn json_patch_test_failure_is_not_always_an_error() {
        let run = |patch: &str| {
            let patch = decode_patch(patch.as_bytes(), Unknown::Ignored).expect("decodes");
            apply_if_tested(decode(br#"{"s":3}"#).expect("JSON"), &patch)
                .map(|found| found.map(|value| value.to_json()))
        };
        let add = r#"{"op":"add","path":"/t","value":4}"#;
        assert_eq!(
            run(&format!(r#"[{{"op":"test","path":"/s","value":3}},{add}]"#)),
            Ok(Some(r#"{"s":3,"t":4}"#.to_owned()))
        );
        assert_eq!(run(&format!(r#"[{add},{{"op":"test","path":"/s","value":5}}]"#)), Ok(None));
        assert!(run(r#"[{"op":"test","path":"/x/y","value":5}]"#).is_err());
    }

    #[test]
    fn documents_are_checked() {
        let cases = [
            ("{}", "object", PatchPart::Operations),
            ("[1]", "number", PatchPart::Operation),
            (r#"[{"op":"add","path":5}]"#, "number", PatchPart::OperationField("path")),
        ];
        for (patch, found, part) in cases {
            let error = decode_patch(patch.as_bytes(), Unknown::Reported).unwrap_err();
            assert_eq!(error, PatchError::WrongType { found, part });
        }
        assert!(matches!(decode_patch(b"", Unknown::Reported), Err(PatchError::Json(_))));
    }

    #[test]
    fn strict_errors_are_those_of_known_fields_in_the_order_of_the_document() {
        let cases: [(&str, &[(&str, bool)]); 5] = [
            (r#"{"op":"add","why":1,"value":{"a":1,"a":2}}"#, &[("why", false), ("value.a", true)]),
            (
                r#"{"value":{"a":1,"a":2},"op":"add","why":1,"op":"add"}"#,
                &[("value.a", true), ("why", false), ("op", true)],
            ),
            (r#"{"value":[{"a":1,"a":2}],"value":1}"#, &[("value[0].a", true), ("value", true)]),
            (r#"{"why":{"a":1,"a":2},"valued":[{"a":1,"a":2}]}"#, &[("why", false), ("valued", false)]),
            (r#"{"why":1,"why":1}"#, &[("why", false)]),
        ];
        for (operation, want) in cases {
            let patch = decode_patch(format!("[{{}},{operation}]").as_bytes(), Unknown::Reported).expect("decodes");
            let found = patch.strict_errors.iter().map(|error| (error.path.as_str(), error.is_duplicate));
            let want: Vec<_> = want.iter().map(|(path, is_duplicate)| (format!("[1].{path}"), *is_duplicate)).collect();
            assert!(found.eq(want.iter().map(|(path, is_duplicate)| (path.as_str(), *is_duplicate))), "{operation}");
        }
    }
}
