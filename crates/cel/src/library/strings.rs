//! Strings and regular expressions. Positions count code points.

use crate::limits::TEXT_BYTES_MAX;
use crate::regex::Regex;
use crate::value::{Error, Result, Str, Val};
use crate::work;
use machinery::value::go_escape;

/// The receiver and the first argument, which must be strings.
fn two<'v, 'a>(args: &'v [Val<'a>]) -> Result<(&'v Str<'a>, &'v Str<'a>)> {
    match args {
        [Val::String(a), Val::String(b), ..] => Ok((a, b)),
        _ => Err(Error::overload()),
    }
}

overloads! {
    contains: args => two(args).map(|(a, b)| Val::Bool(a.contains(&**b)));
    starts_with: args => two(args).map(|(a, b)| Val::Bool(a.starts_with(&**b)));
    ends_with: args => two(args).map(|(a, b)| Val::Bool(a.ends_with(&**b)));
}

/// Compiles a pattern at run time.
fn compiled(pattern: &str) -> Result<Regex> {
    Regex::compile(pattern).map_err(|e| Error::new(e.text))
}

pub fn matches<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (text, pattern) = two(args)?;
    let regex = compiled(pattern)?;
    Ok(Val::Bool(regex.is_match(text)))
}

fn out_of_range(index: i64) -> Error {
    Error::new(format!("index out of range: {index}"))
}

/// The byte position of a code point, the end included.
fn byte_at(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    work::search(text.len());
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index)
}

fn code_points(text: &str) -> i64 {
    if text.is_ascii() { text.len() as i64 } else { text.chars().count() as i64 }
}

pub fn char_at<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text), Val::Int(index)] = args else { return Err(Error::overload()) };
    let at = byte_at(text, *index).ok_or_else(|| out_of_range(*index))?;
    Ok(Val::string(text[at..].chars().next().map(String::from).unwrap_or_default()))
}

pub fn index_of<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (text, part) = two(args)?;
    let from = if let Some(Val::Int(from)) = args.get(2) { *from } else { 0 };
    if part.is_empty() && args.len() > 2 {
        return Ok(Val::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let Some(start) = byte_at(text, from) else { return Ok(Val::Int(-1)) };
    Ok(Val::Int(text[start..].find(&**part).map_or(-1, |at| from + code_points(&text[start..start + at]))))
}

pub fn last_index_of<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (text, part) = two(args)?;
    let length = code_points(text);
    let Some(Val::Int(from)) = args.get(2) else {
        return Ok(Val::Int(text.rfind(&**part).map_or(-1, |at| code_points(&text[..at]))));
    };
    if part.is_empty() {
        return Ok(Val::Int(*from));
    }
    if *from < 0 {
        return Err(out_of_range(*from));
    }
    if *from >= length {
        return Ok(Val::Int(-1));
    }
    let end = byte_at(text, from.saturating_add(code_points(part))).unwrap_or(text.len());
    let found = text[..end].rfind(&**part);
    Ok(Val::Int(found.map_or(-1, |at| code_points(&text[..at]))))
}

overloads! {
    lower_ascii: [Val::String(text)] => Ok(Val::string(text.to_ascii_lowercase()));
    upper_ascii: [Val::String(text)] => Ok(Val::string(text.to_ascii_uppercase()));
    trim: [Val::String(text)] => Ok(Val::string(text.trim()));
    reverse: [Val::String(text)] => Ok(Val::string(text.chars().rev().collect::<String>()));
    /// `jsonpatch.escapeKey`: a key as a segment of a JSON pointer has it (RFC 6901).
    escape_key: [Val::String(key)] => Ok(Val::string(key.replace('~', "~0").replace('/', "~1")));
}

pub fn replace<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text), Val::String(old), Val::String(new), rest @ ..] = args else {
        return Err(Error::overload());
    };
    let count = match rest {
        [Val::Int(n)] if *n >= 0 => *n as usize,
        _ => usize::MAX,
    };
    let found = text.matches(&**old).count().min(count);
    if found.saturating_mul(new.len()).saturating_add(text.len()) > TEXT_BYTES_MAX {
        return Err(Error::new("result of replace is too large"));
    }
    Ok(Val::string(text.replacen(&**old, new, count)))
}

pub fn split<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (text, separator) = two(args)?;
    let limit = if let Some(Val::Int(n)) = args.get(2) { *n } else { -1 };
    if limit == 0 {
        return Ok(Val::list(vec![]));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<Val<'a>> = if separator.is_empty() {
        split_chars(text, limit).into_iter().map(Val::string).collect()
    } else {
        text.splitn(limit, &**separator).map(Val::string).collect()
    };
    Ok(Val::list(parts))
}

fn split_chars(text: &str, limit: usize) -> Vec<String> {
    let mut out = vec![];
    let mut chars = text.chars();
    while !chars.as_str().is_empty() {
        if out.len() + 1 == limit {
            out.push(chars.as_str().to_owned());
            break;
        }
        out.extend(chars.next().map(String::from));
    }
    out
}

pub fn substring<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text), Val::Int(start), rest @ ..] = args else { return Err(Error::overload()) };
    let end = match rest {
        [Val::Int(end)] => {
            if start > end {
                return Err(Error::new(format!("invalid substring range. start: {start}, end: {end}")));
            }
            Some(*end)
        }
        _ => None,
    };
    let from = byte_at(text, *start).ok_or_else(|| out_of_range(*start))?;
    let to = match end {
        Some(end) => byte_at(text, end).ok_or_else(|| out_of_range(end))?,
        None => text.len(),
    };
    Ok(Val::string(&text[from..to]))
}

