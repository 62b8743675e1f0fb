//! The checks of a report.

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

impl Check {
    /// A sentence about the number that the check counts.
    fn meaning(self) -> &'static str {
        match self {
            Check::NoOpWrites => "Updates, patches and applies that changed nothing.",
            Check::WritesAtRest => {
                "Writes of clients with a watch after everything had settled, when a controller should have nothing to do."
            }
            Check::HotLoops => "How often a client read or wrote one object in a tight loop.",
            Check::Conflicts => "Writes that failed because the object had been changed by others.",
            Check::ConflictsNotRetried => "Conflicts that no successful write of the client to the object followed.",
            Check::Forbidden => "Requests that the user had no permission for.",
            Check::Throttled => "Requests that were refused because there were too many.",
            Check::Refused => "Requests that were refused as wrong.",
            Check::Failed => "Requests that the server failed to handle, and connections that a fault has ended.",
            Check::ListStorms => "How often a client listed the same objects in full again and again.",
            Check::WatchRestarts => "Watches that began after an earlier one of the same objects had ended.",
            Check::UnusedWatches => "Watches that received no event.",
            Check::UnusedRules => "Rules of a user's roles that no request needed.",
        }
    }
}

/// The counts of the checks, by name.
pub fn meanings() -> impl Iterator<Item = (&'static str, &'static str)> {
    Check::ALL.into_iter().map(|check| (check.as_str(), check.meaning()))
}

pub fn names() -> impl Iterator<Item = &'static str> {
    Check::ALL.into_iter().map(Check::as_str)
}
