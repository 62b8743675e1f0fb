//! The values of literals.

use crate::ast::Literal;
use crate::lexer::kind::*;

pub(super) fn literal_value(kind: u8, sign: &str, text: &str) -> Result<Literal, &'static str> {
    match kind {
        INT => {
            let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
            let value = i64::from_str_radix(&format!("{sign}{digits}"), radix);
            value.map(Literal::Int).map_err(|_| "invalid int literal")
        }
        UINT => {
            let text = &text[..text.len() - 1];
            let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
            u64::from_str_radix(digits, radix).map(Literal::Uint).map_err(|_| "invalid uint literal")
        }
        FLOAT => match format!("{sign}{text}").parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Literal::Double(value)),
            _ => Err("invalid double literal"),
        },
        STRING => {
            let bytes = unescape(text, Content::Text)?;
            String::from_utf8(bytes).map(|s| Literal::String(s.into())).map_err(|_| "unable to unescape string")
        }
        BYTES => unescape(&text[1..], Content::Bytes).map(|bytes| Literal::Bytes(bytes.into())),
        TRUE => Ok(Literal::Bool(true)),
        FALSE => Ok(Literal::Bool(false)),
        _ => Ok(Literal::Null),
    }
}

/// The kind of a literal: escape sequences of code points are only in texts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Text,
    Bytes,
}

/// The content of a string or bytes literal with its quotes and prefix `r`.
fn unescape(literal: &str, content: Content) -> Result<Vec<u8>, &'static str> {
    let raw = literal.starts_with(['r', 'R']);
    let literal = if raw { &literal[1..] } else { literal };
    let triple = literal.len() >= 6 && (literal.starts_with("'''") || literal.starts_with("\"\"\""));
    let quote = if triple { 3 } else { 1 };
    let body = &literal[quote..literal.len() - quote];
    if raw || !body.contains('\\') {
        return Ok(body.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(body.len());
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let escape = chars.next().ok_or("unable to unescape string, found '\\' as last character")?;
        let (digits, radix) = match escape {
            'a' => (None, 7),
            'b' => (None, 8),
            'f' => (None, 12),
            'n' => (None, 10),
            'r' => (None, 13),
            't' => (None, 9),
            'v' => (None, 11),
            '\\' | '\'' | '"' | '`' | '?' => (None, u32::from(escape)),
            'x' | 'X' => (Some(2), 16),
            'u' | 'U' if content == Content::Bytes => return Err("unable to unescape string"),
            'u' => (Some(4), 16),
            'U' => (Some(8), 16),
            '0'..='3' => (Some(2), 8),
            _ => return Err("unable to unescape string"),
        };
        let code = match digits {
            None => radix,
            Some(count) => {
                let mut code = if radix == 8 { u32::from(escape) - u32::from('0') } else { 0 };
                for _ in 0..count {
                    let digit = chars.next().and_then(|c| c.to_digit(radix)).ok_or("unable to unescape string")?;
                    code = code.wrapping_mul(radix).wrapping_add(digit);
                }
                code
            }
        };
        match content {
            Content::Bytes => out.push(code as u8),
            Content::Text => {
                let c = char::from_u32(code).ok_or("invalid unicode code point")?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    Ok(out)
}
