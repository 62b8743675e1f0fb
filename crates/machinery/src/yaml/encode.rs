//! Block style as go-yaml v2 emits it: two spaces, sequences at the indentation of their key, folding beyond 80
//! columns.

use super::key_order;
use super::style::{Style, is_escaped, is_simple_key, style_of};
use crate::value::{Map, Text, Value, float_text, shortest};

const WIDTH: usize = 80;

/// The document, ending with a line break.
pub fn encode(value: &Value) -> String {
    let mut out = Emitter { text: String::new(), column: 0 };
    if is_block(value) {
        out.block(value, 0);
    } else {
        out.scalar(value, 0);
        out.end_line();
    }
    out.text
}

struct Emitter {
    text: String,
    /// The column of the next character, in characters from 0.
    column: usize,
}

/// Whether a scalar may continue on a new line at a space.
#[derive(Clone, Copy, PartialEq)]
enum Folding {
    Allowed,
    Forbidden,
}

impl Emitter {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn push_char(&mut self, c: char) {
        self.text.push(c);
        self.column += 1;
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.column = 0;
    }

    /// Ends the line, unless a literal block has already ended it.
    fn end_line(&mut self) {
        if self.column > 0 {
            self.line();
        }
    }

    fn indent(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
        self.column += indent;
    }

    /// Writes a non-empty collection, each entry on a new line; the first line is already indented.
    fn block(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) => self.map(map, indent),
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        self.indent(indent);
                    }
                    self.push("-");
                    self.inline(item, indent);
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, map: &Map, indent: usize) {
        let mut fields: Vec<(&Text, &Value)> = map.iter().collect();
        fields.sort_by(|(a, _), (b, _)| key_order::compare(a, b));
        for (i, (key, value)) in fields.into_iter().enumerate() {
            if i > 0 {
                self.indent(indent);
            }
            if is_simple_key(key) {
                self.string(key, indent, Folding::Forbidden);
                self.push(":");
                self.field(value, indent);
            } else {
                self.push("? ");
                self.string(key, indent, Folding::Allowed);
                self.end_line();
                self.indent(indent);
                self.push(":");
                self.inline(value, indent);
            }
        }
    }

    /// Writes a value after its indicator, `-` or `:`. A collection begins on the same line.
    fn inline(&mut self, value: &Value, indent: usize) {
        self.push(" ");
        if is_block(value) {
            self.block(value, indent + 2);
        } else {
            self.scalar(value, indent);
            self.end_line();
        }
    }

    /// Writes the value of a simple key. A collection begins on a new line.
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
            Value::Encoded(text) => self.field(&Value::of_encoded(text), indent),
            other => {
                self.push(" ");
                self.scalar(other, indent);
                self.end_line();
            }
        }
    }

    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.push("null"),
            Value::Bool(b) => self.push(if *b { "true" } else { "false" }),
            Value::Int(i) => self.push(&i.to_string()),
            Value::Float(f) => self.push(&number(*f)),
            Value::Array(_) => self.push("[]"),
            Value::Object(_) => self.push("{}"),
            // JSON is YAML
            Value::Encoded(text) => self.push(text),
            Value::String(text) => self.string(text, indent, Folding::Allowed),
        }
    }

    fn string(&mut self, text: &str, indent: usize, folding: Folding) {
        match style_of(text) {
            Style::Literal => self.literal(text, indent),
            Style::DoubleQuoted => self.double_quoted(text, indent, folding),
            Style::Plain => self.folded(text, indent, folding),
            Style::SingleQuoted => {
                self.push("'");
                self.folded(&text.replace('\'', "''"), indent, folding);
                self.push("'");
            }
        }
    }

    /// Breaks the line at single spaces once it exceeds the width.
    fn folded(&mut self, text: &str, indent: usize, folding: Folding) {
        let mut rest = text.chars().peekable();
        // a text is not folded at its first or last character
        let mut is_place = false;
        while let Some(c) = rest.next() {
            let ends = rest.peek().is_none_or(|next| *next == ' ');
            if c == ' ' && is_place && !ends && folding == Folding::Allowed && self.column > WIDTH {
                self.line();
                self.indent(indent + 2);
            } else {
                self.push_char(c);
            }
            is_place = c != ' ';
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, folding: Folding) {
        self.push("\"");
        // if a text starts with a byte order mark, go-yaml treats every following character as one, too
        let escapes_all = text.starts_with('\u{feff}');
        let mut rest = text.chars().peekable();
        let mut is_place = false;
        while let Some(c) = rest.next() {
            let next = rest.peek();
            if escapes_all || matches!(c, '"' | '\\') || is_escaped(c) {
                self.push(&escape(c));
            } else if c == ' ' && is_place && next.is_some() && folding == Folding::Allowed && self.column > WIDTH {
                self.line();
                self.indent(indent + 2);
                if next == Some(&' ') {
                    self.push("\\");
                }
            } else {
                self.push_char(c);
            }
            is_place = c != ' ';
        }
        self.push("\"");
    }

    /// Writes text of several lines. The part after the last line break of the text also ends with a line break.
    fn literal(&mut self, text: &str, indent: usize) {
        let hint = if text.starts_with([' ', '\n']) { "2" } else { "" };
        let chomping = match text.strip_suffix('\n') {
            None => "-",
            Some(body) if body.is_empty() || body.ends_with('\n') => "+",
            Some(_) => "",
        };
        self.push(&format!("|{hint}{chomping}"));
        self.line();
        for line in text.split_inclusive('\n') {
            let content = line.strip_suffix('\n').unwrap_or(line);
            if !content.is_empty() {
                self.indent(indent + 2);
                self.push(content);
            }
            self.line();
        }
    }
}

