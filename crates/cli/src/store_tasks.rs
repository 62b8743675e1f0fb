//! `pintle store`: checks, backs up and restores data directories.

use std::path::Path;

use machinery::json;
use server::{Layout, transfer};
use store::{Salvaged, Summary};

use crate::backups;
use crate::count::counted;
use crate::encryption::EncryptionFlags;
use crate::flags::{Backups, Store};
use crate::transfer::{refuse_existing, write};
use crate::values::TextOrJson;
use crate::{limits, logs};

/// Runs the task and prints its result. The error is one line.
pub fn run(task: &Store) -> Result<(), String> {
    match task {
        Store::Check { place, salvage: Some(file), encryption, .. } => salvage(&place.data_dir, file, encryption),
        Store::Check { place, salvage: None, output, .. } => check(&place.data_dir, *output),
        Store::Backup { place, file } => backups::back_up(&place.place.data_dir, &place.directory(), file),
        Store::Restore { place, file, bump_revision } => backups::restore(file, &place.data_dir, *bump_revision),
        Store::Backups(Backups::List { target, output }) => backups::list(target, *output),
        Store::Backups(Backups::Prune { target, keep }) => backups::prune(target, *keep),
    }
}

/// Verifies a data directory. The error is one line: the first corruption.
fn check(directory: &Path, form: TextOrJson) -> Result<(), String> {
    let summary = store::check(directory).map_err(|error| error.to_string())?;
    let Summary { objects, branches, revision, compacted, torn, stopped } = summary;
    let in_order = stopped == Some(revision) && !torn;
    let text = match form {
        TextOrJson::Json => {
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let (objects, revision, compacted) = (number(objects as u64), number(revision), number(compacted));
            let branches = number(branches as u64);
            json!({"objects": objects, "branches": branches, "revision": revision, "historyFrom": compacted, "lastWriteIncomplete": torn,
                "closedInGoodOrder": in_order})
            .to_json()
        }
        TextOrJson::Text => {
            let end = match (torn, in_order) {
                (true, _) => "; the last write is incomplete, as after a crash",
                (false, true) => "; it was closed in good order",
                (false, false) => "",
            };
            let (directory, objects) = (directory.display(), counted(objects, "object"));
            let branches = backups::with_branches(branches);
            format!(
                "the store in {directory} is intact: {objects}{branches} at revision {revision}, history from revision {compacted}{end}"
            )
        }
    };
    logs::print(format!("{text}\n").as_bytes())
}

/// Exports what can be read from a damaged data directory, and names what cannot. The error is one line.
fn salvage(directory: &Path, file: &Path, encryption: &EncryptionFlags) -> Result<(), String> {
    refuse_existing(file)?;
    let layout = encryption.to_layout(Layout::own())?;
    let Salvaged { snapshot, losses, more } = store::salvage(directory).map_err(|error| error.to_string())?;
    let (chosen, unreadable) = transfer::choose_readable(&snapshot, &layout);
    let lost = losses.len() + more + unreadable.len();
    let lines = losses.iter().chain(unreadable.iter().take(limits::UNREADABLE_NAMED));
    lines.for_each(|line| logs::print_error(&format!("lost: {line}")));
    let unnamed = more + unreadable.len().saturating_sub(limits::UNREADABLE_NAMED);
    if unnamed > 0 {
        logs::print_error(&format!("lost: {unnamed} more"));
    }
    let done = write(file, &chosen, &layout)?;
    let held = format!("{} holds {} at revision {}", file.display(), counted(done.objects, "object"), done.revision);
    logs::print_error(&held);
    match lost {
        0 => Ok(()),
        _ => Err(format!(
            "data directory {} is corrupt: {lost} losses are named above; of an object whose last change is lost, the file has \
             an earlier state, if any",
            directory.display()
        )),
    }
}
