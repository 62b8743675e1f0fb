//! The watch cache: all objects of the store, in memory, as bytes and decoded metadata.
//!
//! Invariants: this room handles bytes and metadata, no schemas and no requests. One task follows the store and applies
//! each change to its [`Collection`]; a change is visible to readers and watchers before the revision advances, and a
//! writer gets its result after that. Readers take snapshots and watchers pull events, so none waits for a slow one.

mod budget;
mod collection;
mod encryption;
mod event;
mod failure;
mod faults;
mod feed;
mod frozen;
mod history;
mod key;
mod layout;
pub mod limits;
mod ring;
mod state;
mod stored;

pub use budget::{bound_history, history_bytes, history_duration, written_bytes};
pub use collection::{Collection, Cursor, Expired, Position, Scope};
pub use encryption::{ConfigurationError, Encryption};
pub use event::{Event, EventKind};
pub use failure::failure;
pub use faults::{FaultKind, Faults};
pub use feed::Objects;
pub use frozen::{Frozen, Known};
pub use key::Key;
pub use layout::{Keys, Layout, Opened, Place, Storage, Transform};
pub use state::{CollectionState, IndexKey, Indexed, Root};
pub use stored::{Body, Encoded, Meta, Owner, ProtobufForm, Rendition, Sink, Stored};
