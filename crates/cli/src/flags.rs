//! The command line: commands and flags with their help. Flags have kube-apiserver's names where it has them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use clap::error::ContextKind;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use client::{Failure, Result};

use crate::backups::ScheduleFlags;
use crate::captures::ClockFlag;
use crate::certificate_tasks::CertificateTask;
use crate::config_file::{self, Merged};
use crate::encryption::EncryptionFlags;
use crate::envtest::Assets;
use crate::etcd_flags::Etcd;
use crate::followed::FollowFlags;
use crate::objects::ObjectTask;
use crate::place::{CertificatePlace, Place, RunningServer};
use crate::testing::{ClockTask, FaultTask, GateTask, RecordTask, ReplayTask, ReportTask, Settle};
use crate::transfer::{Export, Import};
use crate::users::KubeconfigTask;
use crate::values::{TextOrJson, context_name, domain, durability, duration, mode, number, renamed, subject_name};
use crate::workspaces::WorkspaceTask;
use crate::{examples, headings, short_help, upstream_flags};

/// The Kubernetes API for custom resources, without Kubernetes.
#[derive(Parser)]
#[command(name = "pintle", version = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("PINTLE_COMMIT"), ")"), about, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

pub struct GivenFlags {
    /// The values of all flags, for `/flagz`.
    pub shown: BTreeMap<String, String>,
    /// The flags that are given, by any means, as `name=value`.
    pub changed: Vec<String>,
    /// The flags of kube-apiserver that have no effect.
    pub without_effect: Vec<String>,
    /// The flags as a file for `--config`.
    pub file: String,
}

/// The commands, with the flags of kube-apiserver that are accepted without effect.
pub fn command() -> clap::Command {
    let serve = |command| short_help::applied_to(upstream_flags::added_to(command));
    let command = Arguments::command().mut_subcommand("serve", serve);
    command.mut_subcommand("config", |config| config.mut_subcommand("view", serve))
}

/// The command `serve` alone, for starts: the other commands and what is only shown take longer to make than flags to parse.
fn serve_alone() -> clap::Command {
    let serve = Serve::augment_args(clap::Command::new("serve"));
    clap::Command::new("pintle").subcommand(upstream_flags::added_to(serve))
}

/// Whether a server is to be started, and no help may be asked for.
fn is_plain_start(given: &[String]) -> bool {
    let may_be_help =
        |flag: &String| flag == "help" || flag == "--help" || flag.starts_with('-') && !flag.starts_with("--");
    given.get(1).is_some_and(|command| command == "serve") && !given.iter().any(may_be_help)
}

/// Why a command line cannot be used.
enum Wrong {
    Line(clap::Error),
    /// The file of `--config`. Fails with a one-line message.
    File(Failure),
}

/// Parses the command line; exits if it is invalid. The error of the file of `--config` is one line.
pub fn parse(given: Vec<String>) -> Result<(Arguments, GivenFlags)> {
    if is_plain_start(&given)
        && let Ok(parsed) = parse_as(serve_alone(), given.clone())
    {
        return Ok(parsed);
    }
    parse_as(headings::added_to(examples::added_to(command())), given).map_err(|wrong| match wrong {
        Wrong::Line(error) => error.exit(),
        Wrong::File(why) => why,
    })
}

fn parse_as(mut command: clap::Command, given: Vec<String>) -> Result<(Arguments, GivenFlags), Wrong> {
    let Merged { arguments, file } = config_file::merge(&command, given).map_err(Wrong::File)?;
    let file = file.unwrap_or_default();
    let matches = command.try_get_matches_from_mut(arguments).map_err(|error| match of_file(&error, &file.1) {
        Some(why) => Wrong::File(format!("{}: {why}", file.0).into()),
        None => Wrong::Line(error),
    })?;
    let arguments = Arguments::from_arg_matches(&matches).map_err(Wrong::Line)?;
    let mut given = GivenFlags { shown: BTreeMap::new(), changed: vec![], without_effect: vec![], file: String::new() };
    if let Some((subcommand, matches)) = config_file::chosen(&command, &matches) {
        given.shown = values(subcommand, matches);
        given.changed = changed(subcommand, matches, &given.shown);
        given.without_effect = upstream_flags::without_effect(matches);
        given.file = config_file::view(subcommand, matches, &file.1);
    }
    Ok((arguments, given))
}

