//! Literals of lists, maps and messages.

use super::Frame;
use crate::library::costs::{LIST_LITERAL_COST, MAP_LITERAL_COST, MESSAGE_LITERAL_COST};
use crate::node::Node;
use crate::value::{Error, Key, Map, Result, Str, Val};
use machinery::Text;
use std::rc::Rc;

impl<'a> Frame<'a> {
    /// Constructs a list. The cost of a literal is charged when the value is complete.
    pub(super) fn list(&mut self, items: &'a [Node], are_optional: &[bool]) -> Result<Val<'a>> {
        let mut values = Vec::with_capacity(items.len());
        for (item, is_optional) in items.iter().zip(are_optional) {
            let value = match self.absorbable(item)? {
                Ok(value) => value,
                // unlike maps and messages, a list costs as much if an item fails; `&&` or `||` may absorb the error
                Err(error) => {
                    self.charge(LIST_LITERAL_COST)?;
                    return Err(error);
                }
            };
            values.extend(if *is_optional { optional(value, "list element")? } else { Some(value) });
        }
        self.charge(LIST_LITERAL_COST)?;
        Ok(Val::list(values))
    }

    /// Constructs a message.
    pub(super) fn made(&mut self, name: &'a Text, fields: &'a [(Text, Node, bool)]) -> Result<Val<'a>> {
        let mut map = std::collections::BTreeMap::new();
        for (field, value, is_optional) in fields {
            let value = self.eval(value)?;
            let value = if *is_optional { optional(value, "entry")? } else { Some(value) };
            if let Some(value) = value {
                // as upstream, a type counts as the text of its name
                let is_text = matches!(value, Val::String(_) | Val::Type(_));
                if name == "JSONPatch" && field != "value" && !is_text {
                    let of = value.native_type();
                    return Err(Error::new(format!("unexpected type {of} for JSONPatchType '{field}' field")));
                }
                map.insert(Key::String(Str::Borrowed(field)), value);
            }
        }
        self.charge(MESSAGE_LITERAL_COST)?;
        Ok(Val::Map(Map::Made(name.clone(), Rc::new(map))))
    }

    pub(super) fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Result<Val<'a>> {
        let mut map = std::collections::BTreeMap::new();
        for (key, value, is_optional) in entries {
            let key = self.eval(key)?;
            let value = self.eval(value)?;
            let value = if *is_optional { optional(value, "entry")? } else { Some(value) };
            let Some(value) = value else { continue };
            // `Key::of` accepts doubles, by which maps can be indexed, but which their keys cannot be
            let Some(key) = Key::of(&key).filter(|_| !matches!(key, Val::Double(_))) else {
                return Err(Error::new(format!("unsupported key type: {}", key.type_of().runtime_name())));
            };
            map.insert(key, value);
        }
        self.charge(MAP_LITERAL_COST)?;
        Ok(Val::Map(Map::Owned(Rc::new(map))))
    }
}

/// The value of an optional element or entry, if it has one; `place` names it in the error.
fn optional<'a>(value: Val<'a>, place: &str) -> Result<Option<Val<'a>>> {
    match value {
        Val::Optional(value) => Ok(value.map(|value| (*value).clone())),
        other => {
            let name = other.type_of().runtime_name();
            Err(Error::new(format!("cannot initialize optional {place} from non-optional value {name}")))
        }
    }
}
