//! Cron expressions: the schedules of CronJobs and of backups.
//!
//! The syntax and the errors are those of robfig/cron's standard parser, which Kubernetes uses: five fields (minute,
//! hour, day of the month, month, day of the week), descriptors such as `@daily`, and `@every DURATION`.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::limits::SCHEDULE_DAYS_AHEAD;

/// The numbers that are allowed in a field of an expression.
struct FieldRange {
    least: u32,
    most: u32,
    /// Names for numbers. The first one stands for `least`.
    names: &'static [&'static str],
}

const FIELDS: [FieldRange; 5] = [
    FieldRange { least: 0, most: 59, names: &[] },
    FieldRange { least: 0, most: 23, names: &[] },
    FieldRange { least: 1, most: 31, names: &[] },
    FieldRange {
        least: 1,
        most: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    FieldRange { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

/// The descriptors, and the expressions that they stand for.
const DESCRIPTORS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A parsed expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// `@every DURATION`.
    Every(Duration),
    /// The times that match the fields.
    At(Fields),
}

/// The fields of an expression, as sets of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    minutes: Numbers,
    hours: Numbers,
    days_of_month: Numbers,
    months: Numbers,
    days_of_week: Numbers,
}

/// A set of the numbers 0 to 63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Numbers {
    bits: u64,
    /// Whether the field is `*`, so that only the other field for days counts.
    is_star: bool,
}

impl Numbers {
    fn contains(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.bits & (1 << number) != 0)
    }
}

impl Schedule {
    /// Parses an expression. A time zone in front of it (`TZ=` or `CRON_TZ=`) is ignored.
    ///
    /// # Errors
    ///
    /// The message of robfig/cron.
    pub fn parse(text: &str) -> Result<Schedule, String> {
        let text = match text.strip_prefix("TZ=").or(text.strip_prefix("CRON_TZ=")) {
            Some(zoned) => zoned.split_once(' ').map(|(_, expression)| expression.trim()).unwrap_or_default(),
            None => text,
        };
        if text.is_empty() {
            return Err("empty spec string".to_owned());
        }
        if let Some(every) = text.strip_prefix("@every ") {
            let failed = |_| format!("failed to parse duration {text}: time: invalid duration \"{every}\"");
            return crate::time::parse_duration(every).map(Schedule::Every).map_err(failed);
        }
        if text.starts_with('@') {
            let known = DESCRIPTORS.iter().find(|(descriptor, _)| *descriptor == text);
            let (_, expression) = known.ok_or_else(|| format!("unrecognized descriptor: {text}"))?;
            return Schedule::parse(expression);
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days_of_month, months, days_of_week] = fields[..] else {
            return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
        };
        Ok(Schedule::At(Fields {
            minutes: parse_field(minutes, &FIELDS[0])?,
            hours: parse_field(hours, &FIELDS[1])?,
            days_of_month: parse_field(days_of_month, &FIELDS[2])?,
            months: parse_field(months, &FIELDS[3])?,
            days_of_week: parse_field(days_of_week, &FIELDS[4])?,
        }))
    }

    /// The first time after `after`, both in seconds since 1970, in UTC. `None` if there is no such time within five
    /// years, as for 30 February.
    pub fn next(&self, after: i64) -> Option<i64> {
        match self {
            Schedule::Every(every) => after.checked_add(i64::try_from(every.as_secs().max(1)).ok()?),
            Schedule::At(fields) => {
                let next_minute = Timestamp::from_second(after.checked_add(60 - after.rem_euclid(60))?).ok()?;
                fields.first_from(next_minute.to_zoned(TimeZone::UTC).datetime())
            }
        }
    }
}

impl Fields {
    fn first_from(&self, from: DateTime) -> Option<i64> {
        let mut date = from.date();
        let mut earliest = (from.hour(), from.minute());
        for _ in 0..SCHEDULE_DAYS_AHEAD {
            if self.has_day(date) {
                let hours = (earliest.0..24).filter(|hour| self.hours.contains(*hour));
                let times = hours.flat_map(|hour| {
                    let first_minute = if hour == earliest.0 { earliest.1 } else { 0 };
                    (first_minute..60).map(move |minute| (hour, minute))
                });
                if let Some((hour, minute)) = times.into_iter().find(|(_, minute)| self.minutes.contains(*minute)) {
                    return Some(date.at(hour, minute, 0, 0).to_zoned(TimeZone::UTC).ok()?.timestamp().as_second());
                }
            }
            date = date.tomorrow().ok()?;
            earliest = (0, 0);
        }
        None
    }

    /// Whether the schedule has times on this day. If both fields for days are restricted, it is enough that one
    /// matches.
    fn has_day(&self, date: jiff::civil::Date) -> bool {
        let of_month = self.days_of_month.contains(date.day());
        let of_week = self.days_of_week.contains(date.weekday().to_sunday_zero_offset());
        let has_both = of_month && of_week;
        let is_restricted_twice = !self.days_of_month.is_star && !self.days_of_week.is_star;
        self.months.contains(date.month()) && (has_both || is_restricted_twice && (of_month || of_week))
    }
}

