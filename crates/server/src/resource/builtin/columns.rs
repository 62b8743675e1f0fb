//! The columns of shipped kinds in tables.

use machinery::{Map, Value, jsonpath};

/// A column and how its cell is made; the second argument is now, in microseconds.
pub struct ShippedColumn {
    pub name: &'static str,
    pub kind: &'static str,
    pub description: &'static str,
    pub cell: fn(&Value, i64) -> Value,
}

/// The description of columns that show the age.
pub const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

fn created(object: &Value) -> &str {
    object.str_at(&["metadata", "creationTimestamp"])
}

pub const AGE: ShippedColumn = ShippedColumn {
    name: "Age",
    kind: "string",
    description: AGE_DESCRIPTION,
    cell: |object, now| Value::from(jsonpath::columns::age(created(object), now)),
};

pub const CREATED_AT: ShippedColumn = ShippedColumn {
    name: "Created At",
    kind: "date",
    description: AGE_DESCRIPTION,
    cell: |object, _| Value::from(created(object)),
};

pub const DATA: ShippedColumn = ShippedColumn {
    name: "Data",
    kind: "string",
    description: "The number of entries",
    cell: |object, _| {
        let count = |field: &str| object.get(field).and_then(Value::as_object).map_or(0, Map::len);
        Value::Int(i64::try_from(count("data") + count("binaryData")).unwrap_or(i64::MAX))
    },
};

pub const PHASE: ShippedColumn = ShippedColumn {
    name: "Status",
    kind: "string",
    description: "The status of the namespace",
    cell: |object, _| Value::from(object.str_at(&["status", "phase"])),
};

pub const TYPE: ShippedColumn = ShippedColumn {
    name: "Type",
    kind: "string",
    description: "What the data is for",
    cell: |object, _| Value::from(object.str_at(&["type"])),
};
