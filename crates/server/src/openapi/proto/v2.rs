//! Field numbers of gnostic's OpenAPI v2 messages, for the fields that documents contain.

use machinery::Value;

use super::Tables;
use super::ValueKind::{self, *};

pub static TABLES: Tables =
    Tables { document: &DOCUMENT, path: Message(&PATH_ITEM), schema: Message(&SCHEMA), paths: (8, 2), schemas: &[9] };

const TEXTS: ValueKind = Each(&Text);
const ANYS: ValueKind = Each(&Any);

static PARAMETERS_ITEM: ValueKind = Choice(|item| {
    Some(if item.get("$ref").is_some() { Wrapped(2, &REFERENCE_KIND) } else { Wrapped(1, &Choice(parameter)) })
});

/// The message of a parameter, which depends on its location `in`.
fn parameter(value: &Value) -> Option<ValueKind> {
    static BODY_KIND: ValueKind = Message(&BODY);
    static QUERY_KIND: ValueKind = Wrapped(3, &Message(&QUERY));
    static PATH_KIND: ValueKind = Wrapped(4, &Message(&PATH));
    match value.str_at(&["in"]) {
        "body" => Some(Wrapped(1, &BODY_KIND)),
        "query" => Some(Wrapped(2, &QUERY_KIND)),
        "path" => Some(Wrapped(2, &PATH_KIND)),
        _ => None,
    }
}

static REFERENCE_KIND: ValueKind = Message(&REFERENCE);

/// `additionalProperties`: a schema or a boolean.
fn additional(value: &Value) -> Option<ValueKind> {
    Some(match value {
        Value::Bool(_) => Wrapped(2, &Bool),
        _ => Wrapped(1, &SCHEMA_KIND),
    })
}

static SCHEMA_KIND: ValueKind = Message(&SCHEMA);

messages! {
    DOCUMENT 16 [
        "swagger" 1 Text, "info" 2 Message(&INFO), "parameters" 10 Message(&PARAMETERS),
        "security" 12 Each(&Message(&SECURITY)), "securityDefinitions" 13 Message(&SECURITY_DEFINITIONS),
    ];
    INFO 7 ["title" 1 Text, "version" 2 Text];
    PARAMETERS 0 [] others 1 Choice(parameter);
    SECURITY 0 [] others 1 Wrapped(1, &TEXTS);
    SECURITY_DEFINITIONS 0 [] others 1 Wrapped(2, &Message(&API_KEY));
    API_KEY 5 ["type" 1 Text, "name" 2 Text, "in" 3 Text, "description" 4 Text];
    PATH_ITEM 10 [
        "get" 2 Message(&OPERATION), "put" 3 Message(&OPERATION), "post" 4 Message(&OPERATION),
        "delete" 5 Message(&OPERATION), "options" 6 Message(&OPERATION), "head" 7 Message(&OPERATION),
        "patch" 8 Message(&OPERATION), "parameters" 9 Each(&PARAMETERS_ITEM),
    ];
    OPERATION 13 [
        "tags" 1 TEXTS, "description" 3 Text, "operationId" 5 Text, "produces" 6 TEXTS, "consumes" 7 TEXTS,
        "parameters" 8 Each(&PARAMETERS_ITEM), "responses" 9 Message(&RESPONSES), "schemes" 10 TEXTS,
    ];
    REFERENCE 0 ["$ref" 1 Text, "description" 2 Text];
    BODY 6 ["description" 1 Text, "name" 2 Text, "in" 3 Text, "required" 4 Bool, "schema" 5 Message(&SCHEMA)];
    QUERY 23 [
        "required" 1 Bool, "in" 2 Text, "description" 3 Text, "name" 4 Text, "type" 6 Text, "uniqueItems" 20 Bool,
    ];
    PATH 22 ["required" 1 Bool, "in" 2 Text, "description" 3 Text, "name" 4 Text, "type" 5 Text, "uniqueItems" 19 Bool];
    RESPONSES 2 [] others 1 Wrapped(1, &Message(&RESPONSE));
    RESPONSE 5 ["description" 1 Text, "schema" 2 Wrapped(1, &Message(&SCHEMA))];
    PROPERTIES 0 [] others 1 Message(&SCHEMA);
    SCHEMA 31 [
        "$ref" 1 Text, "format" 2 Text, "title" 3 Text, "description" 4 Text, "default" 5 Any, "multipleOf" 6 Double,
        "maximum" 7 Double, "exclusiveMaximum" 8 Bool, "minimum" 9 Double, "exclusiveMinimum" 10 Bool,
        "maxLength" 11 Int, "minLength" 12 Int, "pattern" 13 Text, "maxItems" 14 Int, "minItems" 15 Int,
        "uniqueItems" 16 Bool, "maxProperties" 17 Int, "minProperties" 18 Int, "required" 19 TEXTS, "enum" 20 ANYS,
        "additionalProperties" 21 Choice(additional), "type" 22 Wrapped(1, &TEXTS),
        "items" 23 Wrapped(1, &Message(&SCHEMA)), "properties" 25 Message(&PROPERTIES),
    ];
}
