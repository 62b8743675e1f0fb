//! Validation of the schedules and time zones of CronJobs.

use machinery::cron::Schedule;

use schema::at::At;

/// Validates a schedule.
pub fn check(at: At) {
    if let Err(why) = Schedule::parse(at.as_text()) {
        at.invalid(why);
    }
    at.invalid_if(at.as_text().contains("TZ"), "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
}

/// Validates a time zone. Without a time zone database, any name with valid syntax is accepted.
pub fn check_zone(at: At) {
    let (Some(zone), at) = (at.value.as_str(), at.shown_as_json()) else { return };
    if zone.is_empty() {
        return at.invalid("timeZone must be nil or non-empty string");
    }
    let is_part = |part: &str| {
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
        !["", ".", ".."].contains(&part) && !part.starts_with('-') && part.len() <= 14 && part.chars().all(word)
    };
    if !zone.split('/').all(is_part) {
        return at.invalid(format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("Local") {
        at.invalid("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
    }
    if zone != "Local" && !is_known(zone) && is_known("Europe/Berlin") {
        at.invalid(unreadable(zone));
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
    use machinery::{Release, Value};

    use super::*;
    use schema::at::errors_of;

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
            let errors = errors_of(&Value::from(zone), None, Release::NEWEST, check_zone);
            let details: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
            assert_eq!(details, if is_complete { want } else { vec![] }, "{zone}");
        }
    }
}
