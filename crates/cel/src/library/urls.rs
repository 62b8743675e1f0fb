//! URLs as Go's `url.ParseRequestURI` reads them, with its messages.

use crate::value::{Error, Key, Map, Opaque, Result, Str, Val};
use machinery::value::quote;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    host: String,
    /// The path as it was written, if that is a valid writing.
    escaped_path: String,
    query: String,
}

type Parsed<T> = std::result::Result<T, String>;

fn scheme(text: &str) -> Parsed<(&str, &str)> {
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..i], &text[i + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// Decodes `%41`. `host`: the stricter rules of hosts.
fn unescape(text: &str, host: bool) -> Parsed<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'%' {
            let code = bytes.get(i + 1..i + 3).and_then(|hex| std::str::from_utf8(hex).ok());
            let value = code.filter(|c| !c.starts_with('+')).and_then(|hex| u8::from_str_radix(hex, 16).ok());
            let end = (i + 3).min(bytes.len());
            let shown = String::from_utf8_lossy(&bytes[i..end]).into_owned();
            match value {
                Some(value) if !host || value >= 0x80 || value == b'%' => out.push(value),
                _ => return Err(format!("invalid URL escape {}", quote(&shown))),
            }
            i += 3;
            continue;
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&b);
        if host && bytes[i] < 0x80 && !plain(bytes[i]) {
            let shown = char::from(bytes[i]).to_string();
            return Err(format!("invalid character {} in host name", quote(&shown)));
        }
        out.push(bytes[i]);
        i += 1;
    }
    Ok(String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

fn good_port(port: &str) -> bool {
    port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

fn parse_host(host: &str) -> Parsed<String> {
    let port = if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
        Some(&host[end + 1..])
    } else {
        host.rfind(':').map(|at| &host[at..])
    };
    if let Some(port) = port
        && !good_port(port)
    {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    unescape(host, true)
}

fn good_user(user: &str) -> bool {
    user.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b))
}

fn parse(text: &str) -> Parsed<Url> {
    let (scheme, mut rest) = scheme(text)?;
    let scheme = scheme.to_ascii_lowercase();
    let mut query = "";
    if rest.ends_with('?') && rest.matches('?').count() == 1 {
        rest = &rest[..rest.len() - 1];
    } else if let Some((before, after)) = rest.split_once('?') {
        (rest, query) = (before, after);
    }
    let mut host = String::new();
    if !rest.starts_with('/') {
        if scheme.is_empty() {
            return Err("invalid URI for request".to_owned());
        }
        return Ok(Url { scheme, host, escaped_path: String::new(), query: query.to_owned() });
    }
    if !scheme.is_empty()
        && let Some(after) = rest.strip_prefix("//")
    {
        let end = after.find('/').unwrap_or(after.len());
        let authority = &after[..end];
        rest = &after[end..];
        let name = match authority.rsplit_once('@') {
            Some((user, _)) if !good_user(user) => return Err("net/url: invalid userinfo".to_owned()),
            Some((user, name)) => {
                unescape(user, false)?;
                name
            }
            None => authority,
        };
        host = parse_host(name)?;
    }
    let path = unescape(rest, false)?;
    Ok(Url { scheme, host, escaped_path: escaped_path(rest, &path), query: query.to_owned() })
}

fn escaped_path(raw: &str, path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b);
    let allowed = |b: u8| plain(b) || b"!'()*[]%".contains(&b);
    if raw.bytes().all(allowed) {
        return raw.to_owned();
    }
    if path == "*" {
        return path.to_owned();
    }
    path.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

impl Url {
    fn parse(text: &str) -> Parsed<Url> {
        let wrapped = |error: &str| format!("parse {}: {error}", go_quote(text));
        if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return Err(wrapped("net/url: invalid control character in URL"));
        }
        if text.is_empty() {
            return Err(wrapped("empty url"));
        }
        if text == "*" {
            let path = text.to_owned();
            return Ok(Url { scheme: String::new(), host: String::new(), escaped_path: path, query: String::new() });
        }
        parse(text).map_err(|error| wrapped(&error))?;
        // The fragment was part of the check but isn't part of path or query.
        let bare = text.split_once('#').map_or(text, |(bare, _)| bare);
        parse(bare).map_err(|error| wrapped(&error))
    }
}

fn go_quote(text: &str) -> String {
    quote(text)
}

fn get<'a>(args: &[Val<'a>], part: impl FnOnce(&Url) -> String) -> Result<Val<'a>> {
    match args {
        [Val::Opaque(opaque)] => match &**opaque {
            Opaque::Url(url) => Ok(Val::string(part(url))),
            _ => Err(Error::overload()),
        },
        _ => Err(Error::overload()),
    }
}

pub fn url<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text)] = args else { return Err(Error::overload()) };
    match Url::parse(text) {
        Ok(url) => Ok(Val::opaque(Opaque::Url(url))),
        Err(error) => Err(Error::new(format!("URL parse error during conversion from string: {error}"))),
    }
}

pub fn is_url<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text)] = args else { return Err(Error::overload()) };
    Ok(Val::Bool(Url::parse(text).is_ok()))
}

pub fn get_scheme<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    get(args, |url| url.scheme.clone())
}

pub fn get_host<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    get(args, |url| url.host.clone())
}

/// Host and port, without brackets.
fn split_host(host: &str) -> (&str, &str) {
    let (name, port) = match host.rfind(':') {
        Some(at) if good_port(&host[at..]) => (&host[..at], &host[at + 1..]),
        _ => (host, ""),
    };
    (name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name), port)
}

pub fn get_hostname<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    get(args, |url| split_host(&url.host).0.to_owned())
}

pub fn get_port<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    get(args, |url| split_host(&url.host).1.to_owned())
}

pub fn get_escaped_path<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    get(args, |url| url.escaped_path.clone())
}

pub fn get_query<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::Opaque(opaque)] = args else { return Err(Error::overload()) };
    let Opaque::Url(url) = &**opaque else { return Err(Error::overload()) };
    let mut members: BTreeMap<String, Vec<Val<'a>>> = BTreeMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text: &str| unescape(&text.replace('+', " "), false).ok();
        if let (Some(key), Some(value)) = (decoded(key), decoded(value)) {
            members.entry(key).or_default().push(Val::string(value));
        }
    }
    let entries = members.into_iter().map(|(k, v)| (Key::String(Str::Shared(k.into())), Val::list(v)));
    Ok(Val::Map(Map::Owned(Rc::new(entries.collect()))))
}
