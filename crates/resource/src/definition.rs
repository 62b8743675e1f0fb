//! Builds a [`Resource`] from a CustomResourceDefinition (v1, as stored).

use std::sync::Arc;

use base::request::FeatureGates;
use base::webhook::Client;
use bytes::Bytes;
use machinery::priority::kube_aware;
use machinery::value::skim;
use machinery::{Release, Text, Value};
use objects::{Body, Objects};
use schema::definition::is_condition_true;

use super::builtin::Hooks;
use super::conversion::Conversion;
use super::model::{Facts, Resource};
use super::names::DefinitionNames;
use super::registry::Defined;
use super::rules::{Deletion, is_deleting};
use super::serving::Serving;
use super::shared;
use super::version::{Column, ScalePaths, Version};

fn text(value: &Value, path: &[&str]) -> Text {
    match value.at(path) {
        Some(Value::String(text)) => text.clone(),
        _ => Text::default(),
    }
}

/// A CRD without its schemas, which are large and rarely needed. Each schema is replaced by its index in `schemas`.
pub struct Outline {
    pub definition: Value,
    schemas: Vec<Bytes>,
}

const SCHEMA: &str = "openAPIV3Schema";

/// Whether an outline keeps managedFields.
#[derive(Clone, Copy)]
enum ManagedFields {
    /// The CRD can be changed and stored again.
    Kept,
    /// Serving the resource does not need them.
    Omitted,
}

/// The `openAPIV3Schema` fields of a CRD: schemas, or their indexes in an outline.
fn schemas_of(definition: &mut Value) -> impl Iterator<Item = &mut Value> {
    let versions = definition.get_mut("spec").and_then(|spec| spec.get_mut("versions")).and_then(Value::as_array_mut);
    versions.into_iter().flatten().filter_map(|version| version.get_mut("schema")?.get_mut(SCHEMA))
}

/// Replaces the indexes in an outline by empty schemas, so that it decodes as a CRD.
pub fn with_empty_schemas(outline: &Value) -> Value {
    let mut definition = outline.clone();
    schemas_of(&mut definition).for_each(|schema| *schema = Value::object());
    definition
}

impl Outline {
    /// Reads the stored CRD without managedFields.
    fn of(stored: &Bytes) -> Outline {
        Outline::read(stored, ManagedFields::Omitted)
    }

    /// Reads the stored CRD with managedFields, to be changed and stored again.
    pub fn editable(stored: &Bytes) -> Outline {
        Outline::read(stored, ManagedFields::Kept)
    }

    /// Splits stored bytes. The schemas are slices of these bytes, which stay in memory as long as the outline.
    fn read(stored: &Bytes, managed_fields: ManagedFields) -> Outline {
        let dropped = match managed_fields {
            ManagedFields::Kept => "",
            ManagedFields::Omitted => "managedFields",
        };
        if let Some((definition, places)) = skim::outline(stored, skim::Omitted { placed: SCHEMA, dropped }) {
            return Outline { definition, schemas: places.into_iter().map(|place| stored.slice(place)).collect() };
        }
        let mut definition = machinery::value::decode(stored).unwrap_or_default();
        let mut schemas = vec![];
        for schema in schemas_of(&mut definition) {
            let number = Value::Int(schemas.len() as i64);
            schemas.push(std::mem::replace(schema, number).to_json().into());
        }
        Outline { definition, schemas }
    }

    /// Encodes `definition`, this outline or an edited copy of it, with its schemas.
    pub fn encode(&self, definition: &Value) -> Body {
        let outline = Body::encode(definition);
        let Some((_, places)) = skim::outline(&outline.bytes, skim::Omitted { placed: SCHEMA, dropped: "" }) else {
            return Body::encode(&self.filled(definition.clone()));
        };
        let mut bytes = Vec::with_capacity(outline.bytes.len() + self.schemas.iter().map(Bytes::len).sum::<usize>());
        let (mut hole, mut done) = (outline.hole, 0);
        for place in places {
            let number = std::str::from_utf8(&outline.bytes[place.clone()]).ok().and_then(|text| text.parse().ok());
            let Some(schema) = number.and_then(|number: usize| self.schemas.get(number)) else { continue };
            if place.end <= outline.hole {
                hole = hole + schema.len() - place.len();
            }
            bytes.extend_from_slice(&outline.bytes[done..place.start]);
            bytes.extend_from_slice(schema);
            done = place.end;
        }
        bytes.extend_from_slice(&outline.bytes[done..]);
        // the copy has no spare capacity, since the bytes stay in memory as long as the object
        Body { bytes: Bytes::copy_from_slice(&bytes), hole }
    }

