//! What a report looks for.

/// A finding that a report counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    NoOpWrites,
    WritesAtRest,
    HotLoops,
    Conflicts,
    ConflictsNotRetried,
    Forbidden,
    Throttled,
    Refused,
    Failed,
    ListStorms,
    WatchRestarts,
    UnusedWatches,
    UnusedRules,
}

impl Check {
    pub const ALL: [Check; 13] = [
        Check::NoOpWrites,
        Check::WritesAtRest,
        Check::HotLoops,
        Check::Conflicts,
        Check::ConflictsNotRetried,
        Check::Forbidden,
        Check::Throttled,
        Check::Refused,
        Check::Failed,
        Check::ListStorms,
        Check::WatchRestarts,
        Check::UnusedWatches,
        Check::UnusedRules,
    ];

    /// The name of the check in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Check::NoOpWrites => "noOpWrites",
            Check::WritesAtRest => "writesAtRest",
            Check::HotLoops => "hotLoops",
            Check::Conflicts => "conflicts",
            Check::ConflictsNotRetried => "conflictsNotRetried",
            Check::Forbidden => "forbidden",
            Check::Throttled => "throttled",
            Check::Refused => "refused",
            Check::Failed => "failed",
            Check::ListStorms => "listStorms",
            Check::WatchRestarts => "watchRestarts",
            Check::UnusedWatches => "unusedWatches",
            Check::UnusedRules => "unusedRules",
        }
    }
}

/// The names of all checks.
pub fn names() -> impl Iterator<Item = &'static str> {
    Check::ALL.into_iter().map(Check::as_str)
}
