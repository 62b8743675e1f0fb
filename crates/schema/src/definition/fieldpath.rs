//! Resolves paths of fields, in rules and in selectable fields, in a schema.

use machinery::{FieldPath, Value};

use super::openapi::{additional, has_properties, property};

/// Which notations a path may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    DotsOnly,
    Brackets,
}

/// The normalised path, and the schema that it leads to.
pub(super) fn resolve<'a>(
    path: &str,
    schema: &'a Value,
    notation: Notation,
) -> Result<(FieldPath, Option<&'a Value>), String> {
    let mut walk = PathWalk { path: FieldPath::root(), schema: Some(schema) };
    let mut tokens = Tokens { rest: path };
    const END: &str = "unexpected end of JSON path";
    while let Some(token) = tokens.next() {
        match token {
            "[" if notation == Notation::DotsOnly => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let token = tokens.next().ok_or(END)?;
                let quoted = token.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
                let quoted = quoted.ok_or_else(|| format!("expected single quoted string but got {token}"))?;
                walk.step(&unescape(quoted)?)?;
                let token = tokens.next().ok_or(END)?;
                if token != "]" {
                    return Err(format!("expected ] but got {token}"));
                }
            }
            "." => walk.step(tokens.next().ok_or(END)?)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok((walk.path, walk.schema))
}

struct PathWalk<'a> {
    path: FieldPath,
    schema: Option<&'a Value>,
}

impl PathWalk<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        let nowhere = || "does not refer to a valid field".to_owned();
        let schema = self.schema.ok_or_else(nowhere)?;
        if has_properties(schema) {
            self.path = self.path.child(name);
            self.schema = Some(property(schema, name).ok_or_else(nowhere)?);
        } else if schema.get("additionalProperties").is_some() {
            self.path = self.path.key(name);
            self.schema = additional(schema);
        } else {
            return Err(nowhere());
        }
        Ok(())
    }
}

/// Splits a path into delimiters, quoted strings, and the texts between them.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest;
        let first = rest.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = rest.as_bytes();
                (1..bytes.len()).find(|&i| bytes[i] == b'\'' && bytes[i - 1] != b'\\').map_or(rest.len(), |i| i + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        self.rest = after;
        Some(token)
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(c @ ('\\' | '\'')) => c,
            _ => return Err("invalid string literal: invalid syntax".to_owned()),
        });
    }
    Ok(out)
}
