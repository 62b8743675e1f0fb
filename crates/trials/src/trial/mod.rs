//! Trials: which faults break what a command does.

mod cells;
mod record;
mod scenario;

pub use cells::{Act, Cell, Steps, generate};
pub use record::{Record, StepRecord};
pub use scenario::{Check, Scenario, Step};
