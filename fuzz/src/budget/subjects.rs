//! The functions that process input of any size from clients.

use std::sync::LazyLock;
use std::time::Duration;

use cel::{Environment, Program, from_json};
use machinery::jsonpath::JsonPath;
use machinery::patch::strategic_merge::PatchMeta;
use machinery::patch::{Raw, RawKind, Unknown, json_patch, merge_patch, strategic_merge};
use machinery::selector::field::FieldSelector;
use machinery::selector::label::LabelSelector;
use machinery::value::{decode, decode_strict, key_order};
use machinery::{Release, Value, cbor, json, protobuf, yaml};
use schema::apply::{ConvertError, Force, Request, TypeSchema, Versions};
use schema::definition::{self, ApiVersion};
use schema::{CompileOptions, Malformed, Prior, Schema, apply, shape};

/// A function and its budget.
pub struct Subject {
    pub name: &'static str,
    /// Bytes of memory and time for each byte of input.
    pub bytes_per_byte: usize,
    pub time_per_byte: Duration,
    /// Bytes of the longest input that is not refused for its length.
    pub input_max: usize,
    pub run: fn(&[u8]),
}

const fn subject(name: &'static str, bytes_per_byte: usize, nanoseconds: u64, run: fn(&[u8])) -> Subject {
    let time_per_byte = Duration::from_nanos(nanoseconds);
    Subject { name, bytes_per_byte, time_per_byte, input_max: usize::MAX, run }
}

/// A value needs at least 32 bytes of memory, and the text `1,` has two.
pub const SUBJECTS: &[Subject] = &[
    subject("json", 100, 500, json),
    subject("yaml", 150, 1_000, yaml),
    subject("cbor", 100, 500, cbor),
    subject("protobuf", 100, 500, protobuf),
    // positions of keys and items are recorded, too
    subject("typed", 180, 1_000, typed),
    subject("objects", 150, 1_000, objects),
    subject("fields", 200, 1_000, fields),
    subject("json-patch", 150, 2_000, json_patch),
    subject("merge-patch", 150, 1_000, merge_patch),
    subject("strategic-patch", 150, 2_000, strategic_patch),
    subject("definitions", 300, 4_000, definitions),
    // expressions have at most 100,000 characters
    Subject { input_max: 99_000, ..subject("rules", 1_000, 4_000, rules) },
    subject("selectors", 100, 500, selectors),
    subject("conflicts", 400, 4_000, conflicts),
    subject("versions", 400, 20_000, versions),
    subject("alternatives", 600, 8_000, alternatives),
];

fn json(input: &[u8]) {
    let _ = decode_strict(input);
    let _ = key_order(input);
}

fn yaml(input: &[u8]) {
    let _ = yaml::is_plain_json(input);
    if let Ok(decoded) = yaml::decode(input) {
        let _ = yaml::encode(&decoded.value);
    }
}

fn cbor(input: &[u8]) {
    let _ = cbor::decode(input);
}

fn protobuf(input: &[u8]) {
    let _ = protobuf::decode(input);
}

/// A body of a built-in kind: unknown fields and wrong types are reported in the order of the document.
fn typed(input: &[u8]) {
    let Ok(decoded) = decode_strict(input) else { return };
    for shape in [shape::object_meta(), ApiVersion::V1.structure()] {
        let read = shape::read(&decoded.value, shape);
        let _ = shape::first_error(&read.errors, Some(&key_order(input)));
    }
}

/// A body of a custom resource.
fn objects(input: &[u8]) {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let default: Value = (0..1_000).map(Value::from).collect();
        let item = json!({"type": "object", "required": ["k"], "properties": {
            "k": {"type": "string"}, "d": {"type": "array", "items": {"type": "integer"}, "default": (default)}}});
        let schema = json!({"type": "object", "properties": {
            "defaulted": {"type": "array", "items": (item.clone())},
            "keyed": {"type": "array", "items": (item), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "numbers": {"type": "array", "items": {"type": "integer", "enum": [1, 2]}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "integer"}}}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "embedded": {"type": "array", "items": {
                "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}
        }});
        Schema::compile(&schema, &CompileOptions::default())
    });
    let Ok(decoded) = decode_strict(input) else { return };
    let (mut object, mut unknown) = (decoded.value, vec![]);
    SCHEMA.prune(&mut object, &mut unknown);
    let _ = SCHEMA.coerce_embedded(&mut object, Malformed::Refuse, &mut unknown);
    let _ = SCHEMA.default(&mut object);
    let _ = SCHEMA.validate_after(Prior::Metadata(vec![]), &object, Some(&object));
}

fn fields(input: &[u8]) {
    let Ok(value) = decode(input) else { return };
    let Ok(set) = apply::parse_fields_v1(&value) else { return };
    let _ = apply::encode_fields_v1(&set);
    let _ = set.difference(&set.intersection(&set));
}

/// The document that is patched.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let items: Value = (0..1_000).map(|i| json!({"name": (format!("n{i}")), "value": i})).collect();
    json!({"metadata": {"name": "a", "finalizers": ["a", "b"]}, "secrets": (items), "data": {"a": "b"}})
});

