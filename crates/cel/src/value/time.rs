//! Timestamps and durations: texts, arithmetic, calendars and time zones.

use machinery::time::{Moment, civil_from_days, days_from_civil, parse_date, parse_nanoseconds, parse_zoned};

use super::{Error, Result, Timestamp, Val};

/// Year 1 and the last second of year 9999.
pub(crate) const SECONDS_MIN: i64 = -62_135_596_800;
pub(crate) const SECONDS_MAX: i64 = 253_402_300_799;

pub(crate) fn overflow() -> Error {
    Error::new("timestamp overflow")
}

/// The timestamp, or an error if it is out of range.
pub(crate) fn checked<'a>(t: Timestamp) -> Result<Val<'a>> {
    if (SECONDS_MIN..=SECONDS_MAX).contains(&t.seconds) { Ok(Val::Timestamp(t)) } else { Err(overflow()) }
}

/// The moment `nanoseconds` later.
pub(crate) fn shifted<'a>(t: Timestamp, nanoseconds: i64) -> Result<Val<'a>> {
    let total = i128::from(t.seconds) * 1_000_000_000 + i128::from(t.nanoseconds) + i128::from(nanoseconds);
    let seconds = i64::try_from(total.div_euclid(1_000_000_000)).map_err(|_| overflow())?;
    checked(Timestamp { seconds, nanoseconds: total.rem_euclid(1_000_000_000) as u32, offset: t.offset })
}

/// The time from `b` to `a`.
pub(crate) fn between<'a>(a: Timestamp, b: Timestamp) -> Result<Val<'a>> {
    let total = |t: Timestamp| i128::from(t.seconds) * 1_000_000_000 + i128::from(t.nanoseconds);
    i64::try_from(total(a) - total(b)).map(Val::Duration).map_err(|_| Error::new("integer overflow"))
}

pub(crate) fn take_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Nanoseconds of `1h2.5m`, in the syntax of Go.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    parse_nanoseconds(text).ok()
}

/// Parses a duration in the format `duration` of schemas: Go's form, or numbers with units such as `3 days`.
pub(crate) fn parse_format_duration(text: &str) -> std::result::Result<i64, String> {
    if let Some(nanoseconds) = parse_duration(text) {
        return Ok(nanoseconds);
    }
    let failure = || format!("unable to parse {text} as duration");
    let mut rest = text;
    let mut total: i128 = 0;
    let mut any = false;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (digits, after) = take_digits(&rest[start..]);
        let unit_text = after.trim_start();
        let end = unit_text.find(|c: char| !c.is_alphabetic()).unwrap_or(unit_text.len());
        let unit: i128 = match unit_text[..end].to_ascii_lowercase().as_str() {
            "ns" | "nano" => 1,
            "us" | "µs" | "micro" => 1_000,
            "ms" | "milli" => 1_000_000,
            "s" | "sec" | "second" | "seconds" => 1_000_000_000,
            "m" | "min" | "minute" | "minutes" => 60_000_000_000,
            "h" | "hr" | "hour" | "hours" => 3_600_000_000_000,
            "d" | "day" | "days" => 86_400_000_000_000,
            "w" | "week" | "weeks" | "wk" => 604_800_000_000_000,
            _ => return Err(failure()),
        };
        let part = i128::from(digits.parse::<i64>().map_err(|_| failure())?) * unit;
        total = total.checked_add(part).ok_or_else(failure)?;
        any = true;
        rest = &unit_text[end..];
    }
    if any { i64::try_from(total).map_err(|_| failure()) } else { Err(failure()) }
}

/// The text of a duration: seconds as a double, such as `2.5s`.
pub(crate) fn duration_text(nanoseconds: i64) -> String {
    let seconds = (nanoseconds / 1_000_000_000) as f64 + (nanoseconds % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}

pub(crate) fn number(text: &str, digits: usize) -> Option<(i64, &str)> {
    let part = text.get(..digits)?;
    if part.bytes().all(|b| b.is_ascii_digit()) { Some((part.parse().ok()?, &text[digits..])) } else { None }
}

pub(crate) const DAY: i64 = 86_400;

/// A moment on the calendar.
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) second_of_day: i64,
    /// 0 is Sunday.
    pub(crate) weekday: i64,
    pub(crate) day_of_year: i64,
}

pub(crate) fn civil(t: Timestamp, offset_seconds: i64) -> Civil {
    let seconds = t.seconds.saturating_add(offset_seconds);
    let day_number = seconds.div_euclid(DAY);
    let (year, month, day) = civil_from_days(day_number);
    Civil {
        year,
        month,
        day,
        second_of_day: seconds.rem_euclid(DAY),
        weekday: (day_number + 4).rem_euclid(7),
        day_of_year: day_number - days_from_civil(year, 1, 1).unwrap_or(day_number),
    }
}

