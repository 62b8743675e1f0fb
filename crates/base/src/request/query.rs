//! Query strings, parsed like Go's `url.ParseQuery`: pairs that cannot be decoded are skipped.

use machinery::url;

/// The parameters of a request, in order.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((url::decode_query(key)?, url::decode_query(value)?))
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
        let escape = |text: &str| url::encode(text, b"").replace("%20", "+");
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
        assert_eq!(url::encode_path("/apis/a b/ü?x/:@;%"), "/apis/a%20b/%C3%BC%3Fx/:@;%25");
        assert!(query.flag("watch") && query.flag("c") && !query.flag("e") && !query.flag("nope"));
    }
}
