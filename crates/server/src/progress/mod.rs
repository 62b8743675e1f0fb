//! Objects that make progress: Progress of `testing.pintle.dev`, whose rules write what controllers and kubelets would.
//!
//! The engine is a controller of each API. It follows the watch cache and has a queue of objects; an object that has not
//! changed, and of whose related objects none has, costs nothing. The sets are data: YAML in `sets`.

mod definition;
mod effects;
mod engine;
mod outcome;
mod plan;
mod queue;
mod stage;
mod state;
mod status;
#[cfg(test)]
mod tests;

pub use definition::{GROUP, PROGRESSES, Progresses, names, read, set};
pub use engine::Engine;
