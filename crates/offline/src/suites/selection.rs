//! The cases that are run.

use std::sync::Arc;

use cel::regex::Regex;

use super::format::{Case, Suite};
use crate::error::Error;

/// The cases that match one pattern and do not match another, by their suite, their place and their name, as in
/// `boats.testsuite.yaml onCreate[1]: the crew needs seats`.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    run: Option<Arc<Regex>>,
    skip: Option<Arc<Regex>>,
}

impl Selection {
    /// Patterns are regular expressions, of which a part of the text has to match. Fails with a one-line message.
    pub fn new(run: Option<&str>, skip: Option<&str>) -> Result<Selection, Error> {
        let pattern = |flag: &str, text: Option<&str>| {
            let compiled = text.map(|text| Regex::new(text).map(Arc::new)).transpose();
            compiled.map_err(|error| format!("{flag}: {error}"))
        };
        Ok(Selection { run: pattern("--run", run)?, skip: pattern("--skip", skip)? })
    }

    /// Removes the other cases of a suite, and returns their number.
    pub fn apply(&self, suite: &mut Suite) -> usize {
        let before = suite.cases.len();
        let file = suite.file.display().to_string();
        suite.cases.retain(|case| self.has(&file, case));
        before - suite.cases.len()
    }

    fn has(&self, file: &str, case: &Case) -> bool {
        let text = format!("{file} {}[{}]: {}", case.place.0, case.place.1, case.name);
        let matches = |pattern: &Option<Arc<Regex>>| pattern.as_ref().map(|pattern| pattern.is_match(&text));
        matches(&self.run) != Some(false) && matches(&self.skip) != Some(true)
    }
}
