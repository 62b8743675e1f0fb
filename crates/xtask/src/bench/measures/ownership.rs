//! Field ownership in the library `schema`, without a server.

use std::hint::black_box;
use std::time::Instant;

use client::Result;
use machinery::{Release, Value, value};
use schema::apply::{ConvertError, Force, Request, TypeSchema, Versions, apply, update};

use super::super::fixtures::{self, Kind};
use super::super::load::Samples;
use super::super::row::{Goal, Row, time_text};
use super::super::sizes::Sizes;

/// The only version of a kind.
struct One {
    api_version: String,
    types: TypeSchema,
}

impl Versions for One {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        (api_version == self.api_version).then_some(&self.types)
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

pub fn timed(runs: usize, mut run: impl FnMut()) -> Samples {
    let mut times = vec![];
    let started = Instant::now();
    for _ in 0..runs {
        let began = Instant::now();
        run();
        times.push(began.elapsed());
    }
    Samples::new(times, started.elapsed())
}

/// A re-apply that changes nothing, from bytes to an object with its managedFields. The target is twice the time of an update
/// of one field.
pub fn reapply(sizes: &Sizes) -> Result<Row> {
    let kind = Kind { group: "bench.example.com".to_owned(), plural: "widgets".to_owned() };
    let read = |text: &str| value::decode(text.as_bytes()).map_err(|error| error.to_string());
    let definition = read(&fixtures::definition(&kind))?;
    let version = definition.at(&["spec", "versions"]).and_then(Value::as_array).and_then(<[Value]>::first);
    let openapi = version.and_then(|version| version.at(&["schema", "openAPIV3Schema"]));
    let types = TypeSchema::compile(openapi.ok_or("the definition has no schema")?);
    let versions = One { api_version: format!("{}/v1", kind.group), types };
    let text = fixtures::object(&kind, 0, super::writes::SIZE);
    let object = read(&text)?;
    let changed = text.replace("\"replicas\":3", "\"replicas\":4");
    let request = Request {
        manager: "bench",
        api_version: &versions.api_version,
        kind: object.str_at(&["kind"]),
        subresource: "",
        time: 0,
        versions: &versions,
        release: Release::default(),
        zero: None,
    };
    let live = apply(None, &object, Force::No, &request).map_err(|error| format!("{error:?}"))?.object;
    let updates = timed(sizes.ownerships, || {
        let mut new = value::decode(changed.as_bytes()).unwrap_or_default();
        update(Some(&live), &mut new, &request);
        black_box(new);
    });
    let applies = timed(sizes.ownerships, || {
        let configuration = value::decode(text.as_bytes()).unwrap_or_default();
        let _ = black_box(apply(Some(&live), &configuration, Force::No, &request));
    });
    let update = updates.quantile(0.5);
    let mut row = Row::new("re-apply in the library", applies, Goal::Median(update * 2));
    row.note = format!("an update takes {}", time_text(update));
    Ok(row)
}
