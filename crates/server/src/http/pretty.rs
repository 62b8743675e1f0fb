//! Pretty-printed JSON, for `?pretty=true`: one field per line.

use machinery::Value;

/// Pretty-prints a value with an indent of two spaces and without a final newline.
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    indent(value, 0, &mut out);
    out
}

/// Appends a pretty-printed value whose first line is already indented by `depth` levels.
pub fn indent(value: &Value, depth: usize, out: &mut String) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('{');
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                out.push_str(&Value::String(key.clone()).to_json());
                out.push_str(": ");
                indent(value, depth + 1, out);
            }
            line(out, depth);
            out.push('}');
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                indent(item, depth + 1, out);
            }
            line(out, depth);
            out.push(']');
        }
        other => out.push_str(&other.to_json()),
    }
}
