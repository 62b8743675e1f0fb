//! `.pintle.yaml`: the flags of commands about the files of a project, by the name of the command.
//!
//! The file is searched in the current directory and in those above it, up to the root of the repository of git. Paths in it are
//! relative to its own directory.

use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use client::{Context as _, Result, fail};
use machinery::Value;

use super::{File, fields};

const NAME: &str = ".pintle.yaml";
const KIND: &str = "ProjectConfiguration";

/// Lists the commands whose flags a file can set, each with its flags that take paths.
const SECTIONS: [(&str, &[&str]); 2] = [("validate", &["crds", "policies", "old"]), ("test", &[])];

/// Begin values that are not paths.
const NO_PATHS: [&str; 2] = ["git:", "kubeconfig"];

/// The flags of one command in a file.
pub struct Project {
    path: PathBuf,
    section: &'static str,
    /// From the current directory to that of the file.
    directory: PathBuf,
}

/// Returns the command that is run, if such files can set its flags.
pub fn section(arguments: &[String]) -> Option<&'static str> {
    let command = arguments.get(1)?;
    SECTIONS.iter().map(|(name, _)| *name).find(|name| name == command)
}

/// Finds the file of the project, if there is one. Fails with a one-line message.
pub fn file(section: &'static str) -> Result<Option<File>> {
    let here = std::env::current_dir().context("cannot find the current directory")?;
    let mut directory = PathBuf::new();
    for above in here.ancestors() {
        let path = directory.join(NAME);
        if above.join(NAME).is_file() {
            return Ok(Some(File::Project(Project { path, section, directory })));
        }
        if above.join(".git").exists() {
            break;
        }
        directory.push("..");
    }
    Ok(None)
}

impl Project {
    pub fn label(&self) -> String {
        self.path.display().to_string()
    }

    /// The flags of the command. The sections of other commands are read when those run.
    pub fn flags<'a>(&self, command: &'a Command) -> Result<Vec<(&'a Arg, Vec<String>)>> {
        let sections = fields::read(&self.path, KIND)?;
        let known: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
        if let Some(other) = sections.keys().find(|name| !known.contains(&name.as_str())) {
            return fail(format!("there are no flags of {other:?}; wanted {}", known.join(" or ")));
        }
        let mut found = match sections.get(self.section) {
            Some(Value::Object(flags)) => fields::flags(command, flags)?,
            Some(other) => return fail(format!("{}: wanted flags, not {}", self.section, other.to_json())),
            None => vec![],
        };
        let paths = SECTIONS.iter().find(|(name, _)| *name == self.section).map_or(&[][..], |(_, paths)| paths);
        for (flag, values) in &mut found {
            if flag.get_long().is_some_and(|name| paths.contains(&name)) {
                values.iter_mut().for_each(|value| *value = placed(&self.directory, value));
            }
        }
        Ok(found)
    }
}

/// A path of the file from the current directory.
fn placed(directory: &Path, value: &str) -> String {
    match NO_PATHS.iter().any(|other| value.starts_with(other)) {
        true => value.to_owned(),
        false => directory.join(value).to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags;

    fn flags_of(text: &str) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        std::fs::write(&path, format!("apiVersion: config.pintle.dev/v1alpha1\nkind: {KIND}\n{text}")).unwrap();
        let project = Project { path, section: "validate", directory: PathBuf::from("../..") };
        let command = flags::command();
        let found = project.flags(command.find_subcommand("validate").unwrap())?;
        Ok(found.iter().map(|(flag, values)| format!("{}={}", flag.get_long().unwrap(), values.join(","))).collect())
    }

    #[test]
    fn flags_of_a_command() {
        let text = "validate:\n  crds: [crds, /etc/crds, kubeconfig]\n  old: git:main\n  policies: [p]\n  ignore-missing: true\n  output: json\ntest: {nosuch: 1}\n";
        let want = [
            "crds=../../crds,/etc/crds,kubeconfig",
            "ignore-missing=true",
            "old=git:main",
            "output=json",
            "policies=../../p",
        ];
        assert_eq!(flags_of(text).unwrap(), want);
        assert_eq!(flags_of("test: {}\n").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn wrong_files_are_errors_of_one_line() {
        for (text, want) in [
            ("validate: {crd: [a]}", "there is no flag \"crd\"; did you mean \"crds\"?"),
            ("validate: [a]", "validate: wanted flags, not [\"a\"]"),
            ("serve: {}", "there are no flags of \"serve\"; wanted validate or test"),
            ("validate: {quiet: 1}", "quiet: wanted true or false, not 1"),
            ("validate: {zzz: 1}", "there is no flag \"zzz\"; pintle validate --help lists all flags"),
        ] {
            assert_eq!(flags_of(text), Err(want.to_owned()), "{text}");
        }
    }
}
