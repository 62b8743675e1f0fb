//! Times on the wire: RFC 3339 in UTC, seconds for `Time`, microseconds for `MicroTime`.

mod calendar;
mod duration;
mod layout;

pub use calendar::{civil_from_days, days_from_civil};
pub use duration::{DurationError, duration, parse_duration, parse_nanoseconds};
pub use layout::{Moment, check_local_time, normal_micro_time, normal_time, parse_date, parse_zoned};

/// `2026-07-22T09:00:00Z`, from seconds since the Unix epoch.
pub fn rfc3339(seconds: i64) -> String {
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    if !(0..=9999).contains(&year) {
        return format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            second / 3600,
            second / 60 % 60,
            second % 60
        );
    }
    // every write formats several times, and the machinery of `format!` takes ten times as long as this
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = *b"0000-00-00T00:00:00Z";
    let pairs = [(0, year / 100), (2, year % 100), (5, month), (8, day), (11, hour), (14, minute), (17, second)];
    for (at, pair) in pairs {
        text[at] += (pair / 10) as u8;
        text[at + 1] += (pair % 10) as u8;
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The day of a time, `2006-01-02`.
pub fn date(seconds: i64) -> String {
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    format!("{year:04}-{month:02}-{day:02}")
}

/// `Wed Jul 22 09:00:00 UTC 2026`, as `date` prints it; days of one digit are preceded by a space.
pub fn unix_date(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400);
    let (year, month, day) = civil_from_days(days);
    let second = seconds.rem_euclid(86_400);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][days.rem_euclid(7) as usize];
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months[(month - 1).rem_euclid(12) as usize];
    format!("{weekday} {month} {day:2} {:02}:{:02}:{:02} UTC {year}", second / 3600, second / 60 % 60, second % 60)
}

/// `2026-07-22T09:00:00.000000Z`, from microseconds since the Unix epoch.
pub fn rfc3339_micro(microseconds: i64) -> String {
    let text = rfc3339(microseconds.div_euclid(1_000_000));
    format!("{}.{:06}Z", &text[..text.len() - 1], microseconds.rem_euclid(1_000_000))
}

/// Parses RFC 3339 as Go does: upper-case `T` and `Z`, any fraction, any offset. Returns seconds since 1970 and
/// nanoseconds.
pub fn parse_rfc3339(text: &str) -> Option<(i64, u32)> {
    let Moment { seconds, nanoseconds, offset } = parse_zoned(text)?;
    // only an offset ends with this many minutes
    (offset.abs() < 86_400 && !text.ends_with(":60")).then_some((seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc1123_dates_have_a_weekday() {
        for (seconds, text) in [
            (0, "Thu Jan  1 00:00:00 UTC 1970"),
            (-1, "Wed Dec 31 23:59:59 UTC 1969"),
            (1_795_520_500, "Tue Nov 24 11:41:40 UTC 2026"),
        ] {
            assert_eq!(unix_date(seconds), text);
        }
    }

    #[test]
    fn times_round_trip() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2024-02-29T12:34:56Z", 1_709_210_096),
            ("0001-01-01T00:00:00Z", -62_135_596_800),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(parse_rfc3339(text), Some((seconds, 0)));
            assert_eq!(rfc3339(seconds), text);
        }
        assert_eq!(rfc3339(253_402_300_800), "10000-01-01T00:00:00Z");
        assert_eq!(parse_rfc3339("2024-01-01T01:00:00.5+01:00"), Some((1_704_067_200, 500_000_000)));
        assert_eq!(parse_rfc3339("2024-01-01T1:00:00Z"), Some((1_704_070_800, 0)));
        for bad in [
            "2024-01-01T:00:00Z", "2024-01-01T1:0:00Z", "2024-02-30T00:00:00Z", "2024-01-01t00:00:00z",
            "2024-01-01T00:00:00", "2024-1-01T00:00:00Z", "",
        ] {
            assert_eq!(parse_rfc3339(bad), None, "{bad}");
        }
        assert_eq!(rfc3339_micro(1_500_000), "1970-01-01T00:00:01.500000Z");
    }
}
