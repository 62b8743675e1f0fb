//! Rules of the Go types of built-in kinds, which are data: `rules.txt`.
//!
//! kube-apiserver makes two passes over an object: its functions check all fields (`written`), then what tags of the
//! types declare is checked where something is new or was changed (`declared`). A `Walk` is either of them.

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
