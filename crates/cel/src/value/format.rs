//! Named formats and their messages.

use super::time;
use machinery::names::masked_prefix;
use machinery::url::Url;

/// A format that strings can be checked against.
#[derive(Debug)]
pub struct Format {
    pub name: &'static str,
    /// The length of its pattern, for costs.
    pub(crate) regex_size: u64,
    pub(crate) validate: fn(&str) -> Vec<String>,
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

pub(crate) const DATE_TIME_SIZE: u64 = 71;
pub(crate) const UUID_SIZE: u64 = 70;

pub(crate) static FORMATS: [Format; 13] = [
    Format { name: "dns1123Label", regex_size: 30, validate: |s| dns1123_label(s, 63) },
    Format { name: "dns1123Subdomain", regex_size: 60, validate: dns1123_subdomain },
    Format { name: "dns1035Label", regex_size: 30, validate: dns1035_label },
    Format { name: "qualifiedName", regex_size: 60, validate: qualified_name },
    Format { name: "dns1123LabelPrefix", regex_size: 30, validate: |s| dns1123_label(&masked_prefix(s), 63) },
    Format { name: "dns1123SubdomainPrefix", regex_size: 60, validate: |s| dns1123_subdomain(&masked_prefix(s)) },
    Format { name: "dns1035LabelPrefix", regex_size: 30, validate: |s| dns1035_label(&masked_prefix(s)) },
    Format { name: "labelValue", regex_size: 40, validate: label_value },
    Format { name: "uri", regex_size: 1103, validate: uri },
    Format { name: "uuid", regex_size: UUID_SIZE, validate: uuid },
    Format { name: "byte", regex_size: 84, validate: byte },
    Format { name: "date", regex_size: DATE_TIME_SIZE, validate: date },
    Format { name: "datetime", regex_size: DATE_TIME_SIZE, validate: datetime },
];

pub(crate) fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

pub(crate) fn too_many_characters(max: usize) -> String {
    format!("must be no more than {max} characters")
}

pub(crate) fn regex_error(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}'")).collect();
    format!("{message} (e.g. {}, regex used for validation is '{pattern}')", examples.join(",  or "))
}

pub(crate) fn is_label(s: &str, first: fn(u8) -> bool) -> bool {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = s.as_bytes();
    !bytes.is_empty()
        && first(bytes[0])
        && lower(bytes[bytes.len() - 1])
        && bytes.iter().all(|b| lower(*b) || *b == b'-')
}

pub(crate) fn lower(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

pub(crate) const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

pub(crate) fn dns1123_label(s: &str, max: usize) -> Vec<String> {
    let mut errors = vec![];
    if s.len() > max {
        errors.push(too_many_characters(max));
    }
    if !is_label(s, lower) {
        let subdomain = s.split('.').all(|part| is_label(part, lower));
        errors.push(if subdomain {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    errors
}

pub(crate) fn dns1123_subdomain(s: &str) -> Vec<String> {
    let mut errors = vec![];
    if s.len() > 253 {
        errors.push(too_many_characters(253));
    }
    if !s.split('.').all(|part| is_label(part, lower)) {
        errors.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    errors
}

pub(crate) fn dns1035_label(s: &str) -> Vec<String> {
    let mut errors = vec![];
    if s.len() > 63 {
        errors.push(too_many_characters(63));
    }
    if !is_label(s, |b| b.is_ascii_lowercase()) {
        errors.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    errors
}

pub(crate) fn is_name_part(s: &str) -> bool {
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = s.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

pub(crate) fn qualified_name(s: &str) -> Vec<String> {
    const PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
    const MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                           alphanumeric character";
    const EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];
    let mut errors = vec![];
    let parts: Vec<&str> = s.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                let long = prefix.len() > 253;
                let texts = dns1123_subdomain(prefix).into_iter();
                let texts = texts.enumerate().map(|(i, e)| if long && i == 0 { too_long(253) } else { e });
                errors.extend(texts.map(|e| format!("prefix part {e}")));
            }
            *name
        }
        _ => {
            let text = format!("a valid label key {}", regex_error(MESSAGE, PATTERN, &EXAMPLES));
            return vec![format!("{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push(format!("name part {}", too_long(63)));
    }
    if !is_name_part(name) {
        errors.push(format!("name part {}", regex_error(MESSAGE, PATTERN, &EXAMPLES)));
    }
    errors
}

pub(crate) fn label_value(s: &str) -> Vec<String> {
    let mut errors = vec![];
    if s.len() > 63 {
        errors.push(too_long(63));
    }
    if !s.is_empty() && !is_name_part(s) {
        errors.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

pub(crate) fn uri(s: &str) -> Vec<String> {
    Url::parse_request(s).and_then(|_| Url::parse(s)).err().into_iter().collect()
}

pub(crate) fn only_if(bad: bool, text: &str) -> Vec<String> {
    if bad { vec![text.to_owned()] } else { vec![] }
}

pub(crate) fn uuid(s: &str) -> Vec<String> {
    let hex: Vec<&str> = s.split('-').collect();
    let lengths = [8, 4, 4, 4, 12];
    let dashed = hex.len() == 5 && hex.iter().zip(lengths).all(|(part, n)| part.len() == n);
    let joined: String = hex.concat();
    let good = joined.len() == 32 && joined.bytes().all(|b| b.is_ascii_hexdigit()) && (dashed || hex.len() <= 5);
    only_if(!good, "does not match the UUID format")
}

pub(crate) fn byte(s: &str) -> Vec<String> {
    use base64::Engine;
    let good = !s.is_empty() && base64::engine::general_purpose::STANDARD.decode(s).is_ok();
    only_if(!good, "invalid base64")
}

pub(crate) fn date(s: &str) -> Vec<String> {
    only_if(machinery::time::parse_date(s).is_err(), "invalid date")
}

pub(crate) fn datetime(s: &str) -> Vec<String> {
    only_if(!time::is_date_time(s), "invalid datetime")
}
