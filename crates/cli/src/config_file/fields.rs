//! Files whose fields are flags.

use std::path::Path;

use clap::{Arg, ArgAction, Command};
use client::{Context as _, Result, fail};
use machinery::{Map, Value};

pub const API_VERSION: &str = "config.pintle.dev/v1alpha1";
/// Names a file; a file cannot set it.
pub const FLAG: &str = "config";
/// How similar two names must be for a suggestion, from 0 to 1; as clap's.
const SIMILAR: f64 = 0.7;

/// Reads the fields of a file of a kind. Fails with a one-line message.
pub fn read(path: &Path, kind: &str) -> Result<Map> {
    let text = std::fs::read(path).context("cannot read it")?;
    let decoded = machinery::yaml::decode(&text)?;
    if let Some(twice) = decoded.duplicates.first() {
        return fail(twice.as_str());
    }
    let value = decoded.value;
    if value.as_object().is_none() {
        return fail(format!("wanted fields, beginning with apiVersion: {API_VERSION} and kind: {kind}"));
    }
    for (field, wanted) in [("apiVersion", API_VERSION), ("kind", kind)] {
        match value.str_at(&[field]) {
            given if given == wanted => {}
            "" => return fail(format!("{field} is missing; wanted {field}: {wanted}")),
            given => return fail(format!("{field} is {given:?}; wanted {wanted:?}")),
        }
    }
    let Value::Object(fields) = value else { return Ok(Map::default()) };
    Ok(fields.into_iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind")).collect())
}

/// Finds the flags of a command that a file sets, with their values.
pub fn flags<'a>(command: &'a Command, fields: &Map) -> Result<Vec<(&'a Arg, Vec<String>)>> {
    fields.iter().map(|(name, value)| Ok((flag(command, name)?, values(command, name, value)?))).collect()
}

fn flag<'a>(command: &'a Command, name: &str) -> Result<&'a Arg> {
    if name == FLAG {
        return fail("a file cannot name another file");
    }
    let found = command.get_arguments().find(|flag| flag.get_long() == Some(name)).ok_or_else(|| {
        let known = command.get_arguments().filter_map(Arg::get_long).filter(|known| *known != FLAG);
        let near = known.map(|known| (strsim::jaro(known, name), known)).filter(|(likeness, _)| *likeness > SIMILAR);
        match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((_, near)) => format!("there is no flag {name:?}; did you mean {near:?}?"),
            None => format!("there is no flag {name:?}; pintle {} --help lists all flags", command.get_name()),
        }
    });
    Ok(found?)
}

/// The values of a flag: a text, a number or a boolean, or a list of them.
fn values(command: &Command, name: &str, value: &Value) -> Result<Vec<String>> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.to_string()),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => Ok(value.to_json()),
        _ => fail(format!("{name}: wanted text, a number, a boolean or a list of these, not {}", value.to_json())),
    };
    match value {
        Value::Array(values) if matches!(flag(command, name)?.get_action(), ArgAction::Append) => {
            values.iter().map(one).collect()
        }
        value if matches!(flag(command, name)?.get_action(), ArgAction::SetTrue) => match value {
            Value::Bool(_) => Ok(vec![value.to_json()]),
            _ => fail(format!("{name}: wanted true or false, not {}", value.to_json())),
        },
        Value::Array(_) => fail(format!("{name}: wanted one value, not the list {}", value.to_json())),
        value => Ok(vec![one(value)?]),
    }
}
