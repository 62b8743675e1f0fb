//! Parses times by Go's layouts, with Go's errors. Typed objects accept RFC 3339 and print UTC with seconds.

use super::{days_from_civil, rfc3339, rfc3339_micro};

const LOCAL_LAYOUT: &str = "2006-01-02T15:04:05";
const DATE_LAYOUT: &str = "2006-01-02";
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Quotes text as Go's package time does: everything but printable ASCII is escaped byte by byte.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

struct TimeParser<'a> {
    layout: &'static str,
    whole: &'a str,
    rest: &'a str,
}

impl<'a> TimeParser<'a> {
    fn fail<T>(&self, at: &str, element: &str) -> Result<T, String> {
        Err(format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(self.whole),
            quote(self.layout),
            quote(at),
            quote(element)
        ))
    }

    fn range<T>(&self, what: &str) -> Result<T, String> {
        Err(format!("parsing time {}: {what} out of range", quote(self.whole)))
    }

    fn digits(&mut self, count: usize, element: &str) -> Result<i64, String> {
        let from = self.rest;
        match from.get(..count).filter(|d| d.bytes().all(|b| b.is_ascii_digit())) {
            Some(digits) => {
                self.rest = &from[count..];
                Ok(digits.parse().unwrap_or_default())
            }
            None => self.fail(from, element),
        }
    }

    /// Parses the hour, which may have a single digit, as in Go.
    fn hour(&mut self) -> Result<i64, String> {
        let has_two = self.rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        self.digits(if has_two { 2 } else { 1 }, "15")
    }

    fn literal(&mut self, literal: char) -> Result<(), String> {
        match self.rest.strip_prefix(literal) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => self.fail(self.rest, &literal.to_string()),
        }
    }

    /// Parses the time after a `T`. Returns the second of the day.
    fn clock(&mut self) -> Result<i64, String> {
        self.literal('T')?;
        let hour = self.hour()?;
        if hour > 23 {
            return self.range("hour");
        }
        self.literal(':')?;
        let minute = self.digits(2, "04")?;
        if minute > 59 {
            return self.range("minute");
        }
        self.literal(':')?;
        let second = self.digits(2, "05")?;
        if second > 59 { self.range("second") } else { Ok(hour * 3600 + minute * 60 + second) }
    }

    /// Parses a point and digits, if they are given. Returns nanoseconds.
    fn fraction(&mut self) -> u32 {
        let rest = self.rest.strip_prefix(['.', ',']).unwrap_or_default();
        let (digits, after) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
        if digits.is_empty() {
            return 0;
        }
        self.rest = after;
        format!("{digits:0<9}")[..9].parse().unwrap_or_default()
    }

    /// Parses a dot and six digits.
    fn micros(&mut self) -> Result<u32, String> {
        let digits = self.rest.strip_prefix(['.', ',']).and_then(|rest| rest.get(..6));
        match digits.filter(|d| d.bytes().all(|b| b.is_ascii_digit())) {
            Some(digits) => {
                self.rest = &self.rest[7..];
                Ok(digits.parse().unwrap_or_default())
            }
            None => self.fail(self.rest, ".000000"),
        }
    }

    /// Parses the zone. Returns seconds east of UTC.
    fn offset(&mut self) -> Result<i64, String> {
        let from = self.rest;
        if let Some(rest) = from.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bytes = from.as_bytes();
        let digit = |i: usize| bytes.get(i).copied().filter(u8::is_ascii_digit).map(|b| i64::from(b - b'0'));
        let (sign, colon) = (bytes.first().copied(), bytes.get(3).copied());
        match (sign, digit(1), digit(2), colon, digit(4), digit(5)) {
            (Some(s @ (b'+' | b'-')), Some(a), Some(b), Some(b':'), Some(c), Some(d)) => {
                self.rest = &from[6..];
                let (hours, minutes) = (a * 10 + b, c * 10 + d);
                if hours > 24 {
                    return self.range("time zone offset hour");
                }
                if minutes > 60 {
                    return self.range("time zone offset minute");
                }
                let seconds = hours * 3600 + minutes * 60;
                Ok(if s == b'-' { -seconds } else { seconds })
            }
            _ => self.fail(from, "Z07:00"),
        }
    }
}

/// A time that was parsed.
pub struct Moment {
    /// Seconds since the Unix epoch.
    pub seconds: i64,
    /// Nanoseconds since the beginning of the second.
    pub nanoseconds: u32,
    /// Seconds east of UTC of the zone in which it is given.
    pub offset: i64,
}

/// Go's zero time, the first second of year 1.
const ZERO: i64 = -62_135_596_800;

/// The time in UTC with seconds; `None` for Go's zero time.
pub fn normal_time(text: &str) -> Result<Option<String>, String> {
    let Moment { seconds, .. } = parse(text, LAYOUT)?;
    let is_normal = text.len() == "2006-01-02T15:04:05Z".len() && text.ends_with('Z');
    Ok((seconds != ZERO).then(|| if is_normal { text.to_owned() } else { rfc3339(seconds) }))
}

/// The time in UTC with microseconds, which must be given; `None` for Go's zero time.
pub fn normal_micro_time(text: &str) -> Result<Option<String>, String> {
    let Moment { seconds, nanoseconds, .. } = parse(text, MICRO_LAYOUT)?;
    let is_zero = seconds == ZERO && nanoseconds == 0;
    Ok((!is_zero).then(|| rfc3339_micro(seconds * 1_000_000 + i64::from(nanoseconds / 1000))))
}

