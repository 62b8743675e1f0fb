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
    /// The shards to which the list is limited, if any.
    pub shards: Option<ShardSelector>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An existing object was read or changed.
    Done,
    Created,
    /// A deletion has begun and is not finished.
    Begun,
}

pub enum Outcome {
    Object(Effect, ResponseObject),
    /// A Status of success.
    Success(Effect, Value),
    List(ListOutcome),
}
