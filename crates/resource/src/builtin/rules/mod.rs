//! Rules of the Go types of built-in kinds, which are data: the tables `rules.txt`.
//!
//! kube-apiserver makes two passes over an object: hand-written functions check all fields (`written`), and then
//! the rules that tags of the types declare are checked where something is new or has changed (`declared`). A
//! `Walk` is one pass.

mod conditional;
mod declared;
mod order;
mod table;
mod values;
mod walk;
mod words;
mod written;

pub use order::in_order;
pub use table::{RuleTable, Ruled};
pub use values::{drop_gated, set_defaults};
pub use walk::{Pass, check};

use schema::at::{At, CheckedRules, TypeRules};

impl TypeRules for RuleTable {
    fn check(&'static self, at: At, go: &'static str, rules: CheckedRules) {
        let pass = match rules {
            CheckedRules::All => Pass::Written { of_status: false },
            CheckedRules::Conditional => Pass::Conditional,
        };
        check(pass, at.with_old(None), self.of(go));
    }

    fn union_of(&'static self, go: &'static str) -> &'static [&'static str] {
        self.of(go).and_then(Ruled::union).map_or(&[], |union| &union.names)
    }
}
