//! Versions and schemas as upstream's internal types print them, with Go's field names, since some errors show them
//! like this.

use machinery::Value;

use super::openapi::{flag, list, text};

/// How a field of a schema is printed.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    /// Printed as null if it is absent.
    Given,
    Schema,
    Schemas,
    SchemaMap,
    OrBool,
    OrList,
    Dependencies,
    Docs,
    Rules,
}

struct SchemaField {
    name: &'static str,
    go_name: &'static str,
    kind: Kind,
    /// Whether the field is allowed at the root of a schema if the version has a status subresource.
    is_allowed_at_root: bool,
}

const fn allowed(name: &'static str, go_name: &'static str, kind: Kind) -> SchemaField {
    SchemaField { name, go_name, kind, is_allowed_at_root: true }
}

const fn forbidden(name: &'static str, go_name: &'static str, kind: Kind) -> SchemaField {
    SchemaField { name, go_name, kind, is_allowed_at_root: false }
}

/// The fields of a schema in the order of upstream's struct.
const FIELDS: &[SchemaField] = &[
    forbidden("id", "ID", Kind::Text),
    forbidden("$schema", "Schema", Kind::Text),
    forbidden("$ref", "Ref", Kind::Given),
    allowed("description", "Description", Kind::Text),
    allowed("type", "Type", Kind::Text),
    forbidden("nullable", "Nullable", Kind::Flag),
    allowed("format", "Format", Kind::Text),
    allowed("title", "Title", Kind::Text),
    forbidden("default", "Default", Kind::Given),
    allowed("maximum", "Maximum", Kind::Given),
    allowed("exclusiveMaximum", "ExclusiveMaximum", Kind::Flag),
    allowed("minimum", "Minimum", Kind::Given),
    allowed("exclusiveMinimum", "ExclusiveMinimum", Kind::Flag),
    allowed("maxLength", "MaxLength", Kind::Given),
    allowed("minLength", "MinLength", Kind::Given),
    allowed("pattern", "Pattern", Kind::Text),
    allowed("maxItems", "MaxItems", Kind::Given),
    allowed("minItems", "MinItems", Kind::Given),
    allowed("uniqueItems", "UniqueItems", Kind::Flag),
    allowed("multipleOf", "MultipleOf", Kind::Given),
    forbidden("enum", "Enum", Kind::Given),
    forbidden("maxProperties", "MaxProperties", Kind::Given),
    forbidden("minProperties", "MinProperties", Kind::Given),
    allowed("required", "Required", Kind::Given),
    allowed("items", "Items", Kind::OrList),
    forbidden("allOf", "AllOf", Kind::Schemas),
    forbidden("oneOf", "OneOf", Kind::Schemas),
    forbidden("anyOf", "AnyOf", Kind::Schemas),
    forbidden("not", "Not", Kind::Schema),
    allowed("properties", "Properties", Kind::SchemaMap),
    forbidden("additionalProperties", "AdditionalProperties", Kind::OrBool),
    forbidden("patternProperties", "PatternProperties", Kind::SchemaMap),
    forbidden("dependencies", "Dependencies", Kind::Dependencies),
    forbidden("additionalItems", "AdditionalItems", Kind::OrBool),
    forbidden("definitions", "Definitions", Kind::SchemaMap),
    allowed("externalDocs", "ExternalDocs", Kind::Docs),
    allowed("example", "Example", Kind::Given),
    allowed("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", Kind::Given),
    forbidden("x-kubernetes-embedded-resource", "XEmbeddedResource", Kind::Flag),
    forbidden("x-kubernetes-int-or-string", "XIntOrString", Kind::Flag),
    forbidden("x-kubernetes-list-map-keys", "XListMapKeys", Kind::Given),
    forbidden("x-kubernetes-list-type", "XListType", Kind::Given),
    forbidden("x-kubernetes-map-type", "XMapType", Kind::Given),
    allowed("x-kubernetes-validations", "XValidations", Kind::Rules),
];

/// The given fields of a schema in upstream's order, and whether each is allowed at the root of a schema with a status
/// subresource.
pub(super) fn given_fields(schema: &Value) -> impl Iterator<Item = (&'static str, bool)> {
    let given = FIELDS.iter().filter(|field| schema.get(field.name).is_some());
    given.map(|field| (field.name, field.is_allowed_at_root))
}

fn json(value: Option<&Value>) -> String {
    value.unwrap_or(&Value::Null).to_json()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_json()
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn object<'a>(fields: impl Iterator<Item = (&'a str, String)>) -> String {
    let fields: Vec<String> = fields.map(|(k, v)| format!("{}:{v}", quoted(k))).collect();
    format!("{{{}}}", fields.join(","))
}

pub(super) fn schema(schema: &Value) -> String {
    object(FIELDS.iter().map(|field| (field.go_name, value_of(schema, field.name, field.kind))))
}

