//! Keys of maps that expressions create.

use super::{Str, Val};

/// A key of a map that an expression created.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Key<'a> {
    /// A `bool`.
    Bool(bool),
    /// An `int`.
    Int(i64),
    /// Only for numbers beyond `i64`: smaller ones are `Int`, as keys are equal across types.
    Uint(u64),
    /// A small unsigned key, which keeps its type.
    SmallUint(i64),
    /// A `string`.
    String(Str<'a>),
}

impl Key<'_> {
    pub(super) fn rank(&self) -> (u8, i128, &str) {
        match self {
            Key::Bool(b) => (0, i128::from(*b), ""),
            Key::Int(i) | Key::SmallUint(i) => (1, i128::from(*i), ""),
            Key::Uint(u) => (1, i128::from(*u), ""),
            Key::String(s) => (2, 0, s),
        }
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Key<'_> {}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl<'a> Key<'a> {
    /// The key for a value; none if it can't be one.
    pub(crate) fn of(value: &Val<'a>) -> Option<Key<'a>> {
        Some(match value {
            Val::Bool(b) => Key::Bool(*b),
            Val::Int(i) => Key::Int(*i),
            Val::Uint(u) => i64::try_from(*u).map_or(Key::Uint(*u), Key::SmallUint),
            Val::String(s) => Key::String(s.clone()),
            Val::Double(d) if d.fract() == 0.0 && d.abs() < 9.3e18 => Key::Int(*d as i64),
            _ => return None,
        })
    }

    pub(crate) fn value(&self) -> Val<'a> {
        match self {
            Key::Bool(b) => Val::Bool(*b),
            Key::Int(i) => Val::Int(*i),
            Key::SmallUint(i) => Val::Uint(*i as u64),
            Key::Uint(u) => Val::Uint(*u),
            Key::String(s) => Val::String(s.clone()),
        }
    }
}
