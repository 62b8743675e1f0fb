//! Validation of the schedules and time zones of CronJobs.

use machinery::Value;
use machinery::cron::Schedule;
use machinery::field::{FieldError, FieldPath};

/// The error of an invalid schedule.
pub fn check(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let schedule = value.as_str().unwrap_or_default();
    if let Err(why) = Schedule::parse(schedule) {
        errors.push(FieldError::invalid(path, value, why));
    }
    if schedule.contains("TZ") {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(FieldError::invalid(path, value, why));
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