    /// As [`Outline::encode`], for a CRD whose schema fields do not hold indexes.
    pub fn encode_edited(&self, mut definition: Value) -> Body {
        schemas_of(&mut definition).zip(0..).for_each(|(schema, number)| *schema = Value::Int(number));
        self.encode(&definition)
    }

    /// Replaces the indexes in `value` by the schemas.
    fn filled(&self, value: Value) -> Value {
        match value {
            Value::Object(map) => {
                Value::Object(map.into_iter().map(|(key, value)| self.filled_member(key, value)).collect())
            }
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.filled(item)).collect()),
            other => other,
        }
    }

    fn filled_member(&self, key: Text, value: Value) -> (Text, Value) {
        let number = value.as_int().filter(|_| key == SCHEMA).and_then(|number| usize::try_from(number).ok());
        match number.and_then(|number| self.schemas.get(number)) {
            Some(schema) => (key, machinery::value::decode(schema).unwrap_or_default()),
            None => (key, self.filled(value)),
        }
    }

    /// The CRD with its schemas.
    pub fn to_value(&self) -> Value {
        self.filled(self.definition.clone())
    }

    /// The schema of a version; null if it has none.
    fn schema(&self, version: &Value) -> Bytes {
        let number = version.at(&["schema", SCHEMA]).and_then(Value::as_int).and_then(|i| usize::try_from(i).ok());
        number.and_then(|i| self.schemas.get(i)).cloned().unwrap_or(Bytes::from_static(b"null"))
    }
}

/// The resource and the names of a stored CRD.
pub fn from_stored(stored: &Bytes, objects: &Objects, client: &Arc<Client>, gates: &FeatureGates) -> Defined {
    if let Some(facts) = shared::get(stored, gates) {
        let names = facts.names.clone();
        return Defined { resource: Some(Resource::sharing(facts, objects)), names };
    }
    let outline = Outline::of(stored);
    let names = Some(Arc::new(DefinitionNames::of(&outline.definition)));
    let resource = from_outline(&outline, objects, client, gates).map(|mut resource| {
        let facts = resource.facts_mut();
        (facts.names, facts.stored) = (names.clone(), stored.clone());
        resource
    });
    Defined { resource, names }
}

/// The resource of a stored CRD; `None` while its names are not accepted.
pub fn from_definition(
    stored: &Bytes,
    objects: &Objects,
    client: &Arc<Client>,
    gates: &FeatureGates,
) -> Option<Resource> {
    from_outline(&Outline::of(stored), objects, client, gates)
}

fn from_outline(outline: &Outline, objects: &Objects, client: &Arc<Client>, gates: &FeatureGates) -> Option<Resource> {
    let (definition, release) = (&outline.definition, gates.release());
    let established = is_condition_true(definition, "Established");
    if !established && !is_condition_true(definition, "NamesAccepted") {
        return None;
    }
    let accepted = |key: &str| text(definition, &["status", "acceptedNames", key]);
    let group = text(definition, &["spec", "group"]);
    let plural = text(definition, &["spec", "names", "plural"]);
    let kind = accepted("kind");
    let spec = definition.get("spec")?;
    let listed = spec.get("versions").and_then(Value::as_array)?;
    let storage = listed.iter().position(|v| v.is_true_at(&["storage"]))?;
    let preserve = spec.is_true_at(&["preserveUnknownFields"]);
    let usable =
        listed.iter().filter(|version| version.is_true_at(&["served"]) && !version.is_true_at(&["deprecated"]));
    let newest = usable.map(|version| version.str_at(&["name"])).min_by(|a, b| kube_aware(a, b));
    let parsed = |listed: &Value| {
        let mut version = version(listed, outline.schema(listed));
        version.release = release;
        version.preserve_unknown_fields = preserve;
        version.deprecation = deprecation(listed, newest, &group, &kind);
        Arc::new(version)
    };
    let versions = listed.iter().map(parsed).collect();
    let conversion =
        spec.get("conversion").map_or(Conversion::None, |conversion| Conversion::parse(conversion, client));
    let collection = objects.collection(&group, &plural);
    let facts = Facts {
        release,
        gates: gates.clone(),
        group,
        plural,
        singular: accepted("singular"),
        kind,
        list_kind: accepted("listKind"),
        short_names: definition.text_list_at(&["status", "acceptedNames", "shortNames"]),
        categories: definition.text_list_at(&["status", "acceptedNames", "categories"]),
        namespaced: spec.str_at(&["scope"]) == "Namespaced",
        versions,
        storage,
        conversion,
        built_in: None,
        serving: &Serving::CUSTOM,
        hooks: Hooks::None,
        deletion: &Deletion::DEFAULT,
        third_party: false,
        broken: schema::definition::has_bad_bundle(definition),
        established,
        names_accepted: established && definition.at(&["spec", "names"]) == definition.at(&["status", "acceptedNames"]),
        terminating: terminating(definition, release),
        fingerprint: fingerprint(outline),
        names: None,
        stored: Bytes::new(),
    };
    Some(Resource::new(facts, collection))
}

