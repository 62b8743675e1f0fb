//! The first start in a data directory. Keys without a store are what a lost log leaves: a server that made a new store beside
//! them would serve an empty API to clients whose credentials are valid, and controllers would take that for the truth.

use std::path::{Path, PathBuf};

use client::{Context as _, Result, fail};

use crate::backups::KEPT_FILES;
use crate::files::remove_existing;
use crate::flags::Engine;

/// The file of a directory in which no store has been completed yet.
const NEW: &str = "NEW";
/// The parts of a store, which its engine judges.
const STORE: [&str; 5] = ["FORMAT", "log", "log.tmp", "UNFINISHED", "UNFINISHED.tmp"];

/// The start of a server in a directory that may be new.
pub struct FirstStart {
    mark: PathBuf,
}

impl FirstStart {
    /// Refuses keys without a store, and marks a directory that has neither: a start that is interrupted may make keys before
    /// its store is complete. Fails with a one-line message.
    pub fn begin(directory: &Path, engine: Engine) -> Result<FirstStart> {
        let mark = directory.join(NEW);
        let keys: Vec<&str> = KEPT_FILES.into_iter().filter(|name| directory.join(name).exists()).collect();
        let is_open = STORE.iter().any(|name| directory.join(name).exists()) || mark.exists();
        match (is_open, keys.is_empty()) {
            (true, _) => {}
            (false, true) => {
                // not synced: a file system that forgets it forgets the keys, which are newer, too
                std::fs::write(&mark, "").cannot("write", &mark)?;
            }
            (false, false) if engine == Engine::Embedded => {
                return fail(format!(
                    "data directory {} has {} but no store; if the store was lost, restore a backup into a new directory with \
                     \"pintle store restore\"; to serve an empty API with these keys, create the file {}",
                    directory.display(),
                    keys.join(", "),
                    mark.display()
                ));
            }
            (false, false) => {}
        }
        Ok(FirstStart { mark })
    }

    /// Removes the mark, once a store is there. Other engines leave it, since a store may still be made.
    pub fn complete(self, engine: Engine) -> Result<()> {
        if engine == Engine::Embedded { remove_existing(&self.mark) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_a_store_are_refused_unless_no_store_was_ever_complete() {
        let cases: [(&[&str], Engine, bool); 7] = [
            (&[], Engine::Embedded, true),
            (&["ca.key"], Engine::Embedded, false),
            (&["service-account.key"], Engine::Embedded, false),
            (&["ca.key", "NEW"], Engine::Embedded, true),
            (&["ca.key", "FORMAT"], Engine::Embedded, true),
            (&["ca.key", "UNFINISHED"], Engine::Embedded, true),
            (&["ca.key"], Engine::Memory, true),
        ];
        for (files, engine, is_accepted) in cases {
            let directory = tempfile::tempdir().unwrap();
            files.iter().for_each(|name| std::fs::write(directory.path().join(name), "").unwrap());
            let begun = FirstStart::begin(directory.path(), engine);
            assert_eq!(begun.is_ok(), is_accepted, "{files:?}");
        }
    }

    #[test]
    fn interrupted_first_starts_may_continue() {
        let directory = tempfile::tempdir().unwrap();
        // a server with another engine leaves its keys
        let memory = FirstStart::begin(directory.path(), Engine::Memory).unwrap();
        std::fs::write(directory.path().join("ca.key"), "").unwrap();
        memory.complete(Engine::Memory).unwrap();
        let interrupted = FirstStart::begin(directory.path(), Engine::Embedded).unwrap();
        drop(interrupted);
        let whole = FirstStart::begin(directory.path(), Engine::Embedded).unwrap();
        whole.complete(Engine::Embedded).unwrap();
        let refused = FirstStart::begin(directory.path(), Engine::Embedded).err().unwrap().to_string();
        assert!(refused.contains("has ca.key but no store"), "{refused}");
    }
}