fn value_of(parent: &Value, key: &str, kind: Kind) -> String {
    match kind {
        Kind::Text => return quoted(text(parent, key)),
        Kind::Flag => return flag(parent, key).to_string(),
        _ => {}
    }
    let Some(value) = parent.get(key) else { return "null".to_owned() };
    match kind {
        Kind::Schema => schema(value),
        Kind::Schemas => array(list(parent, key).iter().map(schema)),
        Kind::SchemaMap => map(value, schema),
        Kind::OrBool => match value {
            Value::Object(_) => object([("Allows", "true".to_owned()), ("Schema", schema(value))].into_iter()),
            other => object([("Allows", other.to_json()), ("Schema", "null".to_owned())].into_iter()),
        },
        Kind::OrList => or_list(value),
        Kind::Dependencies => map(value, |dependency| match dependency {
            Value::Object(_) => object([("Schema", schema(dependency)), ("Property", "null".to_owned())].into_iter()),
            other => object([("Schema", "null".to_owned()), ("Property", other.to_json())].into_iter()),
        }),
        Kind::Docs => object(
            [("Description", quoted(text(value, "description"))), ("URL", quoted(text(value, "url")))].into_iter(),
        ),
        Kind::Rules => array(list(parent, key).iter().map(rule)),
        _ => value.to_json(),
    }
}

fn map(value: &Value, print: impl Fn(&Value) -> String) -> String {
    object(value.fields().map(|(k, v)| (k.as_str(), print(v))))
}

/// The field `items`, as the internal type holds it.
pub(super) fn or_list(items: &Value) -> String {
    let null = || "null".to_owned();
    let (single, many) = match items {
        Value::Object(_) => (schema(items), null()),
        Value::Array(many) => (null(), array(many.iter().map(schema))),
        _ => (null(), null()),
    };
    object([("Schema", single), ("JSONSchemas", many)].into_iter())
}

/// A rule of `x-kubernetes-validations`.
pub(super) fn rule(rule: &Value) -> String {
    let fields = [
        ("Rule", quoted(text(rule, "rule"))),
        ("Message", quoted(text(rule, "message"))),
        ("MessageExpression", quoted(text(rule, "messageExpression"))),
        ("Reason", json(rule.get("reason"))),
        ("FieldPath", quoted(text(rule, "fieldPath"))),
        ("OptionalOldSelf", json(rule.get("optionalOldSelf"))),
    ];
    object(fields.into_iter())
}

/// A version. `own` returns the fields that remain in it after hoisting.
pub(super) fn version<'a>(version: &'a Value, own: impl Fn(&str) -> Option<&'a Value>) -> String {
    let null = || "null".to_owned();
    let validation = own("schema")
        .map_or_else(null, |v| object([("OpenAPIV3Schema", value_of(v, "openAPIV3Schema", Kind::Schema))].into_iter()));
    let fields = [
        ("Name", quoted(text(version, "name"))),
        ("Served", flag(version, "served").to_string()),
        ("Storage", flag(version, "storage").to_string()),
        ("Deprecated", flag(version, "deprecated").to_string()),
        ("DeprecationWarning", json(version.get("deprecationWarning"))),
        ("Schema", validation),
        ("Subresources", own("subresources").map_or_else(null, subresources)),
        ("AdditionalPrinterColumns", own("additionalPrinterColumns").map_or_else(null, columns)),
        ("SelectableFields", own("selectableFields").map_or_else(null, selectable_fields)),
    ];
    object(fields.into_iter())
}

fn subresources(value: &Value) -> String {
    let scale = value.get("scale").map_or("null".to_owned(), |scale| {
        let fields = [
            ("SpecReplicasPath", quoted(text(scale, "specReplicasPath"))),
            ("StatusReplicasPath", quoted(text(scale, "statusReplicasPath"))),
            ("LabelSelectorPath", json(scale.get("labelSelectorPath"))),
        ];
        object(fields.into_iter())
    });
    object([("Status", json(value.get("status"))), ("Scale", scale)].into_iter())
}

fn columns(value: &Value) -> String {
    array(value.as_array().unwrap_or_default().iter().map(|column| {
        let priority = column.int_at(&["priority"]);
        let fields = [
            ("Name", quoted(text(column, "name"))),
            ("Type", quoted(text(column, "type"))),
            ("Format", quoted(text(column, "format"))),
            ("Description", quoted(text(column, "description"))),
            ("Priority", priority.to_string()),
            ("JSONPath", quoted(text(column, "jsonPath"))),
        ];
        object(fields.into_iter())
    }))
}

fn selectable_fields(value: &Value) -> String {
    let path = |field: &Value| object([("JSONPath", quoted(text(field, "jsonPath")))].into_iter());
    array(value.as_array().unwrap_or_default().iter().map(path))
}
