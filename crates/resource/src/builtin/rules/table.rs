//! The table of rules, which is read type by type, when a rule of the type is first looked up.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use machinery::types::{Container, GoBase, GoField, GoStruct, go_struct, has_struct};

use super::words::{self, Order, Rules};

static TEXT: &str = include_str!("rules.txt");

/// A Go struct with its rules.
pub struct Ruled {
    pub name: &'static str,
    /// In the order of the struct, with those of structs that it embeds.
    pub fields: Vec<RuledField>,
    /// The rules of the name of an object.
    pub object_name: Option<Box<Rules>>,
    /// The order of errors.
    pub order: Option<Order>,
    /// Whether the tags of the kind's types count.
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
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known().get(name).copied();
    found.or_else(|| {
        let built = TABLE.build(go_struct(name)?).unwrap_or_else(|why| panic!("{why}"));
        Some(*known().entry(name).or_insert(Box::leak(Box::new(built))))
    })
}

/// A line of the table.
struct Line {
    number: usize,
    text: &'static str,
    fields: &'static str,
    rule: &'static str,
}

/// The lines of the table.
#[derive(Default)]
struct Lines {
    by_struct: HashMap<&'static str, Vec<Line>>,
    /// Packages, and those whose rules they have as well.
    like: HashMap<&'static str, &'static str>,
}

impl Lines {
    fn of(text: &'static str) -> Result<Lines, String> {
        let mut lines = Lines::default();
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let mut parts = line.splitn(3, ' ');
            let (Some(structs), Some(fields), Some(rule)) = (parts.next(), parts.next(), parts.next()) else {
                return Err(format!("rules.txt:{}: no struct, field and rule: {line}", i + 1));
            };
            if fields == "like" {
                if structs.matches('.').count() != 1 || rule.matches('.').count() != 1 {
                    return Err(format!("rules.txt:{}: unknown package: {line}", i + 1));
                }
                lines.like.insert(structs, rule);
                continue;
            }
            for name in structs.split(',') {
                let number = i + 1;
                if !has_struct(name) {
                    return Err(format!("rules.txt:{number}: unknown struct: {line}"));
                }
                lines.by_struct.entry(name).or_default().push(Line { number, text: line, fields, rule });
            }
        }
        Ok(lines)
    }

    fn build(&self, go: &'static GoStruct) -> Result<Ruled, String> {
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
        let stable = go.name.rsplit_once('.').and_then(|(package, name)| Some((*self.like.get(package)?, name)));
        if let Some((package, name)) = stable {
            for line in self.by_struct.get(&*format!("{package}.{name}")).into_iter().flatten() {
                // the lines are checked where they are about that struct
                line.fields.split(',').for_each(|field| drop(add(ruled, field, line)));
            }
        }
        for line in self.by_struct.get(go.name).into_iter().flatten() {
            line.fields.split(',').try_for_each(|field| add(ruled, field, line))?;
        }
        Ok(())
    }
}

/// The field that stands for the name of an object.
const OBJECT_NAME: &str = "metadata.name";

/// Adds the rule of a line about one of its fields.
fn add(ruled: &mut Ruled, name: &str, line: &Line) -> Result<(), String> {
    let error = |why: &str| format!("rules.txt:{}: {why}: {}", line.number, line.text);
    if name == "." {
        match line.rule {
            "+enforced" => ruled.is_enforced = true,
            rule => ruled.order = Some(words::order(rule).ok_or_else(|| error("unknown rule"))?),
        }
        let named = |name: &str| ruled.fields.iter().any(|field| field.go.name == name);
        return is_order(ruled.order.as_ref(), named).then_some(()).ok_or_else(|| error("unknown field"));
    }
    if name == OBJECT_NAME {
        return ruled.object_name.get_or_insert_default().add(line.rule, line.fields).map_err(|why| error(&why));
    }
    let field = ruled.fields.iter_mut().find(|field| field.go.name == name).ok_or_else(|| error("unknown field"))?;
    let rules = field.rules.get_or_insert_default();
    rules.add(line.rule, line.fields).map_err(|why| error(&why))?;
    let GoBase::Struct(inner) = field.go.go_type.base else {
        return rules.order.is_none().then_some(()).ok_or_else(|| error("no struct"));
    };
    let hidden = rules.hides.iter().flat_map(|(_, names)| names.iter().copied());
    let named = |name: &str| has_field(inner, name);
    let is_known = hidden.into_iter().all(named) && is_order(rules.order.as_ref(), named);
    is_known.then_some(()).ok_or_else(|| error("unknown field"))
}

/// Whether an order names fields, besides those that only errors have.
fn is_order(order: Option<&Order>, named: impl Fn(&str) -> bool) -> bool {
    order.into_iter().flatten().all(|(name, _)| *name == "." || name.starts_with('~') || named(name))
}

/// Whether a struct has a field, or embeds one that has it.
fn has_field(name: &str, field: &str) -> bool {
    go_struct(name).is_some_and(|go| {
        go.fields.iter().any(|known| match (known.go_type.container, known.go_type.base) {
            (Container::Embedded, GoBase::Struct(inner)) => has_field(inner, field),
            _ => known.name == field,
        })
    })
}

/// The first error of a table.
#[cfg(test)]
pub fn problem(text: &'static str) -> Option<String> {
    let lines = match Lines::of(text) {
        Ok(lines) => lines,
        Err(why) => return Some(why),
    };
    lines.by_struct.keys().find_map(|name| lines.build(go_struct(name)?).err())
}
