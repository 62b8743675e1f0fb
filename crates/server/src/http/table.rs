//! Tables and partial objects (api-machinery 15, crd.md 15).

use machinery::{Status, Value};

use super::negotiate::Accepted;
use crate::clock;
use crate::resource::Column;
use crate::verbs::Request;

const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// `PartialObjectMetadata` of an object.
pub fn partial(object: &Value, accepted: &Accepted) -> Value {
    [
        ("kind", Value::from("PartialObjectMetadata")),
        ("apiVersion", Value::from(accepted.shape_version())),
        ("metadata", object.get("metadata").cloned().unwrap_or_default()),
    ]
    .into()
}

/// What each row says about its object.
enum Include {
    None,
    Metadata,
    Object,
}

/// A table that is about to be filled.
pub struct Table<'a> {
    accepted: &'a Accepted,
    columns: Vec<Column>,
    paths: Vec<machinery::jsonpath::JsonPath>,
    include: Include,
}

impl<'a> Table<'a> {
    pub fn new(request: &Request, accepted: &'a Accepted) -> Result<Table<'a>, Status> {
        let include = match request.query().get("includeObject").unwrap_or_default() {
            "" | "Metadata" => Include::Metadata,
            "Object" => Include::Object,
            "None" => Include::None,
            other => {
                let quoted = machinery::value::quote(other);
                return Err(Status::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {quoted}: must be 'Metadata', 'Object', 'None', or empty"
                )));
            }
        };
        let mut columns = vec![];
        let mut paths = vec![];
        for column in declared(request) {
            // a path that can't be parsed cuts the table
            let Ok(path) = machinery::jsonpath::JsonPath::parse(&column.json_path) else { break };
            columns.push(column);
            paths.push(path);
        }
        Ok(Table { accepted, columns, paths, include })
    }

    fn definitions(&self) -> Value {
        let definition = |name: &str, kind: &str, format: &str, description: &str, priority: i64| -> Value {
            [
                ("name", Value::from(name)),
                ("type", Value::from(kind)),
                ("format", Value::from(format)),
                ("description", Value::from(description)),
                ("priority", Value::Int(priority)),
            ]
            .into()
        };
        let mut out = vec![definition("Name", "string", "name", NAME_DESCRIPTION, 0)];
        for column in &self.columns {
            let description = match column.description.as_str() {
                "" => format!("Custom resource definition column (in JSONPath format): {}", column.json_path),
                given => given.to_owned(),
            };
            out.push(definition(&column.name, &column.kind, &column.format, &description, column.priority));
        }
        Value::Array(out)
    }

    fn row(&self, object: &Value) -> Value {
        let now = clock::now_seconds();
        let mut cells = vec![Value::from(object.str_at(&["metadata", "name"]))];
        for (column, path) in self.columns.iter().zip(&self.paths) {
            cells.push(machinery::jsonpath::columns::cell(&column.kind, path, object, now));
        }
        let shown = match self.include {
            Include::None => Value::Null,
            Include::Metadata => partial(object, self.accepted),
            Include::Object => object.clone(),
        };
        [("cells", Value::Array(cells)), ("object", shown)].into()
    }

    fn table(&self, metadata: Value, definitions: Value, rows: Vec<Value>) -> Value {
        [
            ("kind", Value::from("Table")),
            ("apiVersion", Value::from(self.accepted.shape_version())),
            ("metadata", metadata),
            ("columnDefinitions", definitions),
            ("rows", Value::Array(rows)),
        ]
        .into()
    }

    pub fn of_object(&self, object: &Value) -> Value {
        self.table(self.meta_of(object), self.definitions(), vec![self.row(object)])
    }

    /// An event of a watch: only the first one shows what the columns are.
    pub fn of_event(&self, object: &Value, first: bool) -> Value {
        let definitions = if first { self.definitions() } else { Value::Null };
        self.table(self.meta_of(object), definitions, vec![self.row(object)])
    }

    fn meta_of(&self, object: &Value) -> Value {
        let mut metadata = Value::object();
        if let Some(version) = object.at(&["metadata", "resourceVersion"]) {
            metadata.set_at(&["resourceVersion"], version.clone());
        }
        metadata
    }

    pub fn of_list(&self, objects: &[Value], metadata: Value) -> Value {
        self.table(metadata, self.definitions(), objects.iter().map(|object| self.row(object)).collect())
    }
}

/// The columns behind Name; Age where none are declared.
fn declared(request: &Request) -> Vec<Column> {
    if !request.version.columns.is_empty() {
        return request.version.columns.clone();
    }
    vec![Column {
        name: "Age".into(),
        kind: "date".into(),
        format: Default::default(),
        description: AGE_DESCRIPTION.into(),
        priority: 0,
        json_path: ".metadata.creationTimestamp".into(),
    }]
}
