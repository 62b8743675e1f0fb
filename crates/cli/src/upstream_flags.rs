//! The flags of kube-apiserver that `pintle serve` accepts without effect. They are hidden in its help.

use clap::{Arg, ArgAction, ArgMatches, Command};

/// Every flag of kube-apiserver, and whether it is a `bool` or has a `value`.
const FLAGS: &str = include_str!("upstream_flags.txt");
/// Flags that clap adds to every command.
const BUILT_IN: [&str; 2] = ["help", "version"];

/// Every flag of kube-apiserver, and whether it has a value.
pub fn all() -> impl Iterator<Item = (&'static str, bool)> {
    FLAGS.lines().filter_map(|line| line.split_once(' ')).map(|(name, kind)| (name, kind == "value"))
}

/// Whether a flag of kube-apiserver has a value; `None` if there is no such flag.
pub fn has_value(name: &str) -> Option<bool> {
    all().find(|(known, _)| *known == name).map(|(_, has_value)| has_value)
}

/// Adds the missing flags to the command `serve`. As in kube-apiserver, the last value of a flag counts.
pub fn added_to(serve: Command) -> Command {
    let own: Vec<String> = serve.get_arguments().filter_map(Arg::get_long).map(str::to_owned).collect();
    let missing = all().filter(|(name, _)| !BUILT_IN.contains(name) && !own.iter().any(|own| own == name));
    serve.args_override_self(true).args(missing.map(|(name, has_value)| hidden(name, has_value)))
}

/// The id of a flag, which differs from those of Pintle's own flags.
fn id(name: &str) -> String {
    format!("kube-apiserver {name}")
}

fn hidden(name: &'static str, has_value: bool) -> Arg {
    let flag = Arg::new(id(name)).long(name).hide(true);
    if has_value {
        flag.action(ArgAction::Append).allow_hyphen_values(true)
    } else {
        flag.action(ArgAction::Set).num_args(0..=1).require_equals(true).default_missing_value("true")
    }
}

/// The given flags that have no effect, as `--name`.
pub fn without_effect(serve: &ArgMatches) -> Vec<String> {
    let is_given = |name: &str| matches!(serve.try_contains_id(&id(name)), Ok(true));
    all().filter(|(name, _)| is_given(name)).map(|(name, _)| format!("--{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::command;

    const SERVE: &str = "serve";

    fn parse(arguments: &[&str]) -> Result<Vec<String>, clap::Error> {
        let arguments = ["pintle", SERVE].into_iter().chain(arguments.iter().copied());
        let given = command().try_get_matches_from(arguments);
        given.map(|given| without_effect(given.subcommand_matches(SERVE).unwrap()))
    }

    #[test]
    fn every_flag_of_kube_apiserver_is_accepted() {
        let command = command();
        let serve = command.find_subcommand(SERVE).unwrap();
        for (name, has_value) in all().filter(|(name, _)| !BUILT_IN.contains(name)) {
            let flag = serve.get_arguments().find(|flag| flag.get_long() == Some(name)).unwrap();
            let takes_none = flag.get_num_args().is_some_and(|count| count.min_values() == 0);
            assert_eq!(takes_none, !has_value, "--{name}");
        }
    }

    #[test]
    fn flags_without_effect_are_found() {
        let cases: [(&[&str], &[&str]); 4] = [
            (&["--secure-port=1", "--secure-port", "2", "--anonymous-auth"], &[]),
            (&["--vmodule", "a=1", "-v", "2", "--allow-privileged"], &["--allow-privileged", "--vmodule"]),
            (&["--allow-privileged=false", "--allow-privileged=true"], &["--allow-privileged"]),
            (&["--etcd-healthcheck-timeout=1s", "--anonymous-auth=false"], &["--etcd-healthcheck-timeout"]),
        ];
        for (given, want) in cases {
            assert_eq!(parse(given).unwrap(), want, "{given:?}");
        }
    }

    #[test]
    fn unknown_flags_are_errors_with_a_suggestion() {
        let error = parse(&["--alow-privileged"]).unwrap_err().to_string();
        assert!(error.contains("'--allow-privileged'"), "{error}");
    }
}
