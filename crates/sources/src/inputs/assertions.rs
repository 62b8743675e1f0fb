//! What tests of operators expect: chainsaw and kuttl compare parts of objects with those of a cluster. They look like manifests.

use std::ffi::OsStr;
use std::path::Path;

use machinery::{Value, yaml};

use super::Input;
use crate::limits::PRELOADED_FILE_BYTES_MAX;

const CHAINSAW: &str = "chainsaw-test.yaml";

/// Whether a file has the name of an expectation of kuttl, such as `01-assert.yaml`, or a test of chainsaw beside it names it as one.
pub fn is_assertion(file: &Path) -> bool {
    let text = |part: Option<&OsStr>| part.and_then(OsStr::to_str).unwrap_or_default().to_owned();
    let stem = text(file.file_stem());
    let mut words = stem.split('-');
    let is_step = words.next().is_some_and(|step| !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()));
    if is_step && matches!(words.next(), Some("assert" | "errors")) {
        return true;
    }
    let test = Input::File(file.with_file_name(CHAINSAW)).text(PRELOADED_FILE_BYTES_MAX).ok();
    let test = test.and_then(|test| yaml::decode(&test).ok());
    test.is_some_and(|test| expects(&test.value, &text(file.file_name())))
}

/// Whether a part of a test of chainsaw names a file as an expectation.
fn expects(part: &Value, name: &str) -> bool {
    let names = |operation: &str| {
        let file = part.str_at(&[operation, "file"]);
        file.strip_prefix("./").unwrap_or(file) == name
    };
    names("assert")
        || names("error")
        || part.fields().any(|(_, field)| expects(field, name))
        || part.as_array().is_some_and(|items| items.iter().any(|item| expects(item, name)))
}
