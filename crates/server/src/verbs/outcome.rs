//! The outcome of a verb.

use cel::ShardSelector;
use machinery::Value;
use store::Revision;

use super::items::Items;
use super::response::ResponseObject;

pub struct ListOutcome {
    pub items: Items,
    pub revision: Revision,
    pub continue_token: String,
    pub remaining: Option<usize>,
    /// The shards that the list is limited to, if it is.
    pub shards: Option<ShardSelector>,
}

/// The outcome of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It has read or changed what exists.
    Done,
    Created,
    /// It has begun a deletion, which is not finished.
    Begun,
}

/// The outcome of a verb.
pub enum Outcome {
    Object(Effect, ResponseObject),
    /// A Status of success.
    Success(Effect, Value),
    List(ListOutcome),
}
