//! The interface to the crate of the kinds: the tables and the functions of each group.

use machinery::{Map, Value};

use super::behaviour::Behaviour;
use schema::at::{At, CheckStage};

/// A check of a place, which has no value if the field is absent.
pub type Check = fn(At);

/// Whether fields of a value are not checked because kube-apiserver has already rejected the whole value. The first
/// argument is the struct that has the value as a field or as an item of a list.
pub type Condition = fn(&Map, &Value) -> bool;

/// A function that makes a cell; the second argument is the current time in microseconds.
pub type CellFunction = fn(&Value, i64) -> Value;

/// Functions by the names that the tables give them.
pub type Named<F> = &'static [(&'static str, F)];

/// The tables and the functions of the kinds of a group.
pub struct GroupSource {
    /// The folder of the tables, as errors name it.
    pub folder: &'static str,
    /// The facts of the kinds.
    pub kinds: &'static str,
    /// The rules of their types.
    pub rules: &'static str,
    pub columns: &'static str,
    pub behaviours: &'static [Behaviour],
    pub checks: Named<Check>,
}

impl GroupSource {
    pub const EMPTY: GroupSource =
        GroupSource { folder: "", kinds: "", rules: "", columns: "", behaviours: &[], checks: &[] };
}

/// The sources of all groups.
pub struct Sources {
    /// In the order of discovery.
    pub groups: &'static [GroupSource],
    /// Lists the types of kube-apiserver's scheme that no group has: a line for each `apiVersion`, with the types. One with `*` has
    /// a list.
    pub scheme: &'static str,
    /// The stages of checks that an order can name, besides those of every kind.
    pub stages: &'static [CheckStage],
    /// The conditions under which rules do not apply.
    pub conditions: Named<Condition>,
    /// The functions that make cells of tables.
    pub cells: Named<CellFunction>,
}

impl Sources {
    /// The lines of a table of all groups that are not comments, each with its place.
    pub(super) fn lines(
        &self,
        file: &'static str,
        text: fn(&GroupSource) -> &'static str,
    ) -> impl Iterator<Item = (Line, &'static str)> + '_ {
        self.groups.iter().flat_map(move |source| {
            let lines = (1..).zip(text(source).lines()).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
            lines.map(move |(number, line)| (Line { folder: source.folder, file, number }, line))
        })
    }

    /// The behaviour of a version of a kind: its own, or that of the kind.
    pub(super) fn behaviour_of(&self, group: &str, api_version: &str, kind: &str) -> &'static Behaviour {
        static NONE: Behaviour = Behaviour::of("");
        let of_kind = |entry: &'static Behaviour| Some((entry.of.strip_suffix(kind)?.strip_suffix('/')?, entry));
        let found =
            |wanted: &str| self.behaviours().filter_map(of_kind).find(|(of, _)| *of == wanted).map(|(_, entry)| entry);
        found(api_version).or_else(|| found(group)).unwrap_or(&NONE)
    }

    pub fn behaviours(&self) -> impl Iterator<Item = &'static Behaviour> {
        self.groups.iter().flat_map(|source| source.behaviours)
    }

    pub(super) fn check(&self, name: &str) -> Option<Check> {
        self.groups.iter().find_map(|source| by_name(source.checks, name))
    }

    pub(super) fn stage(&self, name: &str) -> Option<CheckStage> {
        CheckStage::NAMED.iter().chain(self.stages).copied().find(|stage| stage.name() == name)
    }

    pub(super) fn condition(&self, name: &str) -> Option<Condition> {
        by_name(self.conditions, name)
    }

    pub(super) fn cell(&self, name: &str) -> Option<CellFunction> {
        by_name(self.cells, name)
    }
}

fn by_name<F: Copy + 'static>(functions: Named<F>, name: &str) -> Option<F> {
    functions.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
}

/// The place of a line of a table, as errors name it.
#[derive(Clone, Copy)]
pub struct Line {
    folder: &'static str,
    file: &'static str,
    number: usize,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}:{}", self.folder, self.file, self.number)
    }
}
