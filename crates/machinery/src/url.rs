//! URLs as Go's `net/url` reads them, with its error texts.

use std::net::Ipv6Addr;

use crate::value::quote;

/// A parsed URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Url {
    /// The scheme in lower case; empty if there is none.
    pub scheme: String,
    /// The part after the scheme of a URL without slashes, such as `a@b` of `mailto:a@b`.
    pub opaque: String,
    /// The part before `@`, as it is written.
    pub user: Option<String>,
    /// Host and port; an IPv6 address is in brackets. Percent-encodings are decoded.
    pub host: String,
    /// The path as it is written. If it contains characters that must be encoded, it is percent-encoded differently.
    pub path: String,
    /// The part after the question mark, as it is written.
    pub query: String,
    /// The part after the hash sign, decoded.
    pub fragment: String,
}

/// The part of a URL that is decoded. Hosts and zones of addresses may contain only few characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Host,
    Zone,
    Other,
}

impl Url {
    /// Parses a URL of any form, as Go's `url.Parse`.
    ///
    /// # Errors
    ///
    /// Go's text, which begins with `parse` and the quoted URL.
    ///
    /// ```
    /// use machinery::url::Url;
    ///
    /// let url = Url::parse("https://[::1]:8443/a?b=c#d").unwrap();
    /// assert_eq!((url.hostname(), url.port(), url.path.as_str()), ("::1", "8443", "/a"));
    /// let error = Url::parse("https://a:b/").unwrap_err();
    /// assert_eq!(error, "parse \"https://a:b/\": invalid port \":b\" after host");
    /// ```
    pub fn parse(text: &str) -> Result<Url, String> {
        let (front, fragment) = text.split_once('#').unwrap_or((text, ""));
        let failed = |why: String| format!("parse {}: {why}", quote(text));
        let mut url = parse(front, UrlForm::Reference).map_err(failed)?;
        url.fragment = unescape(fragment, Part::Other).map_err(failed)?;
        Ok(url)
    }

    /// Parses an absolute URL or an absolute path, without a fragment, as Go's `url.ParseRequestURI`.
    ///
    /// # Errors
    ///
    /// Go's text, which begins with `parse` and the quoted URL.
    pub fn parse_request(text: &str) -> Result<Url, String> {
        parse(text, UrlForm::Request).map_err(|why| format!("parse {}: {why}", quote(text)))
    }

    /// The host without port and brackets.
    #[must_use]
    pub fn hostname(&self) -> &str {
        self.split_host().0
    }

    /// The port; empty if there is none.
    #[must_use]
    pub fn port(&self) -> &str {
        self.split_host().1
    }

    fn split_host(&self) -> (&str, &str) {
        let host = self.host.as_str();
        let (name, port) = match host.rfind(':') {
            Some(at) if is_port(&host[at..]) => (&host[..at], &host[at + 1..]),
            _ => (host, ""),
        };
        (name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name), port)
    }

    /// Path and query, as a request line has them.
    #[must_use]
    pub fn path_and_query(&self) -> String {
        if self.query.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, self.query) }
    }
}

/// Decodes a query component: `+` is a space, `%41` a byte; `None` if that is malformed.
#[must_use]
pub fn decode_query(text: &str) -> Option<String> {
    decode(&text.replace('+', " "))
}

/// Decodes escapes such as `%41`; `None` if one is malformed. Bytes that are not UTF-8 become U+FFFD.
#[must_use]
pub fn decode(text: &str) -> Option<String> {
    unescape(text, Part::Other).ok()
}

/// Escapes all bytes except letters, digits, `-_.~` and those in `kept`.
#[must_use]
pub fn encode(text: &str, kept: &[u8]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || kept.contains(&byte);
    let one = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

/// Escapes a decoded path like Go's `url.URL`.
#[must_use]
pub fn encode_path(path: &str) -> String {
    encode(path, KEPT_IN_PATHS)
}

const KEPT_IN_PATHS: &[u8] = b"$&+,/:;=@";

/// Which URLs are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlForm {
    /// Any, relative ones too.
    Reference,
    /// Those of request lines: absolute URLs and absolute paths.
    Request,
}

