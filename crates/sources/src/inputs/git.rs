//! Files of a commit, read by the `git` command.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::error::{Error, GitError};
use crate::spool::{self, Part};

/// The prefix of inputs that name a commit: `git:REF`, or `git:REF:PATH`.
pub const PREFIX: &str = "git:";

/// A commit, and a file or a folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// A branch, a tag or a hash.
    pub reference: String,
    /// The path in the working directory's folder of the repository; empty for all.
    pub path: String,
}

impl Revision {
    /// Reads `git:REF` or `git:REF:PATH`; `None` for other texts.
    pub fn parse(text: &str) -> Option<Revision> {
        let (reference, path) = text.strip_prefix(PREFIX).map(|rest| rest.split_once(':').unwrap_or((rest, "")))?;
        Some(Revision { reference: reference.to_owned(), path: path.trim_end_matches('/').to_owned() })
    }

    /// The files of the commit at or below the path, by their paths relative to the working directory. `is_wanted` selects
    /// them by their path.
    pub fn files(&self, is_wanted: impl Fn(&Path) -> bool) -> Result<BTreeMap<String, Part>, Error> {
        let reference = || self.reference.clone();
        if self.reference.starts_with('-') || self.reference.is_empty() {
            return Err(GitError::NotACommit { reference: reference() }.into());
        }
        let commit = format!("{}^{{commit}}", self.reference);
        let commit = git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit], &[]);
        let commit = commit.map_err(|error| match error {
            GitError::Failed { line: None } => GitError::NoCommit { reference: reference() },
            error => error,
        })?;
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        let path = if self.path.is_empty() { "." } else { &self.path };
        let listed = git(&["ls-tree", "-r", "-z", &commit, "--", path], &[])?;
        let (mut names, mut ids) = (vec![], vec![]);
        for entry in listed.split(|byte| *byte == 0) {
            let entry = String::from_utf8_lossy(entry);
            let Some((head, name)) = entry.split_once('\t') else { continue };
            let mut words = head.split(' ').skip(1);
            if let (Some("blob"), Some(id)) = (words.next(), words.next())
                && (name == self.path || is_wanted(Path::new(name)))
            {
                names.push(name.to_owned());
                ids.extend_from_slice(id.as_bytes());
                ids.push(b'\n');
            }
        }
        if names.is_empty() {
            return Err(GitError::NoManifests { reference: reference(), path: path.to_owned() }.into());
        }
        let contents = spool::unnamed().map_err(|source| Error::Temporary { act: "create", source })?;
        let output = contents.try_clone().map_err(|source| Error::Temporary { act: "use", source })?;
        git_to(&["cat-file", "--batch"], &ids, Stdio::from(output))?;
        let (contents, mut at) = (Arc::new(contents), 0);
        names.into_iter().map(|name| Ok((name, blob(&contents, &mut at)?))).collect()
    }
}

/// The next object of `git cat-file --batch`: a line with its size, its bytes, and a line feed.
fn blob(from: &Arc<File>, at: &mut u64) -> Result<Part, GitError> {
    /// An object id, a type and a size are shorter.
    const HEAD_BYTES_MAX: usize = 256;
    let mut head = [0; HEAD_BYTES_MAX];
    let read = from.read_at(&mut head, *at).map_err(GitError::CatFile)?;
    let end = head[..read].iter().position(|byte| *byte == b'\n').ok_or(GitError::EndedEarly)?;
    let line = String::from_utf8_lossy(&head[..end]);
    let size = line.rsplit(' ').next().and_then(|size| size.parse::<u64>().ok());
    let size = size.ok_or_else(|| GitError::NoHead { line: line.into_owned() })?;
    let start = *at + end as u64 + 1;
    *at = start + size + 1;
    Ok(Part { file: from.clone(), bytes: start..start + size })
}

/// Runs `git` with an input, and returns its output.
fn git(arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, GitError> {
    git_to(arguments, input, Stdio::piped())
}

/// As [`git`], with another place for the output.
fn git_to(arguments: &[&str], input: &[u8], output: Stdio) -> Result<Vec<u8>, GitError> {
    let mut command = Command::new("git");
    command.args(arguments).stdin(Stdio::piped()).stdout(output).stderr(Stdio::piped());
    let mut process = command.spawn().map_err(GitError::NotRun)?;
    let stdin = process.stdin.take();
    std::thread::scope(|scope| {
        // git may write before it has read everything
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        let done = process.wait_with_output().map_err(GitError::NotRun)?;
        if done.status.success() {
            return Ok(done.stdout);
        }
        let first = BufReader::new(done.stderr.as_slice()).lines().next();
        Err(GitError::Failed { line: first.and_then(Result::ok) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_parsed() {
        let revision =
            |reference: &str, path: &str| Revision { reference: reference.to_owned(), path: path.to_owned() };
        for (text, want) in [
            ("git:main", Some(revision("main", ""))),
            ("git:HEAD~1:config/crd/", Some(revision("HEAD~1", "config/crd"))),
            ("config", None),
        ] {
            assert_eq!(Revision::parse(text), want, "{text}");
        }
    }

    #[test]
    fn commits_that_do_not_exist_are_reported_in_one_line() {
        for reference in ["", "-x", "no-such-branch"] {
            let revision = Revision { reference: reference.to_owned(), path: String::new() };
            let why = revision.files(|_| true).unwrap_err().to_string();
            assert!(why.starts_with("git: ") && !why.contains('\n'), "{why}");
        }
    }
}
