//! Named formats and their messages.

use super::time;
use machinery::names::{dns1035_label, dns1123_label, dns1123_subdomain, label_value, masked_prefix, qualified_name};
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
    Format { name: "dns1123Label", regex_size: 30, validate: dns1123_label },
    Format { name: "dns1123Subdomain", regex_size: 60, validate: dns1123_subdomain },
    Format { name: "dns1035Label", regex_size: 30, validate: dns1035_label },
    Format { name: "qualifiedName", regex_size: 60, validate: qualified_name },
    Format { name: "dns1123LabelPrefix", regex_size: 30, validate: |s| dns1123_label(&masked_prefix(s)) },
    Format { name: "dns1123SubdomainPrefix", regex_size: 60, validate: |s| dns1123_subdomain(&masked_prefix(s)) },
    Format { name: "dns1035LabelPrefix", regex_size: 30, validate: |s| dns1035_label(&masked_prefix(s)) },
    Format { name: "labelValue", regex_size: 40, validate: label_value },
    Format { name: "uri", regex_size: 1103, validate: uri },
    Format { name: "uuid", regex_size: UUID_SIZE, validate: uuid },
    Format { name: "byte", regex_size: 84, validate: byte },
    Format { name: "date", regex_size: DATE_TIME_SIZE, validate: date },
    Format { name: "datetime", regex_size: DATE_TIME_SIZE, validate: datetime },
];

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
