//! Field numbers of gnostic's OpenAPI v2 messages, for the fields that documents contain.

use machinery::Value;

use super::{Kind, Message, Tables};

pub static TABLES: Tables = Tables {
    document: &DOCUMENT,
    path: Kind::Message(&PATH_ITEM),
    schema: Kind::Message(&SCHEMA),
    paths: (8, 2),
    schemas: &[9],
};

const TEXTS: Kind = Kind::Each(&Kind::Text);
const ANYS: Kind = Kind::Each(&Kind::Any);

static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Kind::Text),
        ("info", 2, Kind::Message(&INFO)),
        ("parameters", 10, Kind::Message(&PARAMETERS)),
        ("security", 12, Kind::Each(&Kind::Message(&SECURITY))),
        ("securityDefinitions", 13, Kind::Message(&SECURITY_DEFINITIONS)),
    ],
    extensions: 16,
    others: None,
};

static INFO: Message =
    Message { fields: &[("title", 1, Kind::Text), ("version", 2, Kind::Text)], extensions: 7, others: None };

static PARAMETERS: Message = Message { fields: &[], extensions: 0, others: Some((1, Kind::Choice(parameter))) };

static SECURITY: Message = Message { fields: &[], extensions: 0, others: Some((1, Kind::Wrapped(1, &TEXTS))) };

static SECURITY_DEFINITIONS: Message =
    Message { fields: &[], extensions: 0, others: Some((1, Kind::Wrapped(2, &Kind::Message(&API_KEY)))) };

static API_KEY: Message = Message {
    fields: &[("type", 1, Kind::Text), ("name", 2, Kind::Text), ("in", 3, Kind::Text), ("description", 4, Kind::Text)],
    extensions: 5,
    others: None,
};

static PATH_ITEM: Message = Message {
    fields: &[
        ("get", 2, Kind::Message(&OPERATION)),
        ("put", 3, Kind::Message(&OPERATION)),
        ("post", 4, Kind::Message(&OPERATION)),
        ("delete", 5, Kind::Message(&OPERATION)),
        ("patch", 8, Kind::Message(&OPERATION)),
        ("parameters", 9, Kind::Each(&PARAMETERS_ITEM)),
    ],
    extensions: 10,
    others: None,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, TEXTS),
        ("description", 3, Kind::Text),
        ("operationId", 5, Kind::Text),
        ("produces", 6, TEXTS),
        ("consumes", 7, TEXTS),
        ("parameters", 8, Kind::Each(&PARAMETERS_ITEM)),
        ("responses", 9, Kind::Message(&RESPONSES)),
        ("schemes", 10, TEXTS),
    ],
    extensions: 13,
    others: None,
};

static PARAMETERS_ITEM: Kind = Kind::Choice(|item| {
    Some(if item.get("$ref").is_some() {
        Kind::Wrapped(2, &REFERENCE_KIND)
    } else {
        Kind::Wrapped(1, &Kind::Choice(parameter))
    })
});

/// The message of a parameter, which depends on its location `in`.
fn parameter(value: &Value) -> Option<Kind> {
    static BODY_KIND: Kind = Kind::Message(&BODY);
    static QUERY_KIND: Kind = Kind::Wrapped(3, &Kind::Message(&QUERY));
    static PATH_KIND: Kind = Kind::Wrapped(4, &Kind::Message(&PATH));
    match value.str_at(&["in"]) {
        "body" => Some(Kind::Wrapped(1, &BODY_KIND)),
        "query" => Some(Kind::Wrapped(2, &QUERY_KIND)),
        "path" => Some(Kind::Wrapped(2, &PATH_KIND)),
        _ => None,
    }
}

static REFERENCE_KIND: Kind = Kind::Message(&REFERENCE);

static REFERENCE: Message =
    Message { fields: &[("$ref", 1, Kind::Text), ("description", 2, Kind::Text)], extensions: 0, others: None };

static BODY: Message = Message {
    fields: &[
        ("description", 1, Kind::Text),
        ("name", 2, Kind::Text),
        ("in", 3, Kind::Text),
        ("required", 4, Kind::Bool),
        ("schema", 5, Kind::Message(&SCHEMA)),
    ],
    extensions: 6,
    others: None,
};

static QUERY: Message = Message {
    fields: &[
        ("required", 1, Kind::Bool),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("type", 6, Kind::Text),
        ("uniqueItems", 20, Kind::Bool),
    ],
    extensions: 23,
    others: None,
};

static PATH: Message = Message {
    fields: &[
        ("required", 1, Kind::Bool),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("type", 5, Kind::Text),
        ("uniqueItems", 19, Kind::Bool),
    ],
    extensions: 22,
    others: None,
};

static RESPONSES: Message =
    Message { fields: &[], extensions: 2, others: Some((1, Kind::Wrapped(1, &Kind::Message(&RESPONSE)))) };

static RESPONSE: Message = Message {
    fields: &[("description", 1, Kind::Text), ("schema", 2, Kind::Wrapped(1, &Kind::Message(&SCHEMA)))],
    extensions: 5,
    others: None,
};

static PROPERTIES: Message = Message { fields: &[], extensions: 0, others: Some((1, Kind::Message(&SCHEMA))) };

/// `additionalProperties`: a schema or a boolean.
fn additional(value: &Value) -> Option<Kind> {
    Some(match value {
        Value::Bool(_) => Kind::Wrapped(2, &Kind::Bool),
        _ => Kind::Wrapped(1, &SCHEMA_KIND),
    })
}

static SCHEMA_KIND: Kind = Kind::Message(&SCHEMA);

static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Kind::Text),
        ("format", 2, Kind::Text),
        ("title", 3, Kind::Text),
        ("description", 4, Kind::Text),
        ("default", 5, Kind::Any),
        ("multipleOf", 6, Kind::Double),
        ("maximum", 7, Kind::Double),
        ("exclusiveMaximum", 8, Kind::Bool),
        ("minimum", 9, Kind::Double),
        ("exclusiveMinimum", 10, Kind::Bool),
        ("maxLength", 11, Kind::Int),
        ("minLength", 12, Kind::Int),
        ("pattern", 13, Kind::Text),
        ("maxItems", 14, Kind::Int),
        ("minItems", 15, Kind::Int),
        ("uniqueItems", 16, Kind::Bool),
        ("maxProperties", 17, Kind::Int),
        ("minProperties", 18, Kind::Int),
        ("required", 19, TEXTS),
        ("enum", 20, ANYS),
        ("additionalProperties", 21, Kind::Choice(additional)),
        ("type", 22, Kind::Wrapped(1, &TEXTS)),
        ("items", 23, Kind::Wrapped(1, &Kind::Message(&SCHEMA))),
        ("properties", 25, Kind::Message(&PROPERTIES)),
    ],
    extensions: 31,
    others: None,
};
