//! Times on the wire: RFC 3339 in UTC, seconds for `Time`, microseconds for `MicroTime`.

use std::time::Duration;

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date `(year, month, day)` that lies `days` after 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days - era * 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// `2026-07-22T09:00:00Z`, from seconds since the Unix epoch.
pub fn rfc3339(seconds: i64) -> String {
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// The day of a time, `2006-01-02`.
pub fn date(seconds: i64) -> String {
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-07-22T09:00:00.000000Z`, from microseconds since the Unix epoch.
pub fn rfc3339_micro(microseconds: i64) -> String {
    let text = rfc3339(microseconds.div_euclid(1_000_000));
    format!("{}.{:06}Z", &text[..text.len() - 1], microseconds.rem_euclid(1_000_000))
}

/// Parses RFC 3339 as Go does: upper-case `T` and `Z`, any fraction, any offset. Answers seconds and nanoseconds.
pub fn parse_rfc3339(text: &str) -> Option<(i64, u32)> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(digits.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0')))
    };
    let punctuation = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !punctuation.iter().all(|(i, c)| bytes.get(*i) == Some(c)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut at = 19;
    let mut nanos = 0u32;
    if matches!(bytes.get(at), Some(b'.' | b',')) {
        let digits = bytes.get(at + 1..)?.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        for i in 0..9 {
            let digit = if i < digits { u32::from(bytes[at + 1 + i] - b'0') } else { 0 };
            nanos = nanos * 10 + digit;
        }
        at += 1 + digits;
    }
    let offset = match bytes.get(at..)? {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            if *sign == b'+' { seconds } else { -seconds }
        }
        _ => return None,
    };
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some((seconds, nanos))
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

/// A Go duration such as `1m30s`. The error is Go's.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let quoted = crate::value::quote(text);
    let invalid = || format!("time: invalid duration {quoted}");
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().map_err(|_| invalid())?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "" => return Err(format!("time: missing unit in duration {quoted}")),
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            other => {
                let unit = crate::value::quote(other);
                return Err(format!("time: unknown unit {unit} in duration {quoted}"));
            }
        };
        seconds += number * unit;
        rest = &rest[end..];
    }
    if seconds * 1e9 >= i64::MAX as f64 {
        return Err(invalid());
    }
    Duration::try_from_secs_f64(if text.starts_with('-') { 0.0 } else { seconds }).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2024-02-29T12:34:56Z", 1_709_210_096),
            ("0001-01-01T00:00:00Z", -62_135_596_800),
        ] {
            assert_eq!(parse_rfc3339(text), Some((seconds, 0)));
            assert_eq!(rfc3339(seconds), text);
        }
        assert_eq!(parse_rfc3339("2024-01-01T01:00:00.5+01:00"), Some((1_704_067_200, 500_000_000)));
        for bad in ["2024-02-30T00:00:00Z", "2024-01-01t00:00:00z", "2024-01-01T00:00:00", "2024-1-01T00:00:00Z", ""] {
            assert_eq!(parse_rfc3339(bad), None, "{bad}");
        }
        assert_eq!(rfc3339_micro(1_500_000), "1970-01-01T00:00:01.500000Z");
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1m30.5s"), Ok(Duration::from_millis(90_500)));
        assert_eq!(parse_duration("soon").unwrap_err(), "time: invalid duration \"soon\"");
        assert_eq!(parse_duration("2562048h").unwrap_err(), "time: invalid duration \"2562048h\"");
        assert_eq!(parse_duration("5").unwrap_err(), "time: missing unit in duration \"5\"");
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
