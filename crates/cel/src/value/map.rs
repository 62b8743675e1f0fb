//! Maps, objects and messages.

use super::{Error, Key, Map, Result, Str, Val, from_json};
use std::collections::BTreeMap;

impl<'a> Map<'a> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Map::Object(map, _) | Map::Json(map, _) => map.len(),
            Map::Owned(map) | Map::Made(_, map) => map.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a string key.
    pub fn get_str(&self, key: &str) -> Option<Result<Val<'a>>> {
        match self {
            Map::Object(map, object) => {
                let field = object.keyed(key)?;
                let value = map.get(&field.name)?;
                if value.is_null() { None } else { Some(from_json(value, &field.decl)) }
            }
            Map::Json(map, value) => map.get(key).map(|v| from_json(v, value)),
            // look up with a key of a shorter lifetime than that of the map
            Map::Owned(map) | Map::Made(_, map) => lookup(map, &Key::String(Str::Borrowed(key))),
        }
    }

    /// The value of a key; an error if a value of that type can't be a key.
    pub(crate) fn get(&self, key: &Val<'a>) -> Option<Result<Val<'a>>> {
        match (self, key) {
            (_, Val::String(s)) => self.get_str(s),
            (Map::Object(..) | Map::Json(..), _) => match self {
                Map::Json(_, decl) if matches!(decl.kind, crate::decl::DeclKind::Json) => None,
                _ => Some(Err(Error::overload())),
            },
            (Map::Owned(map) | Map::Made(_, map), key) => map.get(&Key::of(key)?).map(|v| Ok(v.clone())),
        }
    }

    /// Keys and values; an error for a value that does not fit its declaration.
    pub fn entries(&self) -> Vec<(Val<'a>, Result<Val<'a>>)> {
        let value = |key: &Val<'a>| self.get(key).unwrap_or_else(|| Err(Error::overload()));
        self.keys().into_iter().map(|key| (key.clone(), value(&key))).collect()
    }

    /// The keys, as expressions see them.
    pub(crate) fn keys(&self) -> Vec<Val<'a>> {
        match self {
            Map::Object(map, object) => map
                .keys()
                .filter_map(|key| object.named(key))
                .map(|field| Val::borrowed(field.escaped.as_ref().unwrap_or(&field.name)))
                .collect(),
            Map::Json(map, _) => map.keys().map(|key| Val::borrowed(key)).collect(),
            Map::Owned(map) | Map::Made(_, map) => map.keys().map(Key::value).collect(),
        }
    }
}

fn lookup<'a>(map: &BTreeMap<Key<'a>, Val<'a>>, key: &Key<'_>) -> Option<Result<Val<'a>>> {
    // shortening the lifetimes of the map makes the comparison possible
    fn find<'k, 'a: 'k>(map: &'k BTreeMap<Key<'a>, Val<'a>>, key: &'k Key<'_>) -> Option<&'k Val<'a>> {
        let want = key.rank();
        let range = map.iter();
        if map.len() <= 8 {
            return range.into_iter().find(|(k, _)| k.rank() == want).map(|(_, v)| v);
        }
        let Key::String(s) = key else { return None };
        map.get(&Key::String(Str::Shared((**s).into())))
    }
    find(map, key).map(|value| Ok(value.clone()))
}
