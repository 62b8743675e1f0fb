//! Block style as Go's yaml.v2 emits it: two spaces, sequences at the indentation of their key, folding beyond 80.

use super::resolve::{Scalar, untagged};
use crate::value::shortest::scientific;
use crate::value::{Value, float_text};

const WIDTH: usize = 80;

/// The document, ending with a line break.
pub fn encode(value: &Value) -> String {
    let mut out = Emitter { text: String::new(), column: 0 };
    match value {
        Value::Object(map) if !map.is_empty() => out.block(value, 0),
        Value::Array(items) if !items.is_empty() => out.block(value, 0),
        other => {
            out.scalar(other, 0, false);
            out.text.push('\n');
        }
    }
    out.text
}

struct Emitter {
    text: String,
    column: usize,
}

impl Emitter {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.column = 0;
    }

    fn indent(&mut self, indent: usize) {
        self.push(&" ".repeat(indent));
    }

    /// Writes a non-empty collection, each entry on a new line; the first line is already indented.
    fn block(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) => {
                for (i, (key, value)) in map.iter().enumerate() {
                    if i > 0 {
                        self.indent(indent);
                    }
                    self.scalar(&Value::String(key.clone()), indent, true);
                    self.push(":");
                    self.field(value, indent);
                }
            }
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        self.indent(indent);
                    }
                    self.push("- ");
                    if is_block(item) {
                        self.block(item, indent + 2);
                    } else {
                        self.scalar(item, indent, false);
                        self.line();
                    }
                }
            }
            _ => {}
        }
    }

    fn field(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                self.line();
                self.indent(indent + 2);
                self.block(value, indent + 2);
            }
            Value::Array(items) if !items.is_empty() => {
                self.line();
                self.indent(indent);
                self.block(value, indent);
            }
            other => {
                self.push(" ");
                self.scalar(other, indent, false);
                self.line();
            }
        }
    }

    fn scalar(&mut self, value: &Value, indent: usize, key: bool) {
        match value {
            Value::Null => self.push("null"),
            Value::Bool(b) => self.push(if *b { "true" } else { "false" }),
            Value::Int(i) => self.push(&i.to_string()),
            Value::Float(f) => self.push(&number(*f)),
            Value::Array(_) => self.push("[]"),
            Value::Object(_) => self.push("{}"),
            Value::String(text) => self.string(text, indent, key),
        }
    }

    fn string(&mut self, text: &str, indent: usize, key: bool) {
        // characters beyond the basic plane do not count as printable; YAML treats U+2028 and U+2029 as line breaks
        let is_special = |c: char| {
            (c.is_control() && c != '\n') || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') || c > '\u{ffff}'
        };
        let special = text.chars().any(is_special);
        if special || (key && text.contains('\n')) {
            self.double_quoted(text);
        } else if text.contains('\n') {
            self.literal(text, indent);
        } else if looks_typed(text) {
            // a string that would read as another type is always double-quoted
            self.double_quoted(text);
        } else if plain_allowed(text) {
            self.folded(text, indent, key, |c| c.to_string());
        } else {
            self.push("'");
            self.folded(text, indent, key, |c| if c == '\'' { "''".to_owned() } else { c.to_string() });
            self.push("'");
        }
    }

    fn folded(&mut self, text: &str, indent: usize, key: bool, write: impl Fn(char) -> String) {
        let chars: Vec<char> = text.chars().collect();
        for (i, c) in chars.iter().enumerate() {
            let lone = *c == ' ' && i > 0 && i + 1 < chars.len() && chars[i - 1] != ' ' && chars[i + 1] != ' ';
            if lone && !key && self.column > WIDTH {
                self.line();
                self.indent(indent + 2);
            } else {
                self.push(&write(*c));
            }
        }
    }

    fn literal(&mut self, text: &str, indent: usize) {
        let body = text.trim_end_matches('\n');
        let ends = text.len() - body.len();
        let lead = if text.starts_with([' ', '\n']) { "2" } else { "" };
        let chomp = match ends {
            0 => "-",
            // text of a single line break needs "keep"
            1 if !body.is_empty() => "",
            _ => "+",
        };
        self.push(&format!("|{lead}{chomp}"));
        let lines = if body.is_empty() { "" } else { body };
        for line in lines.split('\n') {
            self.line();
            if !line.is_empty() {
                self.indent(indent + 2);
                self.push(line);
            }
        }
        for _ in 1..ends {
            self.line();
        }
    }

    fn double_quoted(&mut self, text: &str) {
        self.push("\"");
        for c in text.chars() {
            match c {
                '"' => self.push("\\\""),
                '\\' => self.push("\\\\"),
                '\n' => self.push("\\n"),
                '\t' => self.push("\\t"),
                '\r' => self.push("\\r"),
                '\0' => self.push("\\0"),
                '\u{7}' => self.push("\\a"),
                '\u{8}' => self.push("\\b"),
                '\u{b}' => self.push("\\v"),
                '\u{c}' => self.push("\\f"),
                '\u{1b}' => self.push("\\e"),
                '\u{85}' => self.push("\\N"),
                '\u{2028}' => self.push("\\L"),
                '\u{2029}' => self.push("\\P"),
                '\u{feff}' => self.push("\\uFEFF"),
                c if (c as u32) < 0x100 && c.is_control() => self.push(&format!("\\x{:02X}", c as u32)),
                c if c > '\u{ffff}' => self.push(&format!("\\U{:08X}", c as u32)),
                c => self.push(&c.to_string()),
            }
        }
        self.push("\"");
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Whether `text`, written as a plain scalar, would be decoded as another type than a string.
fn looks_typed(text: &str) -> bool {
    let date = text.len() >= 8 && text.as_bytes()[..4].iter().all(u8::is_ascii_digit) && text.as_bytes()[4] == b'-';
    let sexagesimal = text.contains(':')
        && text.split(':').all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit() || b == b'_' || b == b'.'));
    text == "<<" || !matches!(untagged(&text.into()), Scalar::Text(_)) || sexagesimal || (date && is_timestamp(text))
}

