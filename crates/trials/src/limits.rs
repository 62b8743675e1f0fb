//! Bounds of forks and commands.

use std::time::Duration;

/// The end of a command's output that is kept.
pub const OUTPUT_BYTES: usize = 64 << 10;

/// Fields of an object that a plan shows without details.
pub const FIELDS_SHOWN: usize = 10;

/// Characters of the message of a refused request that a plan shows.
pub const MESSAGE_SHOWN: usize = 300;

/// Time between a polite signal to a command and the one that cannot be ignored.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// Interval of looks at whether a command has begun.
pub const BEGIN_LOOK: Duration = Duration::from_millis(20);

/// A command that has sent its first request and watches nothing counts as begun after this time: it polls.
pub const BEGIN_POLLING: Duration = Duration::from_secs(3);

/// The longest wait of one Settle, which must stay below the time limit of requests.
pub const SETTLE_SLICE: Duration = Duration::from_secs(20);
