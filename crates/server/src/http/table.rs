//! The shapes `Table` and `PartialObjectMetadata`.

use std::sync::Arc;

use base::clock::WorkspaceClock;
use base::{clock, task};
use kinds::annotated_fields;
use machinery::jsonpath::columns::RowVisits;
use machinery::jsonpath::{self, JsonPath};
use machinery::{Map, Result, Status, Value, json};
use resource::Column;
use resource::builtin::{AGE_DESCRIPTION, BuiltIn, BuiltInColumn, NAME_DESCRIPTION};

use super::negotiate::Accepted;
use crate::verbs::{Request, Subresource};

/// `PartialObjectMetadata` of an object.
pub fn partial(object: &Value, accepted: &Accepted) -> Value {
    let version = accepted.shape_version();
    json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": (metadata(object))})
}

/// The metadata of an object, without annotations that stand for fields of another version.
fn metadata(object: &Value) -> Value {
    let mut metadata = object.get("metadata").cloned().unwrap_or_default();
    for annotation in annotated_fields(object.str_at(&["apiVersion"]), object.str_at(&["kind"])) {
        let removed = metadata.remove_at(&["annotations", annotation]);
        if removed.is_some() && metadata.get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty) {
            metadata.remove_at(&["annotations"]);
        }
    }
    metadata
}

/// The annotation of the bookmark after the initial events of a watch.
const INITIAL_EVENTS_END: [&str; 3] = ["metadata", "annotations", "k8s.io/initial-events-end"];

/// The part of the object that each row includes: `?includeObject=`.
enum Include {
    None,
    Metadata,
    Object,
}

/// A column and the source of its cells.
struct Cells {
    kind: String,
    definition: Value,
    source: CellSource,
}

enum CellSource {
    Path(JsonPath),
    Function(fn(&Value, i64) -> Value),
    BuiltIn(&'static BuiltInColumn),
}

/// The definition of a column.
fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

impl Cells {
    fn new(kind: &str, definition: Value, source: CellSource) -> Cells {
        Cells { kind: kind.to_owned(), definition, source }
    }

    fn of_column(column: &Column) -> Option<Cells> {
        let description = match column.description.as_str() {
            "" => format!("Custom resource definition column (in JSONPath format): {}", column.json_path),
            given => given.to_owned(),
        };
        let definition = definition(&column.name, &column.kind, &column.format, &description, column.priority);
        Some(Cells::new(&column.kind, definition, CellSource::Path(JsonPath::parse(&column.json_path).ok()?)))
    }

    fn of_built_in(column: &'static BuiltInColumn) -> Cells {
        let definition = definition(column.name, column.kind, column.format, column.description, column.priority);
        Cells::new(column.kind, definition, CellSource::BuiltIn(column))
    }

    fn computed(name: &str, kind: &str, description: &str, cell: fn(&Value, i64) -> Value) -> Cells {
        Cells::new(kind, definition(name, kind, "", description, 0), CellSource::Function(cell))
    }

