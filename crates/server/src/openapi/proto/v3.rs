//! Field numbers of gnostic's OpenAPI v3 messages, for the fields that documents contain.

use machinery::Value;

use super::{Kind, Message, Tables};

pub static TABLES: Tables = Tables {
    document: &DOCUMENT,
    path: Kind::Message(&PATH_ITEM),
    schema: Kind::Choice(schema),
    paths: (4, 1),
    schemas: &[5, 1],
};

const TEXTS: Kind = Kind::Each(&Kind::Text);
const ANYS: Kind = Kind::Each(&Kind::Any);

static DOCUMENT: Message =
    Message { fields: &[("openapi", 1, Kind::Text), ("info", 2, Kind::Message(&INFO))], extensions: 9, others: None };

static INFO: Message =
    Message { fields: &[("title", 1, Kind::Text), ("version", 6, Kind::Text)], extensions: 7, others: None };

static PATH_ITEM: Message = Message {
    fields: &[
        ("get", 4, Kind::Message(&OPERATION)),
        ("put", 5, Kind::Message(&OPERATION)),
        ("post", 6, Kind::Message(&OPERATION)),
        ("delete", 7, Kind::Message(&OPERATION)),
        ("patch", 10, Kind::Message(&OPERATION)),
        ("parameters", 13, Kind::Each(&Kind::Wrapped(1, &Kind::Message(&PARAMETER)))),
    ],
    extensions: 14,
    others: None,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, TEXTS),
        ("description", 3, Kind::Text),
        ("operationId", 5, Kind::Text),
        ("parameters", 6, Kind::Each(&Kind::Wrapped(1, &Kind::Message(&PARAMETER)))),
        ("requestBody", 7, Kind::Wrapped(1, &Kind::Message(&REQUEST_BODY))),
        ("responses", 8, Kind::Message(&RESPONSES)),
    ],
    extensions: 13,
    others: None,
};

static PARAMETER: Message = Message {
    fields: &[
        ("name", 1, Kind::Text),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("required", 4, Kind::Bool),
        ("schema", 10, Kind::Choice(schema)),
    ],
    extensions: 14,
    others: None,
};

static REQUEST_BODY: Message = Message {
    fields: &[("description", 1, Kind::Text), ("content", 2, Kind::Message(&MEDIA_TYPES)), ("required", 3, Kind::Bool)],
    extensions: 4,
    others: None,
};

static MEDIA_TYPES: Message = Message { fields: &[], extensions: 0, others: Some((1, Kind::Message(&MEDIA_TYPE))) };

static MEDIA_TYPE: Message = Message { fields: &[("schema", 1, Kind::Choice(schema))], extensions: 5, others: None };

static RESPONSES: Message =
    Message { fields: &[], extensions: 3, others: Some((2, Kind::Wrapped(1, &Kind::Message(&RESPONSE)))) };

static RESPONSE: Message = Message {
    fields: &[("description", 1, Kind::Text), ("content", 3, Kind::Message(&MEDIA_TYPES))],
    extensions: 5,
    others: None,
};

static REFERENCE_KIND: Kind = Kind::Message(&REFERENCE);

static REFERENCE: Message =
    Message { fields: &[("$ref", 1, Kind::Text), ("description", 3, Kind::Text)], extensions: 0, others: None };

static PROPERTIES: Message = Message { fields: &[], extensions: 0, others: Some((1, Kind::Choice(schema))) };

/// A schema or a reference to one.
fn schema(value: &Value) -> Option<Kind> {
    Some(match value.get("$ref") {
        Some(_) => Kind::Wrapped(2, &REFERENCE_KIND),
        None => Kind::Wrapped(1, &SCHEMA_KIND),
    })
}

/// `additionalProperties`: a schema or a boolean.
fn additional(value: &Value) -> Option<Kind> {
    Some(match value {
        Value::Bool(_) => Kind::Wrapped(2, &Kind::Bool),
        _ => Kind::Wrapped(1, &Kind::Choice(schema)),
    })
}

static NOTHING: Message = Message { fields: &[], extensions: 0, others: None };

/// `default`: gnostic's message holds scalars only, so the default of an object or a list is an empty message.
fn default(value: &Value) -> Option<Kind> {
    match value {
        Value::Int(_) | Value::Float(_) => Some(Kind::Wrapped(1, &Kind::Double)),
        Value::Bool(_) => Some(Kind::Wrapped(2, &Kind::Bool)),
        Value::String(_) => Some(Kind::Wrapped(3, &Kind::Text)),
        _ => Some(Kind::Message(&NOTHING)),
    }
}

static SCHEMA_KIND: Kind = Kind::Message(&SCHEMA);

static SCHEMA: Message = Message {
    fields: &[
        ("nullable", 1, Kind::Bool),
        ("title", 9, Kind::Text),
        ("multipleOf", 10, Kind::Double),
        ("maximum", 11, Kind::Double),
        ("exclusiveMaximum", 12, Kind::Bool),
        ("minimum", 13, Kind::Double),
        ("exclusiveMinimum", 14, Kind::Bool),
        ("maxLength", 15, Kind::Int),
        ("minLength", 16, Kind::Int),
        ("pattern", 17, Kind::Text),
        ("maxItems", 18, Kind::Int),
        ("minItems", 19, Kind::Int),
        ("uniqueItems", 20, Kind::Bool),
        ("maxProperties", 21, Kind::Int),
        ("minProperties", 22, Kind::Int),
        ("required", 23, TEXTS),
        ("enum", 24, ANYS),
        ("type", 25, Kind::Text),
        ("allOf", 26, Kind::Each(&Kind::Choice(schema))),
        ("oneOf", 27, Kind::Each(&Kind::Choice(schema))),
        ("anyOf", 28, Kind::Each(&Kind::Choice(schema))),
        ("not", 29, Kind::Message(&SCHEMA)),
        ("items", 30, Kind::Wrapped(1, &Kind::Choice(schema))),
        ("properties", 31, Kind::Message(&PROPERTIES)),
        ("additionalProperties", 32, Kind::Choice(additional)),
        ("default", 33, Kind::Choice(default)),
        ("description", 34, Kind::Text),
        ("format", 35, Kind::Text),
    ],
    extensions: 36,
    others: None,
};