/// A time with any fraction and a zone, as Go parses RFC 3339. The hour may have a single digit, and the offset may be up to
/// 24 hours and 60 minutes.
pub fn parse_zoned(text: &str) -> Option<Moment> {
    parse(text, LAYOUT).ok()
}

/// Why a text is not a time without a zone, which is the last layout that kube-apiserver tries for the format
/// `date-time`.
pub fn check_local_time(text: &str) -> Result<(), String> {
    parse(text, LOCAL_LAYOUT).map(drop)
}

/// Seconds of the start of a day; the error says why a text is not a date.
pub fn parse_date(text: &str) -> Result<i64, String> {
    parse(text, DATE_LAYOUT).map(|moment| moment.seconds)
}

fn parse(text: &str, layout: &'static str) -> Result<Moment, String> {
    let mut p = TimeParser { layout, whole: text, rest: text };
    let year = p.digits(4, "2006")?;
    p.literal('-')?;
    let month = p.digits(2, "01")?;
    if !(1..=12).contains(&month) {
        return p.range("month");
    }
    p.literal('-')?;
    let day = p.digits(2, "02")?;
    let seconds = if layout == DATE_LAYOUT { 0 } else { p.clock()? };
    let nanoseconds = match layout {
        MICRO_LAYOUT => p.micros()? * 1000,
        DATE_LAYOUT => 0,
        _ => p.fraction(),
    };
    let offset = if layout == LAYOUT || layout == MICRO_LAYOUT { p.offset()? } else { 0 };
    if !p.rest.is_empty() {
        return Err(format!("parsing time {}: extra text: {}", quote(text), quote(p.rest)));
    }
    let Some(days) = days_from_civil(year, month, day) else { return p.range("day") };
    Ok(Moment { seconds: days * 86_400 + seconds - offset, nanoseconds, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_text_is_escaped_by_bytes() {
        assert_eq!(quote("\u{e4}\"\n\u{2028}"), r#""\xc3\xa4\"\x0a\xe2\x80\xa8""#);
    }

    #[test]
    fn micro_times_have_six_digits() {
        let layout = "\"2006-01-02T15:04:05.000000Z07:00\"";
        let bad = |text: &str, at: &str, what: &str| {
            Err(format!("parsing time {text:?} as {layout}: cannot parse {at:?} as {what:?}"))
        };
        let cases = [
            ("2026-01-02T03:04:05.123456+01:00", Ok(Some("2026-01-02T02:04:05.123456Z".to_owned()))),
            ("0001-01-01T00:00:00.000000Z", Ok(None)),
            ("2026-01-02T03:04:05Z", bad("2026-01-02T03:04:05Z", "Z", ".000000")),
            ("2026-01-02T03:04:05.1234567Z", bad("2026-01-02T03:04:05.1234567Z", "7Z", "Z07:00")),
        ];
        for (text, want) in cases {
            assert_eq!(normal_micro_time(text), want, "{text}");
        }
    }

    #[test]
    fn times_without_a_zone_are_named_in_go_words() {
        let bad = |text: &str, at: &str, what: &str| {
            Err(format!("parsing time {text:?} as \"2006-01-02T15:04:05\": cannot parse {at:?} as {what:?}"))
        };
        let extra = |text: &str, rest: &str| Err(format!("parsing time {text:?}: extra text: {rest:?}"));
        for (text, want) in [
            ("2024-01-01T00:00:00.5", Ok(())),
            ("2024-01-01t00:00:00z", bad("2024-01-01t00:00:00z", "t00:00:00z", "T")),
            ("2024-01-01T00:00:00:5Z", extra("2024-01-01T00:00:00:5Z", ":5Z")),
            ("2024-01-01T00:00:00.5z", extra("2024-01-01T00:00:00.5z", "z")),
            ("2024-01-01T00:00:00+99:99", extra("2024-01-01T00:00:00+99:99", "+99:99")),
            ("2024-02-30T00:00:00", Err("parsing time \"2024-02-30T00:00:00\": day out of range".to_owned())),
        ] {
            assert_eq!(check_local_time(text), want, "{text}");
        }
        assert_eq!(parse_date("2024-01-01"), Ok(1_704_067_200));
        assert_eq!(parse_date("2024-01-01T").map(drop), extra("2024-01-01T", "T"));
    }

    #[test]
    fn times_are_normalised() {
        let cases = [
            ("2020-01-01T00:00:00+02:00", Ok(Some("2019-12-31T22:00:00Z"))),
            ("2024-02-29T23:59:59.999Z", Ok(Some("2024-02-29T23:59:59Z"))),
            ("0001-01-01T00:00:00Z", Ok(None)),
            ("2020-01-02T3:04:05Z", Ok(Some("2020-01-02T03:04:05Z"))),
            (
                "2020-01-02T3:4:05Z",
                Err(
                    "parsing time \"2020-01-02T3:4:05Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"4:05Z\" as \"04\"",
                ),
            ),
            ("x", Err("parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"")),
            ("2023-02-29T00:00:00Z", Err("parsing time \"2023-02-29T00:00:00Z\": day out of range")),
        ];
        for (text, want) in cases {
            let want = want.map(|w: Option<&str>| w.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(normal_time(text), want, "{text}");
        }
    }
}
