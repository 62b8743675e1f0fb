//! The parser: text to steps.

use super::{Filter, PathStep, Slice};
use crate::limits::JSONPATH_DEPTH_MAX;
use crate::value::{Text, Value};

/// The steps of every action of `{text}`. There is usually one action, but more if the text contains `}` and `{`.
pub(super) fn template(text: &str) -> Result<Vec<Vec<PathStep>>, String> {
    actions(text, 0)
}

/// The steps of the first action. Further actions only have to be well-formed.
fn action(text: &str, depth: usize) -> Result<Vec<PathStep>, String> {
    actions(text, depth).map(|actions| actions.into_iter().next().unwrap_or_default())
}

fn actions(text: &str, depth: usize) -> Result<Vec<Vec<PathStep>>, String> {
    if depth > JSONPATH_DEPTH_MAX {
        return Err("too deep".to_owned());
    }
    let input = format!("{{{text}}}");
    let mut parser = PathParser { input: &input, at: 1, depth };
    let mut actions = vec![parser.inside()?];
    while let Some(next) = parser.rest().find('{') {
        parser.at += next + 1;
        actions.push(parser.inside()?);
    }
    Ok(actions)
}

struct PathParser<'t> {
    input: &'t str,
    at: usize,
    depth: usize,
}

fn is_terminator(c: Option<char>) -> bool {
    matches!(c, None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'))
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl<'t> PathParser<'t> {
    fn rest(&self) -> &'t str {
        self.input.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    /// Consumes and returns the text up to the next character that is not `kept`.
    fn take(&mut self, kept: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !kept(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Parses the steps up to the closing brace and consumes it.
    fn inside(&mut self) -> Result<Vec<PathStep>, String> {
        let mut nodes = vec![];
        loop {
            if self.eat("}") {
                return Ok(nodes);
            }
            if self.eat("[?(") {
                nodes.push(self.filter()?);
                continue;
            }
            if self.eat("..") {
                if nodes.last() == Some(&PathStep::Recursive) {
                    return Err("invalid multiple recursive descent".to_owned());
                }
                nodes.push(PathStep::Recursive);
                if self.peek().is_some_and(is_alphanumeric) {
                    nodes.push(self.field());
                }
                continue;
            }
            match self.peek() {
                None | Some('\r' | '\n') => return Err("unclosed action".to_owned()),
                Some(' ' | '@' | '$') => drop(self.next()),
                Some('[') => self.array(&mut nodes)?,
                Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(quote)?),
                Some('.') => {
                    self.next();
                    nodes.push(self.field());
                }
                Some(c) if c == '+' || c == '-' || c.is_numeric() => nodes.push(self.number()?),
                Some(c) if is_alphanumeric(c) => nodes.push(self.word()),
                Some(c) => return Err(format!("unrecognized character in action: U+{:04X} '{c}'", u32::from(c))),
            }
        }
    }

    fn field(&mut self) -> PathStep {
        let start = self.at;
        loop {
            if self.peek() == Some('\\') {
                self.next();
                self.next();
            } else if is_terminator(self.peek()) {
                break;
            } else {
                self.next();
            }
        }
        match self.input.get(start..self.at).unwrap_or_default() {
            "*" => PathStep::Wildcard,
            name => PathStep::Field(Text::from(name.replace('\\', ""))),
        }
    }

    fn word(&mut self) -> PathStep {
        match self.take(|c| !is_terminator(Some(c))) {
            "true" => PathStep::Literal(Value::Bool(true)),
            "false" => PathStep::Literal(Value::Bool(false)),
            word => PathStep::Word(word.into()),
        }
    }

    fn number(&mut self) -> Result<PathStep, String> {
        let start = self.at;
        if matches!(self.peek(), Some('+' | '-')) {
            self.next();
        }
        self.take(|c| c == '.' || c.is_numeric());
        let text = self.input.get(start..self.at).unwrap_or_default();
        if let Ok(i) = text.parse::<i64>() {
            return Ok(PathStep::Literal(Value::Int(i)));
        }
        let float = text.parse::<f64>().map(|f| PathStep::Literal(Value::Float(f)));
        float.map_err(|_| format!("cannot parse number {text}"))
    }

    fn quoted(&mut self, quote: char) -> Result<PathStep, String> {
        let start = self.at;
        self.next();
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated quoted string".to_owned()),
                Some(c) if c == quote && self.input.as_bytes().get(self.at.wrapping_sub(2)) != Some(&b'\\') => break,
                Some(_) => {}
            }
        }
        let text = self.input.get(start..self.at).unwrap_or_default();
        let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
        let unquoted = unquote(inner, quote).ok_or_else(|| format!("unquote string {text} error invalid syntax"))?;
        Ok(PathStep::Literal(Value::from(unquoted)))
    }

    fn array(&mut self, nodes: &mut Vec<PathStep>) -> Result<(), String> {
        self.next();
        let text = self.take(|c| c != ']' && c != '\n');
        if self.next() != Some(']') {
            return Err("unterminated array".to_owned());
        }
        let text = if text == "*" { ":" } else { text };
        if text.contains(',') {
            let parts = text.split(',').map(|part| action(&format!("[{}]", part.trim_matches(' ')), self.depth + 1));
            nodes.push(PathStep::Union(parts.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).filter(|key| !key.contains('\''));
        match key {
            Some(key) => nodes.extend(action(&format!(".{key}"), self.depth + 1)?),
            None => nodes.push(PathStep::Slice(slice(text)?)),
        }
        Ok(())
    }

    fn filter(&mut self) -> Result<PathStep, String> {
        let start = self.at;
        let (mut begin, mut end) = (false, false);
        let mut pair = '"';
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated filter".to_owned()),
                Some(c @ ('"' | '\'')) if !begin => (begin, pair) = (true, c),
                Some(c @ ('"' | '\'')) => {
                    let escaped = self.input.as_bytes().get(self.at.wrapping_sub(2)) == Some(&b'\\');
                    end |= !escaped && c == pair;
                }
                Some(')') if begin == end => break,
                Some(_) => {}
            }
        }
        let text = self.input.get(start..self.at.saturating_sub(1)).unwrap_or_default();
        if self.next() != Some(']') {
            return Err("unclosed array expect ]".to_owned());
        }
        let depth = self.depth + 1;
        let filter = match comparison(text) {
            None => Filter { left: action(text, depth)?, comparison: None },
            Some((left, operator, right)) => {
                let left = action(left, depth)?;
                Filter { left, comparison: Some((operator.into(), action(right, depth)?)) }
            }
        };
        Ok(PathStep::Filter(Box::new(filter)))
    }
}

/// Splits `left operator right`. No part may be empty.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let start = text.find(is_operator).filter(|start| *start > 0)?;
    let after = text.get(start..)?;
    let length = after.find(|c| !is_operator(c)).unwrap_or(after.len().saturating_sub(1));
    let (operator, right) = after.split_at_checked(length)?;
    (!operator.is_empty() && !right.is_empty()).then(|| (text.get(..start).unwrap_or_default(), operator, right))
}

