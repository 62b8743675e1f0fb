//! The catalogue of built-in kinds: a row for each version of a kind, which knows the catalogue that it is in, and the rules and
//! columns that rows look up. Each table is parsed when it is first needed.

mod row;
mod table;

use std::sync::OnceLock;

use super::columns::ColumnTable;
use super::rules::RuleTable;
use super::source::Sources;
pub use row::{
    Availability, BuiltIn, Connect, FieldSource, Generation, GroupVersionKind, Key, Labels, OwnEndpoint,
    OwnSubresource, Shaped, StatusFacts, StatusMetadata,
};
pub use table::KindGroup;
use table::Table;

/// All built-in kinds.
pub struct Catalogue {
    sources: &'static Sources,
    rules: RuleTable,
    table: OnceLock<Table>,
    columns: OnceLock<ColumnTable>,
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Catalogue")
    }
}

impl Catalogue {
    pub const fn new(sources: &'static Sources) -> Catalogue {
        let rules = RuleTable::new(sources);
        Catalogue { sources, rules, table: OnceLock::new(), columns: OnceLock::new() }
    }

    /// Parses all tables, of which most rules are otherwise parsed when they are needed. The error is that of the first
    /// bad line.
    pub fn check(&'static self) -> Result<(), String> {
        self.rules.check()?;
        Table::parse(self)?;
        self.parse_columns().map(drop)
    }

    pub fn sources(&self) -> &'static Sources {
        self.sources
    }

    /// The rules of all types.
    pub fn rules(&'static self) -> &'static RuleTable {
        &self.rules
    }

    fn table(&'static self) -> &'static Table {
        self.table.get_or_init(|| Table::parse(self).unwrap_or_else(|why| panic!("{why}")))
    }

    /// Every version of every kind, in the order of discovery. The versions of a kind follow each other.
    pub fn rows(&'static self) -> &'static [BuiltIn] {
        &self.table().rows
    }

    /// Every group.
    pub fn groups(&'static self) -> &'static [KindGroup] {
        &self.table().groups
    }

    /// Every version of a built-in kind that is served by default. The newest version of a kind comes first.
    pub fn kinds(&'static self) -> impl Iterator<Item = &'static BuiltIn> + Clone {
        self.rows().iter().filter(|row| row.is_on_by_default())
    }

    pub(super) fn columns(&'static self) -> &'static ColumnTable {
        self.columns.get_or_init(|| self.parse_columns().unwrap_or_else(|why| panic!("{why}")))
    }

    fn parse_columns(&'static self) -> Result<ColumnTable, String> {
        ColumnTable::parse(self.sources, |kind| self.rows().iter().any(|row| row.table_name() == kind))
    }
}
