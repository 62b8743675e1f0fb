//! Values of flags that several groups of them have.

/// A duration such as `1m30s`; a bare number is seconds.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(std::time::Duration::from_secs(seconds));
    }
    machinery::time::parse_duration(text)
}

/// How writes are made durable: `sync`, `interval=DURATION` or `none`.
pub fn durability(text: &str) -> Result<store::Durability, String> {
    match text.split_once('=') {
        None if text == "sync" => Ok(store::Durability::Sync),
        None if text == "none" => Ok(store::Durability::None),
        Some(("interval", every)) => match duration(every)? {
            every if every.is_zero() => Err("an interval is longer than that; use sync".to_owned()),
            every => Ok(store::Durability::Interval(every)),
        },
        _ => Err("expected sync, interval=DURATION or none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durabilities() {
        let every = std::time::Duration::from_millis(100);
        assert_eq!(durability("sync"), Ok(store::Durability::Sync));
        assert_eq!(durability("none"), Ok(store::Durability::None));
        assert_eq!(durability("interval=100ms"), Ok(store::Durability::Interval(every)));
        for wrong in ["", "often", "interval", "interval=", "interval=0s", "sync=1s"] {
            assert!(durability(wrong).is_err(), "{wrong}");
        }
    }
}
