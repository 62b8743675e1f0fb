//! The verbs of resources: get, list, watch, create, update, patch, apply, delete, deletecollection.
//!
//! Invariants: no HTTP here. A verb takes an [`Authorized`] request with its options and returns an [`Outcome`] or a
//! [`Status`]. Every write goes through the one loop in `pipeline.rs`.

mod addresses;
mod admit;
mod as_server;
mod bootstrap;
mod change;
mod commit;
mod connect;
mod context;
mod continuation;
pub mod control_plane;
mod definitions;
mod delete;
mod deletion;
mod deliveries;
mod deposit;
mod flow_upkeep;
mod hooks;
mod image;
mod inflight;
mod items;
mod list;
mod load;
mod meta;
mod naming;
mod outcome;
mod own;
mod patch;
mod pipeline;
mod quota;
mod rbac;
mod reconcile;
mod request;
mod response;
mod review;
mod selection;
mod stand_in;
mod stored;
#[cfg(test)]
mod tests;
mod third_party;
mod tracking;
mod unreadable;
mod upkeep;
mod warnings;
mod watch;
mod write;

pub use as_server::{CONTROLLERS, OwnObject, path_in};
pub use bootstrap::{
    TOKEN_TRACKING, bootstrap, create_namespaces, publish_trust, restore_registration, token_tracking,
};
pub use connect::{connect, container_log};
pub use context::{Context, NeededRight, WriteRules};
pub use definitions::{PendingCrdDeletions, finalize};
pub use delete::{check_selection, delete, delete_as_server, delete_collection, empty_namespace};
pub use deliveries::{BookmarkKind, Deliveries, Passed, WatchEvent};
pub use deposit::deposit;
pub use flow_upkeep::{Kept, are_flows_changed, keep_flows};
pub use image::Image;
pub use items::Items;
pub use list::{catch_up, check_options, get, list};
pub use load::{is_own, load};
pub use naming::{establish, establish_all, establish_peers};
pub use outcome::{Effect, ListOutcome, Outcome};
pub use own::tolerating;
pub use patch::PatchKind;
pub use request::{Behind, Capacity, Completion, Growth, Lag, Request};
pub use response::ResponseObject;
pub use stand_in::{Addition, Provenance, StandIn, stand_in};
pub use upkeep::{create_missing, definitions_in, identify, keep_definitions, remove_definitions};
pub use warnings::Warnings;
pub use watch::{Watch, watch};
pub use write::{check_update_options, create, patch, update};

pub use resource::{Document, Format, Subresource};