/// The error in the value of a flag of the file, in one line.
fn of_file(error: &clap::Error, names: &BTreeSet<String>) -> Option<String> {
    let context = error.get(ContextKind::InvalidArg)?.to_string();
    let name = context.strip_prefix("--")?.split([' ', '=', '[']).next()?;
    let text = error.to_string();
    let line = text.lines().next()?.trim_start_matches("error: ");
    names.contains(name).then(|| line.to_owned())
}

/// The flags of a command and their values; lists are in brackets, as Go's flags print them.
fn values(command: &clap::Command, matches: &ArgMatches) -> BTreeMap<String, String> {
    let is_flag = |flag: &&clap::Arg| !flag.is_hide_set() && !matches!(flag.get_action(), ArgAction::Help);
    let flags = command.get_arguments().filter(is_flag);
    let value = |flag: &clap::Arg| {
        let raw = matches.get_raw(flag.get_id().as_str()).into_iter().flatten();
        let joined = raw.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",");
        match flag.get_action() {
            ArgAction::Append => format!("[{joined}]"),
            _ => joined,
        }
    };
    flags.filter_map(|flag| Some((flag.get_long()?.to_owned(), value(flag)))).collect()
}

/// The flags that do not have their defaults, as `name=value`.
fn changed(command: &clap::Command, matches: &ArgMatches, values: &BTreeMap<String, String>) -> Vec<String> {
    let is_given = |flag: &&clap::Arg| {
        matches.value_source(flag.get_id().as_str()).is_some_and(|source| source != ValueSource::DefaultValue)
    };
    let flags = command.get_arguments().filter(is_given).filter_map(clap::Arg::get_long);
    flags.filter_map(|name| Some(format!("{name}={}", values.get(name)?))).collect()
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve the API.
    ///
    /// Without flags, the server keeps its data in .pintle/, creates certificates at its first start, listens on
    /// https://127.0.0.1:6443 and writes a kubeconfig for the administrator to .pintle/admin.kubeconfig.
    Serve(Box<Serve>),
    /// Run a command with a server of its own.
    ///
    /// The server keeps objects in memory, listens on a free port, and is gone when the command has ended. KUBECONFIG in the
    /// environment of the command names a kubeconfig of its administrator, and KUBEBUILDER_ASSETS a directory with programs for
    /// test environments. The exit status is that of the command, or 2 if the server does not start, as with a manifest of -f that is
    /// not applied. Signals are forwarded to the command.
    Run(crate::run::Run),
    /// Check manifests as the server would, without a server.
    ///
    /// Custom resources, built-in objects, CustomResourceDefinitions and admission policies, in any order, pass the code that serves
    /// them. Each finding has the file, the line and the text of the server. The exit status is 0 if all objects are good, 1 if
    /// not, and 2 if an input could not be read or the command could not run.
    Validate(crate::validate::Validate),
    Plan(Box<crate::plan::PlanTask>),
    /// Print what the server makes of objects in files: defaults, pruned fields, versions, results of applies, tables.
    #[command(subcommand)]
    Object(ObjectTask),
    /// Check, back up or restore the embedded store of a data directory.
    ///
    /// Check and backup do not change the directory and may run while its server is running.
    #[command(subcommand)]
    Store(Store),
    /// Export objects of a data directory or of etcd, at one revision, to a file that any engine can import.
    ///
    /// May run while servers are running. Keys in etcd that do not belong to Pintle are skipped.
    Export(Export),
    /// Write the objects of a cluster, or of another source, to an archive that pintle run --from serves.
    ///
    /// Sends get and list requests only. The archive has a file for each object, which kubectl apply -R -f accepts, and no data of
    /// Secrets unless --secrets is given.
    Capture(crate::capture::CaptureTask),
    /// Import objects of an exported file into a data directory or etcd, and verify the result.
    ///
    /// The whole file is checked before anything is written. Objects get new resourceVersions, so clients have to list
    /// again.
    Import(Import),
    /// Evaluate CEL expressions, and inspect the validation rules of CustomResourceDefinitions.
    #[command(subcommand)]
    Cel(Cel),
    /// Compare CustomResourceDefinitions.
    #[command(subcommand)]
    Crd(crate::crd::Crd),
    /// Run test suites of CustomResourceDefinitions, without a server.
    ///
    /// A suite is a file beside the definitions with objects to create and update, and with the objects, errors and warnings that
    /// are expected of the API server. Suites of openshift/api run unchanged. The exit status is 1 if a case fails, and 2 if a
    /// suite cannot run.
    Test(crate::suites::Test),
    /// Migrate legacy APIs, with their objects, to CustomResourceDefinitions.
    #[command(subcommand)]
    Migrate(Migrate),
    /// Manage the versions in which objects are stored.
    #[command(subcommand)]
    Storage(Storage),
    /// Write a directory with kube-apiserver and etcd for KUBEBUILDER_ASSETS, which are links to this program.
    ///
    /// Test environments such as controller-runtime's envtest start them as they start kube-apiserver and etcd. Objects are in
    /// memory; garbage collection and the deletion of namespaces are off, as in a test environment of kube-apiserver, and on
    /// if PINTLE_CONTROLLERS is set.
    Assets(Assets),
    /// List, renew or rotate the certificates of a data directory.
    ///
    /// A running server reads them again within seconds, and then updates the administrator's kubeconfig.
    #[command(subcommand)]
    Certificates(CertificateTask),
    /// Create kubeconfigs of users.
    #[command(subcommand)]
    Kubeconfig(KubeconfigTask),
    /// Create, fork, reset and compare workspaces of a server that runs with --workspaces.
    ///
    /// A workspace is a whole API of its own at /clusters/NAME of the server's URL.
    #[command(subcommand)]
    Workspace(WorkspaceTask),
    /// Make requests of a workspace fail, or the events of its watches come late, on a server that runs with --testing.
    ///
    /// A fault concerns the requests that match all given lists; a text in them may end with * for any end. The first fault by name
    /// that hits a request counts. Deleting it ends its effect.
    #[command(subcommand)]
    Fault(FaultTask),
    /// Hold the events of watches and release them one by one, on a server that runs with --testing.
    #[command(subcommand)]
    Gate(GateTask),
    /// Print a set of Progress objects, which pintle serve --progress and pintle run --progress use.
    ///
    /// Progress objects move other objects on, as controllers and kubelets would: Deployments become available, Jobs complete.
    Progress(crate::sets::ProgressTask),
    /// Stop, advance and set the time of a workspace, on a server that runs with --testing.
    #[command(subcommand)]
    Clock(ClockTask),
    /// Wait until every watch has received everything, no request is in flight and nothing is written any more.
    ///
    /// Needs a server that runs with --testing. The exit status is 1 if that does not happen in time, and the
    /// message names what was waited for.
    Settle(Settle),
    /// Report what the clients of a workspace have done, by user agent, on a server that runs with --testing.
    ///
    /// It lists their requests, what is suspicious about them, and the RBAC roles that would have sufficed. The exit status is 1 if a
    /// check finds more than --expect allows.
    Report(ReportTask),
    /// Record the requests and responses of a workspace as a transcript, on a server that runs with --testing.
    ///
    /// Attach the file to a bug report: it has no credentials, and nothing of Secrets unless --secrets is given. It has
    /// the events of watches up to the end of the recording.
    Record(RecordTask),
    /// Send the requests of a transcript to any API server, and print how its responses differ from the recorded ones.
    ///
    /// Uids, resourceVersions, times, continue tokens and generated names may differ. The exit status is 1 if anything else does.
    Replay(ReplayTask),
    Trial(Box<crate::trial::TrialTask>),
    /// Inspect the configuration of the server.
    #[command(subcommand)]
    Config(Config),
    /// Print the completion script of a shell.
    ///
    /// For bash: pintle completion bash > /etc/bash_completion.d/pintle. For zsh: pintle completion zsh > _pintle, in a directory
    /// of $fpath. For fish: pintle completion fish > ~/.config/fish/completions/pintle.fish.
    Completion {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write the man pages of all commands.
    Man {
        /// The directory, which is created.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Print the version.
    Version {
        /// The form of the output.
        #[arg(short, long, value_enum, default_value = "text")]
        output: TextOrJson,
    },
}

#[derive(Subcommand)]
pub enum Config {
    /// Print the flags that `pintle serve` would have, in the form of a file for --config.
    ///
    /// Takes the flags of pintle serve, the environment and the file into account; a comment says where each value is from.
    View(Box<Serve>),
}

#[derive(Subcommand)]
pub enum Cel {
    /// Evaluate an expression on an object.
    ///
    /// Prints the value, its type, its cost, and the values of the parts of the expression, which show why it is false. The
    /// exit status is 1 if the expression is invalid or its evaluation fails.
    Eval(crate::cel_eval::Eval),
    /// Explain the estimated cost of the validation rules of CustomResourceDefinitions.
    ///
    /// For each rule and message expression, prints the cost that Kubernetes estimates, its limit, the parts of the
    /// expression that contribute to it, and, above the limit, the bounds (maxLength, maxItems, maxProperties) to add to
    /// the schema. The exit status is 1 if an expression or a schema exceeds its limit or a rule is invalid.
    Cost {
        /// File with CustomResourceDefinitions, YAML or JSON, or directory with such files; - for stdin. May be repeated.
        #[arg(short, long, value_name = "PATH", required = true)]
        filename: Vec<PathBuf>,

        /// The form of the report.
        #[arg(short, long, value_enum, default_value = "text")]
        output: TextOrJson,
    },
}

#[derive(Subcommand)]
pub enum Store {
    /// Verify the checksums of the whole store, or of a backup, and print a summary, or the place of the first corruption.
    ///
    /// With --salvage, the objects that can be read from a damaged store or backup are exported. What is lost is printed to stderr, and
    /// the exit status is 1 if anything is; of workspaces, how many objects of each can be read. The directory is never changed.
    Check {
        #[command(flatten)]
        place: Place,

        /// A backup to check in place of the data directory.
        #[arg(value_name = "BACKUP", conflicts_with = "data_dir")]
        backup: Option<PathBuf>,

        /// File to export all readable objects to, for "pintle import"; - for stdout.
        #[arg(long, value_name = "FILE")]
        salvage: Option<PathBuf>,

        /// Export the objects of this workspace instead, by its name, or by its uid if its object is lost.
        #[arg(long, value_name = "NAME", requires = "salvage")]
        workspace: Option<String>,

        #[command(flatten)]
        encryption: EncryptionFlags,

        /// The form of the summary.
        #[arg(short, long, value_enum, default_value = "text", conflicts_with = "salvage")]
        output: TextOrJson,
    },
    /// Write all objects, at one revision, and the keys of the server to a new file.
    ///
    /// The file contains the certificate authority and the key of ServiceAccount tokens, so that certificates and tokens of
    /// clients stay valid after a restore. Keep it as safe as the data directory, or pipe it to a program that
    /// encrypts it.
    Backup {
        #[command(flatten)]
        place: CertificatePlace,

        /// Have a running server write it, from its memory and without its keys. Its user must be allowed to post to
        /// /storage/backup.
        #[arg(long, conflicts_with_all = ["data_dir", "cert_dir"])]
        from_server: bool,

        #[command(flatten)]
        server: RunningServer,

        /// The file to create; - for stdout.
        file: PathBuf,
    },
    /// Create a data directory from a backup. Clients keep their access; those that watch have to list again.
    Restore {
        #[command(flatten)]
        place: Place,

        /// Number by which the revision of the new store is raised above the backup's. It must exceed the number of writes
        /// since the backup, and the number used before if the same backup is restored again, so that no resourceVersion
        /// is issued twice.
        #[arg(long, value_name = "N", default_value_t = store::RESTORE_BUMP, value_parser = number(u64::MAX))]
        bump_revision: u64,

        /// The backup; - for stdin.
        file: PathBuf,
    },
    /// List or prune the backups that servers have made on a schedule.
    #[command(subcommand)]
    Backups(Backups),
}

#[derive(Subcommand)]
pub enum Backups {
    /// List the backups of a directory, oldest first.
    List {
        /// The directory that --backup-target names.
        target: PathBuf,

        /// The form of the output.
        #[arg(short, long, value_enum, default_value = "text")]
        output: TextOrJson,
    },
    /// Remove all backups of a directory but the newest.
    Prune {
        /// The directory that --backup-target names.
        target: PathBuf,

        /// Number of backups to keep.
        #[arg(long, value_name = "N", value_parser = number(usize::MAX))]
        keep: usize,
    },
}

#[derive(Subcommand)]
pub enum Migrate {
    /// Convert a ThirdPartyResource of a running server to a CustomResourceDefinition.
    ///
    /// Objects keep their names, uids and content and are served throughout; watches have to be started again.
    ThirdPartyResource {
        /// Name of the ThirdPartyResource, such as cron-tab.stable.example.com.
        name: String,

        /// Print what would be done and change nothing.
        #[arg(long)]
        dry_run: bool,

        #[command(flatten)]
        server: RunningServer,
    },
}

#[derive(Subcommand)]
pub enum Storage {
    /// Rewrite objects of a running server that may be stored in an older version.
    ///
    /// Objects that are not stored in the storage version of their CustomResourceDefinition are rewritten; then
    /// status.storedVersions is reduced to that version, and older versions can be removed. Other clients are not
    /// disturbed. The exit status is 1 if an object could not be migrated; a second run resumes.
    Migrate {
        /// CustomResourceDefinitions, such as crontabs.stable.example.com, or groups, such as stable.example.com.
        #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
        names: Vec<String>,

        /// Migrate all CustomResourceDefinitions.
        #[arg(long)]
        all: bool,

        /// Print what would be done and change nothing.
        #[arg(long)]
        dry_run: bool,

        #[command(flatten)]
        server: RunningServer,
    },

    /// Write the objects of a running server again, after a change of encryption keys.
    ///
    /// A server encrypts objects with the first provider of --encryption-provider-config when they are written. Run this after
    /// you have changed that file, so that no object depends on a former key, and remove the former key afterwards. Objects that
    /// are stored as they should be are skipped. The objects of workspaces are written too, those of templates included, and what a
    /// reset of a durable workspace returns to. Ephemeral workspaces that need a former key for a reset are named.
    ///
    /// The exit status is 1 if an object could not be written, or if a workspace still needs a former key; run the command again
    /// once the reasons are removed.
    Rewrite {
        /// Only this resource, such as secrets or crontabs.stable.example.com. May be repeated.
        #[arg(long, value_name = "RESOURCE")]
        resource: Vec<String>,

        #[command(flatten)]
        server: RunningServer,
    },
}

/// The storage engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Objects in the data directory; an acknowledged write is on disk.
    Embedded,
    /// Objects in memory; they are lost when the server stops.
    Memory,
    /// Objects in etcd, with kube-apiserver's key layout.
    Etcd,
}

impl Serve {
    /// The storage engine: etcd if its servers are given, memory if the objects are those of a source.
    pub fn engine(&self) -> Engine {
        match self.etcd.etcd_servers.is_empty() {
            true if self.from.is_empty() => self.storage,
            true => Engine::Memory,
            false => Engine::Etcd,
        }
    }

    /// The domain of the host names of workspaces.
    pub fn workspace_domain(&self) -> &str {
        self.workspace_domain.as_deref().unwrap_or("workspaces.localhost")
    }
}

#[derive(Args)]
pub struct Serve {
    /// File with flags, YAML: apiVersion config.pintle.dev/v1alpha1, kind ServerConfiguration, and flags by their names,
    /// such as secure-port: 7443. Flags of the command line and environment variables win.
    #[arg(long, value_name = "FILE", env = config_file::VARIABLE)]
    pub config: Option<PathBuf>,

    /// Directory for objects, certificates and the administrator's kubeconfig.
    #[arg(long, value_name = "DIR", default_value = ".pintle", env = "PINTLE_DATA_DIR", help_heading = "Storage")]
    pub data_dir: PathBuf,

    /// Objects to begin with: a file, a directory, an archive, - for stdin, git:REF[:PATH], or a capture of a cluster, such as a
    /// support bundle. They are served as they are; changes are kept in memory. May be repeated; later ones win.
    #[arg(long, value_name = "SOURCE", help_heading = "Storage")]
    pub from: Vec<String>,

    /// With --from, the time of the server: that of the capture, where the clock stands, or now.
    #[arg(long, value_enum, default_value = "capture", help_heading = "Storage")]
    pub clock: ClockFlag,

    /// With --from, report the objects that the rules of this release would refuse, by kind. They are served all the same.
    #[arg(long, requires = "from", help_heading = "Storage")]
    pub report: bool,

    #[command(flatten, next_help_heading = "Storage")]
    pub follow: FollowFlags,

    /// Fail at the start if a file of -f is not applied, as for pintle run.
    #[arg(long, hide = true, requires = "filename")]
    pub require_applied: bool,

    /// Storage engine.
    #[arg(long, value_enum, default_value = "embedded", env = "PINTLE_STORAGE", help_heading = "Storage")]
    pub storage: Engine,

    /// When a write is acknowledged: sync, when it is on disk; interval=DURATION, at once, with a sync to disk at this
    /// interval; none, at once, without syncs. With interval and none, a crash of the machine loses acknowledged writes.
    #[arg(long, value_name = "WHEN", default_value = "sync", value_parser = durability, help_heading = "Storage")]
    pub durability: store::Durability,

    #[command(flatten)]
    pub etcd: Etcd,

    #[command(flatten)]
    pub encryption: EncryptionFlags,

    /// Load the file of --encryption-provider-config again when it changes. A file that cannot be used is reported in the log,
    /// and the former configuration stays in force.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Storage")]
    pub encryption_provider_config_automatic_reload: bool,

    /// Time between scrubs, which read the log of the embedded store again and name what is damaged, such as 24h; 0 for none.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration, help_heading = "Storage")]
    pub scrub_interval: std::time::Duration,

    #[command(flatten)]
    pub backups: ScheduleFlags,

    /// Age up to which the history of objects is kept, from which watches and exact lists continue. Of etcd, it is that in memory.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration, help_heading = "Storage")]
    pub history_duration: std::time::Duration,

    /// Bytes of history that all resources and workspaces together keep in memory, and as many again in the log of the data
    /// directory. What is older is dropped first.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, value_parser = clap::value_parser!(u64).range(1 << 20..), help_heading = "Storage")]
    pub history_bytes: u64,

    /// Interval of etcd compactions; the history of one interval is kept. 0 disables compaction.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration, help_heading = "Storage")]
    pub etcd_compaction_interval: std::time::Duration,

    /// APIs to enable, NAME=true: apiextensions.k8s.io/v1beta1 (CustomResourceDefinitions of Kubernetes 1.7 to 1.21),
    /// extensions/v1beta1 (ThirdPartyResources), storagemigration.k8s.io/v1beta1 and .../v1 (StorageVersionMigrations);
    /// api/legacy stands for the first two, api/beta for every v1beta1, api/all for all of them.
    #[arg(long, value_name = "NAME=BOOL,...", value_delimiter = ',', help_heading = "Serving")]
    pub runtime_config: Vec<String>,

    /// IP address to listen on.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", env = "PINTLE_BIND_ADDRESS", help_heading = "Serving")]
    pub bind_address: IpAddr,

    /// IP address under which clients reach the server, for the Endpoints of the Service kubernetes [default: the bind address,
    /// or that of the default route].
    #[arg(long, value_name = "IP", help_heading = "Serving")]
    pub advertise_address: Option<IpAddr>,

    /// Port for HTTPS; 0 picks a free port, which is printed when the server is ready and written to the kubeconfig.
    #[arg(long, value_name = "PORT", default_value_t = 6443, value_parser = number(u16::MAX), env = "PINTLE_SECURE_PORT",
        help_heading = "Serving")]
    pub secure_port: u16,

    /// Rejected with a hint at --secure-port.
    #[arg(long, value_name = "PORT", hide = true, value_parser = renamed("secure-port"))]
    pub port: Option<String>,

    /// Time limit of requests other than watches, such as 60s or 1m30s.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration, help_heading = "Serving")]
    pub request_timeout: std::time::Duration,

    #[command(flatten)]
    pub emulation: crate::emulation::Emulation,

    /// Serve workspaces: objects of workspaces.pintle.dev/v1alpha1, each a whole API of its own at /clusters/NAME, forked and reset
    /// in milliseconds; with --storage etcd they are copied, and all servers of the etcd need this flag.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, env = "PINTLE_WORKSPACES", help_heading = "Serving")]
    pub workspaces: bool,

    /// Domain of the host names of workspaces: requests for NAME.DOMAIN are those for /clusters/NAME, whether that is their host or the
    /// server name of their TLS handshake. The certificate that the server creates is valid for these names, and if the flag is given,
    /// kubeconfigs of workspaces have them as tls-server-name. [default: workspaces.localhost]
    #[arg(long, value_name = "DOMAIN", value_parser = domain, env = "PINTLE_WORKSPACE_DOMAIN", help_heading = "Serving")]
    pub workspace_domain: Option<String>,

    /// Networks that webhooks and APIServices of workspaces may be in, comma separated, such as 10.0.0.0/8; an address of
    /// --service-address may be in any. [default: with a --bind-address that only this machine reaches, all; otherwise all but
    /// addresses of this machine and link-local ones]
    #[arg(
        long,
        value_name = "CIDR,...",
        value_delimiter = ',',
        env = "PINTLE_WORKSPACE_EGRESS",
        help_heading = "Serving"
    )]
    pub workspace_egress: Vec<machinery::network::Network>,

    /// Serve objects of testing.pintle.dev/v1alpha1, with which clients make requests of others fail and hold the events of their
    /// watches; for tests of controllers. Not with a --bind-address that other machines reach.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, env = "PINTLE_TESTING", help_heading = "Serving")]
    pub testing: bool,

    /// Progress objects that move other objects on, as controllers and kubelets would: sets, such as workloads, and files, comma
    /// separated. Every workspace has them. pintle progress prints the sets.
    #[arg(long, value_name = "SET|FILE,...", value_delimiter = ',', env = "PINTLE_PROGRESS", help_heading = "Serving")]
    pub progress: Vec<String>,

    /// Accept --testing with any --bind-address.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Serving")]
    pub testing_on_any_address: bool,

    /// Feature gates, comma separated, by kube-apiserver's names and with its defaults. The documentation lists those with
    /// an effect, such as CBORServingAndStorage and WatchList.
    #[arg(long, value_name = "NAME=BOOL,...", value_delimiter = ',', help_heading = "Serving")]
    pub feature_gates: Vec<String>,

    /// Enable API priority and fairness: the sum of the two limits below is shared by priority levels (FlowSchemas,
    /// PriorityLevelConfigurations), so that one client's load does not delay the others.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Serving")]
    pub enable_priority_and_fairness: bool,

    /// Maximum number of read requests in flight, apart from watches; others get 429. 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = number(usize::MAX), help_heading = "Serving")]
    pub max_requests_inflight: usize,

    /// Maximum number of write requests in flight; others get 429. 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = number(usize::MAX), help_heading = "Serving")]
    pub max_mutating_requests_inflight: usize,

    /// Time between the signal to stop and the end of serving, during which /readyz fails.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration, help_heading = "Serving")]
    pub shutdown_delay_duration: std::time::Duration,

    /// Time limit of requests that are in flight when the server stops.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration, help_heading = "Serving")]
    pub shutdown_grace_period: std::time::Duration,

    /// End the server when the process that started it ends, for any reason; for tests.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Serving")]
    pub exit_with_parent: bool,

    /// End the server when its stdin is closed, as by the end of the process that holds the other end of the pipe.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Serving")]
    pub exit_with_stdin: bool,

    #[command(flatten)]
    pub sharing: crate::sharing::SharingFlags,

    #[command(flatten)]
    pub ready: crate::ready::ReadyFlags,

    /// Directory of the certificates that the server creates [default: the data directory].
    #[arg(long, value_name = "DIR", help_heading = "Certificates")]
    pub cert_dir: Option<PathBuf>,

    /// Serving certificate and its chain, PEM; requires --tls-private-key-file.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file", help_heading = "Certificates")]
    pub tls_cert_file: Option<PathBuf>,

    /// Private key of the serving certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file", help_heading = "Certificates")]
    pub tls_private_key_file: Option<PathBuf>,

    /// Additional names and IP addresses of the serving certificate that the server creates; may be repeated.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = subject_name, help_heading = "Certificates")]
    pub tls_san: Vec<String>,

    /// Additional file for the administrator's kubeconfig, which is always in the data directory. Other entries of the file
    /// are kept.
    #[arg(long, value_name = "FILE", help_heading = "Kubeconfig")]
    pub write_kubeconfig: Option<PathBuf>,

    /// Mode of that file, octal.
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = mode, help_heading = "Kubeconfig")]
    pub write_kubeconfig_mode: u32,

    /// Name of the context in kubeconfigs, and of its cluster; the user is NAME-admin.
    #[arg(long, value_name = "NAME", default_value = "pintle", value_parser = context_name, help_heading = "Kubeconfig")]
    pub kubeconfig_context: String,

    #[command(flatten)]
    pub identity: crate::identity::IdentityFlags,

    /// Issuer of ServiceAccount tokens; may be repeated: the first one issues, all are accepted
    /// [default: https://kubernetes.default.svc.cluster.local].
    #[arg(long, value_name = "ISSUER", help_heading = "Authentication")]
    pub service_account_issuer: Vec<String>,

    /// File with further keys, PEM, for the verification of ServiceAccount tokens; may be repeated.
    #[arg(long, value_name = "FILE", help_heading = "Authentication")]
    pub service_account_key_file: Vec<PathBuf>,

    /// Private key, PEM, that signs ServiceAccount tokens [default: created at the first start].
    #[arg(long, value_name = "FILE", help_heading = "Authentication")]
    pub service_account_signing_key_file: Option<PathBuf>,

    /// Maximum lifetime of a ServiceAccount token, at least 1h; requests for a longer one are shortened.
    #[arg(long, value_name = "DURATION", default_value = "0", hide_default_value = true, value_parser = duration,
          help_heading = "Authentication")]
    pub service_account_max_token_expiration: std::time::Duration,

    /// Whether tokens that kubelets request for Pods are valid for a year, for clients that do not read the renewed ones.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1,
          default_missing_value = "true", require_equals = true, help_heading = "Authentication")]
    pub service_account_extend_token_expiration: bool,

    /// URL of the key set for ServiceAccount tokens, for discovery [default: /openid/v1/jwks of this server].
    #[arg(long, value_name = "URL", help_heading = "Authentication")]
    pub service_account_jwks_uri: Option<String>,

    /// Token audiences that this server accepts, comma separated [default: the issuers].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "Authentication")]
    pub api_audiences: Vec<String>,

    #[command(flatten)]
    pub audit: crate::audit::AuditFlags,

    #[command(flatten)]
    pub tracing: crate::traces::TracingFlags,

    #[command(flatten)]
    pub admission: crate::admission::AdmissionFlags,

    /// Address at which a Service of webhooks and APIServices is called, since there is no cluster network:
    /// NAMESPACE/NAME[:PORT]=HOST:PORT. May be repeated.
    #[arg(long, value_name = "SERVICE=ADDRESS", help_heading = "Admission")]
    pub service_address: Vec<String>,

    /// Range of the cluster IPs of Services: a CIDR, or one of each IP family, comma separated [default: 10.0.0.0/24].
    /// Services of webhooks and APIServices are called at their cluster IPs only if this flag is given.
    #[arg(long, value_name = "CIDR,...", help_heading = "Services")]
    pub service_cluster_ip_range: Option<String>,

    /// Range of the node ports of Services [default: 30000-32767].
    #[arg(long, value_name = "FIRST-LAST", help_heading = "Services")]
    pub service_node_port_range: Option<String>,

    /// Controllers to run, comma separated: * for those that are on by default, NAME to enable one, -NAME to disable one.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Controllers"
    )]
    pub controllers: Vec<String>,

    /// Elect one of the servers that share an etcd to run the controllers, by a Lease that it renews every 2s; false if there is
    /// only one server.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Controllers")]
    pub leader_elect: bool,

    /// Time to live of Events after their last write; 0 for no limit.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration, help_heading = "Controllers")]
    pub event_ttl: std::time::Duration,

    /// CA bundle, PEM, that root-ca-certificate-publisher-controller writes to every namespace [default: the certificate
    /// authority of the serving certificate].
    #[arg(long, value_name = "FILE", help_heading = "Controllers")]
    pub root_ca_file: Option<PathBuf>,

    /// Log level: 0 for warnings, 2 for events of operation, 4 for details, 6 for everything.
    #[arg(short, long = "v", value_name = "LEVEL", default_value_t = 0, value_parser = number(u8::MAX), help_heading = "Logs")]
    pub v: u8,

    /// Format of log lines.
    #[arg(long, value_enum, default_value = "text", help_heading = "Logs")]
    pub logging_format: crate::logs::LogFormat,
}
