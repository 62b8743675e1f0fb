//! Replays recorded writes against `schema::apply` alone: the managedFields and the conflicts of every response.
//!
//! State is kept in memory: CRDs as posted, objects as in the responses. What else a server does
//! with an object (defaults, pruning, status resets) is taken from the responses.

mod properties;
mod replay;
