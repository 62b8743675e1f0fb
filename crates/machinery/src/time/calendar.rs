//! The proleptic Gregorian calendar: the arithmetic of `jiff`, for any year.
//!
//! `jiff` supports years up to 9999, and the conversion of a local time to UTC may lead to year 10000. As the calendar
//! repeats every 400 years, each date is computed within the 400 years from 2000.

use jiff::ToSpan;
use jiff::civil::{Date, date};

/// Days of 400 years.
const CYCLE_DAYS: i64 = 146_097;
/// Days from 1970-01-01 to the first day of [`cycle_start`].
const CYCLE_OFFSET: i64 = 10_957;

const fn cycle_start() -> Date {
    date(2000, 1, 1)
}

/// The corresponding date in the cycle from 2000, and the number of cycles between the two.
fn in_cycle(year: i64, month: i64, day: i64) -> Option<(Date, i64)> {
    let of_cycle = i16::try_from(2000 + year.rem_euclid(400)).ok()?;
    let date = Date::new(of_cycle, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    Some((date, year.div_euclid(400) - 5))
}

/// Days from 1970-01-01 to a date; `None` if there is no such date.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let (date, cycles) = in_cycle(year, month, day)?;
    let days = cycle_start().until(date).ok()?.get_days();
    Some(CYCLE_OFFSET + cycles * CYCLE_DAYS + i64::from(days))
}

/// The date `(year, month, day)` that lies `days` after 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let since = days.saturating_sub(CYCLE_OFFSET);
    let date = cycle_start().saturating_add(since.rem_euclid(CYCLE_DAYS).days());
    let year = i64::from(date.year()) + since.div_euclid(CYCLE_DAYS) * 400;
    (year, date.month().into(), date.day().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_days_and_dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (10_957, (2000, 1, 1)),
            (11_016, (2000, 2, 29)),
            (-719_162, (1, 1, 1)),
            (-719_528, (0, 1, 1)),
            (2_932_896, (9999, 12, 31)),
            (2_932_897, (10_000, 1, 1)),
        ] {
            assert_eq!(civil_from_days(days), date);
            assert_eq!(days_from_civil(date.0, date.1, date.2), Some(days));
        }
        for (year, month, day) in
            [(2023, 2, 29), (1900, 2, 29), (2024, 0, 1), (2024, 13, 1), (2024, 4, 31), (2024, 1, 0)]
        {
            assert_eq!(days_from_civil(year, month, day), None, "{year}-{month}-{day}");
        }
        for days in (-800_000..3_000_000).step_by(997) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), Some(days));
        }
    }
}
