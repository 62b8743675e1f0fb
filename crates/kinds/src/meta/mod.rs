//! What several groups have: the formats of all tables, rules of types that belong to no group, and shared columns.

use resource::builtin::Behaviour;

pub static KINDS: &[Behaviour] = &[];
