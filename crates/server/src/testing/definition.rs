//! The kinds of `testing.pintle.dev`.

use std::sync::LazyLock;

use machinery::{Map, Result, Value};

use crate::verbs;

pub const GROUP: &str = "testing.pintle.dev";
pub const FAULTS: &str = "faults";
pub const GATES: &str = "gates";
pub const CLOCKS: &str = "clocks";
pub const SETTLES: &str = "settles";
pub const REPORTS: &str = "reports";
pub const RECORDINGS: &str = "recordings";
/// Resources whose objects are completed and returned, and not stored.
pub const REVIEWS: [&str; 3] = [SETTLES, REPORTS, RECORDINGS];

/// All resources.
pub const PLURALS: [&str; 6] = [FAULTS, GATES, CLOCKS, SETTLES, REPORTS, RECORDINGS];

/// The CustomResourceDefinitions.
pub fn definitions() -> Result<Vec<Value>> {
    let mut definitions = verbs::definitions_in(include_bytes!("testing.yaml"))?;
    for definition in &mut definitions {
        let versions =
            definition.get_mut("spec").and_then(|spec| spec.get_mut("versions")).and_then(Value::as_array_mut);
        for version in versions.into_iter().flatten() {
            let schema = version.get_mut("schema").and_then(|schema| schema.get_mut("openAPIV3Schema"));
            let properties = schema.and_then(|schema| schema.get_mut("properties"));
            properties.and_then(|fields| fields.get_mut("spec")).into_iter().for_each(keep_unknown_fields);
        }
    }
    Ok(definitions)
}

pub fn schema_of(kind: &str) -> Option<&'static Value> {
    static DEFINITIONS: LazyLock<Vec<Value>> = LazyLock::new(|| definitions().unwrap_or_default());
    let is_of = |definition: &&Value| definition.str_at(&["spec", "names", "kind"]) == kind;
    let version = DEFINITIONS.iter().find(is_of)?.items_at(&["spec", "versions"]).first()?;
    version.at(&["schema", "openAPIV3Schema", "properties", "spec"])
}

/// Makes a schema keep the fields that it does not have.
fn keep_unknown_fields(schema: &mut Value) {
    if schema.get("properties").is_some() {
        schema.set_at(&["x-kubernetes-preserve-unknown-fields"], Value::Bool(true));
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::iter_mut).for_each(|(_, schema)| keep_unknown_fields(schema));
    schema.get_mut("items").into_iter().for_each(keep_unknown_fields);
}
