//! Validation of the schedules and time zones of CronJobs.

use machinery::Value;
use machinery::cron::Schedule;
use machinery::field::{FieldError, FieldPath};

use super::checks::named;

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
    let mut invalid = |why: String| errors.push(named(FieldError::invalid(path, value, why), value));
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
    if zone != "Local" && !is_known(zone) && is_known("Europe/Berlin") {
        invalid(unreadable(zone));
    }
}

/// Whether the database has a time zone of exactly that name.
fn is_known(zone: &str) -> bool {
    jiff::tz::db().get(zone).is_ok_and(|found| found.iana_name() == Some(zone))
}

/// Why the file of a time zone cannot be read, in Go's words.
fn unreadable(zone: &str) -> String {
    let is_below_file = || zone.match_indices('/').any(|(end, _)| is_known(&zone[..end]));
    let is_directory = |name: &str| name.strip_prefix(zone).is_some_and(|rest| rest.starts_with('/'));
    if zone.contains("..") {
        "time: invalid location name".to_owned()
    } else if is_below_file() {
        "not a directory".to_owned()
    } else if jiff::tz::db().available().any(|name| is_directory(name.as_str())) {
        "is a directory".to_owned()
    } else {
        format!("unknown time zone {zone}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones_have_exact_names() {
        let is_complete = is_known("Europe/Berlin");
        for (zone, want) in [
            ("Europe/Berlin", vec![]),
            ("eUROPE/bERLIN", vec!["unknown time zone eUROPE/bERLIN"]),
            ("Europe/Berlin/x", vec!["not a directory"]),
            ("Europe", vec!["is a directory"]),
            ("a..b", vec!["time: invalid location name"]),
        ] {
            let mut errors = vec![];
            check_zone(&Value::from(zone), &FieldPath::new("zone"), &mut errors);
            let details: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
            assert_eq!(details, if is_complete { want } else { vec![] }, "{zone}");
        }
    }
}
