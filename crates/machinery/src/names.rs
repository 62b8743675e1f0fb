//! Rules for names, labels and qualified names, with the messages of kube-apiserver.
//!
//! Each rule returns its messages; a valid name has none.

/// Declares an enum whose values have texts.
#[macro_export]
macro_rules! text_enum {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident {
        $($(#[$about:meta])* $variant:ident = $text:literal,)*
    }) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$about])* $variant,)*
        }

        #[allow(dead_code, reason = "not every enum is listed and parsed")]
        impl $name {
            /// All values, in the order of their declaration.
            $visibility const ALL: [$name; [$($text),*].len()] = [$($name::$variant),*];

            /// The text of the value.
            $visibility fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The value with this text.
            $visibility fn parse(text: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|value| value.as_str() == text)
            }
        }
    };
}
pub(crate) use text_enum;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const HTTP_PATH: &str = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";

fn edges_and_middle(text: &str, edge: impl Fn(u8) -> bool, middle: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [one] => edge(*one),
        [first, inner @ .., last] => edge(*first) && edge(*last) && inner.iter().all(|&b| middle(b)),
    }
}

fn lower_or_digit(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    edges_and_middle(text, lower_or_digit, |b| lower_or_digit(b) || b == b'-')
}

fn is_qualified(text: &str) -> bool {
    edges_and_middle(text, |b| b.is_ascii_alphanumeric(), |b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// DNS-1123 subdomain of at most 253 characters.
pub fn dns1123_subdomain(name: &str) -> Vec<String> {
    let mut messages = vec![];
    if name.len() > 253 {
        messages.push("must be no more than 253 characters".to_owned());
    }
    if !name.split('.').all(is_label) {
        messages.push(SUBDOMAIN.to_owned());
    }
    messages
}

/// DNS-1123 label of at most 63 characters.
pub fn dns1123_label(name: &str) -> Vec<String> {
    let mut messages = vec![];
    if name.len() > 63 {
        messages.push("must be no more than 63 characters".to_owned());
    }
    if !is_label(name) {
        // a subdomain that is no label has dots
        let is_subdomain = name.split('.').all(is_label);
        messages.push(if is_subdomain { "must not contain dots" } else { LABEL_1123 }.to_owned());
    }
    messages
}

/// DNS-1035 label of at most 63 characters.
pub fn dns1035_label(name: &str) -> Vec<String> {
    let mut messages = vec![];
    if name.len() > 63 {
        messages.push("must be no more than 63 characters".to_owned());
    }
    if !(is_label(name) && name.as_bytes().first().is_some_and(u8::is_ascii_lowercase)) {
        messages.push(LABEL_1035.to_owned());
    }
    messages
}

/// The form `[prefix/]name` of finalizers and of the keys of labels and annotations.
pub fn qualified_name(key: &str) -> Vec<String> {
    let mut messages = vec![];
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                messages.push("prefix part must be non-empty".to_owned());
            } else {
                let problems =
                    dns1123_subdomain(prefix).into_iter().map(|why| why.replace("253 characters", "253 bytes"));
                messages.extend(problems.map(|why| format!("prefix part {why}")));
            }
            *name
        }
        _ => {
            let suffix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            messages.push(format!("a valid label key {QUALIFIED} {suffix}"));
            return messages;
        }
    };
    if name.is_empty() {
        messages.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        messages.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_qualified(name) {
        messages.push(format!("name part {QUALIFIED}"));
    }
    messages
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut messages = vec![];
    if value.len() > 63 {
        messages.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_qualified(value) {
        messages.push(LABEL_VALUE.to_owned());
    }
    messages
}

/// The name to check for a prefix of names, such as `generateName`. kube-apiserver replaces a final dash and the byte
/// before it by an `a`.
pub fn masked_prefix(prefix: &str) -> String {
    let end = prefix.strip_suffix('-').and_then(|rest| rest.len().checked_sub(1));
    end.map_or_else(|| prefix.to_owned(), |end| format!("{}a", String::from_utf8_lossy(&prefix.as_bytes()[..end])))
}

/// A name that must be usable as a single segment of a path. This is required of names of RBAC objects and of all names
/// in URLs.
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." { vec![format!("may not be '{name}'")] } else { path_segment_prefix(name) }
}

/// The beginning of a name that must be usable as a single segment of a path.
pub fn path_segment_prefix(name: &str) -> Vec<String> {
    ["/", "%"].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// A path with a domain, such as `acme.io/foo`. Each message comes with the part that it is about. An empty path is
/// valid.
pub fn domain_prefixed_path(path: &str) -> Vec<(&str, String)> {
    if path.is_empty() {
        return vec![];
    }
    let (host, rest) = match path.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => (host, rest),
        _ => return vec![(path, "must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned())],
    };
    let mut messages: Vec<_> = dns1123_subdomain(host).into_iter().map(|message| (host, message)).collect();
    if !rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        messages.push((rest, HTTP_PATH.to_owned()));
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules() {
        assert!(dns1123_subdomain("a.b-c.d1").is_empty());
        for bad in ["", "A", "a..b", "-a", "a-", "a_b", "a."] {
            assert_eq!(dns1123_subdomain(bad), [SUBDOMAIN], "{bad}");
        }
        assert_eq!(dns1123_subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
        assert_eq!(dns1035_label("1a"), [LABEL_1035]);
        assert!(qualified_name("example.com/My.Name_1").is_empty());
        assert_eq!(qualified_name("/x"), ["prefix part must be non-empty"]);
        assert!(qualified_name("a/b/c")[0].starts_with("a valid label key must consist"));
        assert!(label_value("").is_empty() && label_value("A.b_c").is_empty());
        assert_eq!(label_value("-x"), [LABEL_VALUE]);
        assert_eq!(path_segment(".."), ["may not be '..'"]);
        assert_eq!(path_segment("100%"), ["may not contain '%'"]);
        assert!(domain_prefixed_path("acme.io/a/b:c").is_empty() && domain_prefixed_path("").is_empty());
        for bad in ["a", "/", "a/", "/a"] {
            assert!(matches!(domain_prefixed_path(bad).as_slice(), [(part, _)] if *part == bad), "{bad}");
        }
        assert_eq!(domain_prefixed_path("A/b c"), [("A", SUBDOMAIN.to_owned()), ("b c", HTTP_PATH.to_owned())]);
    }
}
