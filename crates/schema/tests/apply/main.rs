//! Replays recorded writes against `schema::apply` alone: the managedFields and the conflicts of every answer.
//!
//! State is kept in memory: definitions as they were posted, objects as the answers show them. What else a server does
//! with an object (defaults, pruning, status resets) is taken from the answers.

mod properties;
mod replay;