fn json_patch(input: &[u8]) {
    let Ok(patch) = json_patch::decode_patch(input, Unknown::Reported) else { return };
    let _ = json_patch::apply(DOCUMENT.clone(), &patch);
    if let Some(raw) = Raw::of(DOCUMENT.clone(), &patch, input) {
        let _ = (raw.duplicates(&patch), raw.text(RawKind::Custom));
    }
}

fn merge_patch(input: &[u8]) {
    let Ok(patch) = merge_patch::decode_patch(input, Unknown::Reported) else { return };
    let _ = merge_patch::apply(DOCUMENT.clone(), patch.value);
}

fn strategic_patch(input: &[u8]) {
    let Ok(patch) = strategic_merge::decode_patch(input, Unknown::Reported) else { return };
    let _ = strategic_merge::apply(DOCUMENT.clone(), patch.value, PatchMeta::of_type("core.v1.ServiceAccount"));
}

fn definitions(input: &[u8]) {
    let Ok(body) = decode(input) else { return };
    let Ok(decoded) = definition::decode(&body, ApiVersion::V1) else { return };
    let mut new = decoded.definition;
    definition::prepare_for_create(&mut new);
    let _ = definition::validate_create(&new, Release::default());
    let _ = definition::to_stored(&new);
}

fn rules(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": {"type": "integer"}}}});
    let object = json!({"list": [1, 2, 3]});
    let decl = cel::Decl::from_schema(&schema);
    let env = Environment::kubernetes(34).declared("self", &decl);
    let Ok(checked) = env.check(text) else { return };
    cel::estimate(&env, &checked);
    let Ok(program) = Program::new(&env, &checked) else { return };
    let _ = program.eval(&[("self", from_json(&object, &decl).expect("a value"))], cel::rules::OBJECT_COST_MAX);
}

fn selectors(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(selector) = LabelSelector::parse(text) {
        let _ = selector.matches(|_| Some("b"));
    }
    let _ = FieldSelector::parse(text);
    if let Ok(path) = JsonPath::parse(text) {
        let _ = path.find(&DOCUMENT).map(|found| found.len());
    }
}

/// Any number of versions of objects of any shape.
struct AnyVersion(TypeSchema);

impl Versions for AnyVersion {
    fn types(&self, _: &str) -> Option<&TypeSchema> {
        Some(&self.0)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let mut object = object.clone();
        object.set_at(&["apiVersion"], Value::from(api_version));
        Ok(object)
    }
}

static VERSIONS: LazyLock<AnyVersion> = LazyLock::new(|| {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    AnyVersion(TypeSchema::compile(&schema))
});

const API_VERSION: &str = "example.com/v1";

fn request(manager: &str) -> Request<'_> {
    let (release, versions) = (Release::default(), &*VERSIONS);
    Request { manager, api_version: API_VERSION, kind: "K", subresource: "", time: 0, versions, zero: None, release }
}

fn object(spec: Value) -> Value {
    let metadata = json!({"name": "a"});
    json!({"apiVersion": API_VERSION, "kind": "K", "metadata": (metadata), "spec": (spec)})
}

/// Two managers apply an object with other values to the fields of a third, deep below long names.
fn conflicts(input: &[u8]) {
    let Ok(value) = decode(input) else { return };
    let name = "n".repeat(990);
    let below = |value| (0..100).fold(value, |inner, _| Value::from([(name.as_str(), inner)]));
    let others = String::from_utf8_lossy(input).replace(":1", ":3").replace("[1", "[3");
    let Ok(others) = decode(others.as_bytes()) else { return };
    let (first, second) = (object(below(value)), object(below(others)));
    let Ok(applied) = apply::apply(None, &first, Force::No, &request("a")) else { return };
    let Ok(applied) = apply::apply(Some(&applied.object), &first, Force::No, &request("b")) else { return };
    let _ = apply::apply(Some(&applied.object), &second, Force::No, &request("c"));
}

/// An update of an object with fields of managers in 30 versions.
fn versions(input: &[u8]) {
    let Ok(value) = decode(input) else { return };
    let mut live = object(value);
    let owner = |i: usize| {
        let fields = json!({"f:spec": {"f:z": {}}});
        json!({"manager": (format!("m{i}")), "operation": "Apply", "apiVersion": (format!("example.com/v{i}")),
            "fieldsType": "FieldsV1", "fieldsV1": (fields)})
    };
    live.set_at(&["metadata", "managedFields"], (0..30).map(owner).collect());
    let mut new = live.clone();
    new.set_at(&["spec", "z"], Value::Int(1));
    apply::update(Some(&live), &mut new, &request("a"));
}

/// A text of 100 kB and a schema of it.
fn alternatives(input: &[u8]) {
    let Ok(mut schema) = decode(input) else { return };
    schema.set_at(&["type"], Value::from("string"));
    let schema = json!({"type": "object", "properties": {"s": (schema)}});
    let schema = Schema::compile(&schema, &CompileOptions::default());
    let _ = schema.validate(&json!({"s": ("é".repeat(50_000))}), None);
}
