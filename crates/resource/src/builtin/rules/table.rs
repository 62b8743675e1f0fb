//! The table of rules. The rules of a type are parsed when they are first needed.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use machinery::types::{Container, GoBase, GoField, GoStruct, go_struct, has_struct};
use parking_lot::Mutex;

use super::super::source::{Line, Sources};
use super::conditional::Conditional;
use super::words::{self, Order, Rules};

pub struct Ruled {
    pub name: &'static str,
    /// The fields in the order of the struct, including those of embedded structs.
    pub fields: Vec<RuledField>,
    /// The rules that hold under a condition.
    pub conditional: Vec<Conditional>,
    pub object_name: Option<Box<Rules>>,
    /// The order of errors.
    pub order: Option<Order>,
    /// Whether the rules that tags of the kind's types declare are enforced.
    pub is_enforced: bool,
}

pub struct RuledField {
    pub go: &'static GoField,
    pub rules: Option<Box<Rules>>,
    inner: OnceLock<Option<&'static Ruled>>,
    table: &'static RuleTable,
}

impl RuledField {
    /// Whether the field is a map of structs.
    pub fn is_map(&self) -> bool {
        self.go.go_type.container == Container::Map
    }

    /// The struct of the field, or of its items.
    pub fn inner(&self) -> Option<&'static Ruled> {
        *self.inner.get_or_init(|| match self.go.go_type.base {
            GoBase::Struct(name) if self.go.go_type.container != Container::MapOfLists => self.table.of(name),
            _ => None,
        })
    }
}

/// The rules of all types.
pub struct RuleTable {
    sources: &'static Sources,
    lines: OnceLock<Lines>,
    known: Mutex<BTreeMap<&'static str, &'static Ruled>>,
}

impl RuleTable {
    pub const fn new(sources: &'static Sources) -> RuleTable {
        RuleTable { sources, lines: OnceLock::new(), known: Mutex::new(BTreeMap::new()) }
    }

    /// The rules of a struct by its name, such as `core.v1.Pod`.
    ///
    /// # Panics
    ///
    /// The table has an error; a test reads all of it.
    pub fn of(&'static self, name: &'static str) -> Option<&'static Ruled> {
        let found = self.known.lock().get(name).copied();
        found.or_else(|| {
            let lines = self.lines.get_or_init(|| Lines::parse(self).unwrap_or_else(|why| panic!("{why}")));
            let built = lines.build(go_struct(name)?).unwrap_or_else(|why| panic!("{why}"));
            Some(*self.known.lock().entry(name).or_insert(Box::leak(Box::new(built))))
        })
    }

    /// Parses the rules of all structs. The error is that of the first bad line.
    pub fn check(&'static self) -> Result<(), String> {
        let lines = Lines::parse(self)?;
        let mut structs = lines.by_struct.keys().filter_map(|name| go_struct(name));
        structs.try_for_each(|go| lines.build(go).map(drop))
    }
}

struct Lines {
    table: &'static RuleTable,
    /// The lines of each struct, with their places.
    by_struct: HashMap<&'static str, Vec<(Line, &'static str)>>,
    /// Packages, each with the package whose rules it also has.
    like: HashMap<&'static str, &'static str>,
}

impl Lines {
    fn parse(table: &'static RuleTable) -> Result<Lines, String> {
        let mut lines = Lines { table, by_struct: HashMap::new(), like: HashMap::new() };
        for (place, line) in table.sources.lines("rules.txt", |source| source.rules) {
            let error = |why: &str| format!("{place}: {why}: {line}");
            let (structs, rest) = line.split_once(' ').unwrap_or((line, ""));
            match rest.strip_prefix("like ") {
                Some(package) if structs.matches('.').count() == 1 => drop(lines.like.insert(structs, package)),
                Some(_) => return Err(error("unknown package")),
                None => {
                    for name in structs.split(',') {
                        if cfg!(debug_assertions) && !has_struct(name) {
                            return Err(error("unknown struct"));
                        }
                        lines.by_struct.entry(name).or_default().push((place, line));
                    }
                }
            }
        }
        Ok(lines)
    }

    fn build(&self, go: &'static GoStruct) -> Result<Ruled, String> {
        let mut ruled = Ruled {
            name: go.name,
            fields: vec![],
            conditional: vec![],
            object_name: None,
            order: None,
            is_enforced: false,
        };
        self.add_fields(go, &mut ruled)?;
        Ok(ruled)
    }

