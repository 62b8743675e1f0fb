//! The objects of a store at one revision, as those of a fork of it, which need not be decoded again.

use std::collections::HashMap;

use machinery::Text;

use super::state::CollectionState;

/// Decoded objects at one revision, by group and plural; they share everything with those that they were taken from.
pub struct Frozen(pub(super) HashMap<(Text, Text), CollectionState>);