/// The parts of a CRD that affect serving: its identity, spec and accepted names.
fn fingerprint(Outline { definition, schemas }: &Outline) -> String {
    let part = |path: &[&str]| definition.at(path).map(Value::to_json).unwrap_or_default();
    let (spec, names) = (part(&["spec"]), part(&["status", "acceptedNames"]));
    let mut all = format!("{spec}{names}{}", definition.str_at(&["metadata", "uid"])).into_bytes();
    schemas.iter().for_each(|schema| all.extend_from_slice(schema));
    base::digest::short(&all)
}

/// Whether creates are rejected, which they are while the CRD is being deleted. Before 1.37, they were accepted again
/// once all instances were deleted.
fn terminating(definition: &Value, release: Release) -> bool {
    let deleting = is_deleting(definition);
    if release >= Release::V1_37 && deleting {
        return true;
    }
    let conditions = definition.items_at(&["status", "conditions"]);
    match conditions.iter().find(|c| c.str_at(&["type"]) == "Terminating") {
        Some(condition) => condition.str_at(&["status"]) == "True",
        None => deleting,
    }
}

/// Builds the part of a version that follows from its own entry in `spec.versions`.
fn version(value: &Value, schema: Bytes) -> Version {
    let mut version = Version::encoded(text(value, &["name"]), schema);
    version.served = value.is_true_at(&["served"]);
    version.columns = columns(value);
    let fields = value.items_at(&["selectableFields"]);
    let path = |f: &Value| Text::from(f.str_at(&["jsonPath"]).trim_start_matches('.'));
    version.selectable = fields.iter().map(path).collect();
    version.status = value.at(&["subresources", "status"]).is_some_and(|s| !s.is_null());
    version.scale = value.at(&["subresources", "scale"]).filter(|s| !s.is_null()).map(|scale| ScalePaths {
        spec_replicas: text(scale, &["specReplicasPath"]),
        status_replicas: text(scale, &["statusReplicasPath"]),
        label_selector: Some(text(scale, &["labelSelectorPath"])).filter(|path| !path.is_empty()),
    });
    version
}

fn columns(version: &Value) -> Vec<Column> {
    let listed = version.items_at(&["additionalPrinterColumns"]);
    let column = |c: &Value| Column {
        name: text(c, &["name"]),
        kind: text(c, &["type"]),
        format: text(c, &["format"]),
        description: text(c, &["description"]),
        priority: c.int_at(&["priority"]),
        json_path: text(c, &["jsonPath"]),
    };
    listed.iter().map(column).collect()
}

/// The warning of a deprecated version. It recommends `newest` if that is newer.
fn deprecation(version: &Value, newest: Option<&str>, group: &Text, kind: &Text) -> Option<Text> {
    if !version.is_true_at(&["deprecated"]) {
        return None;
    }
    let name = version.str_at(&["name"]);
    if let Some(given) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(given.into());
    }
    let better = newest.filter(|newest| kube_aware(newest, name).is_lt());
    let advice = better.map(|better| format!("; use {group}/{better} {kind}")).unwrap_or_default();
    Some(Text::from(format!("{group}/{name} {kind} is deprecated{advice}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn stores_an_edited_outline() {
        let whole = json!({
            "metadata": {"labels": {"openAPIV3Schema": "a label"}, "managedFields": [{"manager": "m", "k:{\"type\":\"a\"}": {}}], "name": "a.b", "uid": "u"},
            "spec": {"versions": [
                {"name": "v1", "schema": {"openAPIV3Schema": {"default": {"openAPIV3Schema": 0}, "type": "object"}}},
                {"name": "v2"},
                {"name": "v3", "schema": {"openAPIV3Schema": null}}
            ]}
        });
        let spaced = whole.to_json().replace("\"spec\":", "\"spec\": ");
        for stored in [Body::encode(&whole).bytes, spaced.into()] {
            let outline = Outline::editable(&stored);
            let body = outline.encode(&outline.definition);
            let want = Body::encode(&whole);
            assert_eq!((body.bytes, body.hole), (want.bytes, want.hole));
            let mut next = outline.definition.clone();
            next.set_at(&["status"], json!({"a": 1}));
            let mut changed = whole.clone();
            changed.set_at(&["status"], json!({"a": 1}));
            assert_eq!(outline.encode(&next).to_value(0), changed);
            assert_eq!((outline.to_value(), outline.filled(next)), (whole.clone(), changed));
        }
    }
}
