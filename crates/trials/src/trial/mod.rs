//! Trials: which faults break what a command does.
//!
//! [`record`] keeps what clients do in a run without faults, and [`cells`] derives the disturbances from it;
//! [`running`] runs the scenario once, [`rounds`] as often as it takes; [`shown`] prints the result.
//!
//! ```no_run
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use trials::trial::{Options, Scenario, trial};
//!
//! let scenario = Scenario::read("trial.yaml")?;
//! let outcome = trial(&scenario, &Options::default(), &mut |_| {}).await?;
//! assert!(outcome.findings.is_empty(), "{}", outcome.text("pintle trial trial.yaml"));
//! # Ok(())
//! # }
//! ```

mod cells;
mod record;
mod rounds;
mod running;
mod scenario;
mod shown;

pub use cells::{Act, Cell, Steps, generate, without_one_right};
pub use record::{Record, StepRecord};
pub use rounds::{Finding, NotTried, Options, Outcome, Progress, Verdict, trial};
pub use scenario::{Check, Permissions, Scenario, Step};
pub use shown::{quoted, repetition};
