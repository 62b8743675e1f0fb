//! The Clock of a workspace: what it shows after a change of its object.
//!
//! The status changes in the same write as the spec, so that the object alone says what the clock shows, even after
//! a restart and in a fork. It has the time that was shown and, unless the clock stands, the time of the machine at
//! that moment.

use std::sync::Arc;

use base::clock::{self, Reading, WorkspaceClock};
use machinery::time::{parse_rfc3339, rfc3339_micro};
use machinery::{FieldError, FieldPath, Result, Status, Value, json};

use super::definition::GROUP;
use super::fault::duration;

const KIND: &str = "Clock";
/// The end of the year 9999, beyond which RFC 3339 cannot express times.
const LAST: i64 = 253_402_300_799_000_000;

/// Sets the status of Clocks in the write that changes their spec.
pub struct ClockCompletion(pub Arc<WorkspaceClock>);

impl ClockCompletion {
    pub fn complete(&self, object: &mut Value, old: Option<&Value>) -> Result<()> {
        if old.is_some_and(|old| old.get("spec") == object.get("spec")) {
            let status = old.and_then(|old| old.get("status")).cloned();
            object.set_at(&["status"], status.unwrap_or_else(Value::object));
            return Ok(());
        }
        let machine = clock::machine_micros();
        let shown = self.0.reading().map_or(machine, |reading| reading.at(machine));
        let reading = next(object, old, shown, machine).map_err(|error| {
            let name = object.str_at(&["metadata", "name"]);
            Status::invalid(GROUP, KIND, name, &[error])
        })?;
        object.set_at(&["status"], status_of(reading));
        Ok(())
    }
}

/// The time from which the clock continues; it shows `shown` at the moment.
fn next(object: &Value, old: Option<&Value>, shown: i64, machine: i64) -> Result<Reading, FieldError> {
    let spec = |object: &Value, field: &str| object.at(&["spec", field]).cloned();
    let (set, set_before) = (spec(object, "time"), old.and_then(|old| spec(old, "time")));
    let mut next = shown;
    if let Some(time) = set.filter(|time| Some(time) != set_before.as_ref()) {
        let path = FieldPath::new("spec.time");
        next = time.as_str().and_then(micros).ok_or_else(|| FieldError::invalid(&path, &time, "not a time"))?;
        if next < shown {
            let why = format!("the clock shows {} and never goes back", rfc3339_micro(shown));
            return Err(FieldError::invalid(&path, &time, why));
        }
    }
    let advance = |object: &Value| {
        let spec = object.get("spec")?;
        i64::try_from(duration(spec, "advance")?.as_micros()).ok()
    };
    let (path, given) = (FieldPath::new("spec.advance"), spec(object, "advance").unwrap_or_default());
    let forward = advance(object).unwrap_or_default() - old.and_then(advance).unwrap_or_default();
    if forward < 0 {
        let why = "the clock has been advanced by more in all, and never goes back";
        return Err(FieldError::invalid(&path, &given, why));
    }
    next = next.saturating_add(forward);
    if next > LAST {
        return Err(FieldError::invalid(&path, &given, "the year 9999 is the last one"));
    }
    let is_stopped = object.at(&["spec", "stopped"]) == Some(&Value::Bool(true));
    Ok(Reading { shown: next, since: (!is_stopped).then_some(machine) })
}

fn status_of(reading: Reading) -> Value {
    let mut status = json!({"time": (rfc3339_micro(reading.shown))});
    if let Some(since) = reading.since {
        status.set_at(&["since"], Value::from(rfc3339_micro(since)));
    }
    status
}

/// The time of a stored Clock.
pub fn reading_of(object: &Value) -> Option<Reading> {
    let time = |field: &str| micros(object.str_at(&["status", field]));
    Some(Reading { shown: time("time")?, since: time("since") })
}

pub fn seed_of(object: &Value) -> Option<i64> {
    object.at(&["spec", "seed"]).and_then(Value::as_int)
}

fn micros(text: &str) -> Option<i64> {
    let (seconds, nanoseconds) = parse_rfc3339(text)?;
    seconds.checked_mul(1_000_000)?.checked_add(i64::from(nanoseconds / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000_000;

    fn clock(spec: Value) -> Value {
        json!({"metadata": {"name": "clock"}, "spec": (spec)})
    }

    #[test]
    fn a_clock_stops_and_is_put_forward() {
        for (old, new, shown, runs) in [
            (None, json!({}), 0, true),
            (None, json!({"stopped": true}), 0, false),
            (None, json!({"advance": "1s"}), 1_000_000, true),
            (Some(json!({"advance": "1s"})), json!({"advance": "3s", "stopped": true}), 2_000_000, false),
            (Some(json!({"stopped": true})), json!({"stopped": false}), 0, true),
            (None, json!({"time": "2027-01-15T08:00:05Z"}), 5_000_000, true),
            (None, json!({"time": "2027-01-15T09:00:05+01:00", "advance": "500ms"}), 5_500_000, true),
            (
                Some(json!({"time": "2020-01-01T00:00:00Z"})),
                json!({"time": "2020-01-01T00:00:00Z", "stopped": true}),
                0,
                false,
            ),
        ] {
            let given = new.to_json();
            let next = next(&clock(new), old.map(clock).as_ref(), NOW, NOW - 7).unwrap();
            assert_eq!(next, Reading { shown: NOW + shown, since: runs.then_some(NOW - 7) }, "{given}");
            let mut object = clock(json!({}));
            object.set_at(&["status"], status_of(next));
            assert_eq!(reading_of(&object), Some(next), "{given}");
        }
    }

    #[test]
    fn it_never_goes_back() {
        for (old, new, wanted) in [
            (json!({}), json!({"time": "2027-01-15T07:59:59Z"}), "the clock shows 2027-01-15T08:00:00.000000Z"),
            (json!({"advance": "2s"}), json!({"advance": "1s"}), "has been advanced by more"),
            (json!({"advance": "2s"}), json!({}), "has been advanced by more"),
            (json!({}), json!({"time": "9999-12-31T23:59:59Z", "advance": "1s"}), "9999"),
            (json!({}), json!({"time": "soon"}), "not a time"),
        ] {
            let given = new.to_json();
            let error = next(&clock(new), Some(&clock(old)), NOW, NOW).unwrap_err();
            assert!(error.to_string().contains(wanted), "{given}: {error}");
        }
    }
}
