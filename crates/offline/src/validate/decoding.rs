//! Objects that the server cannot decode: which field is to blame, and whether there are others.
//!
//! The server stops at the first value of a wrong type, and names its field only in part, or not at all. The decoder
//! itself is asked instead: without the value to blame, its error is another one.

use machinery::Value;
use machinery::yaml::FieldStep;

use crate::engine::{Engine, Refusal, RequestOptions, Target, Verdict};
use crate::findings::{self, Finding, Severity};
use crate::limits::{DECODE_ERRORS_MAX, DECODE_PROBES_MAX};
use sources::{Document, Object};

/// The message of an error that the decoder has reported.
fn error_of(verdict: &Verdict) -> Option<&str> {
    let status = verdict.outcome.as_ref().err()?;
    (Refusal::of(status) == Refusal::Undecodable).then_some(&status.message)
}

/// The findings of an object that cannot be decoded; `None` for another verdict.
pub async fn findings(
    engine: &Engine,
    target: &Target,
    (document, object): (&Document, &Object),
    verdict: &Verdict,
) -> Option<Vec<Finding>> {
    let mut message = error_of(verdict)?.to_owned();
    let mut search = Search { engine, target, value: (*object.value).clone(), left: DECODE_PROBES_MAX };
    let mut found = vec![];
    while found.len() < DECODE_ERRORS_MAX {
        let path = search.blamed(&message).await;
        found.push(finding(document, object, &path, &message));
        // an error at the root has no value that could be left out
        if path.is_empty() {
            break;
        }
        match search.error().await {
            Some(next) => message = next,
            None => break,
        }
    }
    Some(found)
}

fn finding(document: &Document, object: &Object, path: &[FieldStep], message: &str) -> Finding {
    let field = shown(path);
    let mut finding = findings::at_field(document, object, Severity::Error, "BadRequest", &field, message);
    let last = path.iter().rev().find_map(|step| match step {
        FieldStep::Field(name) => Some(name.as_str()),
        FieldStep::Item(_) => None,
    });
    let is_named = last.is_none_or(|last| message.contains(&format!(".{last} ")));
    if is_named {
        finding.field.clear();
    }
    finding
}

/// A path as the server writes it.
fn shown(path: &[FieldStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            FieldStep::Item(index) => text.push_str(&format!("[{index}]")),
            FieldStep::Field(name) if text.is_empty() => text.push_str(name),
            FieldStep::Field(name) if name.contains(['.', '/']) => text.push_str(&format!("[{name}]")),
            FieldStep::Field(name) => text.push_str(&format!(".{name}")),
        }
    }
    text
}

struct Search<'s> {
    engine: &'s Engine,
    target: &'s Target,
    /// The object without the values that were to blame so far.
    value: Value,
    /// The number of requests that may still be made.
    left: usize,
}

impl Search<'_> {
    async fn error(&mut self) -> Option<String> {
        self.left = self.left.saturating_sub(1);
        let verdict = self.engine.create(self.target, &self.value, &RequestOptions::verdict()).await;
        error_of(&verdict).map(str::to_owned)
    }

    /// Finds the innermost value to blame for an error, and replaces it by null, which any type can be decoded from.
    async fn blamed(&mut self, message: &str) -> Vec<FieldStep> {
        let mut path: Vec<FieldStep> = vec![];
        while let Some(step) = self.blamed_below(&path, message).await {
            path.push(step);
        }
        if let Some(value) = at_mut(&mut self.value, &path).filter(|_| !path.is_empty()) {
            *value = Value::Null;
        }
        path
    }

    /// The first field or item of a value to blame, if there is one. A binary search: the error is the same as long as this one is
    /// left, whatever is to blame behind it.
    async fn blamed_below(&mut self, path: &[FieldStep], message: &str) -> Option<FieldStep> {
        let mut candidates = steps_of(at_mut(&mut self.value, path)?);
        if path.is_empty() {
            candidates.retain(|step| !matches!(step, FieldStep::Field(name) if name == "apiVersion" || name == "kind"));
        }
        if candidates.is_empty() || !self.changes(path, &candidates, message).await {
            return None;
        }
        let (mut from, mut to) = (0, candidates.len());
        while to - from > 1 {
            let middle = usize::midpoint(from, to);
            if self.changes(path, &candidates[middle..], message).await { from = middle } else { to = middle }
        }
        candidates.into_iter().nth(from)
    }

    /// Whether the error is another one if these fields or items are null.
    async fn changes(&mut self, path: &[FieldStep], steps: &[FieldStep], message: &str) -> bool {
        if self.left == 0 {
            return false;
        }
        let Some(around) = at_mut(&mut self.value, path) else { return false };
        let taken: Vec<Value> =
            steps.iter().map(|step| child(around, step).map(std::mem::take).unwrap_or_default()).collect();
        let error = self.error().await;
        if let Some(around) = at_mut(&mut self.value, path) {
            for (step, taken) in steps.iter().zip(taken) {
                child(around, step).into_iter().for_each(|value| value.clone_from(&taken));
            }
        }
        error.as_deref() != Some(message)
    }
}

fn steps_of(value: &Value) -> Vec<FieldStep> {
    match value {
        Value::Object(fields) => fields.keys().map(|name| FieldStep::Field(name.to_string())).collect(),
        Value::Array(items) => (0..items.len()).map(FieldStep::Item).collect(),
        _ => vec![],
    }
}

fn child<'v>(value: &'v mut Value, step: &FieldStep) -> Option<&'v mut Value> {
    match step {
        FieldStep::Field(name) => value.get_mut(name),
        FieldStep::Item(index) => value.as_array_mut()?.get_mut(*index),
    }
}

fn at_mut<'v>(value: &'v mut Value, path: &[FieldStep]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, child)
}
