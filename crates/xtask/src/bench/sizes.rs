//! The numbers of objects and clients.

use super::Flags;

/// The numbers of a run.
pub struct Sizes {
    pub starts: usize,
    pub restart_objects: usize,
    pub history: usize,
    pub first_runs: usize,
    pub ownerships: usize,
    pub commits: usize,
    pub single_commits: usize,
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
    pub bindings: usize,
    pub definitions: usize,
}

impl Sizes {
    pub fn new(flags: &Flags) -> Sizes {
        let mut sizes = if flags.quick { Sizes::quick() } else { Sizes::full() };
        sizes.clients = flags.clients.max(1);
        sizes.definitions = flags.crds.unwrap_or(sizes.definitions);
        sizes
    }

    fn full() -> Sizes {
        Sizes {
            starts: 5,
            restart_objects: 10_000,
            history: 75_000,
            first_runs: 20,
            ownerships: 5_000,
            commits: 200_000,
            single_commits: 2_000,
            clients: 64,
            creates: 20_000,
            gets: 60_000,
            list_objects: 5_300,
            lists: 20,
            selects: 100,
            watchers: 100,
            watch_writes: 500,
            flood_writes: 10_000,
            targets: 1_000,
            patches: 20_000,
            applies: 10_000,
            delete_objects: 7_800,
            dependents: 10_000,
            bindings: 10_000,
            definitions: 500,
        }
    }

    fn quick() -> Sizes {
        Sizes {
            starts: 2,
            restart_objects: 300,
            history: 2_000,
            first_runs: 3,
            ownerships: 200,
            commits: 2_000,
            single_commits: 50,
            clients: 64,
            creates: 500,
            gets: 1_000,
            list_objects: 300,
            lists: 3,
            selects: 5,
            watchers: 10,
            watch_writes: 20,
            flood_writes: 200,
            targets: 100,
            patches: 500,
            applies: 300,
            delete_objects: 300,
            dependents: 300,
            bindings: 300,
            definitions: 10,
        }
    }
}