fn parse(text: &str, form: UrlForm) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && form == UrlForm::Request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = text.to_owned();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    query.clone_into(&mut url.query);
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if form == UrlForm::Request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    if (!url.scheme.is_empty() || form == UrlForm::Reference && !rest.starts_with("///"))
        && let Some(after) = rest.strip_prefix("//")
    {
        let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
        (url.user, url.host) = parse_authority(authority)?;
        rest = path;
    }
    url.path = escaped(rest)?;
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..i], &text[i + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// The user as written, and the decoded host.
fn parse_authority(text: &str) -> Result<(Option<String>, String), String> {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    let host = parse_host(host)?;
    let Some(user) = user else { return Ok((None, host)) };
    if !user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    unescape(user, Part::Other)?;
    Ok((Some(user.to_owned()), host))
}

/// Whether a text is empty, or consists of a colon and digits.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn parse_host(text: &str) -> Result<String, String> {
    let check_port =
        |port: &str| if is_port(port) { Ok(()) } else { Err(format!("invalid port {} after host", quote(port))) };
    let Some(open) = text.rfind('[') else {
        if let Some(colon) = text.rfind(':') {
            check_port(&text[colon..])?;
        }
        return unescape(text, Part::Host);
    };
    let end = text.rfind(']').ok_or("missing ']' in host")?;
    let port = &text[end + 1..];
    check_port(port)?;
    let inner = text.get(open + 1..end).ok_or("missing ']' in host")?;
    let (address, zone) = inner.split_at(inner.find("%25").unwrap_or(inner.len()));
    let (address, zone) = (unescape(address, Part::Host)?, unescape(zone, Part::Zone)?);
    // only an IPv6 address may stand in brackets, and its zone must not be empty
    if open > 0 || address.parse::<Ipv6Addr>().is_err() || zone == "%" {
        return Err("invalid IP-literal".to_owned());
    }
    Ok(format!("[{address}{zone}]{port}"))
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

/// Decodes escapes such as `%41`. In hosts, only bytes beyond ASCII may be encoded; in zones, only bytes that hosts may
/// contain. The percent sign may be encoded in both.
fn unescape(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while let Some(byte) = bytes.get(i) {
        if *byte != b'%' {
            if part != Part::Other && !is_host_byte(*byte) {
                return Err(format!("invalid character {} in host name", quote(&char::from(*byte).to_string())));
            }
            out.push(*byte);
            i += 1;
            continue;
        }
        let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let decoded = digit(i + 1).zip(digit(i + 2)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        let allowed = |byte: &u8| match part {
            Part::Host => *byte >= 0x80 || *byte == b'%',
            Part::Zone => matches!(byte, b'%' | b' ') || is_host_byte(*byte),
            Part::Other => true,
        };
        let Some(decoded) = decoded.filter(allowed) else {
            let escape = String::from_utf8_lossy(&bytes[i..(i + 3).min(bytes.len())]);
            return Err(format!("invalid URL escape {}", quote(&escape)));
        };
        out.push(decoded);
        i += 3;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// The path as it is written if it contains only valid characters, and percent-encoded otherwise.
fn escaped(path: &str) -> Result<String, String> {
    let decoded = unescape(path, Part::Other)?;
    let is_valid =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~!'()*[]%".contains(&byte) || KEPT_IN_PATHS.contains(&byte);
    if decoded == "*" || path.bytes().all(is_valid) { Ok(path.to_owned()) } else { Ok(encode_path(&decoded)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_parse_like_go() {
        let cases = [
            ("https://a.example.com/x", "https a.example.com /x"),
            ("HTTPS://u:p@a:1/x%2Fy?q=1#f", "https u:p a:1 /x%2Fy q=1 f"),
            ("https://a/ä b", "https a /%C3%A4%20b"),
            ("https://[fe80::1%25en0]:1/", "https [fe80::1%en0]:1 /"),
            ("mailto:a@b", "mailto a@b"),
            ("a/b", "a/b"),
            ("//a/b", "a /b"),
            ("*", "*"),
            ("", ""),
            ("https://a/?", "https a /"),
        ];
        for (text, want) in cases {
            let Url { scheme, opaque, user, host, path, query, fragment } = Url::parse(text).unwrap();
            let parts = [scheme, opaque, user.unwrap_or_default(), host, path, query, fragment];
            let shown: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            assert_eq!(shown.join(" "), want, "{text}");
        }
    }

    #[test]
    fn errors_match_go() {
        let cases = [
            ("a:b/c", Ok(()), Ok(())),
            ("1:b", Err("first path segment in URL cannot contain colon"), Err("invalid URI for request")),
            (":b", Err("missing protocol scheme"), Err("missing protocol scheme")),
            ("", Ok(()), Err("empty url")),
            ("a/b", Ok(()), Err("invalid URI for request")),
            ("a\n", Err("net/url: invalid control character in URL"), Err("net/url: invalid control character in URL")),
            ("http://a:x/", Err("invalid port \":x\" after host"), Err("invalid port \":x\" after host")),
            ("http://[::1/", Err("missing ']' in host"), Err("missing ']' in host")),
            ("http://[1.2.3.4]/", Err("invalid IP-literal"), Err("invalid IP-literal")),
            ("http://a%41/", Err("invalid URL escape \"%41\""), Err("invalid URL escape \"%41\"")),
            ("http://a b/", Err("invalid character \" \" in host name"), Err("invalid character \" \" in host name")),
            ("http://a{@b/", Err("net/url: invalid userinfo"), Err("net/url: invalid userinfo")),
            ("http://a/%zz", Err("invalid URL escape \"%zz\""), Err("invalid URL escape \"%zz\"")),
        ];
        for (text, any, request) in cases {
            let wrapped = |want: Result<(), &str>| want.map_err(|why| format!("parse {}: {why}", quote(text)));
            assert_eq!(Url::parse(text).map(drop), wrapped(any), "{text}");
            assert_eq!(Url::parse_request(text).map(drop), wrapped(request), "{text}");
        }
    }
}