    /// Adds the fields of a struct, and those of the structs that it embeds, with their rules.
    fn add_fields(&self, go: &'static GoStruct, ruled: &mut Ruled) -> Result<(), String> {
        for field in &go.fields {
            match (field.go_type.container, field.go_type.base) {
                (Container::Embedded, GoBase::Struct(inner)) => {
                    go_struct(inner).map_or(Ok(()), |inner| self.add_fields(inner, ruled))?;
                }
                _ => {
                    let table = self.table;
                    ruled.fields.push(RuledField { go: field, rules: None, inner: OnceLock::new(), table });
                }
            }
        }
        let lines = |name: &str| self.by_struct.get(name).into_iter().flatten();
        if let Some((package, name)) = go.name.rsplit_once('.')
            && let Some(package) = self.like.get(package)
        {
            // errors in these lines are reported when the rules of that struct are parsed
            lines(&format!("{package}.{name}")).for_each(|(_, line)| drop(self.add(ruled, line)));
        }
        lines(go.name)
            .try_for_each(|(place, line)| self.add(ruled, line).map_err(|why| format!("{place}: {why}: {line}")))
    }

    /// Adds the rule of a line to those of its fields.
    fn add(&self, ruled: &mut Ruled, line: &'static str) -> Result<(), String> {
        let [_, fields, rule] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            return Err("no struct, field and rule".to_owned());
        };
        let own: Vec<&str> = ruled.fields.iter().map(|field| field.go.name).collect();
        for name in fields.split(',') {
            let mut named = vec![];
            match (name, rule) {
                (name, rule) if rule.starts_with("if ") || rule.starts_with("if@") => {
                    let of: Vec<&'static GoField> = ruled.fields.iter().map(|field| field.go).collect();
                    ruled.conditional.push(Conditional::parse(self.table.sources, &of, name, rule)?);
                }
                (".", "+enforced") => ruled.is_enforced = true,
                (".", rule) => {
                    let (word, fields) = rule.split_once(' ').unwrap_or((rule, ""));
                    if word != "order" {
                        return Err("unknown rule".to_owned());
                    }
                    let order = ruled.order.insert(words::order(self.table.sources, fields)?);
                    known(&own, order.iter().map(|(name, _)| *name))?;
                }
                (OBJECT_NAME, rule) => {
                    ruled.object_name.get_or_insert_default().add(self.table.sources, rule, fields)?
                }
                (name, rule) => {
                    let field = ruled.fields.iter_mut().find(|field| field.go.name == name).ok_or("unknown field")?;
                    let rules = field.rules.get_or_insert_default();
                    rules.add(self.table.sources, rule, fields)?;
                    known(&own, rules.declared.condition.iter().map(|(name, ..)| *name))?;
                    known(&own, rules.default.iter().flat_map(|default| &default.condition).map(|(name, _)| *name))?;
                    named.extend(rules.hides.iter().flat_map(|(_, names)| names));
                    named.extend(rules.order.iter().flatten().map(|(name, _)| name));
                    named.extend(rules.declared.unique.iter().flatten());
                    if !named.is_empty() {
                        let GoBase::Struct(inner) = field.go.go_type.base else { return Err("no struct".to_owned()) };
                        // by its names, since the rules of a struct that contains itself are not complete yet
                        known(&field_names(inner), named.into_iter().copied())?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The field that stands for the name of an object.
const OBJECT_NAME: &str = "metadata.name";

/// Rejects names that are neither fields nor names that only errors have.
fn known<'a>(fields: &[&str], mut named: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let is_known = |name: &str| name == "." || name.starts_with('~') || fields.contains(&name);
    if named.all(is_known) { Ok(()) } else { Err("unknown field".to_owned()) }
}

/// The fields of a struct, and of those that it embeds.
fn field_names(name: &str) -> Vec<&'static str> {
    let fields = go_struct(name).map_or(&[][..], |go| &go.fields);
    let names = fields.iter().map(|field| match (field.go_type.container, field.go_type.base) {
        (Container::Embedded, GoBase::Struct(inner)) => field_names(inner),
        _ => vec![field.name],
    });
    names.flatten().collect()
}
