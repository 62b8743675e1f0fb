//! The `fieldPath` of rules: a relative path of names, such as `.a.b` or `['x']`.

use machinery::Value;

/// The path in the form of error messages, if the schema declares it.
pub(super) fn normalized(path: &str, schema: &Value) -> Option<String> {
    let mut out = String::new();
    let mut node = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('[') {
            let (quoted, after) = quoted(after)?;
            rest = after.strip_prefix(']')?;
            name = quoted;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            name = after[..end].to_owned();
            rest = &after[end..];
        }
        if let Some(properties) = node.get("properties") {
            node = properties.get(&name)?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else {
            node = node.get("additionalProperties")?;
            out.push_str(&format!("[{name}]"));
        }
    }
    Some(out)
}

/// The content of a single-quoted string and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut chars = text.char_indices();
    if chars.next()?.1 != '\'' {
        return None;
    }
    let mut out = String::new();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((out, &text[at + 1..])),
            '\\' => out.push(match chars.next()?.1 {
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                c @ ('\'' | '\\') => c,
                _ => return None,
            }),
            c => out.push(c),
        }
    }
    None
}
