//! The checks of a report.

machinery::text_enum! {
    /// A finding that a report counts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Check {
        NoOpWrites = "noOpWrites",
        WritesAtRest = "writesAtRest",
        HotLoops = "hotLoops",
        Conflicts = "conflicts",
        ConflictsNotRetried = "conflictsNotRetried",
        Forbidden = "forbidden",
        Throttled = "throttled",
        Refused = "refused",
        Failed = "failed",
        ListStorms = "listStorms",
        WatchRestarts = "watchRestarts",
        UnusedWatches = "unusedWatches",
        UnusedRules = "unusedRules",
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
