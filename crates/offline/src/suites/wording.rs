//! Expected errors in the wording of former releases.
//!
//! Before Kubernetes 1.34, errors of rules had the type of the value in place of the value, and duplicate values were printed as
//! Go prints maps. Suites that were written then expect the same errors in other words.

/// Types that former errors had in place of a scalar; empty for an integer or string.
const SCALARS: [&str; 5] = ["string", "integer", "number", "boolean", ""];
/// The types of values that are not printed.
const COLLECTIONS: [&str; 2] = ["object", "array"];

const LEAD: &str = "Invalid value: ";

/// Whether a message contains an expected text, in today's wording or in a former one.
pub fn contains(message: &str, expected: &str) -> bool {
    if message.contains(expected) {
        return true;
    }
    let expected = today(expected);
    // numbers with a fraction where a schema wants int32 or int64
    let sized = |size: &str| {
        let of_type = format!("must be of type {size}");
        expected.replace("must be of type integer", &of_type).replace("\"number\"", "\"float64\"")
    };
    [expected.clone(), sized("int32"), sized("int64")].iter().any(|text| matches_former(message, &pieces(text)))
}

/// An expected text in which former wording that has one equivalent today is replaced by it.
fn today(expected: &str) -> String {
    let mut out = expected.replace("Invalid value: \"null\"", "Invalid value: null");
    const MAP: &str = "map[string]interface {}{";
    while let Some(start) = out.find(MAP) {
        let end = out[start + MAP.len()..].find('}').map(|at| start + MAP.len() + at);
        let fields = out[start + MAP.len()..end.unwrap_or(out.len())].replace(", \"", ",\"");
        out.replace_range(start..end.unwrap_or(out.len()), &format!("{{{fields}"));
    }
    out
}

/// The gap between two parts of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Value,
    /// The type of a collection. Errors of rules leave it out.
    Collection(&'static str),
}

/// A part of an expected text, and what may be between it and the part before.
struct Piece {
    gap: Option<Gap>,
    text: String,
}

/// The parts of a text between types that stand for values.
fn pieces(expected: &str) -> Vec<Piece> {
    let mut pieces = vec![Piece { gap: None, text: String::new() }];
    let mut rest = expected;
    // a text may begin with a type
    let mut is_value = true;
    loop {
        if is_value && let Some((gap, after)) = type_of(rest) {
            pieces.push(Piece { gap: Some(gap), text: String::new() });
            rest = after;
        }
        let end = rest.find(LEAD).map_or(rest.len(), |at| at + LEAD.len());
        if let Some(last) = pieces.last_mut() {
            last.text.push_str(&rest[..end]);
        }
        is_value = end < rest.len();
        rest = &rest[end..];
        if !is_value {
            return pieces;
        }
    }
}

/// The type at the beginning of a text and the text after it.
fn type_of(text: &str) -> Option<(Gap, &str)> {
    let after = |kind: &str| {
        text.strip_prefix('"')?.strip_prefix(kind)?.strip_prefix('"').filter(|rest| rest.starts_with(": "))
    };
    let collection =
        COLLECTIONS.into_iter().find_map(|kind| Some((Gap::Collection(kind), after(kind)?.strip_prefix(": ")?)));
    collection.or_else(|| SCALARS.into_iter().find_map(|kind| Some((Gap::Value, after(kind)?))))
}

/// Whether the pieces occur one after the other, with what may be between them.
fn matches_former(message: &str, pieces: &[Piece]) -> bool {
    let Some((first, others)) = pieces.split_first() else { return true };
    message.match_indices(first.text.as_str()).any(|(at, _)| {
        let mut rest = &message[at + first.text.len()..];
        others.iter().all(|piece| match after(rest, piece) {
            Some(behind) => {
                rest = behind;
                true
            }
            None => false,
        })
    })
}

/// What is behind a piece in a text that begins with the gap before it.
fn after<'a>(text: &'a str, piece: &Piece) -> Option<&'a str> {
    match piece.gap {
        Some(Gap::Value) => text.find(piece.text.as_str()).map(|at| &text[at + piece.text.len()..]),
        Some(Gap::Collection(kind)) => {
            let typed = text.strip_prefix(&format!("\"{kind}\": "));
            typed.unwrap_or(text).strip_prefix(piece.text.as_str())
        }
        None => text.strip_prefix(piece.text.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_wordings_are_understood() {
        for (message, expected, wanted) in [
            ("A \"a\" is invalid: spec.f: Required value", "spec.f: Required", true),
            ("spec: Invalid value: a must be set", "spec: Invalid value: \"object\": a must be set", true),
            ("spec: Invalid value: a must be set", "spec: Invalid value: \"string\": b must be set", false),
            ("spec.f: Invalid value: \"x: y\": too odd", "spec.f: Invalid value: \"string\": too odd", true),
            ("spec.f: Invalid value: 7: too odd", "Invalid value: \"integer\": too odd", true),
            ("spec.f: Invalid value: 7: too odd", "Invalid value: \"integer\": too even", false),
            (
                "[a: Invalid value: 1: x, b: Invalid value: 2: y]",
                "[a: Invalid value: \"integer\": x, b: Invalid value: \"integer\": y]",
                true,
            ),
            ("<nil>: Invalid value: null: some rules", "<nil>: Invalid value: \"null\"", true),
            ("l[1]: Duplicate value: {\"k\":\"v\"}", "Duplicate value: map[string]interface {}{\"k\":\"v\"}", true),
            (
                "b: Invalid value: \"object\": in body must be of type string",
                "Invalid value: \"object\": in body",
                true,
            ),
        ] {
            assert_eq!(contains(message, expected), wanted, "{message} {expected}");
        }
    }
}
