//! The functions of Pintle's own that expressions of `Progress` may use.

use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::tz::TimeZone;
use machinery::cron::Schedule;
use machinery::patch::merge_patch;
use machinery::{Map as JsonMap, Value};

use super::time::named;
use crate::limits::TRANSITIONS_MAX;
use crate::value::{Error, Result, Timestamp, Val, to_json};

/// As Kubernetes writes hashes: without vowels, so that names have no words in them.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

fn json(value: Option<&Val<'_>>) -> Result<Value> {
    to_json(value.ok_or_else(Error::overload)?).map_err(Error::new)
}

fn integer(value: Option<&Val<'_>>) -> Result<i64> {
    if let Some(Val::Int(number)) = value { Ok(*number) } else { Err(Error::overload()) }
}

fn text<'v>(value: Option<&'v Val<'_>>) -> Result<&'v str> {
    if let Some(Val::String(text)) = value { Ok(text) } else { Err(Error::overload()) }
}

/// A value that owns the JSON.
fn owned<'a>(value: Value) -> Val<'a> {
    match value {
        Value::Null => Val::Null,
        Value::Bool(bool) => Val::Bool(bool),
        Value::Int(number) => Val::Int(number),
        Value::Float(number) => Val::Double(number),
        Value::String(text) | Value::Encoded(text) => Val::string(text),
        Value::Array(items) => Val::list(items.into_iter().map(owned).collect()),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (Val::string(key), owned(value.clone()))).collect();
            Val::map(entries).unwrap_or(Val::Null)
        }
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut kept = JsonMap::new();
            for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                kept.insert(key.clone(), without_nulls(value.clone()));
            }
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Ten characters for a value. Fields that are null do not count.
pub fn hash<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let bytes = without_nulls(json(args.first())?).to_json();
    // the hash names objects and need not withstand attacks
    let mut left = crate::shards::hash(&bytes);
    let letters = (0..10).map(|_| {
        let letter = ALPHABET[(left % 27) as usize];
        left /= 27;
        char::from(letter)
    });
    Ok(Val::string(letters.collect::<String>()))
}

overloads! {
    /// A value with a merge patch (RFC 7386) applied to it.
    merge: args => Ok(owned(merge_patch::apply(json(args.first())?, json(args.get(1))?)));
}

/// A number, or a percentage of `total`, which is rounded up or down.
fn scaled<'a>(args: &[Val<'a>], up: bool) -> Result<Val<'a>> {
    let total = integer(args.get(1))?;
    let percent = match args.first() {
        Some(Val::Int(number)) => return Ok(Val::Int(*number)),
        given => text(given)?,
    };
    let percent: Option<i64> = percent.strip_suffix('%').and_then(|number| number.parse().ok());
    let wrong = || Error::new("neither an integer nor a percentage");
    let product = percent.and_then(|percent| percent.checked_mul(total)).ok_or_else(wrong)?;
    let rounding = if up { 99 } else { 0 };
    Ok(Val::Int(product.checked_add(rounding).ok_or_else(wrong)?.div_euclid(100)))
}

overloads! {
    scaled_up: args => scaled(args, true);
    scaled_down: args => scaled(args, false);
}

/// The address number `n` of a range, except its first and last one; the range begins again after its end.
pub fn address<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (range, number) = (text(args.first())?, integer(args.get(1))?);
    let wrong = || Error::new(format!("{range} is not a range of addresses, such as 10.128.0.0/9"));
    let (first, length) = range.split_once('/').ok_or_else(wrong)?;
    let length: u32 = length.parse().map_err(|_| wrong())?;
    let within = |bits: u32| {
        let bits = bits.checked_sub(length).filter(|bits| *bits >= 2).ok_or_else(wrong)?.min(62);
        Ok(1 + number.rem_euclid((1_i64 << bits) - 2))
    };
    if let Ok(first) = first.parse::<Ipv4Addr>() {
        let offset = u32::try_from(within(32)?).map_err(|_| wrong())?;
        return Ok(Val::string(Ipv4Addr::from_bits(first.to_bits().wrapping_add(offset)).to_string()));
    }
    let first: Ipv6Addr = first.parse().map_err(|_| wrong())?;
    let offset = u128::from(within(128)?.unsigned_abs());
    Ok(Val::string(Ipv6Addr::from_bits(first.to_bits().wrapping_add(offset)).to_string()))
}

