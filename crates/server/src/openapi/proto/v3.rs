//! Field numbers of gnostic's OpenAPI v3 messages, for the fields that documents contain.

use machinery::Value;

use super::Tables;
use super::ValueKind::{self, *};

pub static TABLES: Tables =
    Tables { document: &DOCUMENT, path: Message(&PATH_ITEM), schema: Choice(schema), paths: (4, 1), schemas: &[5, 1] };

const TEXTS: ValueKind = Each(&Text);
const ANYS: ValueKind = Each(&Any);

static REFERENCE_KIND: ValueKind = Message(&REFERENCE);

/// A schema or a reference to one.
fn schema(value: &Value) -> Option<ValueKind> {
    Some(match value.get("$ref") {
        Some(_) => Wrapped(2, &REFERENCE_KIND),
        None => Wrapped(1, &SCHEMA_KIND),
    })
}

/// `additionalProperties`: a schema or a boolean.
fn additional(value: &Value) -> Option<ValueKind> {
    Some(match value {
        Value::Bool(_) => Wrapped(2, &Bool),
        _ => Wrapped(1, &Choice(schema)),
    })
}

/// `default`: gnostic's message holds scalars only, so the default of an object or a list is an empty message.
fn default(value: &Value) -> Option<ValueKind> {
    match value {
        Value::Int(_) | Value::Float(_) => Some(Wrapped(1, &Double)),
        Value::Bool(_) => Some(Wrapped(2, &Bool)),
        Value::String(_) => Some(Wrapped(3, &Text)),
        _ => Some(Message(&NOTHING)),
    }
}

static SCHEMA_KIND: ValueKind = Message(&SCHEMA);

messages! {
    // schemas are written into `components` messages of their own, which decoders merge with this one
    DOCUMENT 9 ["openapi" 1 Text, "info" 2 Message(&INFO), "components" 5 Message(&COMPONENTS)];
    INFO 7 ["title" 1 Text, "version" 6 Text];
    COMPONENTS 0 ["securitySchemes" 7 Message(&SECURITY_SCHEMES)];
    SECURITY_SCHEMES 0 [] others 1 Wrapped(1, &Message(&SECURITY_SCHEME));
    SECURITY_SCHEME 9 ["type" 1 Text, "description" 2 Text, "name" 3 Text, "in" 4 Text];
    PATH_ITEM 14 [
        "get" 4 Message(&OPERATION), "put" 5 Message(&OPERATION), "post" 6 Message(&OPERATION),
        "delete" 7 Message(&OPERATION), "options" 8 Message(&OPERATION), "head" 9 Message(&OPERATION),
        "patch" 10 Message(&OPERATION), "parameters" 13 Each(&Wrapped(1, &Message(&PARAMETER))),
    ];
    OPERATION 13 [
        "tags" 1 TEXTS, "description" 3 Text, "operationId" 5 Text,
        "parameters" 6 Each(&Wrapped(1, &Message(&PARAMETER))), "requestBody" 7 Wrapped(1, &Message(&REQUEST_BODY)),
        "responses" 8 Message(&RESPONSES),
    ];
    PARAMETER 14 ["name" 1 Text, "in" 2 Text, "description" 3 Text, "required" 4 Bool, "schema" 10 Choice(schema)];
    REQUEST_BODY 4 ["description" 1 Text, "content" 2 Message(&MEDIA_TYPES), "required" 3 Bool];
    MEDIA_TYPES 0 [] others 1 Message(&MEDIA_TYPE);
    MEDIA_TYPE 5 ["schema" 1 Choice(schema)];
    RESPONSES 3 [] others 2 Wrapped(1, &Message(&RESPONSE));
    RESPONSE 5 ["description" 1 Text, "content" 3 Message(&MEDIA_TYPES)];
    REFERENCE 0 ["$ref" 1 Text, "description" 3 Text];
    PROPERTIES 0 [] others 1 Choice(schema);
    NOTHING 0 [];
    SCHEMA 36 [
        "nullable" 1 Bool, "title" 9 Text, "multipleOf" 10 Double, "maximum" 11 Double, "exclusiveMaximum" 12 Bool,
        "minimum" 13 Double, "exclusiveMinimum" 14 Bool, "maxLength" 15 Int, "minLength" 16 Int, "pattern" 17 Text,
        "maxItems" 18 Int, "minItems" 19 Int, "uniqueItems" 20 Bool, "maxProperties" 21 Int, "minProperties" 22 Int,
        "required" 23 TEXTS, "enum" 24 ANYS, "type" 25 Text, "allOf" 26 Each(&Choice(schema)),
        "oneOf" 27 Each(&Choice(schema)), "anyOf" 28 Each(&Choice(schema)), "not" 29 Message(&SCHEMA),
        "items" 30 Wrapped(1, &Choice(schema)), "properties" 31 Message(&PROPERTIES),
        "additionalProperties" 32 Choice(additional), "default" 33 Choice(default), "description" 34 Text,
        "format" 35 Text,
    ];
}
