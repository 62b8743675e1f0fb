//! The table of rules. The rules of a type are parsed when they are first needed.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use machinery::types::{Container, GoBase, GoField, GoStruct, go_struct, has_struct};
use parking_lot::Mutex;

use super::words::{self, Order, Rules};

static TEXT: &str = include_str!("rules.txt");

/// A Go struct with its rules.
pub struct Ruled {
    pub name: &'static str,
    /// The fields in the order of the struct, including those of embedded structs.
    pub fields: Vec<RuledField>,
    /// The rules for the name of an object.
    pub object_name: Option<Box<Rules>>,
    /// The order of errors.
    pub order: Option<Order>,
    /// Whether the rules that tags of the kind's types declare are enforced.
    pub is_enforced: bool,
}

/// A field with its rules.
pub struct RuledField {
    pub go: &'static GoField,
    pub rules: Option<Box<Rules>>,
    inner: OnceLock<Option<&'static Ruled>>,
}

impl RuledField {
    /// Whether the field is a map of structs.
    pub fn is_map(&self) -> bool {
        self.go.go_type.container == Container::Map
    }

    /// The struct of the field, or of its items.
    pub fn inner(&self) -> Option<&'static Ruled> {
        *self.inner.get_or_init(|| match self.go.go_type.base {
            GoBase::Struct(name) if self.go.go_type.container != Container::MapOfLists => of(name),
            _ => None,
        })
    }
}

/// A struct by its name, such as `core.v1.Pod`.
///
/// # Panics
///
/// The table has an error; a test reads all of it.
pub fn of(name: &'static str) -> Option<&'static Ruled> {
    static TABLE: LazyLock<Lines> = LazyLock::new(|| Lines::of(TEXT).unwrap_or_else(|why| panic!("{why}")));
    static KNOWN: LazyLock<Mutex<HashMap<&'static str, &'static Ruled>>> = LazyLock::new(Mutex::default);
    let known = || KNOWN.lock();
    let found = known().get(name).copied();
    found.or_else(|| {
        let built = TABLE.build(go_struct(name)?).unwrap_or_else(|why| panic!("{why}"));
        Some(*known().entry(name).or_insert(Box::leak(Box::new(built))))
    })
}

/// The lines of the table.
#[derive(Default)]
pub(super) struct Lines {
    /// The lines of each struct, with their numbers.
    pub(super) by_struct: HashMap<&'static str, Vec<(usize, &'static str)>>,
    /// Packages, each with the package whose rules it also has.
    like: HashMap<&'static str, &'static str>,
}

impl Lines {
    pub(super) fn of(text: &'static str) -> Result<Lines, String> {
        let mut lines = Lines::default();
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let error = |why: &str| format!("rules.txt:{}: {why}: {line}", i + 1);
            let (structs, rest) = line.split_once(' ').unwrap_or((line, ""));
            match rest.strip_prefix("like ") {
                Some(package) if structs.matches('.').count() == 1 => drop(lines.like.insert(structs, package)),
                Some(_) => return Err(error("unknown package")),
                None => {
                    for name in structs.split(',') {
                        if cfg!(debug_assertions) && !has_struct(name) {
                            return Err(error("unknown struct"));
                        }
                        lines.by_struct.entry(name).or_default().push((i + 1, line));
                    }
                }
            }
        }
        Ok(lines)
    }

    pub(super) fn build(&self, go: &'static GoStruct) -> Result<Ruled, String> {
        let mut ruled = Ruled { name: go.name, fields: vec![], object_name: None, order: None, is_enforced: false };
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
                _ => ruled.fields.push(RuledField { go: field, rules: None, inner: OnceLock::new() }),
            }
        }
        let lines = |name: &str| self.by_struct.get(name).into_iter().flatten();
        if let Some((package, name)) = go.name.rsplit_once('.')
            && let Some(package) = self.like.get(package)
        {
            // errors in these lines are reported when the rules of that struct are parsed
            lines(&format!("{package}.{name}")).for_each(|(_, line)| drop(add(ruled, line)));
        }
        lines(go.name)
            .try_for_each(|(number, line)| add(ruled, line).map_err(|why| format!("rules.txt:{number}: {why}: {line}")))
    }
}

/// The field that stands for the name of an object.
const OBJECT_NAME: &str = "metadata.name";

/// Adds the rule of a line to those of its fields.
fn add(ruled: &mut Ruled, line: &'static str) -> Result<(), String> {
    let [_, fields, rule] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        return Err("no struct, field and rule".to_owned());
    };
    let own: Vec<&str> = ruled.fields.iter().map(|field| field.go.name).collect();
    for name in fields.split(',') {
        let mut named = vec![];
        match (name, rule) {
            (".", "+enforced") => ruled.is_enforced = true,
            (".", rule) => {
                let (word, fields) = rule.split_once(' ').unwrap_or((rule, ""));
                if word != "order" {
                    return Err("unknown rule".to_owned());
                }
                let order = ruled.order.insert(words::order(fields)?);
                known(&own, order.iter().map(|(name, _)| *name))?;
            }
            (OBJECT_NAME, rule) => ruled.object_name.get_or_insert_default().add(rule, fields)?,
            (name, rule) => {
                let field = ruled.fields.iter_mut().find(|field| field.go.name == name).ok_or("unknown field")?;
                let rules = field.rules.get_or_insert_default();
                rules.add(rule, fields)?;
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
