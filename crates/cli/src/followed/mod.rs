//! `-f`: the objects of files are applied at the start and when a file changes, and deleted when they are gone from the files.

mod api;
mod changes;
mod directory;
mod read;
mod statuses;

use std::path::{Path, PathBuf};

use base::task;
use clap::Args;
use client::{Context as _, Result, fail};
use server::Server;

use self::api::Api;
use self::changes::Changes;
use self::directory::FollowedFiles;
use self::statuses::Statuses;

/// The label of objects that were applied from a file, and the annotation with its name.
const APPLIED_LABEL: &str = "sources.pintle.dev/applied";
const FILE_ANNOTATION: &str = "sources.pintle.dev/file";

#[derive(Args)]
pub struct FollowFlags {
    /// Directory or file with manifests to apply, and to follow: an edit is applied, and what is gone from the files is deleted. May
    /// be repeated.
    #[arg(short, long, value_name = "PATH")]
    pub filename: Vec<PathBuf>,

    /// Directory to which the statuses of the objects of -f are written, each in a file.
    #[arg(long, value_name = "DIR", requires = "filename")]
    pub status_dir: Option<PathBuf>,
}

/// Fails with a one-line message if a path cannot be followed.
fn check(path: &Path) -> Result<()> {
    let failed = |why: &str| fail(format!("-f {}: {why}", path.display()));
    match std::fs::metadata(path) {
        _ if path == Path::new("-") => failed("stdin cannot be followed; --from reads it"),
        Ok(found) if found.is_dir() || found.is_file() => Ok(()),
        Ok(_) => failed("this is neither a directory nor a file"),
        Err(error) => failed(&error.to_string()),
    }
}

impl FollowFlags {
    /// Fails with a one-line message if a path cannot be followed, or statuses would be read as manifests.
    pub fn check(&self) -> Result<()> {
        self.filename.iter().try_for_each(|path| check(path))?;
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let Some(statuses) = self.status_dir.as_deref().map(absolute) else { return Ok(()) };
        match self.filename.iter().find(|path| statuses.starts_with(absolute(path))) {
            Some(path) => fail(format!("--status-dir must not be in {}, which -f reads", path.display())),
            None => Ok(()),
        }
    }

    /// Applies the files, and goes on with their changes while the server runs. Objects of an earlier run are looked for if the
    /// store may have some. Returns how many files could not be applied.
    pub async fn start(&self, server: &Server, earlier: Earlier) -> Result<usize> {
        if self.filename.is_empty() {
            return Ok(0);
        }
        let changes = Changes::begin()?;
        let api = Api::new(server.local());
        let statuses = self.status_dir.clone().map(|to| Statuses::new(to, api.clone()));
        let mut directory = FollowedFiles::new(self.filename.clone(), api, statuses);
        // on a worker, whose stack is that of requests
        let first = task::spawn("followed files", async move {
            let mut changes = changes;
            if earlier == Earlier::Kept {
                directory.find_applied().await;
            }
            let mut next = directory.pass(&mut changes).await;
            let wrong = directory.wrong();
            task::spawn("changes of files", async move {
                loop {
                    changes.wait(next).await;
                    next = directory.pass(&mut changes).await;
                }
            });
            wrong
        });
        first.await.context("the files of -f cannot be applied")
    }
}

/// Whether the store may have objects that an earlier run has applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    None,
    Kept,
}
