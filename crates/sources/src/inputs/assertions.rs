//! What tests of operators expect: chainsaw and kuttl compare parts of objects with those of a cluster. They look like manifests.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use machinery::{Value, yaml};

use super::Input;
use crate::limits::PRELOADED_FILE_BYTES_MAX;

const CHAINSAW: &str = "chainsaw-test.yaml";

/// Keeps the expectations that the tests of chainsaw name, by the directory of the test, which is read once.
#[derive(Debug, Default)]
pub struct Assertions(HashMap<PathBuf, HashSet<String>>);

impl Assertions {
    /// Whether a file has the name of an expectation of kuttl, such as `01-assert.yaml`, or a test of chainsaw beside it names it
    /// as one.
    pub fn contain(&mut self, file: &Path) -> bool {
        let text = |part: Option<&OsStr>| part.and_then(OsStr::to_str).unwrap_or_default().to_owned();
        let stem = text(file.file_stem());
        let mut words = stem.split('-');
        let is_step =
            words.next().is_some_and(|step| !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()));
        if is_step && matches!(words.next(), Some("assert" | "errors")) {
            return true;
        }
        let directory = file.parent().unwrap_or(Path::new(""));
        if !self.0.contains_key(directory) {
            self.0.insert(directory.to_owned(), expectations(directory));
        }
        self.0.get(directory).is_some_and(|names| names.contains(&text(file.file_name())))
    }
}

fn expectations(directory: &Path) -> HashSet<String> {
    let test = Input::File(directory.join(CHAINSAW)).text(PRELOADED_FILE_BYTES_MAX).ok();
    let mut names = HashSet::new();
    if let Some(test) = test.and_then(|test| yaml::decode(&test).ok()) {
        collect(&test.value, &mut names);
    }
    names
}

/// Adds the files that a part of a test of chainsaw names as expectations.
fn collect(part: &Value, names: &mut HashSet<String>) {
    let files = ["assert", "error"].map(|operation| part.str_at(&[operation, "file"]));
    names.extend(
        files.iter().filter(|file| !file.is_empty()).map(|file| file.strip_prefix("./").unwrap_or(file).into()),
    );
    part.fields().for_each(|(_, field)| collect(field, names));
    part.as_array().into_iter().flatten().for_each(|item| collect(item, names));
}
