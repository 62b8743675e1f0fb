//! `pintle store`: checks, backs up and restores data directories.

use std::path::Path;

use client::{Result, fail};
use machinery::json;
use server::{Layout, transfer};
use store::{Salvaged, SalvagedBranch, Snapshot, Summary};

use crate::count::counted;
use crate::encryption::EncryptionFlags;
use crate::flags::{Backups, Store};
use crate::transfer::{refuse_existing, write};
use crate::values::TextOrJson;
use crate::{backups, limits, logs};

/// Runs the task and prints its result. Fails with a one-line message.
pub fn run(task: &Store) -> Result<()> {
    match task {
        Store::Check { place, backup, salvage: Some(file), workspace, encryption, .. } => {
            salvage(&Checked::of(&place.data_dir, backup.as_deref()), file, workspace.as_deref(), encryption)
        }
        Store::Check { place, backup, salvage: None, output, .. } => {
            check(&Checked::of(&place.data_dir, backup.as_deref()), *output)
        }
        Store::Backup { from_server: true, server, file, .. } => backups::fetch(&server.kubeconfigs(), file),
        Store::Backup { place, file, .. } => backups::back_up(&place.place.data_dir, &place.directory(), file),
        Store::Restore { place, file, bump_revision } => backups::restore(file, &place.data_dir, *bump_revision),
        Store::Backups(Backups::List { target, output }) => backups::list(target, *output),
        Store::Backups(Backups::Prune { target, keep }) => backups::prune(target, *keep),
    }
}

/// The target of a check.
enum Checked<'a> {
    Directory(&'a Path),
    Backup(&'a Path),
}

impl<'a> Checked<'a> {
    fn of(directory: &'a Path, backup: Option<&'a Path>) -> Checked<'a> {
        match backup {
            Some(other) if other.is_dir() => Checked::Directory(other),
            Some(file) => Checked::Backup(file),
            None => Checked::Directory(directory),
        }
    }
}

/// Verifies a data directory or a backup. The error is one line: the first corruption.
fn check(checked: &Checked<'_>, form: TextOrJson) -> Result<()> {
    let summary = match checked {
        Checked::Directory(directory) => store::check(directory),
        Checked::Backup(file) => store::check_backup(file),
    };
    let summary = summary?;
    let Summary { objects, branches, revision, compacted, torn, stopped } = summary;
    let in_order = stopped == Some(revision) && !torn;
    let text = match form {
        TextOrJson::Json => {
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
            let (objects, branches) = (counted(objects, "object"), backups::with_branches(branches));
            let held = format!("{objects}{branches} at revision {revision}");
            match checked {
                Checked::Directory(directory) => {
                    let directory = directory.display();
                    format!("the store in {directory} is intact: {held}, history from revision {compacted}{end}")
                }
                Checked::Backup(file) => format!("the backup {} is intact: {held}", file.display()),
            }
        }
    };
    logs::print(format!("{text}\n").as_bytes())
}

/// The workspaces of a salvaged store, by name; by uid if their objects are lost.
struct Workspaces(Vec<(String, Option<SalvagedBranch>)>);

impl Workspaces {
    fn of(salvaged: &Salvaged, layout: &Layout) -> Workspaces {
        let mut branches: Vec<_> = salvaged.branches.iter().filter(|branch| !server::is_pristine(&branch.id)).collect();
        let mut all = vec![];
        for (name, uid) in server::workspaces_in(&salvaged.snapshot, layout) {
            let place = branches.iter().position(|branch| uid.as_ref().is_ok_and(|uid| branch.id == uid.as_bytes()));
            all.push((name.to_string(), place.map(|place| branches.swap_remove(place).clone())));
        }
        let unknown = branches.into_iter();
        all.extend(unknown.map(|branch| (String::from_utf8_lossy(&branch.id).into_owned(), Some(branch.clone()))));
        Workspaces(all)
    }

    fn snapshot(&self, name: &str) -> Result<Snapshot> {
        let found = self.0.iter().find(|(known, _)| known == name && !name.is_empty());
        let (_, branch) = found.ok_or_else(|| format!("no workspace {name:?} is found"))?;
        let branch = branch.as_ref().ok_or_else(|| format!("no objects of the workspace {name:?} are found"))?;
        Ok(branch.snapshot.clone())
    }

    /// A line for each workspace of which something may be lost.
    fn losses(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(name, branch)| match branch {
            None => Some(format!(
                "workspace {name}: no objects are found; it is ephemeral, has not been used, or they are lost"
            )),
            Some(SalvagedBranch { snapshot, is_incomplete: true, .. }) => {
                let objects = counted(snapshot.entries.len(), "object");
                let how = if name.is_empty() { "" } else { "; to export them, add --workspace and its name" };
                let name =
                    if name.is_empty() { "a workspace whose beginning is lost" } else { &format!("workspace {name}") };
                Some(format!("{name}: some changes are lost; {objects} can be read{how}"))
            }
            Some(_) => None,
        })
    }
}

/// Exports what can be read from a damaged data directory or backup, and names what cannot. Fails with a one-line message.
fn salvage(checked: &Checked<'_>, file: &Path, workspace: Option<&str>, encryption: &EncryptionFlags) -> Result<()> {
    refuse_existing(file)?;
    let layout = encryption.to_layout(Layout::own())?;
    let (salvaged, what) = match checked {
        Checked::Directory(directory) => (store::salvage(directory), format!("data directory {}", directory.display())),
        Checked::Backup(backup) => (store::salvage_backup(backup), format!("backup {}", backup.display())),
    };
    let salvaged = salvaged?;
    let workspaces = Workspaces::of(&salvaged, &layout);
    let Salvaged { snapshot, mut losses, more, .. } = salvaged;
    let snapshot = match workspace {
        None => snapshot,
        Some(name) => workspaces.snapshot(name)?,
    };
    if !losses.is_empty() && workspace.is_none() {
        losses.extend(workspaces.losses());
    }
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
        _ => fail(format!(
            "{what} is corrupt: {lost} losses are named above; of an object whose last change is lost, the file has an earlier \
             state, if any"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_workspaces_are_named() {
        let branch = |is_incomplete| {
            let entries = vec![store::Entry { key: "k".into(), value: "v".into(), revision: 1 }];
            let snapshot = Snapshot { revision: 1, entries };
            Some(SalvagedBranch { id: "uid".into(), snapshot, is_incomplete })
        };
        let all = [("whole", branch(false)), ("part", branch(true)), ("none", None), ("", branch(true))];
        let workspaces = Workspaces(all.map(|(name, branch)| (name.to_owned(), branch)).into());
        let losses: Vec<String> = workspaces.losses().collect();
        assert_eq!(
            losses,
            [
                "workspace part: some changes are lost; 1 object can be read; to export them, add --workspace and its name",
                "workspace none: no objects are found; it is ephemeral, has not been used, or they are lost",
                "a workspace whose beginning is lost: some changes are lost; 1 object can be read",
            ]
        );
        let found = ["whole", "part", "none", "", "other"].map(|name| workspaces.snapshot(name).is_ok());
        assert_eq!(found, [true, true, false, false, false]);
    }
}
