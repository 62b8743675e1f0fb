//! Where suites are.

use crate::error::Error;
use std::path::{Path, PathBuf};

/// The ending of the names of suites anywhere.
const ENDING: &str = ".testsuite.yaml";

/// The files that may be suites, in the order of the paths and sorted in directories: those that are named, and in directories
/// `*.testsuite.yaml` and, as openshift/api has them, all YAML in `tests/NAME/`.
pub fn suites(paths: &[PathBuf], problems: &mut Vec<String>) -> Vec<PathBuf> {
    let mut found = vec![];
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
        } else if let Err(why) = walk(path, &mut found) {
            problems.push(why.to_string());
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|file| seen.insert(file.clone()));
    found
}

/// Links to directories are not followed; directories whose names begin with a dot, and vendored ones, are left out.
fn walk(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |source| sources::Error::Unreadable { name: directory.display().to_string(), source };
    let mut entries = std::fs::read_dir(directory).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(failed)?.is_dir() {
            if !name.starts_with('.') && name != "vendor" {
                walk(&path, found)?;
            }
        } else if is_suite(&path, &name) {
            found.push(path);
        }
    }
    Ok(())
}

fn is_suite(path: &Path, name: &str) -> bool {
    let above = path.parent().and_then(Path::parent).and_then(Path::file_name);
    name.ends_with(ENDING) || name.ends_with(".yaml") && above.is_some_and(|above| above == "tests")
}
