//! The end of the help of each command: an example, and the address of the documentation.

use clap::Command;

/// The documentation, on GitHub.
const DOCUMENTATION: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/tree/main/docs/src");

/// The examples by command, without the program's name.
const EXAMPLES: [(&str, &[&str]); 65] = [
    ("serve", &["serve", "serve --data-dir /var/lib/pintle --bind-address 0.0.0.0 --tls-san pintle.example.com"]),
    (
        "run",
        &[
            "run -- kubectl get namespaces",
            "run --crds config/crd/bases -- go test ./...",
            "run --progress workloads -- go test ./...",
        ],
    ),
    (
        "validate",
        &[
            "validate config --crds crds",
            "validate - -o github",
            "validate config --old git:main --kubernetes-version 1.36,1.37",
        ],
    ),
    ("object default", &["object default boat.yaml --crds crds", "object default deployment.yaml -o json"]),
    ("object prune", &["object prune boat.yaml --crds crds"]),
    ("object convert", &["object convert scaler.yaml --to v2"]),
    ("object apply", &["object apply boat.yaml --onto live.yaml --crds crds --field-manager ann"]),
    ("object table", &["object table boat.yaml --crds crds --wide"]),
    ("object explain", &["object explain boats.spec --crds crds", "object explain deployments.spec.strategy"]),
    (
        "plan",
        &[
            "plan --from bundle.tar.gz -f deploy",
            "plan --from kubeconfig --delete namespace/shop",
            "plan --from kubeconfig --before './manager-v1' -f crds -- ./manager-v2",
        ],
    ),
    ("store check", &["store check --data-dir /var/lib/pintle", "store check --salvage salvaged.json"]),
    ("store backup", &["store backup backup.pintle", "store backup - > backup.pintle"]),
    ("store restore", &["store restore backup.pintle --data-dir restored"]),
    ("store backups list", &["store backups list /backup"]),
    ("store backups prune", &["store backups prune /backup --keep 7"]),
    ("export", &["export objects.json", "export part.json --namespace default --resource configmaps,secrets"]),
    ("import", &["import objects.json --data-dir new", "import objects.json --etcd-servers http://127.0.0.1:2379"]),
    ("cel eval", &["cel eval self.spec.crew<=self.spec.seats -f boat.yaml --crd crd.yaml", "cel eval 1+1"]),
    ("cel cost", &["cel cost -f config/crd/bases", "cel cost -f crd.yaml -o json"]),
    (
        "crd diff",
        &[
            "crd diff old.yaml new.yaml",
            "crd diff git:v1.2.0:config/crd config/crd -o github",
            "crd diff kubeconfig crd.yaml --objects kubeconfig",
        ],
    ),
    (
        "test",
        &[
            "test",
            "test config/crd -o junit",
            "test boats.testsuite.yaml --update",
            "test --schema > suite.schema.json",
        ],
    ),
    ("migrate third-party-resource", &["migrate third-party-resource cron-tab.stable.example.com --dry-run"]),
    ("storage migrate", &["storage migrate crontabs.stable.example.com", "storage migrate --all --dry-run"]),
    ("storage rewrite", &["storage rewrite --resource secrets"]),
    ("assets", &["assets bin/assets", "assets use 1.37.x --bin-dir bin -p path"]),
    ("assets use", &["assets use 1.37.x --bin-dir bin -p path"]),
    ("assets list", &["assets list --bin-dir bin"]),
    ("certificates list", &["certificates list", "certificates list -o json"]),
    ("certificates renew", &["certificates renew serving"]),
    ("certificates rotate-ca", &["certificates rotate-ca", "certificates rotate-ca --finish"]),
    (
        "kubeconfig create",
        &["kubeconfig create jane --group viewers --ttl 30d > jane.kubeconfig", "kubeconfig create jane --merge"],
    ),
    ("workspace create", &["workspace create test-1", "workspace create test-1 -o kubeconfig > test-1.kubeconfig"]),
    ("workspace fork", &["workspace fork template test-1 --ttl 10m"]),
    ("workspace template", &["workspace template crds-v1 -- kubectl apply -f crds/"]),
    ("workspace list", &["workspace list", "workspace list -o json"]),
    ("workspace reset", &["workspace reset test-1"]),
    ("workspace delete", &["workspace delete test-1 test-2"]),
    ("workspace kubeconfig", &["workspace kubeconfig test-1 > test-1.kubeconfig"]),
    ("workspace diff", &["workspace diff template test-1", "workspace diff test-1 -o patch"]),
    (
        "fault create",
        &[
            "fault create busy --recipe throttled",
            "fault create lost --resource configmaps --verb update --after-commit reset --every 3",
            "fault create late --watch delay --delay 2s --user system:serviceaccount:default:robo --workspace test-1",
        ],
    ),
    ("fault wait", &["fault wait lost", "fault wait lost --hits 3 --timeout 1m"]),
    ("fault list", &["fault list", "fault list -o json"]),
    ("fault delete", &["fault delete busy lost", "fault delete --all"]),
    ("gate hold", &["gate hold pods --resource pods", "gate hold mine --user-agent manager/* --order reversed"]),
    ("gate release", &["gate release pods -n 1", "gate release pods"]),
    ("gate list", &["gate list", "gate list --workspace test-1"]),
    ("gate delete", &["gate delete pods", "gate delete --all"]),
    ("progress", &["progress", "progress workloads > workloads.yaml"]),
    ("clock stop", &["clock stop", "clock stop --time 2030-01-01T00:00:00Z --seed 7 --workspace test-1"]),
    ("clock advance", &["clock advance 90s", "clock advance 720h --workspace test-1"]),
    ("clock set", &["clock set 2030-01-01T00:00:00Z"]),
    ("clock resume", &["clock resume"]),
    ("clock show", &["clock show", "clock show -o json"]),
    ("clock delete", &["clock delete"]),
    ("clock exec", &["clock exec -- python3 controller.py", "clock exec --workspace test-1 -- java -jar operator.jar"]),
    (
        "capture",
        &[
            "capture cluster.tar.gz --logs",
            "capture --from kubeconfig:prod.yaml#admin prod.tar.gz",
            "capture --from etcd.db objects",
        ],
    ),
    ("record", &["record -o bug.json -- kubectl apply -f boat.yaml", "record -o bug.json --workspace test-1"]),
    (
        "replay",
        &[
            "replay bug.json",
            "replay bug.json --kubeconfig other.kubeconfig",
            "replay bug.json --server https://127.0.0.1:6443",
        ],
    ),
    (
        "trial",
        &[
            "trial trial.yaml",
            "trial trial.yaml --cell 2:lost:manager:create:configmaps:1",
            "trial --start ./manager --setup config/crd --steps steps.yaml --check ./check.sh --budget 2m",
        ],
    ),
    ("settle", &["settle", "settle --quiet 500ms --timeout 20s --workspace test-1"]),
    (
        "report",
        &[
            "report",
            "report --reset --expect writesAtRest=0,forbidden=0 -o junit",
            "report --user-agent 'manager/*' -o roles",
        ],
    ),
    ("config view", &["config view --config config.yaml"]),
    ("completion", &["completion bash > /etc/bash_completion.d/pintle"]),
    ("man", &["man /usr/local/share/man/man1"]),
    ("version", &["version -o json"]),
];

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
    let exact = EXAMPLES.iter().find(|(command, _)| *command == path);
    let within = || EXAMPLES.iter().find(|(command, _)| command.starts_with(&format!("{path} ")));
    let lines = exact.or_else(within).map_or(&[][..], |(_, lines)| lines);
    let lines: String = lines.iter().map(|line| format!("  pintle {line}\n")).collect();
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
            assert!(EXAMPLES.iter().any(|(command, _)| *command == path), "{path} has no example");
        }
        for (path, lines) in EXAMPLES {
            for line in lines {
                let line = line.split(" > ").next().unwrap();
                assert!(line.starts_with(path), "{line}");
                let words = ["pintle"].into_iter().chain(line.split_whitespace());
                let parsed = crate::flags::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
