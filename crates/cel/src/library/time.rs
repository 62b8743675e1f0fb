//! Parts of timestamps and durations, in any time zone.

use crate::value::time::{Civil, civil};
use crate::value::{Error, Result, Timestamp, Val};

/// The offset of a zone from UTC at a moment, in seconds. A zone is a name of the database, `UTC`, or an offset such as
/// `-08:00`.
fn zone_offset(t: Timestamp, zone: &str) -> Result<i64> {
    if let Some((hours, minutes)) = zone.split_once(':') {
        let bad =
            |part: &str| Error::new(format!("strconv.Atoi: parsing {}: invalid syntax", machinery::value::quote(part)));
        let hour: i64 = hours.parse().map_err(|_| bad(hours))?;
        let minute: i64 = minutes.parse().map_err(|_| bad(minutes))?;
        let minute = if hours.starts_with('-') { minute.saturating_neg() } else { minute };
        let shift = hour.checked_mul(3600).and_then(|h| h.checked_add(minute.checked_mul(60)?));
        return shift.filter(|shift| shift.abs() < 1 << 40).ok_or_else(|| bad(hours));
    }
    if matches!(zone, "" | "UTC" | "Local") {
        return Ok(0);
    }
    let clamped = t.seconds.clamp(jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    let moment = jiff::Timestamp::from_second(clamped).map_err(|_| unknown(zone))?;
    Ok(named(zone)?.to_offset(moment).seconds().into())
}

fn unknown(zone: &str) -> Error {
    Error::new(format!("unknown time zone {zone}"))
}

/// A zone of the database.
pub fn named(zone: &str) -> Result<jiff::tz::TimeZone> {
    let found = jiff::tz::db().get(zone).map_err(|_| unknown(zone))?;
    // Names are exact in Go's database.
    if found.iana_name() == Some(zone) { Ok(found) } else { Err(unknown(zone)) }
}

fn part(args: &[Val<'_>], get: fn(&Civil) -> i64) -> Result<Val<'static>> {
    let moment = match args {
        [Val::Timestamp(t)] => civil(*t, 0),
        [Val::Timestamp(t), Val::String(zone)] => civil(*t, zone_offset(*t, zone)?),
        _ => return Err(Error::overload()),
    };
    Ok(Val::Int(get(&moment)))
}

overloads! {
    full_year: args => part(args, |t| t.year);
    month: args => part(args, |t| t.month - 1);
    day_of_year: args => part(args, |t| t.day_of_year);
    day_of_month: args => part(args, |t| t.day - 1);
    date_of_month: args => part(args, |t| t.day);
    day_of_week: args => part(args, |t| t.weekday);
    hours:
        [Val::Duration(d)] => Ok(Val::Int(d / 3_600_000_000_000)),
        args => part(args, |t| t.clock().0);
    minutes:
        [Val::Duration(d)] => Ok(Val::Int(d / 60_000_000_000)),
        args => part(args, |t| t.clock().1);
    seconds:
        [Val::Duration(d)] => Ok(Val::Int(d / 1_000_000_000)),
        args => part(args, |t| t.clock().2);
}

pub fn milliseconds<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [Val::Duration(d)] => Ok(Val::Int(d / 1_000_000)),
        [Val::Timestamp(t), ..] => {
            part(args, |_| 0)?;
            Ok(Val::Int(i64::from(t.nanoseconds / 1_000_000)))
        }
        _ => Err(Error::overload()),
    }
}
