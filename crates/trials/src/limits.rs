//! Bounds of forks and commands.

use std::time::Duration;

/// Wait for the watches of a command that a fault may keep from watching.
pub const READY: Duration = Duration::from_secs(10);

/// The longest wait for the end of a step.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// A step that lasts longer may be waiting for the command, which a cell keeps from acting.
pub const STEP_BLOCKED: Duration = Duration::from_secs(3);

/// How often a command may end by itself in a cell.
pub const RESTARTS_MAX: usize = 5;

/// The quiet time of the first run, which is longer than the pauses of most controllers, and the least that is learned from it.
pub const FIRST_QUIET: Duration = Duration::from_secs(4);
pub const QUIET_MIN: Duration = Duration::from_millis(250);

/// The quiet time after which a check that fails is repeated.
pub const SECOND_LOOK: Duration = Duration::from_secs(2);

/// The quiet time before the result is looked at, and that of repetitions: what a controller heals by itself is no defect, and
/// many wait for ten seconds after an error.
pub const LAST_QUIET: Duration = Duration::from_secs(1);
pub const LAST_QUIET_REPEATED: Duration = Duration::from_secs(12);

/// Runs at the same time for each core, which mostly wait.
pub const PARALLEL_PER_CORE: usize = 3;

/// Repetitions of a cell that differs.
pub const REPETITIONS: usize = 3;

/// The checks of a Report that no fault excuses.
pub const COMPARED_FINDINGS: [&str; 2] = ["writesAtRest", "hotLoops"];

/// The end of a command's output that is kept.
pub const OUTPUT_BYTES: usize = 64 << 10;
/// How long the end of a command waits for the end of its output.
pub const OUTPUT_WAIT: Duration = Duration::from_millis(200);

/// The beginning of a request that a proxy reads.
pub const PROXY_HEAD_BYTES: usize = 16 << 10;
/// Hosts that the proxy of a command remembers.
pub const HOSTS_MAX: usize = 1_000;

/// Fields of an object that a plan shows without details.
pub const FIELDS_SHOWN: usize = 10;

/// Cells that were not tried which a text names, for each reason.
pub const NOT_TRIED_SHOWN: usize = 10;

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
