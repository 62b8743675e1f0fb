//! Field numbers of gnostic's OpenAPI v3 messages, for the fields that documents contain.

use machinery::Value;

use super::{Message, Tables, ValueKind};

pub static TABLES: Tables = Tables {
    document: &DOCUMENT,
    path: ValueKind::Message(&PATH_ITEM),
    schema: ValueKind::Choice(schema),
    paths: (4, 1),
    schemas: &[5, 1],
};

const TEXTS: ValueKind = ValueKind::Each(&ValueKind::Text);
const ANYS: ValueKind = ValueKind::Each(&ValueKind::Any);

static DOCUMENT: Message = Message::of(
    // schemas are written into `components` messages of their own, which decoders merge with this one
    &[
        ("openapi", 1, ValueKind::Text),
        ("info", 2, ValueKind::Message(&INFO)),
        ("components", 5, ValueKind::Message(&COMPONENTS)),
    ],
    9,
);

static INFO: Message = Message::of(&[("title", 1, ValueKind::Text), ("version", 6, ValueKind::Text)], 7);

static COMPONENTS: Message = Message::of(&[("securitySchemes", 7, ValueKind::Message(&SECURITY_SCHEMES))], 0);

static SECURITY_SCHEMES: Message = Message::of_names(1, ValueKind::Wrapped(1, &ValueKind::Message(&SECURITY_SCHEME)));

static SECURITY_SCHEME: Message = Message::of(
    &[
        ("type", 1, ValueKind::Text),
        ("description", 2, ValueKind::Text),
        ("name", 3, ValueKind::Text),
        ("in", 4, ValueKind::Text),
    ],
    9,
);

static PATH_ITEM: Message = Message::of(
    &[
        ("get", 4, ValueKind::Message(&OPERATION)),
        ("put", 5, ValueKind::Message(&OPERATION)),
        ("post", 6, ValueKind::Message(&OPERATION)),
        ("delete", 7, ValueKind::Message(&OPERATION)),
        ("options", 8, ValueKind::Message(&OPERATION)),
        ("head", 9, ValueKind::Message(&OPERATION)),
        ("patch", 10, ValueKind::Message(&OPERATION)),
        ("parameters", 13, ValueKind::Each(&ValueKind::Wrapped(1, &ValueKind::Message(&PARAMETER)))),
    ],
    14,
);

static OPERATION: Message = Message::of(
    &[
        ("tags", 1, TEXTS),
        ("description", 3, ValueKind::Text),
        ("operationId", 5, ValueKind::Text),
        ("parameters", 6, ValueKind::Each(&ValueKind::Wrapped(1, &ValueKind::Message(&PARAMETER)))),
        ("requestBody", 7, ValueKind::Wrapped(1, &ValueKind::Message(&REQUEST_BODY))),
        ("responses", 8, ValueKind::Message(&RESPONSES)),
    ],
    13,
);

static PARAMETER: Message = Message::of(
    &[
        ("name", 1, ValueKind::Text),
        ("in", 2, ValueKind::Text),
        ("description", 3, ValueKind::Text),
        ("required", 4, ValueKind::Bool),
        ("schema", 10, ValueKind::Choice(schema)),
    ],
    14,
);

static REQUEST_BODY: Message = Message::of(
    &[
        ("description", 1, ValueKind::Text),
        ("content", 2, ValueKind::Message(&MEDIA_TYPES)),
        ("required", 3, ValueKind::Bool),
    ],
    4,
);

static MEDIA_TYPES: Message = Message::of_names(1, ValueKind::Message(&MEDIA_TYPE));

static MEDIA_TYPE: Message = Message::of(&[("schema", 1, ValueKind::Choice(schema))], 5);

static RESPONSES: Message =
    Message { fields: &[], extensions: 3, others: Some((2, ValueKind::Wrapped(1, &ValueKind::Message(&RESPONSE)))) };

static RESPONSE: Message =
    Message::of(&[("description", 1, ValueKind::Text), ("content", 3, ValueKind::Message(&MEDIA_TYPES))], 5);

static REFERENCE_KIND: ValueKind = ValueKind::Message(&REFERENCE);

static REFERENCE: Message = Message::of(&[("$ref", 1, ValueKind::Text), ("description", 3, ValueKind::Text)], 0);

static PROPERTIES: Message = Message::of_names(1, ValueKind::Choice(schema));

/// A schema or a reference to one.
fn schema(value: &Value) -> Option<ValueKind> {
    Some(match value.get("$ref") {
        Some(_) => ValueKind::Wrapped(2, &REFERENCE_KIND),
        None => ValueKind::Wrapped(1, &SCHEMA_KIND),
    })
}

/// `additionalProperties`: a schema or a boolean.
fn additional(value: &Value) -> Option<ValueKind> {
    Some(match value {
        Value::Bool(_) => ValueKind::Wrapped(2, &ValueKind::Bool),
        _ => ValueKind::Wrapped(1, &ValueKind::Choice(schema)),
    })
}

static NOTHING: Message = Message::of(&[], 0);

/// `default`: gnostic's message holds scalars only, so the default of an object or a list is an empty message.
fn default(value: &Value) -> Option<ValueKind> {
    match value {
        Value::Int(_) | Value::Float(_) => Some(ValueKind::Wrapped(1, &ValueKind::Double)),
        Value::Bool(_) => Some(ValueKind::Wrapped(2, &ValueKind::Bool)),
        Value::String(_) => Some(ValueKind::Wrapped(3, &ValueKind::Text)),
        _ => Some(ValueKind::Message(&NOTHING)),
    }
}

static SCHEMA_KIND: ValueKind = ValueKind::Message(&SCHEMA);

static SCHEMA: Message = Message::of(
    &[
        ("nullable", 1, ValueKind::Bool),
        ("title", 9, ValueKind::Text),
        ("multipleOf", 10, ValueKind::Double),
        ("maximum", 11, ValueKind::Double),
        ("exclusiveMaximum", 12, ValueKind::Bool),
        ("minimum", 13, ValueKind::Double),
        ("exclusiveMinimum", 14, ValueKind::Bool),
        ("maxLength", 15, ValueKind::Int),
        ("minLength", 16, ValueKind::Int),
        ("pattern", 17, ValueKind::Text),
        ("maxItems", 18, ValueKind::Int),
        ("minItems", 19, ValueKind::Int),
        ("uniqueItems", 20, ValueKind::Bool),
        ("maxProperties", 21, ValueKind::Int),
        ("minProperties", 22, ValueKind::Int),
        ("required", 23, TEXTS),
        ("enum", 24, ANYS),
        ("type", 25, ValueKind::Text),
        ("allOf", 26, ValueKind::Each(&ValueKind::Choice(schema))),
        ("oneOf", 27, ValueKind::Each(&ValueKind::Choice(schema))),
        ("anyOf", 28, ValueKind::Each(&ValueKind::Choice(schema))),
        ("not", 29, ValueKind::Message(&SCHEMA)),
        ("items", 30, ValueKind::Wrapped(1, &ValueKind::Choice(schema))),
        ("properties", 31, ValueKind::Message(&PROPERTIES)),
        ("additionalProperties", 32, ValueKind::Choice(additional)),
        ("default", 33, ValueKind::Choice(default)),
        ("description", 34, ValueKind::Text),
        ("format", 35, ValueKind::Text),
    ],
    36,
);
