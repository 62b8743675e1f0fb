//! The list of commands in the help of `pintle`, under headings. clap has headings for flags only.

use clap::Command;

/// The commands by what they are for, in the order of the help and of the reference.
pub const HEADINGS: [(&str, &[&str]); 5] = [
    ("Serve", &["serve", "run", "workspace", "assets", "config"]),
    ("Check files", &["validate", "object", "test", "crd", "cel"]),
    ("Test controllers", &["fault", "gate", "clock", "progress", "settle", "report", "record", "replay", "trial"]),
    ("Operate", &["plan", "store", "export", "import", "capture", "storage", "migrate", "certificates", "kubeconfig"]),
    ("Other", &["completion", "man", "version"]),
];

/// The command with headings in its help.
pub fn added_to(command: Command) -> Command {
    let lists: String = HEADINGS.iter().map(|(heading, names)| list(&command, heading, names)).collect();
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{lists}Options:\n{{options}}{{after-help}}"
    ))
}

fn list(command: &Command, heading: &str, names: &[&str]) -> String {
    let lines = names.iter().filter_map(|name| {
        let about = command.find_subcommand(name)?.get_about()?;
        Some(format!("  {name:<14}{about}\n"))
    });
    format!("{heading}:\n{}\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_heading() {
        let command = crate::flags::command();
        let mut names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut listed: Vec<&str> = HEADINGS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        names.sort_unstable();
        listed.sort_unstable();
        assert_eq!(names, listed);
        assert!(added_to(command).render_help().to_string().contains("Check files:\n  validate      Check manifests"));
    }
}
