//! Formatting of clauses in the latest version of the strings extension.

use super::{Clause, PRECISION_MAX, bytes};
use crate::library::standard::plain;
use crate::value::{Val, time};
use crate::work;
use machinery::value::shortest::with_exponent;

pub(super) fn print(clause: Clause, value: &Val<'_>) -> Option<String> {
    let precision = clause.precision.unwrap_or(6).min(PRECISION_MAX);
    match (clause.verb, value) {
        ('s', value) => text(value),
        ('d', Val::Double(d)) => Some(double(*d)),
        ('f' | 'e', value) => {
            let number = number(value)?;
            Some(match clause.verb {
                _ if !number.is_finite() => double(number),
                'f' => format!("{number:.precision$}"),
                _ => with_exponent(&format!("{number:.precision$e}")),
            })
        }
        _ => super::print(clause, value),
    }
}

fn number(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Double(d) => Some(*d),
        Val::Int(i) => Some(*i as f64),
        Val::Uint(u) => Some(*u as f64),
        _ => None,
    }
}

fn double(d: f64) -> String {
    match d {
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        d => d.to_string(),
    }
}

/// `%s` of a value: strings and bytes as they are, maps sorted by their printed keys.
fn text(value: &Val<'_>) -> Option<String> {
    work::step(1)?;
    work::make(bytes(value))?;
    Some(match value {
        Val::Null => "null".to_owned(),
        Val::Double(d) => double(*d),
        Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::String(_) => plain(value),
        Val::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Val::Duration(d) => time::duration_text(*d),
        Val::Timestamp(t) => time::timestamp_text(*t),
        Val::Type(t) => t.runtime_name().to_string(),
        Val::List(list) => {
            let items: Option<Vec<String>> = list.iter().map(|item| text(&item.ok()?)).collect();
            format!("[{}]", items?.join(", "))
        }
        Val::Map(map) => {
            let entry =
                |(key, value): (Val<'_>, crate::value::Result<Val<'_>>)| Some((text(&key)?, text(&value.ok()?)?));
            let mut entries = map.entries().into_iter().map(entry).collect::<Option<Vec<_>>>()?;
            entries.sort();
            let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Val::Optional(_) | Val::Opaque(_) | Val::Authorization(_) | Val::Preserved(_) => return None,
    })
}
