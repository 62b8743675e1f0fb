//! `pintle store`: checks, backs up and restores data directories.

use store::Summary;

use crate::backups;
use crate::flags::{Backups, Store};
use crate::logs;

/// Runs the task and prints its result. The error is one line.
pub fn run(task: &Store) -> Result<(), String> {
    match task {
        Store::Check { place } => {
            let summary = store::check(&place.data_dir).map_err(|error| error.to_string())?;
            let Summary { objects, revision, compacted, torn } = summary;
            let torn = if torn { "; the last write is incomplete, as after a crash" } else { "" };
            let directory = place.data_dir.display();
            let content = format!("{objects} objects at revision {revision}, history from revision {compacted}");
            logs::print(format!("{directory} is whole: {content}{torn}\n").as_bytes())
        }
        Store::Backup { place, file, seal, s3 } => {
            backups::back_up(&place.place.data_dir, &place.directory(), file, seal, s3)
        }
        Store::Restore { place, file, bump_revision, seal, s3 } => {
            backups::restore(file, &place.data_dir, *bump_revision, seal, s3)
        }
        Store::Backups(Backups::List { target, s3 }) => backups::list(target, s3),
        Store::Backups(Backups::Prune { target, keep, s3 }) => backups::prune(target, *keep, s3),
    }
}