/// Parses ranges that are separated by commas.
fn parse_field(text: &str, field: &FieldRange) -> Result<Numbers, String> {
    let mut numbers = Numbers::default();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let range = parse_range(range, field)?;
        numbers = Numbers { bits: numbers.bits | range.bits, is_star: numbers.is_star || range.is_star };
    }
    Ok(numbers)
}

/// Parses a range with an optional step: `*`, `5`, `1-5`, `*/2`.
fn parse_range(text: &str, field: &FieldRange) -> Result<Numbers, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    // like upstream, ignores what follows a star and a hyphen
    let is_star = matches!(ends[..], ["*" | "?", ..]);
    let (start, mut end) = match ends[..] {
        ["*" | "?", ..] => (field.least, field.most),
        [one] => (number_or_name(one, field)?, number_or_name(one, field)?),
        [start, end] => (number_or_name(start, field)?, number_or_name(end, field)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            // N/STEP goes on to the greatest number
            if ends.len() == 1 {
                end = end.max(field.most);
            }
            parse_number(step)?
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < field.least {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", field.least));
    }
    if end > field.most {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", field.most));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let bits = (start..=end).step_by(step).fold(0, |bits, number| bits | 1 << number);
    Ok(Numbers { bits, is_star: is_star && step == 1 })
}

fn number_or_name(text: &str, field: &FieldRange) -> Result<u32, String> {
    let position = field.names.iter().position(|name| *name == text.to_lowercase());
    match position.and_then(|position| u32::try_from(position).ok()) {
        Some(position) => Ok(field.least + position),
        None => parse_number(text),
    }
}

fn parse_number(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => {
            let quoted = crate::value::quote(text);
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_five_fields() {
        let cases = [
            ("*/5 * * * *", Ok(())),
            ("0 0 1-15/3 jan,feb mon-fri", Ok(())),
            ("@daily", Ok(())),
            ("* * * *", Err("expected exactly 5 fields, found 4: [* * * *]")),
            ("60 * * * *", Err("end of range (60) above maximum (59): 60")),
            ("*/5 * * * *1", Err("failed to parse int from *1: strconv.Atoi: parsing \"*1\": invalid syntax")),
            ("*/5 * * * *-x", Ok(())),
            ("@often", Err("unrecognized descriptor: @often")),
            ("@every x", Err("failed to parse duration @every x: time: invalid duration \"x\"")),
        ];
        for (schedule, want) in cases {
            assert_eq!(Schedule::parse(schedule).map(drop), want.map_err(str::to_owned), "{schedule}");
        }
    }

    #[test]
    fn next_times_are_after_the_given_time() {
        let cases = [
            ("* * * * *", "2026-11-24T10:00:00Z", "2026-11-24T10:01:00Z"),
            ("* * * * *", "2026-11-24T10:00:59Z", "2026-11-24T10:01:00Z"),
            ("*/15 * * * *", "2026-11-24T10:50:00Z", "2026-11-24T11:00:00Z"),
            ("30 3 * * *", "2026-11-24T03:30:00Z", "2026-11-25T03:30:00Z"),
            ("30 3 * * *", "2026-11-24T03:29:59Z", "2026-11-24T03:30:00Z"),
            ("0 0 31 * *", "2026-11-24T10:00:00Z", "2026-12-31T00:00:00Z"),
            ("0 0 29 2 *", "2026-11-24T10:00:00Z", "2028-02-29T00:00:00Z"),
            ("0 12 * * sun", "2026-11-24T10:00:00Z", "2026-11-29T12:00:00Z"),
            // it is enough that one of the fields for days matches
            ("0 0 1 * fri", "2026-11-24T10:00:00Z", "2026-11-27T00:00:00Z"),
            ("0 0 25 * fri", "2026-11-24T10:00:00Z", "2026-11-25T00:00:00Z"),
            ("59 23 31 12 *", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"),
            ("@weekly", "2026-11-24T10:00:00Z", "2026-11-29T00:00:00Z"),
            ("@every 90m", "2026-11-24T10:00:01Z", "2026-11-24T11:30:01Z"),
        ];
        for (schedule, after, want) in cases {
            let second = |time: &str| time.parse::<Timestamp>().unwrap().as_second();
            let next = Schedule::parse(schedule).unwrap().next(second(after)).unwrap();
            assert_eq!(next, second(want), "{schedule} after {after}: {}", Timestamp::from_second(next).unwrap());
        }
        assert_eq!(Schedule::parse("0 0 30 2 *").unwrap().next(0), None);
        assert_eq!(Schedule::parse("* * * * *").unwrap().next(i64::MAX), None);
    }
}