fn is_timestamp(text: &str) -> bool {
    crate::time::parse_rfc3339(text).is_some()
        || (text.len() == 10 && crate::time::parse_rfc3339(&format!("{text}T00:00:00Z")).is_some())
}

fn plain_allowed(text: &str) -> bool {
    let bytes = text.as_bytes();
    let Some(&first) = bytes.first() else { return false };
    if text.starts_with(' ') || text.ends_with(' ') || text.starts_with("---") || text.starts_with("...") {
        return false;
    }
    if b"#,[]{}&*!|>'\"%@`".contains(&first) {
        return false;
    }
    if b"-?:".contains(&first) && matches!(bytes.get(1), None | Some(b' ')) {
        return false;
    }
    if first == b'=' && bytes.len() == 1 {
        return false;
    }
    !(text.contains(": ") || text.ends_with(':') || text.contains(" #"))
}

/// A float as go-yaml writes numbers from JSON: digits alone if 64 bits can hold the integer, otherwise with an exponent.
fn number(f: f64) -> String {
    const BEYOND_UINT64: f64 = 18_446_744_073_709_551_616.0;
    const BELOW_INT64: f64 = -9_223_372_036_854_775_808.0;
    let text = float_text(f);
    let is_integer = text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    if is_integer && !(BELOW_INT64..BEYOND_UINT64).contains(&f) {
        return scientific(f).replace('e', "e+");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn documents() {
        let value = json!({
            "a": 1, "b": [1, {"c": "x", "d": []}], "e": {}, "f": "true", "g": "a: b", "h": "two\nlines\n", "i": "it's",
            "t": "2024-01-01T00:00:00Z"
        });
        let want = "a: 1\nb:\n- 1\n- c: x\n  d: []\ne: {}\nf: \"true\"\ng: 'a: b'\nh: |\n  two\n  lines\ni: it's\nt: \"2024-01-01T00:00:00Z\"\n";
        assert_eq!(encode(&value), want);
    }

    #[test]
    fn integers_beyond_64_bits_have_an_exponent() {
        for (float, text) in [
            (18_446_744_073_709_551_616.0, "1.8446744073709552e+19"),
            (1e20, "1e+20"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
            (-1e19, "-1e+19"),
            (1e21, "1e+21"),
            (0.5, "0.5"),
        ] {
            assert_eq!(encode(&Value::Float(float)), format!("{text}\n"));
        }
    }

    #[test]
    fn carriage_returns_are_normalized() {
        for text in [
            "\n",
            "\n\n",
            "a\n",
            "a\n\n",
            "\na",
            " a\nb",
            "a\n b\n",
            "a\u{85}b",
            "\u{2028}",
            "a\u{2029}",
            "a\n\u{2029}b",
            "<<",
            "=",
        ] {
            let mut value = json!({"a": (text), "b": [(text)]});
            value.set_at(&["c", text], Value::Int(1));
            let written = encode(&value);
            let read = crate::yaml::decode(written.as_bytes()).map(|decoded| decoded.value);
            assert_eq!(read.ok(), Some(value), "{written:?}");
        }
    }

    #[test]
    fn long_lines_fold() {
        let message = "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        let want = "message: 'only the following media types are accepted: application/json;stream=watch,\n  application/vnd.kubernetes.protobuf;stream=watch'\n";
        assert_eq!(encode(&json!({"message": message})), want);
    }
}