/// The escape of a character in double quotes.
fn escape(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        '"' | '\\' => c,
        _ => {
            let code = u32::from(c);
            return match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// A float after a round trip through JSON, where go-yaml reads a number without a point as an integer if it fits 64
/// bits.
fn number(f: f64) -> String {
    let text = float_text(f);
    match (text.parse::<i64>(), text.parse::<u64>()) {
        (Ok(integer), _) => integer.to_string(),
        (_, Ok(_)) => text,
        _ => shortest::float(f),
    }
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
    fn keys_of_several_lines_or_many_bytes_are_explicit() {
        let long = "k".repeat(129);
        let mut of_long = Value::object();
        of_long.set_at(&[&long, "a"], Value::Int(1));
        of_long.set_at(&[&long, "b"], Value::Int(2));
        for (value, want) in [
            (json!({"a\nb": 1}), "? |-\n  a\n  b\n: 1\n".to_owned()),
            (json!({"a\nb": [1], "c": 2}), "? |-\n  a\n  b\n: - 1\nc: 2\n".to_owned()),
            (of_long, format!("? {long}\n: a: 1\n  b: 2\n")),
        ] {
            assert_eq!(encode(&value), want);
        }
    }

    #[test]
    fn numbers() {
        for (float, text) in [
            (18_446_744_073_709_551_616.0, "1.8446744073709552e+19"),
            (1e20, "1e+20"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
            (-1e19, "-1e+19"),
            (1e21, "1e+21"),
            (0.5, "0.5"),
            (-0.0, "0"),
            (1e-7, "1e-07"),
            (0.00001, "1e-05"),
            (123_456.5, "123456.5"),
            (1_234_567.5, "1.2345675e+06"),
        ] {
            assert_eq!(encode(&Value::Float(float)), format!("{text}\n"));
        }
    }

    #[test]
    fn text_with_line_breaks_is_read_back() {
        for text in [
            "\n", "\n\n", "a\n", "a\n\n", "\na", " a\nb", "a\n b\n", "a\u{85}b", "\u{2028}", "a\u{2029}",
            "a\n\u{2029}b", "a\tb\n", "a \nb", "=",
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
