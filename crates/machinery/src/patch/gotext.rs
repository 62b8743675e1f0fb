//! Values as Go's `fmt` prints them, for messages that contain them.

use crate::value::shortest::float;
use crate::value::{Value, quote};

/// `%v` of a value.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => float(*f),
        Value::String(s) => s.to_string(),
        Value::Encoded(text) => plain(&Value::of_encoded(text)),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let fields: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// `%s` of a value: anything but text is printed with its type, and a null within another value without one.
pub fn text(value: &Value) -> String {
    let inner = |value: &Value| if value.is_null() { plain(value) } else { text(value) };
    match value {
        Value::String(s) => s.to_string(),
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Encoded(json) => text(&Value::of_encoded(json)),
        Value::Array(items) => format!("[{}]", items.iter().map(inner).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let fields: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", inner(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => format!("%!s({}={})", type_of(other), plain(other)),
    }
}

/// `%#v` of a value.
pub fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(s) => quote(s),
        Value::Encoded(text) => source(&Value::of_encoded(text)),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(source).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<String> = map.iter().map(|(k, v)| format!("{}:{}", quote(k), source(v))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        other => plain(other),
    }
}

/// `%T` of a value.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) | Value::Encoded(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn values_print_like_go() {
        let floats =
            [(1.0, "1"), (1.5, "1.5"), (999_999.5, "999999.5"), (1e6, "1e+06"), (1e21, "1e+21"), (1e-5, "1e-05")];
        for (f, want) in floats {
            assert_eq!(float(f), want);
        }
        let value = json!({"a": [1, "x", null], "b": {"c": true}});
        assert_eq!(plain(&value), "map[a:[1 x <nil>] b:map[c:true]]");
        let want = r#"map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}, "b":map[string]interface {}{"c":true}}"#;
        assert_eq!(source(&value), want);
        assert_eq!(text(&value), "map[a:[%!s(int64=1) x <nil>] b:map[c:%!s(bool=true)]]");
        assert_eq!(text(&Value::Null), "%!s(<nil>)");
    }
}
