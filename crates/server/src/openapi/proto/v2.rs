//! Field numbers of gnostic's OpenAPI v2 messages, for the fields that documents contain.

use machinery::Value;

use super::{Message, Tables, ValueKind};

pub static TABLES: Tables = Tables {
    document: &DOCUMENT,
    path: ValueKind::Message(&PATH_ITEM),
    schema: ValueKind::Message(&SCHEMA),
    paths: (8, 2),
    schemas: &[9],
};

const TEXTS: ValueKind = ValueKind::Each(&ValueKind::Text);
const ANYS: ValueKind = ValueKind::Each(&ValueKind::Any);

static DOCUMENT: Message = Message::of(
    &[
        ("swagger", 1, ValueKind::Text),
        ("info", 2, ValueKind::Message(&INFO)),
        ("parameters", 10, ValueKind::Message(&PARAMETERS)),
        ("security", 12, ValueKind::Each(&ValueKind::Message(&SECURITY))),
        ("securityDefinitions", 13, ValueKind::Message(&SECURITY_DEFINITIONS)),
    ],
    16,
);

static INFO: Message = Message::of(&[("title", 1, ValueKind::Text), ("version", 2, ValueKind::Text)], 7);

static PARAMETERS: Message = Message::of_names(1, ValueKind::Choice(parameter));

static SECURITY: Message = Message::of_names(1, ValueKind::Wrapped(1, &TEXTS));

static SECURITY_DEFINITIONS: Message = Message::of_names(1, ValueKind::Wrapped(2, &ValueKind::Message(&API_KEY)));

static API_KEY: Message = Message::of(
    &[
        ("type", 1, ValueKind::Text),
        ("name", 2, ValueKind::Text),
        ("in", 3, ValueKind::Text),
        ("description", 4, ValueKind::Text),
    ],
    5,
);

static PATH_ITEM: Message = Message::of(
    &[
        ("get", 2, ValueKind::Message(&OPERATION)),
        ("put", 3, ValueKind::Message(&OPERATION)),
        ("post", 4, ValueKind::Message(&OPERATION)),
        ("delete", 5, ValueKind::Message(&OPERATION)),
        ("options", 6, ValueKind::Message(&OPERATION)),
        ("head", 7, ValueKind::Message(&OPERATION)),
        ("patch", 8, ValueKind::Message(&OPERATION)),
        ("parameters", 9, ValueKind::Each(&PARAMETERS_ITEM)),
    ],
    10,
);

static OPERATION: Message = Message::of(
    &[
        ("tags", 1, TEXTS),
        ("description", 3, ValueKind::Text),
        ("operationId", 5, ValueKind::Text),
        ("produces", 6, TEXTS),
        ("consumes", 7, TEXTS),
        ("parameters", 8, ValueKind::Each(&PARAMETERS_ITEM)),
        ("responses", 9, ValueKind::Message(&RESPONSES)),
        ("schemes", 10, TEXTS),
    ],
    13,
);

static PARAMETERS_ITEM: ValueKind = ValueKind::Choice(|item| {
    Some(if item.get("$ref").is_some() {
        ValueKind::Wrapped(2, &REFERENCE_KIND)
    } else {
        ValueKind::Wrapped(1, &ValueKind::Choice(parameter))
    })
});

/// The message of a parameter, which depends on its location `in`.
fn parameter(value: &Value) -> Option<ValueKind> {
    static BODY_KIND: ValueKind = ValueKind::Message(&BODY);
    static QUERY_KIND: ValueKind = ValueKind::Wrapped(3, &ValueKind::Message(&QUERY));
    static PATH_KIND: ValueKind = ValueKind::Wrapped(4, &ValueKind::Message(&PATH));
    match value.str_at(&["in"]) {
        "body" => Some(ValueKind::Wrapped(1, &BODY_KIND)),
        "query" => Some(ValueKind::Wrapped(2, &QUERY_KIND)),
        "path" => Some(ValueKind::Wrapped(2, &PATH_KIND)),
        _ => None,
    }
}

static REFERENCE_KIND: ValueKind = ValueKind::Message(&REFERENCE);

static REFERENCE: Message = Message::of(&[("$ref", 1, ValueKind::Text), ("description", 2, ValueKind::Text)], 0);

static BODY: Message = Message::of(
    &[
        ("description", 1, ValueKind::Text),
        ("name", 2, ValueKind::Text),
        ("in", 3, ValueKind::Text),
        ("required", 4, ValueKind::Bool),
        ("schema", 5, ValueKind::Message(&SCHEMA)),
    ],
    6,
);

static QUERY: Message = Message::of(
    &[
        ("required", 1, ValueKind::Bool),
        ("in", 2, ValueKind::Text),
        ("description", 3, ValueKind::Text),
        ("name", 4, ValueKind::Text),
        ("type", 6, ValueKind::Text),
        ("uniqueItems", 20, ValueKind::Bool),
    ],
    23,
);

static PATH: Message = Message::of(
    &[
        ("required", 1, ValueKind::Bool),
        ("in", 2, ValueKind::Text),
        ("description", 3, ValueKind::Text),
        ("name", 4, ValueKind::Text),
        ("type", 5, ValueKind::Text),
        ("uniqueItems", 19, ValueKind::Bool),
    ],
    22,
);

static RESPONSES: Message =
    Message { fields: &[], extensions: 2, others: Some((1, ValueKind::Wrapped(1, &ValueKind::Message(&RESPONSE)))) };

static RESPONSE: Message = Message::of(
    &[("description", 1, ValueKind::Text), ("schema", 2, ValueKind::Wrapped(1, &ValueKind::Message(&SCHEMA)))],
    5,
);

static PROPERTIES: Message = Message::of_names(1, ValueKind::Message(&SCHEMA));

/// `additionalProperties`: a schema or a boolean.
fn additional(value: &Value) -> Option<ValueKind> {
    Some(match value {
        Value::Bool(_) => ValueKind::Wrapped(2, &ValueKind::Bool),
        _ => ValueKind::Wrapped(1, &SCHEMA_KIND),
    })
}

static SCHEMA_KIND: ValueKind = ValueKind::Message(&SCHEMA);

static SCHEMA: Message = Message::of(
    &[
        ("$ref", 1, ValueKind::Text),
        ("format", 2, ValueKind::Text),
        ("title", 3, ValueKind::Text),
        ("description", 4, ValueKind::Text),
        ("default", 5, ValueKind::Any),
        ("multipleOf", 6, ValueKind::Double),
        ("maximum", 7, ValueKind::Double),
        ("exclusiveMaximum", 8, ValueKind::Bool),
        ("minimum", 9, ValueKind::Double),
        ("exclusiveMinimum", 10, ValueKind::Bool),
        ("maxLength", 11, ValueKind::Int),
        ("minLength", 12, ValueKind::Int),
        ("pattern", 13, ValueKind::Text),
        ("maxItems", 14, ValueKind::Int),
        ("minItems", 15, ValueKind::Int),
        ("uniqueItems", 16, ValueKind::Bool),
        ("maxProperties", 17, ValueKind::Int),
        ("minProperties", 18, ValueKind::Int),
        ("required", 19, TEXTS),
        ("enum", 20, ANYS),
        ("additionalProperties", 21, ValueKind::Choice(additional)),
        ("type", 22, ValueKind::Wrapped(1, &TEXTS)),
        ("items", 23, ValueKind::Wrapped(1, &ValueKind::Message(&SCHEMA))),
        ("properties", 25, ValueKind::Message(&PROPERTIES)),
    ],
    31,
);