/// The first time of a cron schedule after another time, in a time zone, or in UTC.
pub fn next_time<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let schedule = Schedule::parse(text(args.first())?).map_err(Error::new)?;
    let Some(Val::Timestamp(after)) = args.get(1) else { return Err(Error::overload()) };
    let next = match args.get(2) {
        None => schedule.next(after.seconds),
        Some(zone) => next_in(&named(text(Some(zone))?)?, &schedule, after.seconds),
    };
    let next = next.ok_or_else(|| Error::new("the schedule has no time within five years"))?;
    Ok(Val::Timestamp(Timestamp::utc(next, 0)))
}

/// Finds the first time of a schedule after `after`, in seconds since 1970. As with robfig/cron, a time that the clock of the zone skips is
/// passed over, and one that it has twice counts twice.
fn next_in(zone: &TimeZone, schedule: &Schedule, after: i64) -> Option<i64> {
    let moment = jiff::Timestamp::from_second(after).ok()?;
    let (mut from, mut offset) = (after, i64::from(zone.to_offset(moment).seconds()));
    // between two transitions, the clock of the zone runs as that of UTC
    for transition in zone.following(moment).take(TRANSITIONS_MAX) {
        let end = transition.timestamp().as_second();
        match schedule.next(from + offset)? - offset {
            next if next < end => return Some(next),
            _ => (from, offset) = (end - 1, transition.offset().seconds().into()),
        }
    }
    Some(schedule.next(from + offset)? - offset)
}

#[cfg(test)]
mod tests {
    use crate::{Environment, Program, Val};

    fn value(expression: &str) -> Result<String, String> {
        let env = Environment::progress();
        let checked = env.check(expression).map_err(|error| error.to_string())?;
        let program = Program::new(&env, &checked).map_err(|error| error.to_string())?;
        match program.eval(&[], 10_000).result {
            Ok(Val::Int(number)) => Ok(number.to_string()),
            Ok(Val::String(text)) => Ok(text.to_string()),
            Ok(value) => crate::to_json(&value).map(|json| json.to_json()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn functions_of_progress() {
        for (expression, wanted) in [
            ("scaledUp('25%', 10)", "3"),
            ("scaledDown('25%', 10)", "2"),
            ("scaledUp(4, 10)", "4"),
            ("merge({'a': 1, 'b': {'c': 2}}, {'a': null, 'b': {'d': 'x'}})", r#"{"b":{"c":2,"d":"x"}}"#),
            ("address('10.0.0.0/29', 0)", "10.0.0.1"),
            ("address('10.0.0.0/29', 6)", "10.0.0.1"),
            ("address('fd00::/64', 15)", "fd00::10"),
            ("hash({'a': 1, 'b': 'x', 'c': null}) == hash({'b': 'x', 'a': 1}) ? hash({}).size() : 0", "10"),
            ("string(nextTime('*/5 * * * *', timestamp('2026-01-01T00:01:30Z')))", "2026-01-01T00:05:00Z"),
        ] {
            assert_eq!(value(expression).as_deref(), Ok(wanted), "{expression}");
        }
        for (expression, why) in [
            ("scaledUp('x', 10)", "neither an integer nor a percentage"),
            ("address('10.0.0.0', 1)", "is not a range of addresses"),
            ("address('10.0.0.0/32', 1)", "is not a range of addresses"),
            ("string(nextTime('@daily', timestamp('2026-01-01T00:01:30Z'), 'Mars'))", "unknown time zone Mars"),
            ("string(nextTime('soon', timestamp('2026-01-01T00:01:30Z')))", "expected exactly 5 fields"),
        ] {
            let error = value(expression).unwrap_err();
            assert!(error.contains(why), "{expression}: {error}");
        }
    }

    #[test]
    fn next_times_are_those_of_the_clock_in_the_zone() {
        for (schedule, after, wanted) in [
            ("0 9 * * *", "2026-01-01T09:00:00Z", "2026-01-02T08:00:00Z"),
            // 29 March has no 2:30, and 25 October has two
            ("30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"),
            ("30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"),
            ("30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"),
            ("30 2 1 1 *", "2026-10-25T00:30:00Z", "2027-01-01T01:30:00Z"),
        ] {
            let expression = format!("string(nextTime('{schedule}', timestamp('{after}'), 'Europe/Berlin'))");
            assert_eq!(value(&expression).as_deref(), Ok(wanted), "{expression}");
        }
    }
}
