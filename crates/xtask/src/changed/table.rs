//! `tests/changed.txt`: which files run which tests.

use std::path::Path;

use client::{Context as _, Result};

use crate::workspace;

pub const TABLE: &str = "tests/changed.txt";
/// The files of the black-box tests have the names `test_NAME.py` here.
const BLACKBOX: &str = "tests/blackbox/";
/// The name of all sections together.
const ALL: &str = "all";
/// The script that lists the sections.
const RUN: &str = "tests/run";

/// The tests that a changed file runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    Section(String),
    Crate(String),
    /// A file of the black-box tests.
    File(String),
}

/// A line: the beginning of paths, and what they run.
struct Line {
    number: usize,
    beginning: String,
    runs: Vec<Runs>,
}

pub struct Table(Vec<Line>);

impl Table {
    pub fn read(root: &Path) -> Result<Table> {
        let text = std::fs::read_to_string(root.join(TABLE)).context(format_args!("cannot read {TABLE}"))?;
        Ok(Table::parse(&text, &blackbox_files(&workspace::files(root)?)))
    }

    fn parse(text: &str, files: &[String]) -> Table {
        let runs = |name: &str| match (name, name.split_at_checked(1)) {
            (ALL, _) => files.iter().cloned().map(Runs::File).collect(),
            (_, Some((".", section))) => vec![Runs::Section(section.to_owned())],
            (_, Some(("@", of))) => vec![Runs::Crate(of.to_owned())],
            _ => vec![Runs::File(file_of(name))],
        };
        let line = |(number, line): (usize, &str)| {
            let mut words = line.split_whitespace();
            let beginning = words.next().filter(|word| !word.starts_with('#'))?.to_owned();
            Some(Line { number, beginning, runs: words.flat_map(runs).collect() })
        };
        Table((1..).zip(text.lines()).filter_map(line).collect())
    }

    /// The tests of a file, besides the unit tests of its crate.
    pub fn of(&self, path: &str) -> Vec<Runs> {
        let itself = is_blackbox(path).then(|| Runs::File(path.to_owned()));
        let found = self.0.iter().filter(|line| path.starts_with(&line.beginning));
        match found.max_by_key(|line| line.beginning.len()) {
            Some(line) => line.runs.iter().cloned().chain(itself).collect(),
            None => vec![itself.unwrap_or_else(|| Runs::Section(ALL.to_owned()))],
        }
    }

    /// The lines that name what does not exist, and the files of black-box tests that none names.
    pub fn problems(&self, root: &Path) -> Result<Vec<(usize, String)>> {
        let script = std::fs::read_to_string(root.join(RUN)).context(format_args!("cannot read {RUN}"))?;
        let sections = sections(&script).ok_or_else(|| format!("{RUN} lists no sections"))?;
        Ok(self.unknown(&workspace::files(root)?, &sections))
    }

    fn unknown(&self, paths: &[String], sections: &[&str]) -> Vec<(usize, String)> {
        let mut problems = vec![];
        for line in &self.0 {
            let mut problem = |what: String| problems.push((line.number, what));
            if !paths.iter().any(|path| path.starts_with(&line.beginning)) {
                problem(format!("no file begins with {}", line.beginning));
            }
            for runs in &line.runs {
                match runs {
                    Runs::File(path) if !paths.contains(path) => problem(format!("there is no {path}")),
                    Runs::Section(name) if !sections.contains(&name.as_str()) => {
                        problem(format!("there is no section {name}"));
                    }
                    Runs::Crate(name) if !paths.contains(&format!("crates/{name}/Cargo.toml")) => {
                        problem(format!("there is no crate {name}"));
                    }
                    _ => {}
                }
            }
        }
        let files = blackbox_files(paths);
        // a line that names all of them says nothing about one
        let named = |file: &&String| {
            let names_all = |line: &Line| files.iter().all(|file| line.runs.contains(&Runs::File(file.clone())));
            let mut lines = self.0.iter().filter(|line| !names_all(line));
            lines.any(|line| line.beginning == **file || line.runs.contains(&Runs::File((*file).clone())))
        };
        let unnamed = files.iter().filter(|file| !named(file));
        problems.extend(unnamed.map(|file| (1, format!("no line names {file}"))));
        problems
    }
}

/// The sections that the script lists.
fn sections(script: &str) -> Option<Vec<&str>> {
    let list = script.lines().find_map(|line| line.strip_prefix("sections=(")?.strip_suffix(')'))?;
    Some(list.split_whitespace().collect())
}

fn file_of(name: &str) -> String {
    format!("{BLACKBOX}test_{name}.py")
}

fn is_blackbox(path: &str) -> bool {
    path.starts_with(file_of("").trim_end_matches(".py")) && path.ends_with(".py")
}

fn blackbox_files(paths: &[String]) -> Vec<String> {
    paths.iter().filter(|path| is_blackbox(path)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Vec<String> {
        let paths = [
            "crates/cel/Cargo.toml", "crates/cel/src/lib.rs", "docs/a.md", "tests/blackbox/test_a.py",
            "tests/blackbox/test_b.py",
        ];
        paths.map(str::to_owned).into()
    }

    #[test]
    fn longest_beginning_decides() {
        let table = Table::parse(
            "# note\ncrates/ all\ncrates/cel/ b .fuzz @schema\ndocs/\ntests/blackbox/test_a.py .fuzz\n",
            &blackbox_files(&paths()),
        );
        let file = |name: &str| Runs::File(file_of(name));
        for (path, runs) in [
            (
                "crates/cel/src/lib.rs",
                vec![file("b"), Runs::Section("fuzz".to_owned()), Runs::Crate("schema".to_owned())],
            ),
            ("crates/store/src/lib.rs", vec![file("a"), file("b")]),
            ("tests/blackbox/test_a.py", vec![Runs::Section("fuzz".to_owned()), file("a")]),
            ("tests/blackbox/test_c.py", vec![file("c")]),
            ("docs/a.md", vec![]),
            ("Cargo.toml", vec![Runs::Section(ALL.to_owned())]),
        ] {
            assert_eq!(table.of(path), runs, "{path}");
        }
    }

    #[test]
    fn sections_are_those_of_the_script() {
        assert_eq!(sections("#\nsections=(format fuzz)\nquick=(format)\n"), Some(vec!["format", "fuzz"]));
        assert_eq!(sections("quick=(format)\n"), None);
    }

    #[test]
    fn every_line_and_every_file_is_used() {
        let problems = |text: &str| -> Vec<String> {
            let found = Table::parse(text, &blackbox_files(&paths())).unknown(&paths(), &["fuzz"]);
            found.iter().map(|(line, what)| format!("{line}: {what}")).collect()
        };
        assert!(problems("docs/ a\ncrates/cel/ b @cel\n").is_empty());
        assert!(problems("docs/ a\ntests/blackbox/test_b.py .fuzz\n").is_empty());
        assert_eq!(
            problems("docs/ a c\ncrates/ all @x .fuzz .unit\nfuzz/ b\n"),
            [
                "1: there is no tests/blackbox/test_c.py",
                "2: there is no crate x",
                "2: there is no section unit",
                "3: no file begins with fuzz/",
            ]
        );
        assert_eq!(problems("docs/ a\ncrates/ all\n"), ["1: no line names tests/blackbox/test_b.py"]);
    }
}
