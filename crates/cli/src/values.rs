//! Parsers of flag values.

/// Parses a duration in Go's format, such as `1m30s`; only 0 may have no unit.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    match text.parse::<u64>() {
        Ok(number) if number > 0 => Err(format!("the unit is missing: write {number}s, {number}m or {number}h")),
        _ if text.starts_with('-') => Err("must not be negative".to_owned()),
        _ => machinery::time::parse_duration(text).map_err(|error| error.to_string()),
    }
}

/// A parser for a flag that has another name: always fails and names the right flag.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, seconds) in [("0", 0), ("0s", 0), ("30s", 30), ("1m30s", 90), ("1.5h", 5400)] {
            assert_eq!(duration(text), Ok(std::time::Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("30"), Err("it has no unit: 30s, 30m or 30h?".to_owned()));
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
