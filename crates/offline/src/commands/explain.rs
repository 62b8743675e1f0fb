//! The documentation of a kind or a field, as `kubectl explain` prints it, from the server's OpenAPI document.

use std::fmt::Write as _;

use machinery::{Map, Release, Value};

use super::prepare;
use crate::engine::{Content, Engine, Mapping, Options, RequestOptions};
use crate::error::Error;
use sources::Inputs;

/// Explains a kind, such as `boats`, or a field of it, such as `boats.spec.length`. Fails with a one-line message.
pub async fn explain(path: &str, crds: &[String], release: Release) -> Result<String, Error> {
    let engines = [Engine::start(&Options { release, ..Options::default() }).await?];
    if !prepare(&engines, crds, &Inputs::default()).await?.is_empty() {
        return Err("a definition is invalid: see pintle validate".into());
    }
    let [engine] = engines;
    let mut steps = path.split('.');
    let kind = steps.next().unwrap_or_default();
    let mapping = engine.find(kind).ok_or_else(|| format!("the server does not have a resource type {kind:?}"))?;
    let document = document(&engine, &mapping).await?;
    let schemas = Schemas(&document);
    let mut schema = schemas.of_kind(&mapping).ok_or_else(|| format!("{} has no schema", mapping.kind()))?;
    let mut last = None;
    for step in steps {
        let field = schemas.fields(schema).and_then(|fields| fields.get(step));
        let field = field.ok_or_else(|| format!("field {step:?} does not exist"))?;
        last = Some((step, field));
        schema = schemas.below(field);
    }
    let mut out = String::new();
    if !mapping.group().is_empty() {
        let _ = writeln!(out, "GROUP:      {}", mapping.group());
    }
    let _ = writeln!(out, "KIND:       {}\nVERSION:    {}\n", mapping.kind(), mapping.version());
    if let Some((name, field)) = last {
        let _ = writeln!(out, "FIELD: {name} <{}>\n", schemas.type_of(field));
    }
    let described = last.map_or(schema, |(_, field)| field);
    let text =
        [described, schema].map(|schema| schema.str_at(&["description"])).into_iter().find(|text| !text.is_empty());
    let _ = writeln!(out, "DESCRIPTION:\n    {}", text.unwrap_or("<empty>").replace('\n', "\n    "));
    schemas.write_fields(schema, &mut out);
    Ok(out)
}

/// The name of the schema that a field refers to.
fn reference(field: &Value) -> Option<&str> {
    let reference = match field.str_at(&["$ref"]) {
        "" => field.items_at(&["allOf"]).first().map_or("", |first| first.str_at(&["$ref"])),
        reference => reference,
    };
    reference.rsplit('/').next().filter(|name| !name.is_empty())
}

async fn document(engine: &Engine, mapping: &Mapping) -> Result<Value, Error> {
    let path = match mapping.group().as_str() {
        "" => format!("/openapi/v3/api/{}", mapping.version()),
        group => format!("/openapi/v3/apis/{group}/{}", mapping.version()),
    };
    let verdict = engine.call(http::Method::GET, &path, Content::default(), &RequestOptions::default()).await;
    Ok(verdict.object()?)
}

/// The schemas of an OpenAPI document.
struct Schemas<'a>(&'a Value);

impl<'a> Schemas<'a> {
    fn of_kind(&self, mapping: &Mapping) -> Option<&'a Value> {
        let schemas = self.0.at(&["components", "schemas"])?.as_object()?;
        let is_kind = |schema: &&Value| {
            schema.items_at(&["x-kubernetes-group-version-kind"]).iter().any(|of| {
                let text = |field| of.str_at(&[field]);
                (text("group"), text("version"), text("kind"))
                    == (mapping.group().as_str(), mapping.version().as_str(), mapping.kind().as_str())
            })
        };
        schemas.iter().map(|(_, schema)| schema).find(is_kind)
    }

    /// The schema that a reference names, or the schema itself.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let name = reference(schema);
        name.and_then(|name| self.0.at(&["components", "schemas", name])).unwrap_or(schema)
    }

    /// The schema of the objects in a field: of its items, of its values, or its own.
    fn below(&self, field: &'a Value) -> &'a Value {
        let inner = field
            .get("items")
            .or_else(|| field.get("additionalProperties").filter(|value| value.as_object().is_some()));
        self.resolved(inner.unwrap_or(field))
    }

    fn fields(&self, schema: &'a Value) -> Option<&'a Map> {
        schema.get("properties")?.as_object()
    }

    fn type_of(&self, field: &'a Value) -> String {
        if let Some(items) = field.get("items") {
            return format!("[]{}", self.type_of(items));
        }
        if let Some(values) = field.get("additionalProperties").filter(|values| values.as_object().is_some()) {
            return format!("map[string]{}", self.type_of(values));
        }
        let kind = reference(field).and_then(|name| name.rsplit('.').next());
        match self.resolved(field).str_at(&["type"]) {
            "object" | "" => kind.unwrap_or("Object").to_owned(),
            name => name.to_owned(),
        }
    }

    fn write_fields(&self, schema: &'a Value, out: &mut String) {
        let Some(fields) = self.fields(schema) else { return };
        out.push_str("\nFIELDS:\n");
        let required = schema.items_at(&["required"]);
        let mut names: Vec<_> = fields.iter().collect();
        names.sort_by(|a, b| a.0.cmp(b.0));
        for (name, field) in names {
            let is_required = required.iter().any(|required| required.as_str() == Some(name.as_str()));
            let _ =
                writeln!(out, "  {name}\t<{}>{}", self.type_of(field), if is_required { " -required-" } else { "" });
            let text = [field, self.resolved(field)].map(|schema| schema.str_at(&["description"]));
            let text = text.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
            let first = text.lines().next().unwrap_or_default();
            if !first.is_empty() {
                let _ = writeln!(out, "    {first}");
            }
        }
    }
}
