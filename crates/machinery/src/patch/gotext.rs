//! Values as Go's `fmt` prints them, for messages that show them so.

use crate::value::shortest::{decimal, scientific};
use crate::value::{Value, quote};

/// `%v` of a float64: shortest digits, an exponent below 1e-4 and from 1e6 on.
pub fn float(f: f64) -> String {
    if f.is_nan() {
        return "NaN".to_owned();
    }
    if f.is_infinite() {
        return if f > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = f.abs();
    if f == 0.0 || (1e-4..1e6).contains(&size) {
        return decimal(f);
    }
    let text = scientific(f);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// `%v` of a value.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => float(*f),
        Value::String(s) => s.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let members: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

/// `%s` of a value: what is no text is told with its type.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(s) => s.to_string(),
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let members: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", text(v))).collect();
            format!("map[{}]", members.join(" "))
        }
        other => format!("%!s({}={})", type_of(other), plain(other)),
    }
}

/// `%#v` of a value.
pub fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(s) => quote(s),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(source).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let members: Vec<String> = map.iter().map(|(k, v)| format!("{}:{}", quote(k), source(v))).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
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
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn values_print_as_in_go() {
        let floats =
            [(1.0, "1"), (1.5, "1.5"), (999_999.5, "999999.5"), (1e6, "1e+06"), (1e21, "1e+21"), (1e-5, "1e-05")];
        for (f, want) in floats {
            assert_eq!(float(f), want);
        }
        let value = json!({"a": [1, "x", null], "b": {"c": true}});
        assert_eq!(plain(&value), "map[a:[1 x <nil>] b:map[c:true]]");
        let want = r#"map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}, "b":map[string]interface {}{"c":true}}"#;
        assert_eq!(source(&value), want);
    }
}
