//! URLs as Go's `net/url` reads them.

/// The parts of a URL that anyone here looks at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: String,
    pub(crate) user: Option<String>,
    pub(crate) host: String,
    pub(crate) query: String,
    pub(crate) fragment: String,
}

/// A URL as it stands in a request line: absolute, or an absolute path.
pub(crate) fn is_request_uri(text: &str) -> bool {
    parse_request(text).is_ok()
}

/// As [`parse`], but only for absolute URLs and absolute paths, without a fragment.
pub(crate) fn parse_request(text: &str) -> Result<Url, String> {
    parse_with(text, true).map_err(|why| format!("parse {}: {why}", machinery::value::quote(text)))
}

/// The URL, or the error in Go's words.
pub(crate) fn parse(text: &str) -> Result<Url, String> {
    let (front, fragment) = text.split_once('#').unwrap_or((text, ""));
    let wrap = |why| format!("parse {}: {why}", machinery::value::quote(text));
    let mut url = parse_with(front, false).map_err(wrap)?;
    url.fragment = unescape(fragment).map_err(wrap)?;
    Ok(url)
}

fn parse_with(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_lowercase();
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.query = query.to_owned();
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    if (!url.scheme.is_empty() || !request && !rest.starts_with("///")) && rest.starts_with("//") {
        let after = &rest[2..];
        let end = after.find('/').unwrap_or(after.len());
        let (user, host) = authority(&after[..end])?;
        url.user = user;
        url.host = host;
        rest = &after[end..];
    }
    unescape(rest)?;
    Ok(url)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (i, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if i > 0 => {}
            ':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..i], &text[i + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn authority(text: &str) -> Result<(Option<String>, String), String> {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    let host = self::host(host)?;
    let Some(user) = user else { return Ok((None, host)) };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(allowed) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    unescape(user)?;
    Ok((Some(user.to_owned()), host))
}

fn port(text: &str) -> Result<(), String> {
    match text.strip_prefix(':') {
        None if text.is_empty() => Ok(()),
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(()),
        _ => Err(format!("invalid port {} after host", machinery::value::quote(text))),
    }
}

fn host(text: &str) -> Result<String, String> {
    if let Some(open) = text.rfind('[') {
        let end = text.rfind(']').ok_or("missing ']' in host")?;
        port(&text[end + 1..])?;
        let inner = text.get(open + 1..end).ok_or("missing ']' in host")?;
        return if open == 0 && literal(inner)? { Ok(text.to_owned()) } else { Err("invalid IP-literal".to_owned()) };
    }
    if let Some(colon) = text.rfind(':') {
        port(&text[colon..])?;
    }
    for (i, c) in text.char_indices() {
        if is_host_char(c) {
            continue;
        }
        if c == '%' {
            let escape: String = text[i..].chars().take(3).collect();
            return Err(format!("invalid URL escape {}", machinery::value::quote(&escape)));
        }
        return Err(format!("invalid character {} in host name", machinery::value::quote(&c.to_string())));
    }
    Ok(text.to_owned())
}

fn is_host_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || !c.is_ascii() || "-_.~!$&'()*+,;=:[]<>\"".contains(c)
}

/// Whether the text in brackets is an IPv6 address, with a zone or without.
fn literal(text: &str) -> Result<bool, String> {
    let (address, zone) = match text.split_once("%25") {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    if let Some(zone) = zone {
        unescape(zone)?;
        if !zone.chars().all(|c| c == '%' || is_host_char(c)) {
            return Ok(false);
        }
    }
    Ok(super::net::v6(address, false) && zone.is_none_or(|z| !z.is_empty()))
}

fn unescape(text: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while let Some(b) = bytes.get(i) {
        if *b != b'%' {
            out.push(*b);
            i += 1;
            continue;
        }
        let digit = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
        match (digit(i + 1), digit(i + 2)) {
            (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
            _ => {
                let end = (i + 3).min(bytes.len());
                let escape = String::from_utf8_lossy(&bytes[i..end]);
                return Err(format!("invalid URL escape {}", machinery::value::quote(&escape)));
            }
        }
        i += 3;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}
