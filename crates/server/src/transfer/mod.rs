//! Export of the objects of a store to a file, and import into any other store; and loading of captured objects.
//!
//! A file consists of lines of JSON: `{"format":…,"objects":n,"revision":r}`, then one line per object with its group,
//! resource, path and stored form, then `{"sha256":…}` of all preceding lines. An import checks the whole file before it
//! writes, then reads everything back and compares it. Revisions are not preserved: the new store assigns its own.

mod capture;
mod export;
mod import;
mod selection;
#[cfg(test)]
mod tests;

use objects::Place;
use store::Revision;

pub use capture::{BuiltInKind, StoredObject, built_in_kind, load, set_defaults, to_stored};
pub use export::{Chosen, choose, choose_readable, export};
pub use import::{Checked, Conflict, Imported, check, import};
pub use selection::ObjectSelection;

const FORMAT: &str = "pintle objects 1";

/// The progress of an export or an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferProgress {
    pub objects: usize,
    pub of: usize,
    pub revision: Revision,
}

/// Callback for progress reports, which is called after each object.
pub type Progress<'a> = &'a mut (dyn FnMut(TransferProgress) + Send);

fn unreadable(place: &Place, why: &str) -> String {
    format!("the value of {} is no object: {why}", place.bytes.escape_ascii())
}
