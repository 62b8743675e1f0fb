//! Literals of lists, maps and messages.

use super::Frame;
use crate::node::Node;
use crate::value::{Error, Key, Map, Result, Str, Val};
use machinery::Text;
use std::rc::Rc;

impl<'a> Frame<'a> {
    /// Constructs a list. Costs of literals are cel-go's, charged when the value is complete.
    pub(super) fn list(&mut self, items: &'a [Node], optional: &[bool]) -> Result<Val<'a>> {
        let mut values = Vec::with_capacity(items.len());
        for (item, optional) in items.iter().zip(optional) {
            let value = match self.absorbable(item)? {
                Ok(value) => value,
                // unlike maps and messages, a list costs as much if an item fails; `&&` or `||` may absorb the error
                Err(error) => {
                    self.charge(10)?;
                    return Err(error);
                }
            };
            if !optional {
                values.push(value);
                continue;
            }
            match value {
                Val::Optional(None) => {}
                Val::Optional(Some(value)) => values.push((*value).clone()),
                other => {
                    let name = other.type_of().runtime_name();
                    return Err(Error::new(format!(
                        "cannot initialize optional list element from non-optional value {name}"
                    )));
                }
            }
        }
        self.charge(10)?;
        Ok(Val::list(values))
    }

    /// Constructs a message.
    pub(super) fn made(&mut self, name: &'a Text, fields: &'a [(Text, Node, bool)]) -> Result<Val<'a>> {
        let mut map = std::collections::BTreeMap::new();
        for (field, value, optional) in fields {
            let value = self.eval(value)?;
            if let Some(value) = present(*optional, value)? {
                // as upstream, a type counts as the text of its name
                let is_text = matches!(value, Val::String(_) | Val::Type(_));
                if name == "JSONPatch" && field != "value" && !is_text {
                    let of = value.native_type();
                    return Err(Error::new(format!("unexpected type {of} for JSONPatchType '{field}' field")));
                }
                map.insert(Key::String(Str::Borrowed(field)), value);
            }
        }
        self.charge(40)?;
        Ok(Val::Map(Map::Made(name.clone(), Rc::new(map))))
    }

    pub(super) fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Result<Val<'a>> {
        let mut map = std::collections::BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let value = self.eval(value)?;
            let Some(value) = present(*optional, value)? else { continue };
            // `Key::of` accepts doubles, by which maps can be indexed, but which their keys cannot be
            let Some(key) = Key::of(&key).filter(|_| !matches!(key, Val::Double(_))) else {
                return Err(Error::new(format!("unsupported key type: {}", key.type_of().runtime_name())));
            };
            map.insert(key, value);
        }
        self.charge(30)?;
        Ok(Val::Map(Map::Owned(Rc::new(map))))
    }
}

/// The value of an entry; `None` if the entry is optional and has none.
fn present(optional: bool, value: Val<'_>) -> Result<Option<Val<'_>>> {
    match (optional, value) {
        (false, value) => Ok(Some(value)),
        (true, Val::Optional(None)) => Ok(None),
        (true, Val::Optional(Some(value))) => Ok(Some((*value).clone())),
        (true, other) => {
            let name = other.type_of().runtime_name();
            Err(Error::new(format!("cannot initialize optional entry from non-optional value {name}")))
        }
    }
}
