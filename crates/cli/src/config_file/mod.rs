//! `--config`: a file with flags of `pintle serve`, and `pintle config view`, which prints the flags as such a file.
//!
//! Flags of the command line and environment variables win over the file. Its values are put before the given flags, so that
//! all of them are checked in one place.

mod fields;
mod project;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use client::{Context as _, Result};
use machinery::Value;

use fields::{API_VERSION, FLAG};

const KIND: &str = "ServerConfiguration";
/// The environment variable in place of the flag.
pub const VARIABLE: &str = "PINTLE_CONFIG";
/// The command line with the flags of the file.
pub struct Merged {
    pub arguments: Vec<String>,
    /// How errors name the file, and which flags come from it.
    pub file: Option<(String, BTreeSet<String>)>,
}

/// Adds the flags of the file that the command line names, or of that of the project. Fails with a one-line message.
pub fn merge(command: &Command, arguments: Vec<String>) -> Result<Merged> {
    let file = match project::section(&arguments) {
        Some(section) => project::file(section)?,
        // without a file, a second pass over the flags would cost memory and time
        None if !arguments.iter().any(|argument| argument.starts_with("--config"))
            && std::env::var_os(VARIABLE).is_none() =>
        {
            None
        }
        None => Some(File::Server),
    };
    let Some(file) = file else { return Ok(Merged { arguments, file: None }) };
    // errors of the other flags are reported once all flags are parsed
    let first_look = command.clone().ignore_errors(true).try_get_matches_from(&arguments);
    match first_look.as_ref().ok().and_then(|matches| chosen(command, matches)) {
        Some(chosen) => added(chosen, arguments, file),
        None => Ok(Merged { arguments, file: None }),
    }
}

/// A file with flags.
enum File {
    /// Named by `--config`.
    Server,
    Project(project::Project),
}

fn added((subcommand, matches): (&Command, &ArgMatches), mut arguments: Vec<String>, file: File) -> Result<Merged> {
    let (label, found) = match &file {
        File::Project(project) => (project.label(), project.flags(subcommand)),
        File::Server => {
            let Ok(Some(path)) = matches.try_get_one::<PathBuf>(FLAG) else {
                return Ok(Merged { arguments, file: None });
            };
            let read = fields::read(path, KIND).and_then(|fields| fields::flags(subcommand, &fields));
            (format!("--config: {}", path.display()), read)
        }
    };
    let start = arguments.iter().position(|argument| argument == subcommand.get_name());
    let start = start.map_or(arguments.len(), |at| at + 1);
    let is_given = |flag: &Arg| {
        let source = matches.value_source(flag.get_id().as_str());
        matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    };
    let (mut names, mut added) = (BTreeSet::new(), vec![]);
    for (flag, values) in found.context(&label)? {
        let name = flag.get_long().unwrap_or_default();
        if is_given(flag) {
            continue;
        }
        names.insert(name.to_owned());
        match flag.get_action() {
            ArgAction::SetTrue => {
                added.extend(values.iter().filter(|value| *value == "true").map(|_| format!("--{name}")))
            }
            _ => added.extend(values.into_iter().map(|value| format!("--{name}={value}"))),
        }
    }
    arguments.splice(start..start, added);
    Ok(Merged { arguments, file: Some((label, names)) })
}

/// The innermost subcommand that was given.
pub fn chosen<'a>(command: &'a Command, matches: &'a ArgMatches) -> Option<(&'a Command, &'a ArgMatches)> {
    let (name, matches) = matches.subcommand()?;
    let command = command.find_subcommand(name)?;
    Some(chosen(command, matches).unwrap_or((command, matches)))
}

/// The flags of a command as a file, each with the place that its value is from.
pub fn view(command: &Command, matches: &ArgMatches, from_file: &BTreeSet<String>) -> String {
    let mut text = format!("apiVersion: {API_VERSION}\nkind: {KIND}\n");
    for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
        let (Some(name), id) = (flag.get_long().filter(|name| *name != FLAG), flag.get_id().as_str()) else { continue };
        let Some(values) = matches.try_get_raw(id).ok().flatten() else { continue };
        let mut values: Vec<Value> = values.map(|value| scalar(&value.to_string_lossy())).collect();
        let source = match matches.value_source(id) {
            _ if from_file.contains(name) => "file",
            Some(ValueSource::CommandLine) => "flag",
            Some(ValueSource::EnvVariable) => "environment",
            _ => "default",
        };
        text += &match flag.get_action() {
            ArgAction::Append if !values.is_empty() => {
                let items: String =
                    values.iter().map(|value| format!("- {}", machinery::yaml::encode(value))).collect();
                format!("{name}: # {source}\n{items}")
            }
            _ => {
                let value = values.pop().unwrap_or_default();
                format!("{name}: {} # {source}\n", machinery::yaml::encode(&value).trim_end())
            }
        };
    }
    text
}

