//! Query strings, parsed like Go's `url.ParseQuery`: pairs that cannot be decoded are skipped.

/// The parameters of a request, in order.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub fn parse(text: &str) -> Query {
        let decode = |part: &str| percent_decode(&part.replace('+', " "));
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(key)?, decode(value)?))
        });
        Query { pairs: pairs.collect() }
    }

    /// The first value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Every value of a parameter.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Encodes the parameters like Go's `url.Values.Encode`: sorted by key.
    pub fn encode(&self) -> String {
        let mut pairs: Vec<&(String, String)> = self.pairs.iter().collect();
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        let escape = |text: &str| percent_encode(text, b"").replace("%20", "+");
        let pairs = pairs.into_iter().map(|(key, value)| format!("{}={}", escape(key), escape(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// A boolean parameter: absent, `0` and `false` are false, everything else is true.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|v| v != "0" && !v.eq_ignore_ascii_case("false"))
    }
}

/// Encodes a decoded path like Go's `url.URL`.
pub fn encode_path(path: &str) -> String {
    percent_encode(path, b"$&+,/:;=@")
}

/// Percent-encodes all bytes except letters, digits, `-_.~` and those in `kept`.
fn percent_encode(text: &str, kept: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || kept.contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

/// Percent-decodes; returns `None` for an invalid escape. Bytes that are not UTF-8 become U+FFFD.
pub fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while let Some(&b) = bytes.get(i) {
        if b == b'%' {
            let hex = bytes.get(i + 1..i + 3).filter(|h| h.iter().all(u8::is_ascii_hexdigit))?;
            out.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            i += 3;
        } else {
            out.push(b);
            i += 1;
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries() {
        let query = Query::parse("a=1&b=x%20y+z&c&d=%zz&watch=&e=False");
        assert_eq!(query.get("b"), Some("x y z"));
        assert_eq!(query.get("d"), None);
        assert_eq!(query.encode(), "a=1&b=x+y+z&c=&e=False&watch=");
        assert_eq!(Query::parse("b=2&a=%26%2B%3d&b=1;x&b=3").encode(), "a=%26%2B%3D&b=2&b=3");
        assert_eq!(encode_path("/apis/a b/ü?x/:@;%"), "/apis/a%20b/%C3%BC%3Fx/:@;%25");
        assert!(query.flag("watch") && query.flag("c") && !query.flag("e") && !query.flag("nope"));
    }
}
