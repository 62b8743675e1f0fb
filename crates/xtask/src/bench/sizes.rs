//! The numbers of objects and clients.

use super::Flags;

/// The numbers of a run.
pub struct Sizes {
    pub starts: usize,
    pub restart_objects: usize,
    pub first_runs: usize,
    pub ownerships: usize,
    pub clients: usize,
    pub creates: usize,
    pub gets: usize,
    pub list_objects: usize,
    pub lists: usize,
    pub selects: usize,
    pub watchers: usize,
    pub watch_writes: usize,
    pub flood_writes: usize,
    /// Objects that are read and whose status is patched.
    pub targets: usize,
    pub patches: usize,
    pub applies: usize,
    pub delete_objects: usize,
    pub dependents: usize,
    pub definitions: usize,
}

impl Sizes {
    pub fn new(flags: &Flags) -> Sizes {
        let size = |full, quick| if flags.quick { quick } else { full };
        Sizes {
            starts: size(5, 2),
            restart_objects: size(10_000, 300),
            first_runs: size(20, 3),
            ownerships: size(5_000, 200),
            clients: flags.clients.max(1),
            creates: size(20_000, 500),
            gets: size(60_000, 1_000),
            list_objects: size(5_300, 300),
            lists: size(20, 3),
            selects: size(100, 5),
            watchers: size(100, 10),
            watch_writes: size(500, 20),
            flood_writes: size(10_000, 200),
            targets: size(1_000, 100),
            patches: size(20_000, 500),
            applies: size(10_000, 300),
            delete_objects: size(7_800, 300),
            dependents: size(10_000, 300),
            definitions: flags.crds.unwrap_or_else(|| size(500, 10)),
        }
    }
}