    fn cell(&self, object: &Value, now: i64, visits: &mut RowVisits) -> Value {
        match &self.source {
            CellSource::Path(path) => jsonpath::columns::cell(&self.kind, path, object, now, visits),
            CellSource::Function(cell) => cell(object, now),
            CellSource::BuiltIn(column) => column.cell(object, now),
        }
    }
}

/// The columns after Name.
fn cells(request: &Request) -> Vec<Cells> {
    if request.subresource == Subresource::Scale {
        // for custom resources, kube-apiserver looks the number up in JSON, which omits a zero in `spec`
        let desired: fn(&Value, i64) -> Value = match request.resource.built_in() {
            Some(_) => |object, _| object.at(&["spec", "replicas"]).cloned().unwrap_or(Value::Int(0)),
            None => |object, _| count(object, "spec"),
        };
        return vec![
            Cells::computed("Desired", "integer", "Number of desired replicas", desired),
            Cells::computed("Available", "integer", "Number of actual replicas", |o, _| count(o, "status")),
            // kube-apiserver's handlers of built-in kinds make this table themselves, with another type for the age
            Cells::age(if request.resource.built_in().is_some() { "string" } else { "date" }),
        ];
    }
    if let Some(built_in) = request.resource.built_in() {
        return built_in.columns_in(request.resource.release).iter().map(Cells::of_built_in).collect();
    }
    if request.version.columns.is_empty() {
        return vec![Cells::age("date")];
    }
    // a path that does not parse drops its column and those after it
    request.version.columns.iter().map_while(Cells::of_column).collect()
}

fn count(object: &Value, part: &str) -> Value {
    object.at(&[part, "replicas"]).cloned().unwrap_or_default()
}

impl Cells {
    fn age(kind: &str) -> Cells {
        let age = |object: &Value, now| {
            Value::from(jsonpath::columns::age(object.str_at(&["metadata", "creationTimestamp"]), now))
        };
        Cells::computed("Age", kind, AGE_DESCRIPTION, age)
    }
}

/// The columns and options of a table.
pub struct Table {
    accepted: Accepted,
    columns: Vec<Cells>,
    /// Whether the first column is the name.
    has_name: bool,
    name_format: &'static str,
    include: Include,
    built_in: Option<&'static BuiltIn>,
    /// Whether the kind has only the default columns, in which case `rows` of an empty table is null.
    has_null_rows: bool,
    /// The clock of the request, whose response is made when its task may be gone.
    clock: Option<Arc<WorkspaceClock>>,
}

impl Table {
    /// The table of a request; fails if `includeObject` is invalid.
    pub fn new(request: &Request, accepted: &Accepted) -> Result<Table> {
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
        let has_name = request.resource.built_in().is_none_or(|built_in| built_in.name_column);
        let has_null_rows = request.version.built_in.is_some_and(BuiltIn::has_null_rows);
        let is_own_scale = request.subresource == Subresource::Scale && request.resource.built_in().is_some();
        let name_format = if is_own_scale { "" } else { "name" };
        let built_in = request.resource.built_in().filter(|_| request.subresource != Subresource::Scale);
        let columns = cells(request);
        let (accepted, clock) = (*accepted, clock::current());
        Ok(Table { accepted, columns, has_name, name_format, include, built_in, has_null_rows, clock })
    }

    fn definitions(&self) -> Value {
        let name = definition("Name", "string", self.name_format, NAME_DESCRIPTION, 0);
        // kube-apiserver has cells without a definition
        let defined = self.columns.iter().map(|cells| &cells.definition);
        let defined = defined.filter(|definition| !definition.str_at(&["name"]).is_empty()).cloned();
        self.has_name.then_some(name).into_iter().chain(defined).collect()
    }

    pub fn row(&self, object: &Value) -> Value {
        let now = clock::micros_of(self.clock.as_deref());
        let name = object.str_at(&["metadata", "name"]);
        let name = match self.built_in.is_some_and(|built_in| built_in.is_default(object)) {
            true => Value::from(format!("{name} (default)")),
            false => Value::from(name),
        };
        let name = self.has_name.then_some(name).into_iter();
        let mut visits = RowVisits::default();
        let cells: Value = name.chain(self.columns.iter().map(|c| c.cell(object, now, &mut visits))).collect();
        if visits.are_many() {
            task::give_way();
        }
        let shown = match self.include {
            // the bookmark after the initial events is recognized by its annotation
            Include::None if object.at(&INITIAL_EVENTS_END).is_none() => Value::Null,
            Include::None | Include::Metadata => partial(object, &self.accepted),
            Include::Object => object.clone(),
        };
        let mut row: Value = [("cells", cells), ("object", shown)].into();
        if let Some(conditions) = self.built_in.and_then(|built_in| (built_in.behaviour.row_conditions)(object)) {
            row.set_at(&["conditions"], conditions);
        }
        row
    }

    fn table(&self, metadata: Value, definitions: Value, rows: Vec<Value>) -> Value {
        let rows = if self.has_null_rows && rows.is_empty() { Value::Null } else { Value::Array(rows) };
        let version = self.accepted.shape_version();
        json!({
            "kind": "Table", "apiVersion": version, "metadata": metadata, "columnDefinitions": definitions, "rows": rows
        })
    }

    pub fn of_object(&self, object: &Value) -> Value {
        self.table(self.meta_of(object), self.definitions(), vec![self.row(object)])
    }

    /// The table of a watch event. Only the table of the first event has column definitions.
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

    pub fn around(&self, metadata: Value, rows: Value) -> Value {
        let rows = if let Value::Array(rows) = rows { rows } else { vec![] };
        self.table(metadata, self.definitions(), rows)
    }
}
