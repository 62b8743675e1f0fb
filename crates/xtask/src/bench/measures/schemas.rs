//! Validation in the library `schema`, without a server.

use std::hint::black_box;
use std::time::Duration;

use machinery::{Value, value};
use schema::{CompileOptions, Prior, Schema};

use super::super::fixtures::{self, Kind};
use super::super::row::{Goal, Row};
use super::super::sizes::Sizes;
use super::ownership::timed;

/// Prunes, defaults and validates an object of 1.5 KB.
pub fn walk(sizes: &Sizes) -> Result<Row, String> {
    let kind = Kind { group: "bench.example.com".to_owned(), plural: "widgets".to_owned() };
    let read = |text: &str| value::decode(text.as_bytes()).map_err(|error| error.to_string());
    let definition = read(&fixtures::definition(&kind))?;
    let version = definition.at(&["spec", "versions"]).and_then(Value::as_array).and_then(<[Value]>::first);
    let openapi = version.and_then(|version| version.at(&["schema", "openAPIV3Schema"]));
    let schema = Schema::compile(openapi.ok_or("the definition has no schema")?, &CompileOptions::default());
    let given = read(&fixtures::object(&kind, 0, super::writes::SIZE))?;
    let mut objects = vec![given; sizes.ownerships + 1];
    let mut refused = 0;
    let mut walk = |mut object: Value| {
        schema.prune(&mut object, &mut vec![]);
        let _ = schema.default(&mut object);
        refused += schema.validate_after(Prior::Metadata(vec![]), &object, None).errors.len();
        black_box(object);
    };
    // patterns are compiled when they are first needed
    objects.pop().into_iter().for_each(&mut walk);
    let samples = timed(sizes.ownerships, || objects.pop().into_iter().for_each(&mut walk));
    if refused > 0 {
        return Err("the object is not valid".to_owned());
    }
    let what = "prune, default and validate 1.5 KB";
    Ok(Row::new(what, samples, Goal::Median(Duration::from_micros(15))))
}
