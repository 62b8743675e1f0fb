//! The cells of tables.

use super::JsonPath;
use super::eval::Evaluation;
use crate::limits::{JSONPATH_VISITS_MAX, ROW_VISITS_MAX};
use crate::patch::gotext;
use crate::time::parse_rfc3339;
use crate::value::Value;

/// Seconds from the zero time of Go to the epoch.
const ZERO_TIME_SECONDS: i64 = -62_135_596_800;

/// The values that the cells of one row may still visit.
#[derive(Debug)]
pub struct RowVisits(usize);

impl Default for RowVisits {
    fn default() -> RowVisits {
        RowVisits(ROW_VISITS_MAX)
    }
}

impl RowVisits {
    /// Whether computing the row has taken so long that the task should yield to others.
    pub fn are_many(&self) -> bool {
        self.0 <= ROW_VISITS_MAX - JSONPATH_VISITS_MAX
    }
}

/// The cell of a column of type `kind` (`string`, `integer`, `number`, `boolean`, `date`) for the first value that the
/// path finds, or null. `now` is in microseconds since the epoch.
pub fn cell(kind: &str, path: &JsonPath, object: &Value, now: i64, visits: &mut RowVisits) -> Value {
    let granted = visits.0.min(JSONPATH_VISITS_MAX);
    let mut within = Evaluation { left: granted, ..Evaluation::default() };
    let found = path.find_within(object, &mut within).ok().and_then(|found| found.into_iter().next());
    visits.0 -= granted - within.left;
    found.map_or(Value::Null, |value| cell_of(kind, &value, now))
}

/// The cell of a value that was found.
pub fn cell_of(kind: &str, value: &Value, now: i64) -> Value {
    match (kind, value) {
        ("string", value) => Value::from(text(value)),
        ("integer", Value::Int(i)) => Value::Int(*i),
        ("integer", Value::Float(f)) => Value::Int(truncated(*f)),
        ("number", Value::Int(i)) => Value::Float(*i as f64),
        ("number", Value::Float(f)) => Value::Float(*f),
        ("boolean", Value::Bool(b)) => Value::Bool(*b),
        ("date", Value::String(date)) => Value::from(age(date, now)),
        _ => Value::Null,
    }
}

/// A value as text. Objects and lists are printed as JSON, scalars as Go prints them.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Object(_) | Value::Array(_) => value.to_json(),
        scalar => gotext::plain(scalar),
    }
}

/// Truncates toward zero. A value out of range becomes the smallest integer, as Go converts it on amd64.
fn truncated(f: f64) -> i64 {
    let f = f.trunc();
    if f >= -(2f64.powi(63)) && f < 2f64.powi(63) { f as i64 } else { i64::MIN }
}

/// The age of an RFC 3339 date at `now`, in microseconds since the epoch, as kubectl prints it.
pub fn age(date: &str, now: i64) -> String {
    if date.is_empty() || date == "null" {
        return "<unknown>".to_owned();
    }
    let Some((seconds, nanos)) = parse_rfc3339(date) else { return "<invalid>".to_owned() };
    if (seconds, nanos) == (ZERO_TIME_SECONDS, 0) {
        return "<unknown>".to_owned();
    }
    let then = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let elapsed = i128::from(now) * 1000 - then;
    let bounds = (i128::from(i64::MIN), i128::from(i64::MAX));
    human_duration(i64::try_from(elapsed.clamp(bounds.0, bounds.1)).unwrap_or_default())
}

/// A duration in nanoseconds as kubectl prints ages, such as `3h20m`, with two units at most.
pub fn human_duration(nanoseconds: i64) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |many: i64, big: &str, few: i64, small: &str| match few {
        0 => format!("{many}{big}"),
        few => format!("{many}{big}{few}{small}"),
    };
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..=119 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::decode;

    #[test]
    fn table_cells_match_upstream() {
        let cases = [
            ("true", ["\"true\"", "null", "null", "true", "null"]),
            ("2.5", ["\"2.5\"", "2", "2.5", "null", "null"]),
            ("-2.75", ["\"-2.75\"", "-2", "-2.75", "null", "null"]),
            ("1e-7", ["\"1e-07\"", "0", "1e-7", "null", "null"]),
            ("42", ["\"42\"", "42", "42", "null", "null"]),
            ("1e30", ["\"1e+30\"", "-9223372036854775808", "1e+30", "null", "null"]),
            ("9007199254740993", ["\"9007199254740993\"", "9007199254740993", "9007199254740992", "null", "null"]),
            (r#"[1,"two",3.5,null]"#, ["\"[1,\\\"two\\\",3.5,null]\"", "null", "null", "null", "null"]),
            ("null", ["\"\\u003cno value\\u003e\"", "null", "null", "null", "null"]),
            (r#""hello""#, ["\"hello\"", "null", "null", "null", "\"\\u003cinvalid\\u003e\""]),
            (r#""""#, ["\"\"", "null", "null", "null", "\"\\u003cunknown\\u003e\""]),
            (r#""1700-01-01T00:00:00Z""#, ["\"1700-01-01T00:00:00Z\"", "null", "null", "null", "\"292y\""]),
        ];
        for (value, want) in cases {
            let value = decode(value.as_bytes()).expect("JSON");
            let kinds = ["string", "integer", "number", "boolean", "date"];
            for (kind, want) in kinds.into_iter().zip(want) {
                assert_eq!(cell_of(kind, &value, 1_780_000_000_000_000).to_json(), want, "{value} as {kind}");
            }
        }
    }

    #[test]
    fn cells_of_a_row_share_its_visits() {
        let object = Value::from([("list", Value::Array(vec![Value::from("x"); 4_000]))]);
        let path = JsonPath::parse(".list[*]").unwrap();
        let mut visits = RowVisits::default();
        let cells: Vec<Value> = (0..200).map(|_| cell("string", &path, &object, 0, &mut visits)).collect();
        let shown = cells.iter().filter(|cell| !cell.is_null()).count();
        assert!((20..60).contains(&shown) && visits.are_many(), "{shown}");
    }

    #[test]
    fn durations_print_like_kubectl() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (599, "9m59s"),
            (600, "10m"),
            (10_800, "3h"),
            (10_861, "3h1m"),
            (8 * 3600, "8h"),
            (48 * 3600, "2d"),
            (49 * 3600, "2d1h"),
            (8 * 86_400, "8d"),
            (730 * 86_400, "2y"),
            (731 * 86_400, "2y1d"),
            (8 * 365 * 86_400, "8y"),
        ];
        for (seconds, want) in cases {
            assert_eq!(human_duration(seconds * 1_000_000_000), want);
        }
    }
}
