//! The columns of built-in kinds in tables, which are data: the tables `columns.txt`.

mod cell;
pub mod parts;
pub mod selectors;

use machinery::{Release, Value, jsonpath};

use super::source::Sources;
pub use cell::Cell;
pub use selectors::selector_text;

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

pub const AGE_DESCRIPTION: &str = "Time at which the server created the object, in UTC.";

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

/// The columns of all kinds.
pub struct ColumnTable {
    sources: &'static Sources,
    kinds: Vec<KindColumns>,
    shared: Vec<BuiltInColumn>,
    /// The columns of kinds that the file does not name.
    default: Vec<BuiltInColumn>,
}

/// The group and the kind, as tables name them.
type TableName = (&'static str, &'static str);

/// The columns of some kinds, in every release or in those before one.
struct KindColumns {
    kinds: Vec<TableName>,
    before: Option<Release>,
    columns: Vec<BuiltInColumn>,
}

impl ColumnTable {
    /// Parses the tables; `is_kind` says whether there is a kind of that group and name. The error names the file and the
    /// line.
    pub fn parse(sources: &'static Sources, is_kind: impl Fn(TableName) -> bool) -> Result<ColumnTable, String> {
        let [age, created_at, name] = common();
        let (default, shared) = (vec![age.clone()], vec![age, created_at, name]);
        let mut table = ColumnTable { sources, kinds: vec![], shared, default };
        for (place, line) in sources.lines("columns.txt", |source| source.columns) {
            table.read(line, &is_kind).map_err(|why| format!("{place}: {why}"))?;
        }
        Ok(table)
    }

    fn read(&mut self, line: &'static str, is_kind: &impl Fn(TableName) -> bool) -> Result<(), String> {
        let Some(line) = line.strip_prefix(' ') else {
            self.kinds.extend((line != "shared").then(|| KindColumns::parse(line, is_kind)).transpose()?);
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
                let cell = Cell::parse(self.sources, cell)?;
                BuiltInColumn { name, kind: "", format: "", description, priority: 0, cell }.of_type(kind)
            }
            _ => Err("no name, type, cell and description".to_owned()),
        }
    }

    pub fn of(&self, kind: TableName, release: Release) -> &[BuiltInColumn] {
        let is_served = |columns: &&KindColumns| columns.before.is_none_or(|before| release < before);
        self.of_kind(kind).find(is_served).map_or(&self.default, |columns| &columns.columns)
    }

    /// Whether a kind has kube-apiserver's default columns.
    pub fn has_default_columns(&self, kind: TableName) -> bool {
        self.of_kind(kind).flat_map(|columns| &columns.columns).any(|column| column.name == CREATED_AT)
    }

    fn of_kind(&self, kind: TableName) -> impl Iterator<Item = &KindColumns> {
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
    fn parse(line: &'static str, is_kind: &impl Fn(TableName) -> bool) -> Result<KindColumns, String> {
        let mut columns = KindColumns { kinds: vec![], before: None, columns: vec![] };
        for word in line.split(' ') {
            match (word.strip_prefix("before="), word.split_once('/')) {
                (Some(release), _) => columns.before = Some(release.parse().map_err(|_| "no release")?),
                (None, Some(kind)) if is_kind(kind) => columns.kinds.push(kind),
                _ => return Err(format!("unknown kind {word}")),
            }
        }
        Ok(columns)
    }
}
