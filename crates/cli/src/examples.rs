//! The end of the help of each command: an example, and the address of the documentation.

use clap::Command;

/// The documentation, on GitHub.
const DOCUMENTATION: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/tree/main/docs/src");

/// The commands without the program's name, each with its examples in the lines below it.
const EXAMPLES: &str = include_str!("examples.txt");

fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.split("\n\n").filter_map(|block| block.split_once('\n'))
}

/// The command with the examples after the help of each of its subcommands.
pub fn added_to(command: Command) -> Command {
    let command = command.after_help(format!("Documentation: {DOCUMENTATION}"));
    of_commands(command, "")
}

fn of_commands(mut command: Command, prefix: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        let path = format!("{prefix}{name}");
        command = command.mut_subcommand(&name, |command| {
            let command = command.after_help(text(&path));
            of_commands(command, &format!("{path} "))
        });
    }
    command
}

/// The examples of a command; for a group of commands, those of its first command that has examples.
fn text(path: &str) -> String {
    let exact = examples().find(|(command, _)| *command == path);
    let within = || examples().find(|(command, _)| command.starts_with(&format!("{path} ")));
    let lines = exact.or_else(within).map_or("", |(_, lines)| lines);
    let lines: String = lines.lines().map(|line| format!("  pintle {}\n", line.trim())).collect();
    format!("Examples:\n{lines}\nDocumentation: {DOCUMENTATION}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(command: &Command, prefix: &str, found: &mut Vec<String>) {
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            assert!(argument.get_help().is_some(), "{prefix}: {} is not described", argument.get_id());
        }
        for sub in command.get_subcommands() {
            let path = format!("{prefix}{}", sub.get_name());
            if sub.has_subcommands() {
                leaves(sub, &format!("{path} "), found);
            } else {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_argument_is_described_and_every_command_has_examples_that_can_be_parsed() {
        let mut found = vec![];
        leaves(&crate::flags::command(), "", &mut found);
        for path in found {
            assert!(examples().any(|(command, _)| command == path), "{path} has no example");
        }
        for (path, lines) in examples() {
            for line in lines.lines() {
                let line = line.trim().split(" > ").next().unwrap();
                assert!(line.starts_with(path), "{line}");
                let words = ["pintle"].into_iter().chain(line.split_whitespace());
                let parsed = crate::flags::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
