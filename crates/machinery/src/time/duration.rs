//! Durations in the syntax of Go: `1h2.5m`.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text does not have the form of a duration, or its nanoseconds do not fit 64 bits.
    #[error("not a duration such as 1m30s, or too long")]
    Invalid,
    /// A number has no unit.
    #[error("a number has no unit, such as s, m or h")]
    MissingUnit,
    /// A number has a unit that is not known.
    #[error("{0:?} is not a unit; there are ns, us, ms, s, m and h")]
    UnknownUnit(String),
}

/// Nanoseconds of a unit.
fn unit(name: &str) -> Option<i128> {
    Some(match name {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Nanoseconds of a duration, which may have a sign.
///
/// # Errors
///
/// The text is not a duration in the syntax of Go, or does not fit 64 bits.
pub fn parse_nanoseconds(text: &str) -> Result<i64, DurationError> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(DurationError::Invalid);
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(DurationError::Invalid);
        }
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| DurationError::Invalid)? };
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        if name.is_empty() {
            return Err(DurationError::MissingUnit);
        }
        let unit = unit(name).ok_or_else(|| DurationError::UnknownUnit(name.to_owned()))?;
        total += i128::from(whole) * unit + fraction_of(fraction, unit);
        if total > 1 << 63 {
            return Err(DurationError::Invalid);
        }
        rest = after;
    }
    i64::try_from(if is_negative { -total } else { total }).map_err(|_| DurationError::Invalid)
}

/// Nanoseconds of a decimal fraction of a unit, truncated.
fn fraction_of(decimals: &str, unit: i128) -> i128 {
    let (mut value, mut scale) = (0.0, 1.0);
    for digit in decimals.bytes().take(18) {
        value = value * 10.0 + f64::from(digit - b'0');
        scale *= 10.0;
    }
    (value * (unit as f64 / scale)) as i128
}

/// A duration; a negative one becomes zero.
///
/// # Errors
///
/// As [`parse_nanoseconds`].
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    parse_nanoseconds(text).map(|nanoseconds| Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)))
}

/// Nanoseconds as Go prints a duration: `1h0m0s`, `1.5ms`.
pub fn duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let all = nanoseconds.unsigned_abs();
    let decimal = |unit: u64| {
        let text = format!("{}.{:09}", all / unit, (all % unit) as u128 * 1_000_000_000 / u128::from(unit));
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match all {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{all}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", decimal(1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(1_000_000)),
        _ => {
            let (minutes, rest) = (all / 60_000_000_000, all % 60_000_000_000);
            let seconds = format!("{}.{:09}", rest / 1_000_000_000, rest % 1_000_000_000);
            let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        for (text, want) in [
            ("0", Ok(0)),
            ("1m30.5s", Ok(90_500_000_000)),
            ("-1.5h", Ok(-5_400_000_000_000)),
            ("+5us", Ok(5_000)),
            (".5s", Ok(500_000_000)),
            ("1.s", Ok(1_000_000_000)),
            ("9223372036854775807ns", Ok(i64::MAX)),
            ("-9223372036854775808ns", Ok(i64::MIN)),
            ("9223372036854775808ns", Err(DurationError::Invalid)),
            ("", Err(DurationError::Invalid)),
            ("-", Err(DurationError::Invalid)),
            ("soon", Err(DurationError::Invalid)),
            ("1.2.3s", Err(DurationError::MissingUnit)),
            ("2562048h", Err(DurationError::Invalid)),
            ("5", Err(DurationError::MissingUnit)),
            ("5x", Err(DurationError::UnknownUnit("x".to_owned()))),
        ] {
            assert_eq!(parse_nanoseconds(text), want, "{text}");
        }
        assert_eq!(parse_nanoseconds(&"9223372036854775807ns".repeat(30_000)), Err(DurationError::Invalid));
        assert_eq!(parse_duration("-5s"), Ok(Duration::ZERO));
    }

    #[test]
    fn durations_are_printed() {
        for (nanoseconds, want) in [
            (0, "0s"),
            (1, "1ns"),
            (-1_500, "-1.5µs"),
            (2_000_000, "2ms"),
            (1_000_000_000, "1s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (-5_400_500_000_000, "-1h30m0.5s"),
        ] {
            assert_eq!(duration(nanoseconds), want);
        }
    }
}
