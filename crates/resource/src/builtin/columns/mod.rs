//! The columns of built-in kinds in tables, which are data: `columns.txt`.

mod autoscalers;
mod cell;
mod events;
mod evictions;
mod functions;
mod objects;
mod parts;
mod pod_cells;
mod pools;
mod selectors;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use machinery::{Release, Value, jsonpath};

use super::autoscaling_versions::FIELDS_OF_V2;
use super::workloads::TEMPLATE_GENERATION;
use super::{BuiltIn, table};
use cell::Cell;

pub use selectors::selector_text;

static TEXT: &str = include_str!("columns.txt");

static TABLE: LazyLock<ColumnTable> = LazyLock::new(|| ColumnTable::parse(TEXT).unwrap_or_else(|why| panic!("{why}")));

/// A column of a table.
#[derive(Clone)]
pub struct BuiltInColumn {
    pub name: &'static str,
    pub kind: &'static str,
    pub format: &'static str,
    pub description: &'static str,
    /// Columns above 0 are only shown in wide output.
    pub priority: i64,
    cell: Cell,
}

impl BuiltInColumn {
    /// The cell of an object; `now` is in microseconds.
    pub fn cell(&self, object: &Value, now: i64) -> Value {
        self.cell.value(object, now)
    }
}

/// The description of columns that show the age.
pub const AGE_DESCRIPTION: &str = "Time at which the server created the object, in UTC.";

/// The description of columns that show the name.
pub const NAME_DESCRIPTION: &str = "Name of the object, unique among the objects of its resource in one namespace.";

const CREATED_AT: &str = "Created At";

/// The columns that tables of custom resources have, too.
fn common() -> [BuiltInColumn; 3] {
    let column = |name, kind, description, cell: fn(&Value, i64) -> Value| BuiltInColumn {
        name,
        kind,
        format: "",
        description,
        priority: 0,
        cell: Cell::of(cell),
    };
    [
        column("Age", "string", AGE_DESCRIPTION, |object, now| {
            Value::from(jsonpath::columns::age(created(object), now))
        }),
        column(CREATED_AT, "date", AGE_DESCRIPTION, |object, _| Value::from(created(object))),
        column("Name", "string", NAME_DESCRIPTION, |object, _| Value::from(object.str_at(&["metadata", "name"]))),
    ]
}

fn created(object: &Value) -> &str {
    object.str_at(&["metadata", "creationTimestamp"])
}

impl BuiltIn {
    /// The columns of tables besides the name, in a release.
    pub fn columns_in(&self, release: Release) -> &'static [BuiltInColumn] {
        let is_served = |columns: &&KindColumns| columns.before.is_none_or(|before| release < before);
        TABLE.of(self).find(is_served).map_or(&TABLE.default, |columns| &columns.columns)
    }

    /// Whether `rows` of an empty table is null, as it is for all kinds with kube-apiserver's default columns.
    pub fn has_null_rows(&self) -> bool {
        TABLE.of(self).flat_map(|columns| &columns.columns).any(|column| column.name == CREATED_AT)
    }
}

struct ColumnTable {
    kinds: Vec<KindColumns>,
    shared: Vec<BuiltInColumn>,
    /// The columns of kinds that the file does not name.
    default: Vec<BuiltInColumn>,
}

/// The columns of some kinds, in every release or in those before one.
struct KindColumns {
    kinds: Vec<(&'static str, &'static str)>,
    before: Option<Release>,
    columns: Vec<BuiltInColumn>,
}

impl ColumnTable {
    /// The error names the file and the line.
    fn parse(text: &'static str) -> Result<ColumnTable, String> {
        let [age, created_at, name] = common();
        let mut table = ColumnTable { kinds: vec![], shared: vec![age.clone(), created_at, name], default: vec![age] };
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        for (number, line) in lines {
            table.read(line).map_err(|why| format!("columns.txt:{number}: {why}"))?;
        }
        Ok(table)
    }

    fn read(&mut self, line: &'static str) -> Result<(), String> {
        let Some(line) = line.strip_prefix(' ') else {
            self.kinds.extend((line != "shared").then(|| KindColumns::parse(line)).transpose()?);
            return Ok(());
        };
        let column = self.column(line)?;
        match self.kinds.last_mut() {
            Some(kinds) => kinds.columns.push(column),
            None => self.shared.push(column),
        }
        Ok(())
    }

    fn column(&self, line: &'static str) -> Result<BuiltInColumn, String> {
        let parts: Vec<&str> = line.splitn(4, ';').map(str::trim).collect();
        let shared = |name| self.shared.iter().find(|column| column.name == name).cloned().ok_or("no shared column");
        match parts[..] {
            [name] => Ok(shared(name)?),
            [name, kind] => shared(name)?.of_type(kind),
            [name, kind, cell, description] => {
                let cell = Cell::parse(cell)?;
                BuiltInColumn { name, kind: "", format: "", description, priority: 0, cell }.of_type(kind)
            }
            _ => Err("no name, type, cell and description".to_owned()),
        }
    }

    fn of(&self, built_in: &BuiltIn) -> impl Iterator<Item = &KindColumns> {
        let kind = (group_name(built_in), built_in.kind);
        self.kinds.iter().filter(move |columns| columns.kinds.contains(&kind))
    }
}

impl BuiltInColumn {
    fn of_type(self, words: &'static str) -> Result<BuiltInColumn, String> {
        let (kind, words) = words.split_once(' ').unwrap_or((words, ""));
        if !["string", "integer", "boolean"].contains(&kind) {
            return Err(format!("unknown type {kind}"));
        }
        let mut column = BuiltInColumn { kind, ..self };
        for word in words.split_terminator(' ') {
            match word {
                "name" => column.format = word,
                "wide" => column.priority = 1,
                _ => return Err(format!("unknown word {word}")),
            }
        }
        Ok(column)
    }
}

impl KindColumns {
    fn parse(line: &'static str) -> Result<KindColumns, String> {
        let mut columns = KindColumns { kinds: vec![], before: None, columns: vec![] };
        for word in line.split(' ') {
            let named = |row: &&BuiltIn| word.split_once('/') == Some((group_name(row), row.kind));
            match (word.strip_prefix("before="), table::rows().iter().find(named)) {
                (Some(release), _) => columns.before = Some(release.parse().map_err(|_| "no release")?),
                (None, Some(row)) => columns.kinds.push((group_name(row), row.kind)),
                (None, None) => return Err(format!("unknown kind {word}")),
            }
        }
        Ok(columns)
    }
}

/// The group of a kind; that of the core group, which has no name, is its version.
fn group_name(row: &BuiltIn) -> &'static str {
    if row.group.is_empty() { row.version } else { row.group }
}

/// The annotations that stand for fields which a version of a kind does not have. kube-apiserver makes tables and
/// `PartialObjectMetadata` from its internal form, in which they are fields.
pub fn annotated_fields(api_version: &str, kind: &str) -> &'static [&'static str] {
    match (api_version, kind) {
        ("apps/v1", "DaemonSet") => &[TEMPLATE_GENERATION],
        ("autoscaling/v1", "HorizontalPodAutoscaler") => &FIELDS_OF_V2,
        _ => &[],
    }
}
