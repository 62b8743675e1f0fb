//! Field selectors: `path=value`, `path==value`, `path!=value`, joined by commas, with backslash escapes.

use crate::Text;

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The path of the field, such as `metadata.name`.
    pub field: Text,
    /// The value to compare the field with.
    pub value: Text,
    /// Whether the operator is `!=` rather than `=`.
    pub negated: bool,
}

/// A conjunction of requirements. An empty selector selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// The requirements, all of which must hold.
    pub requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// Whether the selector selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object is selected. Its fields are looked up as text, and an absent field is an empty text.
    pub fn matches(&self, field: impl Fn(&str) -> Text) -> bool {
        self.requirements.iter().all(|r| (field(&r.field) == r.value) != r.negated)
    }

    /// The value that `field` must equal, if exactly one requirement demands it.
    pub fn exact(&self, field: &str) -> Option<&Text> {
        let mut terms = self.requirements.iter().filter(|r| r.field == field && !r.negated);
        let first = terms.next()?;
        terms.next().is_none().then_some(&first.value)
    }

    /// Parses the text of a `fieldSelector` parameter. The error is the message of the 400.
    pub fn parse(text: &str) -> Result<FieldSelector, String> {
        let mut requirements = vec![];
        let mut terms = terms(text);
        terms.sort_unstable();
        for term in terms {
            if term.is_empty() {
                continue;
            }
            let Some((field, operator, value)) = split_operator(term) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
            };
            let value = unescape(value)?;
            if field.is_empty() && value.is_empty() {
                continue;
            }
            requirements.push(FieldRequirement { field: field.into(), value, negated: operator == "!=" });
        }
        Ok(FieldSelector { requirements })
    }
}

/// Splits at commas that no backslash escapes.
fn terms(text: &str) -> Vec<&str> {
    let mut out = vec![];
    let (mut start, mut escaped) = (0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                out.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

fn split_operator(term: &str) -> Option<(&str, &str, &str)> {
    for (i, _) in term.char_indices() {
        for operator in ["!=", "==", "="] {
            if let Some(value) = term[i..].strip_prefix(operator) {
                return Some((&term[..i], operator, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<Text, String> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(value.into());
    }
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {}", c as u32)),
            c => out.push(c),
        }
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        let parsed = FieldSelector::parse("a=1,b!=x\\,y,,c==").unwrap();
        let terms: Vec<_> =
            parsed.requirements.iter().map(|r| (r.field.as_str(), r.value.as_str(), r.negated)).collect();
        assert_eq!(terms, [("a", "1", false), ("b", "x,y", true), ("c", "", false)]);
        assert!(FieldSelector::parse("==").unwrap().is_empty());
        let cases = [
            ("spec.color", "invalid selector: 'spec.color'; can't understand 'spec.color'"),
            ("c in (red,blue)", "invalid selector: 'c in (red,blue)'; can't understand 'blue)'"),
            ("a=a\\x", "invalid field selector: invalid escape sequence: \\x"),
            ("a=a=b", "invalid field selector: unescaped character in value: 61"),
        ];
        for (text, want) in cases {
            assert_eq!(FieldSelector::parse(text).unwrap_err(), want);
        }
    }
}
