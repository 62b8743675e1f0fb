//! Why the server refuses an object, as far as its Status has no code for it: only the words of its messages differ.

use machinery::Status;
use machinery::status::Cause;

#[derive(Debug, PartialEq, Eq)]
pub enum Refusal<'s> {
    /// Unknown and duplicate fields, with their texts.
    Strict(Vec<(String, String)>),
    /// A value has another type than its field, so that nothing else was checked.
    Undecodable,
    /// Fields that an applied object has but its schema has not, and why they do not fit. There are no causes.
    Untyped(Vec<(&'s str, &'s str)>),
    /// Rules cost too much by estimate, and nothing else is wrong.
    Costs,
    /// Everything that is wrong is in the causes and the message.
    Other,
}

impl Refusal<'_> {
    pub fn of(status: &Status) -> Refusal<'_> {
        let message = status.message.as_str();
        let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
        let untyped =
            message.split_once("failed to create typed patch object (").and_then(|(_, rest)| rest.split_once("): "));
        if let Some((_, list)) = message.split_once("strict decoding error: ") {
            Refusal::Strict(strict_parts(list))
        } else if status.code == 400 && message.contains("cannot be handled as a") {
            Refusal::Undecodable
        } else if let Some((_, list)) = untyped {
            let lines = list.lines().filter_map(|line| line.trim_start().strip_prefix('.')?.split_once(": "));
            Refusal::Untyped(lines.collect())
        } else if !causes.is_empty() && causes.iter().all(is_cost) {
            Refusal::Costs
        } else {
            Refusal::Other
        }
    }
}

fn is_cost(cause: &Cause) -> bool {
    cause.reason == "FieldValueForbidden" && cause.message.contains("estimated rule cost")
}

/// Whether a cause only says that the server has stopped before all rules were checked.
pub fn is_unfinished(cause: &Cause) -> bool {
    cause.field == "<nil>" && cause.message.contains("some validation rules were not checked")
}

/// The unknown and duplicate fields of a strict decoding error, with their texts.
fn strict_parts(list: &str) -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> = vec![];
    for part in list.split(", ") {
        match part.split_once("field \"").and_then(|(_, rest)| rest.split_once('"')) {
            Some((field, _)) => {
                let text = part.split(" \"").next().unwrap_or(part);
                parts.push((field.to_owned(), text.to_owned()));
            }
            None => match parts.last_mut() {
                Some((_, text)) => text.push_str(&format!(", {part}")),
                None => parts.push((String::new(), part.to_owned())),
            },
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_errors_are_taken_apart() {
        let list = "unknown field \"spec.a\", duplicate field \"spec.b\", json: odd, text";
        let want = [("spec.a", "unknown field"), ("spec.b", "duplicate field, json: odd, text")];
        assert_eq!(strict_parts(list), want.map(|(field, text)| (field.to_owned(), text.to_owned())));
    }

    #[test]
    fn fields_of_typed_patches_are_found() {
        let text = |list: &str| format!("failed to create typed patch object (n/a; g.io/v1, Kind=A): {list}");
        for (message, want) in [
            (text(".spec.a: field not declared in schema"), vec![("spec.a", "field not declared in schema")]),
            (
                text("errors:\n  .spec.a: expected map, got &{[1]}\n  .spec.b[0]: b"),
                vec![("spec.a", "expected map, got &{[1]}"), ("spec.b[0]", "b")],
            ),
        ] {
            let status = Status::untyped(500, &message);
            assert_eq!(Refusal::of(&status), Refusal::Untyped(want), "{message}");
        }
    }
}
