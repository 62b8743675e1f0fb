//! Resolves paths of fields, in the `fieldPath` of rules and in selectable fields, in a schema: `.a.b` or `['x']`.

use machinery::{FieldPath, Value};

/// Which notations a path may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `.a.b`
    DotsOnly,
    /// `.a['b']` as well.
    Brackets,
}

/// Returns the path in the form of error messages, and the schema that it leads to, if that is declared. Fails with what is
/// wrong with the path.
///
/// As in kube-apiserver (`ValidFieldPath`), whatever follows a dot is a name, a further dot too: `..` is the field `.`.
///
/// ```
/// use cel::rules::{Notation, resolve_field_path};
///
/// let schema = machinery::json!({"properties": {"a": {"additionalProperties": {"type": "string"}}}});
/// let (path, found) = resolve_field_path(".a['b']", &schema, Notation::Brackets).unwrap();
/// assert_eq!((path.as_str(), found.unwrap().str_at(&["type"])), ("a[b]", "string"));
/// ```
pub fn resolve_field_path<'a>(
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
        if let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty()) {
            self.path = self.path.child(name);
            self.schema = Some(properties.get(name).ok_or_else(nowhere)?);
        } else if let Some(additional) = schema.get("additionalProperties") {
            self.path = self.path.key(name);
            self.schema = additional.as_object().map(|_| additional);
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

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn paths_lead_to_declared_fields() {
        let text = json!({"type": "string"});
        let schema = json!({"properties": {
            "a": {"properties": {"b": (text.clone()), ".": (text.clone()), "it's": (text.clone())}},
            "m": {"additionalProperties": (text.clone())},
            "'x.y'": (text),
            "o": {"properties": {}},
        }});
        for (path, want) in [
            (".a.b", Ok("a.b")),
            (".a['b']", Ok("a.b")),
            (r".a['it\'s']", Ok("a.it's")),
            (".m.k", Ok("m[k]")),
            (".m['k.l']", Ok("m[k.l]")),
            (".'x.y'", Ok("'x.y'")),
            (".a..", Ok("a..")),
            ("..", Err("does not refer to a valid field")),
            (".a.b.c", Err("does not refer to a valid field")),
            (".o.x", Err("does not refer to a valid field")),
            ("a", Err("expected [ or . but got: a")),
            (".", Err("unexpected end of JSON path")),
            (".a[", Err("unexpected end of JSON path")),
            (".a['b'", Err("unexpected end of JSON path")),
            (".a['b'.", Err("expected ] but got .")),
            (".a[b]", Err("expected single quoted string but got b")),
            (r".a['\q']", Err("invalid string literal: invalid syntax")),
        ] {
            let found = resolve_field_path(path, &schema, Notation::Brackets).map(|(path, _)| path.as_str().to_owned());
            assert_eq!(found.as_deref().map_err(String::as_str), want, "{path}");
        }
        let refused = resolve_field_path("['a']", &schema, Notation::DotsOnly).err();
        assert_eq!(refused.as_deref(), Some("array notation is not allowed"));
    }
}
