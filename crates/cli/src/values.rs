//! Parsers of flag values.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use machinery::Value;

use crate::limits;

/// The output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TextOrJson {
    Text,
    Json,
}

impl TextOrJson {
    /// Prints a list of the API, as it is or as a table with a row for each object.
    pub fn list(self, list: &Value, header: &str, row: impl Fn(&Value) -> String) -> String {
        if self == TextOrJson::Json {
            return list.to_json() + "\n";
        }
        let rows = list.items_at(&["items"]).iter().map(row);
        std::iter::once(header.to_owned()).chain(rows).map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// A parser of words, each with the value that it stands for.
pub fn words<T: Copy + Send + Sync>(rows: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let parser = PossibleValuesParser::new(rows.iter().map(|(word, _)| *word));
    parser.try_map(move |given| rows.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or("unknown"))
}

/// Parses a duration in Go's format, such as `1m30s`; only 0 may have no unit.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    match text.parse::<u64>() {
        Ok(number) if number > 0 => Err(format!("the unit is missing: write {number}s, {number}m or {number}h")),
        _ if text.starts_with('-') => Err("must not be negative".to_owned()),
        _ if days(text).is_some() => {
            let hours = days(text).unwrap_or_default().saturating_mul(24);
            Err(format!("there is no unit for days: write {hours}h"))
        }
        _ => machinery::time::parse_duration(text).map_err(|error| error.to_string()),
    }
}

/// Parses a release of Kubernetes. Accepts `1.36`, and also `1.36.2` and `v1.36.2`, as tags are named.
pub fn release(text: &str) -> Result<server::Release, String> {
    let known = server::Release::ALL.map(|release| release.to_string()).join(", ");
    let number = text.strip_prefix('v').unwrap_or(text);
    let is_patch = |(_, patch): &(&str, &str)| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit());
    let minor = match number.rsplit_once('.').filter(is_patch) {
        Some((minor, _)) if minor.contains('.') => minor,
        _ => number,
    };
    minor.parse().map_err(|_| format!("expected one of {known}"))
}

/// A parser of numbers from 0 to `max`.
pub fn number<T: TryFrom<u64> + std::fmt::Display + Copy>(max: T) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse::<u64>().ok().and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("wanted a whole number from 0 to {max}"))
    }
}

/// A parser for a flag that has another name here: always fails, and says what the right flag is.
pub fn renamed(to: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |value| Err(format!("the flag is called --{to}: --{to} {value}"))
}

/// Parses the id of an etcd cluster in the format of etcd's log.
pub fn cluster_id(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text.trim(), 16)
        .map_err(|_| format!("{:?} is not a cluster id of up to 16 hexadecimal digits", text.trim()))
}

/// Parses a durability: `sync`, `interval=DURATION` or `none`.
pub fn durability(text: &str) -> Result<store::Durability, String> {
    match text.split_once('=') {
        None if text == "sync" => Ok(store::Durability::Sync),
        None if text == "none" => Ok(store::Durability::None),
        Some(("interval", every)) => match duration(every)? {
            every if every.is_zero() => Err("the interval must not be zero; use sync instead".to_owned()),
            every => Ok(store::Durability::Interval(every)),
        },
        _ => Err("expected sync, interval=DURATION or none".to_owned()),
    }
}

/// Parses a DNS name, which may have a wildcard, or an IP address that a certificate is to be valid for.
pub fn subject_name(text: &str) -> Result<String, String> {
    let is_name = || {
        let name = text.strip_prefix("*.").unwrap_or(text);
        machinery::names::dns1123_subdomain(&name.to_ascii_lowercase()).is_empty()
    };
    if text.parse::<std::net::IpAddr>().is_ok() || is_name() {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("it is no DNS name and no IP address".to_owned())
    }
}

/// Parses a domain below which host names are formed.
pub fn domain(text: &str) -> Result<String, String> {
    match machinery::names::dns1123_subdomain(&text.to_ascii_lowercase()).is_empty() {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("it is no DNS name".to_owned()),
    }
}

/// Parses a file mode; the owner must be able to read and write the file.
pub fn mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && mode & 0o600 == 0o600 => Ok(mode),
        _ => Err("wanted an octal mode from 0600 to 0777; in YAML, put it in quotes".to_owned()),
    }
}