/// Parses `a`, `a:b` or `a:b:c`, where each part is a number or empty.
fn slice(text: &str) -> Result<Slice, String> {
    let invalid = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return Err(invalid());
    }
    let mut numbers = [None; 3];
    for (number, part) in numbers.iter_mut().zip(&parts) {
        let digits = part.strip_prefix('-').unwrap_or(part);
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        if !part.is_empty() {
            *number = Some(part.parse().map_err(|_| format!("array index {part} is not a number"))?);
        }
    }
    let [from, to, step] = numbers;
    let is_index = parts.len() == 1;
    let to = if is_index { Some(from.unwrap_or(0i64).saturating_add(1)) } else { to };
    Ok(Slice { from, to, step, is_index })
}

/// The text between quotes, with Go's escapes.
fn unquote(text: &str, quote: char) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == quote {
            return None;
        }
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let byte = |value: u32| u8::try_from(value).ok();
        match rest.clone().next()? {
            'x' => {
                rest.next();
                out.push(byte(digits_of(&mut rest, 2, 16)?)?);
            }
            'u' | 'U' => {
                let count = if rest.next() == Some('u') { 4 } else { 8 };
                let c = char::from_u32(digits_of(&mut rest, count, 16)?)?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            '0'..='7' => out.push(byte(digits_of(&mut rest, 3, 8)?)?),
            escape => {
                rest.next();
                out.push(match escape {
                    'a' => 7,
                    'b' => 8,
                    'f' => 12,
                    'n' => b'\n',
                    'r' => b'\r',
                    't' => b'\t',
                    'v' => 11,
                    '\\' => b'\\',
                    c if c == quote => byte(u32::from(c))?,
                    _ => return None,
                });
            }
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

fn digits_of(chars: &mut std::str::Chars<'_>, count: usize, radix: u32) -> Option<u32> {
    let mut value: u32 = 0;
    for _ in 0..count {
        value = value.checked_mul(radix)?.checked_add(chars.next()?.to_digit(radix)?)?;
    }
    Some(value)
}