/// A value of a flag as YAML has it, if it reads back as the same text.
fn scalar(text: &str) -> Value {
    match (text, text.parse::<i64>()) {
        ("true", _) => Value::Bool(true),
        ("false", _) => Value::Bool(false),
        (_, Ok(number)) if number.to_string() == text => Value::Int(number),
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags;

    const HEAD: &str = "apiVersion: config.pintle.dev/v1alpha1\nkind: ServerConfiguration\n";

    fn merged(content: &str, arguments: &[&str]) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.yaml");
        std::fs::write(&path, content).unwrap();
        let config = format!("--config={}", path.display());
        let given = ["pintle", "serve", config.as_str()].into_iter().chain(arguments.iter().copied());
        let merged = merge(&flags::command(), given.map(str::to_owned).collect());
        merged
            .map(|merged| merged.arguments)
            .map_err(|failure| failure.to_string().replace(&path.display().to_string(), "FILE"))
    }

    #[test]
    fn flags_win_over_the_file() {
        let file =
            format!("{HEAD}secure-port: 1\nanonymous-auth: false\ntls-san: [a, b]\nevent-ttl: 2h\nvmodule: x=1\n");
        let got = merged(&file, &["--secure-port", "7", "--event-ttl=1m"]).unwrap();
        let want = ["--anonymous-auth=false", "--tls-san=a", "--tls-san=b", "--vmodule=x=1"];
        assert_eq!(got[2..6], want);
        assert_eq!(got[7..], ["--secure-port", "7", "--event-ttl=1m"]);
    }

    #[test]
    fn wrong_files_are_errors_of_one_line() {
        let cases = [
            ("", "wanted fields, beginning with apiVersion: config.pintle.dev/v1alpha1 and kind: ServerConfiguration"),
            ("secure-port: 1", "apiVersion is missing; wanted apiVersion: config.pintle.dev/v1alpha1"),
            ("apiVersion: v1", "apiVersion is \"v1\"; wanted \"config.pintle.dev/v1alpha1\""),
            (&format!("{HEAD}secure-prot: 1"), "there is no flag \"secure-prot\"; did you mean \"secure-port\"?"),
            (&format!("{HEAD}qqq: 1"), "there is no flag \"qqq\"; pintle serve --help lists all flags"),
            (&format!("{HEAD}config: x"), "a file cannot name another file"),
            (&format!("{HEAD}secure-port: [1, 2]"), "secure-port: wanted one value, not the list [1,2]"),
            (
                &format!("{HEAD}data-dir: {{a: 1}}"),
                "data-dir: wanted text, a number, a boolean or a list of these, not {\"a\":1}",
            ),
        ];
        for (file, want) in cases {
            assert_eq!(merged(file, &[]), Err(format!("--config: FILE: {want}")), "{file}");
        }
    }

    #[test]
    fn view_reads_back_as_the_same_flags() {
        let arguments = ["pintle", "serve", "--tls-san=a,b", "--write-kubeconfig-mode=0640", "--anonymous-auth=false"];
        let command = flags::command();
        let matches = command.clone().get_matches_from(arguments);
        let (serve, matches) = chosen(&command, &matches).unwrap();
        let text = view(serve, matches, &BTreeSet::new());
        let again = command.clone().get_matches_from(merged(&text, &[]).unwrap());
        let (_, again) = chosen(&command, &again).unwrap();
        for flag in serve.get_arguments().filter(|flag| flag.get_long() != Some(FLAG) && !flag.is_hide_set()) {
            let values = |matches: &ArgMatches| {
                let raw = matches.try_get_raw(flag.get_id().as_str()).ok().flatten();
                raw.map(|values| values.map(ToOwned::to_owned).collect::<Vec<_>>())
            };
            assert_eq!(values(matches), values(again), "{flag}");
        }
    }
}