pub fn join<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (Some(Val::List(list)), separator) = (args.first(), args.get(1)) else { return Err(Error::overload()) };
    let separator: &str = if let Some(Val::String(s)) = separator { s } else { "" };
    let mut text = String::new();
    for (i, item) in list.iter().enumerate() {
        let item = match item? {
            Val::String(item) => item,
            _ if i == 0 => return Err(Error::overload()),
            other => {
                let Val::String(text) = super::standard::to_string(&[other])? else { return Err(Error::overload()) };
                return Err(Error::new(format!("join: invalid input: {}", &*text)));
            }
        };
        if i > 0 {
            text.push_str(separator);
        }
        text.push_str(&item);
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::new("result of join is too large"));
        }
    }
    Ok(Val::string(text))
}

/// `strings.quote`: printable text stays, the rest is escaped.
pub fn quote<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text)] = args else { return Err(Error::overload()) };
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match go_escape(c) {
            Some(escape) => out.push_str(escape),
            None => out.push(c),
        }
    }
    out.push('"');
    Ok(Val::string(out))
}

fn illegal(error: &crate::regex::RegexError) -> Error {
    Error::new(format!("Illegal regex: {error}"))
}

pub fn find<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (text, pattern) = two(args)?;
    let regex = Regex::compile(pattern).map_err(|e| illegal(&e))?;
    Ok(found(&regex, text))
}

pub(crate) fn found<'a>(regex: &Regex, text: &str) -> Val<'a> {
    Val::string(regex.find(text).unwrap_or_default())
}

pub fn find_all<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (text, pattern) = two(args)?;
    let regex = Regex::compile(pattern).map_err(|e| illegal(&e))?;
    let limit = if let Some(Val::Int(n)) = args.get(2) { *n } else { -1 };
    Ok(found_all(&regex, text, limit))
}

pub(crate) fn found_all<'a>(regex: &Regex, text: &str, limit: i64) -> Val<'a> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Val::list(regex.find_iter(text).take(limit).map(Val::string).collect())
}

/// The groups a pattern may have in `regex.extract`: none or one.
fn single_group(regex: &Regex) -> Result<()> {
    if regex.groups_len() > 2 {
        let text = format!("regular expression has more than one capturing group: \"{}\"", regex.as_str());
        return Err(Error::new(text));
    }
    Ok(())
}

pub fn extract<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (text, pattern) = two(args)?;
    let regex = compiled(pattern)?;
    single_group(&regex)?;
    Ok(match regex.captures(text) {
        None => Val::Optional(None),
        Some(groups) => match groups.get(regex.groups_len() - 1).copied().flatten() {
            Some(group) if regex.groups_len() == 1 || !group.is_empty() => Val::some(Val::string(group)),
            _ => Val::Optional(None),
        },
    })
}

pub fn extract_all<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (text, pattern) = two(args)?;
    let regex = compiled(pattern)?;
    single_group(&regex)?;
    let last = regex.groups_len() - 1;
    let groups = regex.captures_iter(text).filter_map(|groups| groups.get(last).copied().flatten().map(Val::string));
    Ok(Val::list(groups.collect()))
}

/// `regex.replace`: `\1` stands for a group.
pub fn regex_replace<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text), Val::String(pattern), Val::String(new), rest @ ..] = args else {
        return Err(Error::overload());
    };
    let limit = match rest {
        [Val::Int(n)] if *n >= 0 => *n as usize,
        _ => usize::MAX,
    };
    let regex = compiled(pattern)?;
    let mut out = String::new();
    let mut rest: &str = text;
    for groups in regex.captures_iter(text).take(limit) {
        let Some(Some(whole)) = groups.first() else { continue };
        let at = whole.as_ptr() as usize - text.as_ptr() as usize;
        let done = text.len() - rest.len();
        out.push_str(&text[done..at]);
        substitute(new, &groups, &mut out)?;
        rest = &text[at + whole.len()..];
        if out.len() > TEXT_BYTES_MAX {
            return Err(Error::new("result of replace is too large"));
        }
    }
    out.push_str(rest);
    Ok(Val::string(out))
}

fn substitute(template: &str, groups: &[Option<&str>], out: &mut String) -> Result<()> {
    let mut chars = template.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('\\') => out.push('\\'),
            Some(d) if d.is_ascii_digit() => {
                let n = d as usize - '0' as usize;
                let group = groups.get(n).ok_or_else(|| {
                    Error::new(format!(
                        "replacement string references group {n} but regex has only {} group(s)",
                        groups.len() - 1
                    ))
                })?;
                out.push_str(group.unwrap_or_default());
            }
            _ => return Err(Error::new("invalid replacement string: \\ must be followed by a digit or \\")),
        }
    }
    Ok(())
}

pub fn base64_encode<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    use base64::Engine;
    let [Val::Bytes(bytes)] = args else { return Err(Error::overload()) };
    Ok(Val::string(base64::engine::general_purpose::STANDARD.encode(bytes)))
}

pub fn base64_decode<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    use base64::Engine;
    let [Val::String(text)] = args else { return Err(Error::overload()) };
    let engines = [&base64::engine::general_purpose::STANDARD, &base64::engine::general_purpose::STANDARD_NO_PAD];
    let decoded = engines.iter().find_map(|engine| engine.decode(text.as_bytes()).ok());
    match decoded {
        Some(bytes) => Ok(Val::Bytes(bytes.into())),
        None => Err(Error::new("illegal base64 data")),
    }
}
