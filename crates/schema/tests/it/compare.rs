//! Compares causes and values with recorded ones.

use machinery::{FieldError, Value};

use crate::exchange::Step;

pub type Verdict = Result<(), String>;

/// Compares causes as sets.
pub fn causes(step: &Step, errors: &[FieldError]) -> Verdict {
    let messages = !step.ignores("details.causes.*.message");
    let recorded = step.response.items_at(&["details", "causes"]);
    let line = |field: &str, reason: &str, message: &str| {
        let message = if messages { without_uids(message) } else { String::new() };
        format!("{field} | {reason} | {message}")
    };
    let mut want: Vec<String> =
        recorded.iter().map(|c| line(c.str_at(&["field"]), c.str_at(&["reason"]), c.str_at(&["message"]))).collect();
    let mut got: Vec<String> = errors.iter().map(|e| line(&e.field, e.kind.as_str(), &e.message())).collect();
    want.sort();
    got.sort();
    if want == got {
        return Ok(());
    }
    let missing: Vec<_> = want.iter().filter(|w| !got.contains(w)).collect();
    let extra: Vec<_> = got.iter().filter(|g| !want.contains(g)).collect();
    Err(format!("causes\n    missing {missing:#?}\n    extra {extra:#?}"))
}

/// Compares values, except where the recording has a placeholder for a time or an identity.
pub fn same(want: &Value, got: &Value) -> bool {
    match (want, got) {
        (Value::String(w), _) if w.contains('<') && w.contains('>') => true,
        (Value::Object(w), Value::Object(g)) => {
            let field = |k: &str, v: &Value, o: &Value| if SORTED.contains(&k) { same_set(v, o) } else { same(v, o) };
            w.len() == g.len() && w.iter().all(|(k, v)| g.get(k).is_some_and(|o| field(k, v, o)))
        }
        (Value::Array(w), Value::Array(g)) => w.len() == g.len() && w.iter().zip(g).all(|(a, b)| same(a, b)),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => want.as_float() == got.as_float(),
        _ => want == got,
    }
}

/// The lists that recordings sort.
const SORTED: &[&str] = &["conditions", "shortNames", "categories"];

fn same_set(want: &Value, got: &Value) -> bool {
    let (Value::Array(w), Value::Array(g)) = (want, got) else { return same(want, got) };
    w.len() == g.len() && w.iter().all(|a| g.iter().any(|b| same(a, b)))
}

/// Hides everything that looks like a uid, as recordings do.
fn without_uids(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let token = rest.strip_prefix("<uid:").and_then(|t| t.find('>')).map(|end| end + 6);
        let uid = rest.get(..36).filter(|t| {
            t.bytes().enumerate().all(|(i, b)| match i {
                8 | 13 | 18 | 23 => b == b'-',
                _ => b.is_ascii_digit() || (b'a'..=b'f').contains(&b),
            })
        });
        match token.or(uid.map(|_| 36)) {
            Some(length) => {
                out.push_str("<uid>");
                rest = &rest[length..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

fn drop_path(value: &mut Value, path: &str) {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    match value {
        Value::Array(items) if head == "*" => items.iter_mut().for_each(|item| drop_path(item, rest)),
        Value::Object(map) if head == "*" => map.values_mut().for_each(|item| drop_path(item, rest)),
        Value::Object(map) if rest.is_empty() => drop(map.remove(head)),
        Value::Object(map) => {
            if let Some(inner) = map.get_mut(head) {
                drop_path(inner, rest);
            }
        }
        _ => {}
    }
}

/// Compares a value without metadata and without what the recording leaves out.
pub fn content(step: &Step, got: &Value) -> Verdict {
    let strip = |value: &Value| {
        let mut value = value.clone();
        value.remove_at(&["metadata"]);
        step.ignore.iter().for_each(|path| drop_path(&mut value, path));
        value
    };
    let (want, got) = (strip(&step.response), strip(got));
    if same(&want, &got) { Ok(()) } else { Err(format!("content\n    want {want}\n    got  {got}")) }
}

/// Compares warnings in any order.
pub fn warnings(step: &Step, texts: &[String]) -> Verdict {
    // headers were recorded as Latin-1
    let latin = |text: &str| text.bytes().map(char::from).collect::<String>();
    let quote = |text: &String| latin(&format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
    let mut want: Vec<String> = step.warnings.iter().filter(|w| !w.contains("duplicate field")).cloned().collect();
    let mut got: Vec<String> = texts.iter().map(quote).collect();
    want.sort();
    got.sort();
    got.dedup();
    want.dedup();
    if want == got { Ok(()) } else { Err(format!("warnings\n    want {want:?}\n    got  {got:?}")) }
}

/// Compares the names and conditions of a definition.
pub fn status(step: &Step, definition: &Value) -> Verdict {
    let hidden = |key: &str| step.ignores("status") || step.ignores(&format!("status.{key}"));
    for key in ["acceptedNames", "conditions"] {
        let (Some(want), false) = (step.response.at(&["status", key]), hidden(key)) else { continue };
        let got = definition.at(&["status", key]).cloned().unwrap_or_default();
        if !same_set(want, &got) {
            return Err(format!("{key}\n    want {want}\n    got  {got}"));
        }
    }
    Ok(())
}