/// Parses the name of a kubeconfig context.
pub fn context_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.chars().any(char::is_control) {
        Err("it is empty or has control characters".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// Parses the name of a user or group.
pub fn subject(text: &str) -> Result<String, String> {
    context_name(text)
}

fn days(text: &str) -> Option<u64> {
    text.strip_suffix('d')?.parse().ok()
}

/// Parses the lifetime of a user's certificate: a duration, or a number of days such as `30d`.
pub fn user_lifetime(text: &str) -> Result<std::time::Duration, String> {
    let lifetime = match days(text) {
        Some(days) => std::time::Duration::from_secs(days.saturating_mul(24 * 3600)),
        None => duration(text)?,
    };
    match lifetime {
        short if short < limits::USER_CERTIFICATE_MIN => Err("it is shorter than 10m".to_owned()),
        long if long > limits::AUTHORITY_LIFETIME => Err("it is longer than ten years, 87600h".to_owned()),
        lifetime => Ok(lifetime),
    }
}

pub fn server_url(text: &str) -> Result<String, String> {
    match machinery::url::Url::parse(text) {
        Ok(url) if url.scheme == "https" && !url.host.is_empty() => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err("wanted https://HOST[:PORT]".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_may_have_a_patch_and_a_v() {
        for (text, want) in [
            ("1.37", Some(server::Release::V1_37)),
            ("v1.36", Some(server::Release::V1_36)),
            ("1.37.2", Some(server::Release::V1_37)),
            ("v1.35.0", Some(server::Release::V1_35)),
            ("1.37.", None),
            ("1.37.x", None),
            ("1.34", None),
            ("37", None),
        ] {
            assert_eq!(release(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn names_of_certificates() {
        for good in ["pintle.example.com", "*.example.com", "Pintle", "10.0.0.1", "fd00::1"] {
            assert_eq!(subject_name(good), Ok(good.to_ascii_lowercase()));
        }
        for wrong in ["", "a b", "https://a", "a:6443", "10.0.0.0/8", "*"] {
            assert!(subject_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn urls_and_lifetimes_of_users() {
        assert_eq!(server_url("https://a.example.com:6443/"), Ok("https://a.example.com:6443".to_owned()));
        for wrong in ["", "a.example.com", "http://a", "https://"] {
            assert!(server_url(wrong).is_err(), "{wrong}");
        }
        assert_eq!(user_lifetime("24h"), Ok(std::time::Duration::from_secs(24 * 3600)));
        assert_eq!(user_lifetime("30d"), user_lifetime("720h"));
        for wrong in ["1m", "0", "24", "99999h", "0d", "d", "4000d"] {
            assert!(user_lifetime(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_have_a_range() {
        assert_eq!((number(u16::MAX)("6443"), number(u8::MAX)("0")), (Ok(6443), Ok(0)));
        for wrong in ["abc", "", "-1", "1.5", "65536"] {
            assert_eq!(number(u16::MAX)(wrong), Err("wanted a whole number from 0 to 65535".to_owned()), "{wrong}");
        }
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!((mode("0644"), mode("600")), (Ok(0o644), Ok(0o600)));
        for wrong in ["", "384", "0400", "1777", "rw"] {
            assert!(mode(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, seconds) in [("0", 0), ("0s", 0), ("30s", 30), ("1m30s", 90), ("1.5h", 5400)] {
            assert_eq!(duration(text), Ok(std::time::Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("30d"), Err("there is no unit for days: write 720h".to_owned()));
        assert_eq!(duration("30"), Err("the unit is missing: write 30s, 30m or 30h".to_owned()));
        for wrong in ["", "s", "-1s", "1x", "99999999999999999999"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parses_durability_modes() {
        let every = std::time::Duration::from_millis(100);
        assert_eq!(durability("sync"), Ok(store::Durability::Sync));
        assert_eq!(durability("none"), Ok(store::Durability::None));
        assert_eq!(durability("interval=100ms"), Ok(store::Durability::Interval(every)));
        for wrong in ["", "often", "interval", "interval=", "interval=0s", "sync=1s"] {
            assert!(durability(wrong).is_err(), "{wrong}");
        }
    }
}
