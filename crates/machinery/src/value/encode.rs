//! Canonical JSON: compact, sorted, escaped and formatted as Go's encoder does it.

use super::scan::{below, equal, unmarked, with_bits};
use super::shortest::{decimal, scientific};
use super::{Text, Value};

/// Appends `value` as compact JSON.
pub fn write_json(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(i) => out.extend_from_slice(itoa::Buffer::new().format(*i).as_bytes()),
        Value::Float(f) => out.extend_from_slice(float_text(*f).as_bytes()),
        Value::String(s) => write_json_string(s, out),
        Value::Encoded(text) => out.extend_from_slice(text.as_bytes()),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_json(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            out.push(b'{');
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_json_string(key, out);
                out.push(b':');
                write_json(value, out);
            }
            out.push(b'}');
        }
    }
}

/// Appends `text` as a JSON string; `<`, `>`, `&`, U+2028 and U+2029 are escaped as Go's encoder does by default.
pub fn write_json_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(unmarked(rest, escaped));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else { break };
        rest = after;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            SEPARATOR_LEAD => match after {
                [0x80, 0xa8, after @ ..] => {
                    out.extend_from_slice(b"\\u2028");
                    rest = after;
                }
                [0x80, 0xa9, after @ ..] => {
                    out.extend_from_slice(b"\\u2029");
                    rest = after;
                }
                _ => out.push(byte),
            },
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
    }
    out.push(b'"');
}

/// The first byte of U+2028 and U+2029 in UTF-8. Other characters begin with it too.
const SEPARATOR_LEAD: u8 = 0xe2;

/// Marks the bytes that are not written as they are.
fn escaped(word: u64) -> u64 {
    // `"` and `&` differ only in bit 0x04, `<` and `>` only in bit 0x02: with that bit set, one comparison finds both
    equal(with_bits(word, 0x04), b'&')
        | equal(with_bits(word, 0x02), b'>')
        | equal(word, b'\\')
        | equal(word, SEPARATOR_LEAD)
        | below(word, 0x20)
}

/// A float as Go's JSON encoder prints it: the shortest digits that read back as `f`, with an exponent from 1e21 on (`1e+21`) and
/// below 1e-6 (`1e-7`).
pub fn float_text(f: f64) -> String {
    let magnitude = f.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = scientific(f);
        return if text.contains("e-") { text } else { text.replace('e', "e+") };
    }
    decimal(f)
}

/// The short escape of a character in a literal of Go, if it has one.
pub fn go_escape(c: char) -> Option<&'static str> {
    Some(match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\x07' => "\\a",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\x0b' => "\\v",
        _ => return None,
    })
}

/// `text` quoted as by Go's `%q`.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if let Some(escape) = go_escape(c) {
            out.push_str(escape);
            continue;
        }
        match c {
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if is_printable(c) => out.push(c),
            c if (c as u32) < 0x10000 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push_str(&format!("\\U{:08x}", c as u32)),
        }
    }
    out.push('"');
    out
}

/// `texts` as Go prints a slice of strings with `%q`.
pub fn quote_list(texts: &[Text]) -> String {
    let all: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", all.join(" "))
}

/// Approximates Go's `strconv.IsPrint`: false for control and format characters, spaces other than U+0020, private use and
/// non-characters. Unlike there, unassigned code points are printable.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\u{80}'..='\u{a0}' | '\u{ad}' => false,
        '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' => false,
        '\u{1680}' | '\u{3000}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{fffb}' => false,
        '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}' => false,
        c => (c as u32) & 0xfffe != 0xfffe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_like_go() {
        let cases = [
            (1.0, "1"),
            (-0.0, "-0"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-7"),
            (0.000001, "0.000001"),
            (1.38e-23, "1.38e-23"),
            (123456.789, "123456.789"),
        ];
        for (f, want) in cases {
            assert_eq!(float_text(f), want);
        }
    }

    #[test]
    fn strings_are_escaped_like_go() {
        let mut out = vec![];
        write_json_string("a<b>&\u{2028}\u{2029}\u{2027}\u{1}\n\"é—", &mut out);
        let expected = "\"a\\u003cb\\u003e\\u0026\\u2028\\u2029\u{2027}\\u0001\\n\\\"é—\"";
        assert_eq!(String::from_utf8_lossy(&out), expected);
        assert_eq!(quote("a\"b\u{7f}\u{200b}é\n"), r#""a\"b\x7f\u200bé\n""#);
    }
}