/// Parses the argument of `timestamp('…')`: RFC 3339, with a zone.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let Moment { seconds, nanoseconds, offset } = parse_zoned(text)?;
    let has_long_hour = text.as_bytes().get(13) == Some(&b':');
    has_long_hour.then_some(Timestamp { seconds, nanoseconds, offset: offset as i32 })
}

/// Parses the format `date-time` of schemas.
pub(crate) fn parse_format_date_time(text: &str) -> Option<Timestamp> {
    if text.is_empty() {
        return Some(Timestamp::utc(0, 0));
    }
    // without a zone, it is UTC
    parse_timestamp(text).or_else(|| parse_timestamp(&format!("{text}Z")))
}

/// Whether a text is valid in the format `date-time` of schemas and of CEL (`strfmt.IsDateTime`): a date, `t` in either case, a
/// time of day with any fraction, and `z` in either case or an offset of any size. As upstream, text after a second `t` is
/// ignored.
///
/// ```
/// assert!(cel::is_date_time("2020-01-01t00:00:00.5z") && !cel::is_date_time("2020-01-01T00:00:00"));
/// ```
pub fn is_date_time(text: &str) -> bool {
    let is_t = |c: char| c.eq_ignore_ascii_case(&'t');
    let Some((day, rest)) = text.split_once(is_t) else { return false };
    let time = rest.split(is_t).next().unwrap_or_default();
    let two = |at: usize| number(time.get(at..)?, 2).map(|(number, _)| number);
    let colons = time.get(2..3) == Some(":") && time.get(5..6) == Some(":");
    let in_day = [(0, 23), (3, 59), (6, 59)].iter().all(|(at, max)| two(*at).is_some_and(|number| number <= *max));
    parse_date(day).is_ok() && colons && in_day && time.get(8..).is_some_and(is_fraction_and_zone)
}

/// Any character but a line break before digits, as `.` of Go's regular expressions, or nothing; then `z` or `+hh:mm`.
fn is_fraction_and_zone(text: &str) -> bool {
    let is_zone = |text: &str| {
        let offset = text.strip_prefix(['+', '-']).and_then(|offset| offset.split_once(':'));
        let is_pair = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        text.eq_ignore_ascii_case("z") || offset.is_some_and(|(hours, minutes)| is_pair(hours) && is_pair(minutes))
    };
    let mut chars = text.chars();
    let without_point = chars.next().filter(|point| *point != '\n').map_or("", |_| chars.as_str());
    let (digits, zone) = take_digits(without_point);
    is_zone(text) || (!digits.is_empty() && is_zone(zone))
}

/// RFC 3339 in the zone the moment was given in, with as many decimals as needed.
pub(crate) fn timestamp_text(t: Timestamp) -> String {
    let moment = civil(t, t.offset.into());
    let (hour, minute, second) = moment.clock();
    let mut text =
        format!("{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}", moment.year, moment.month, moment.day);
    if t.nanoseconds != 0 {
        let digits = format!("{:09}", t.nanoseconds);
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
    if t.offset == 0 {
        text.push('Z');
    } else {
        let minutes = t.offset.abs() / 60;
        let sign = if t.offset < 0 { '-' } else { '+' };
        text.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
    }
    text
}

impl Civil {
    pub(crate) fn clock(&self) -> (i64, i64, i64) {
        (self.second_of_day / 3600, self.second_of_day / 60 % 60, self.second_of_day % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_times_of_the_named_format() {
        for (text, want) in [
            ("2020-01-01T00:00:00Z", true),
            ("2020-01-01t00:00:00z", true),
            ("2020-01-01t23:59:59.123456789+01:00", true),
            ("2020-01-01T00:00:00é5Z", true),
            ("2020-01-01T00:00:00\r5Z", true),
            ("2020-01-01T00:00:00\n5Z", false),
            ("2020-01-01T00:00:00.5Z\n", false),
            ("2020-01-01T00:00:00", false),
            ("2020-01-01 00:00:00Z", false),
            ("2020-01-01T24:00:00Z", false),
            ("2020-01-01T23:59:60Z", false),
            ("2020-01-01T00:00:00+0100", false),
            ("2020-02-30T00:00:00Z", false),
            ("2020-1-1T00:00:00Z", false),
            ("2020-01-01T00:00Z", false),
            ("2020-01-01", false),
            ("", false),
        ] {
            assert_eq!(is_date_time(text), want, "{text}");
        }
    }

    #[test]
    fn durations_of_any_length_are_clamped() {
        let large = "9223372036854775807w ".repeat(30_000);
        assert!(parse_format_duration(&large).is_err());
        assert_eq!(parse_duration(&"9223372036854775807ns".repeat(30_000)), None);
        assert_eq!(parse_format_duration("1 day 2 hours"), Ok(93_600_000_000_000));
    }
}
