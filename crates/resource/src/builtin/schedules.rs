//! The schedules of CronJobs: five fields, as robfig's parser of cron expressions reads them.

use machinery::Value;
use machinery::field::{FieldError, FieldPath};

/// A field of a schedule: its smallest and its greatest number, and the names of numbers.
struct CronField {
    min: u32,
    max: u32,
    names: &'static [&'static str],
    /// The number of the first name.
    first: u32,
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const fn field(min: u32, max: u32, names: &'static [&'static str], first: u32) -> CronField {
    CronField { min, max, names, first }
}

const FIELDS: [CronField; 5] =
    [field(0, 59, &[], 0), field(0, 23, &[], 0), field(1, 31, &[], 0), field(1, 12, MONTHS, 1), field(0, 6, DAYS, 0)];

const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// The error of an invalid schedule.
pub fn check(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let schedule = value.as_str().unwrap_or_default();
    if let Err(why) = parse(schedule) {
        errors.push(FieldError::invalid(path, value, why));
    }
    if schedule.contains("TZ") {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(FieldError::invalid(path, value, why));
    }
}

fn parse(schedule: &str) -> Result<(), String> {
    let schedule = match schedule.strip_prefix("TZ=").or(schedule.strip_prefix("CRON_TZ=")) {
        Some(rest) => rest.split_once(' ').map(|(_, rest)| rest.trim()).unwrap_or_default(),
        None => schedule,
    };
    if schedule.is_empty() {
        return Err("empty spec string".to_owned());
    }
    if let Some(every) = schedule.strip_prefix("@every ") {
        return machinery::time::parse_duration(every)
            .map(drop)
            .map_err(|_| format!("failed to parse duration {schedule}: time: invalid duration \"{every}\""));
    }
    if schedule.starts_with('@') {
        let is_known = DESCRIPTORS.contains(&schedule);
        return if is_known { Ok(()) } else { Err(format!("unrecognized descriptor: {schedule}")) };
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    fields.iter().zip(&FIELDS).try_for_each(|(given, field)| {
        given.split(',').filter(|range| !range.is_empty()).try_for_each(|text| range(text, field))
    })
}

/// A range with a step: `*`, `1-5`, `*/2`.
fn range(text: &str, field: &CronField) -> Result<(), String> {
    let pieces: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = pieces[0].split('-').collect();
    let single = ends.len() == 1;
    let (start, mut end) = match ends[..] {
        ["*" | "?"] => (field.min, field.max),
        [one] => (number_or_name(one, field)?, number_or_name(one, field)?),
        [start, end] => (number_or_name(start, field)?, number_or_name(end, field)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match pieces[..] {
        [_] => 1,
        [_, step] => {
            if single {
                end = end.max(field.max);
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < field.min {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", field.min));
    }
    if end > field.max {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", field.max));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number_or_name(text: &str, field: &CronField) -> Result<u32, String> {
    let named = field.names.iter().position(|name| *name == text.to_lowercase());
    match named.and_then(|at| u32::try_from(at).ok()) {
        Some(at) => Ok(field.first + at),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let quoted = machinery::value::quote(text);
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax")),
    }
}

/// The error of an invalid time zone. Without a time zone database, any name with valid syntax is accepted.
pub fn check_zone(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(zone) = value.as_str() else { return };
    let mut invalid = |why: String| errors.push(FieldError::invalid(path, value, why));
    if zone.is_empty() {
        return invalid("timeZone must be nil or non-empty string".to_owned());
    }
    let is_part = |part: &str| {
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
        !["", ".", ".."].contains(&part) && !part.starts_with('-') && part.len() <= 14 && part.chars().all(word)
    };
    if !zone.split('/').all(is_part) {
        return invalid(format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("Local") {
        invalid("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned());
    }
    let database = jiff::tz::db();
    if database.get(zone).is_err() && database.get("Europe/Berlin").is_ok() {
        invalid(format!("unknown time zone {zone}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_have_five_fields() {
        let cases = [
            ("*/5 * * * *", Ok(())),
            ("0 0 1-15/3 jan,feb mon-fri", Ok(())),
            ("@daily", Ok(())),
            ("* * * *", Err("expected exactly 5 fields, found 4: [* * * *]")),
            ("60 * * * *", Err("end of range (60) above maximum (59): 60")),
            ("*/5 * * * *1", Err("failed to parse int from *1: strconv.Atoi: parsing \"*1\": invalid syntax")),
            ("@often", Err("unrecognized descriptor: @often")),
        ];
        for (schedule, want) in cases {
            assert_eq!(parse(schedule), want.map_err(str::to_owned), "{schedule}");
        }
    }
}
