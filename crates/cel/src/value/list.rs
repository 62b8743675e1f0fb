//! Lists.

use super::{Error, List, Result, Val, from_json};
use crate::decl::ListKind;

impl<'a> List<'a> {
    /// The number of items.
    pub fn len(&self) -> usize {
        match self {
            List::Json { items, .. } => items.len(),
            List::Typed { items, .. } | List::Owned(items) => items.len(),
        }
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at an index; an error if it does not fit its declaration.
    pub fn get(&self, index: usize) -> Option<Result<Val<'a>>> {
        match self {
            List::Json { items, item, .. } => items.get(index).map(|value| from_json(value, item)),
            List::Typed { items, .. } | List::Owned(items) => items.get(index).map(|value| Ok(value.clone())),
        }
    }

    /// All items.
    pub fn iter(&self) -> impl Iterator<Item = Result<Val<'a>>> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }

    pub(crate) fn kind(&self) -> Option<&'a ListKind> {
        match self {
            List::Json { kind, .. } | List::Typed { kind, .. } => Some(kind),
            List::Owned(_) => None,
        }
    }

    /// All items.
    pub(crate) fn to_vec(&self) -> Result<Vec<Val<'a>>> {
        crate::work::step(self.len()).ok_or_else(Error::cancelled)?;
        match self {
            List::Typed { items, .. } | List::Owned(items) => Ok(items.to_vec()),
            List::Json { .. } => self.iter().collect(),
        }
    }
}
