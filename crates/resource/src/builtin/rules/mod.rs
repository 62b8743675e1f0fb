//! Rules of the Go types of built-in kinds, which are data: `rules.txt`.
//!
//! kube-apiserver makes two passes over an object: hand-written functions check all fields (`written`), and then
//! the rules that tags of the types declare are checked where something is new or has changed (`declared`). A
//! `Walk` is one pass.

mod conditions;
mod declared;
mod order;
mod table;
#[cfg(test)]
mod tests;
mod values;
mod walk;
mod words;
mod written;

pub use order::in_order;
pub use table::{Ruled, of};
pub use values::{drop_gated, set_defaults};
pub use walk::{Pass, check};
