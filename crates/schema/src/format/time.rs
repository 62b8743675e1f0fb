//! Dates, times and durations.

use machinery::time::{parse_date, parse_nanoseconds};

pub(super) fn date(text: &str) -> bool {
    parse_date(text).is_ok()
}

const UNITS: &[(&[&str], i64)] = &[
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

/// The nanoseconds of a Go duration (`1h30m`), or of any text that contains amounts with units (`2 days`).
pub fn parse_duration(text: &str) -> Option<i64> {
    parse_nanoseconds(text).ok().or_else(|| scala_duration(text))
}

fn scala_duration(text: &str) -> Option<i64> {
    let (mut rest, mut total, mut found) = (text, 0_i64, false);
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let from = &rest[start..];
        let digits = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let blanks = from[digits..].find(|c: char| !matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c'));
        let word = &from[digits + blanks.unwrap_or(from.len() - digits)..];
        let length = word.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ')).unwrap_or(word.len());
        rest = &word[length..];
        if length == 0 {
            continue;
        }
        let amount: i64 = from[..digits].parse().ok()?;
        let unit = word[..length].to_lowercase();
        for (names, nanoseconds) in UNITS {
            let prefix = names.last().is_some_and(|last| unit.starts_with(last));
            let times = usize::from(prefix) + usize::from(!prefix && names.contains(&unit.as_str()));
            for _ in 0..times {
                found = true;
                total = total.wrapping_add(amount.wrapping_mul(*nanoseconds));
            }
        }
    }
    found.then_some(total)
}
