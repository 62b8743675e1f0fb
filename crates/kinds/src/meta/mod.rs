//! Tables that several groups share: formats, rules of types that belong to no group, and columns.

use resource::builtin::Behaviour;

pub static KINDS: &[Behaviour] = &[];
