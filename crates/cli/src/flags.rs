//! What can be said on the command line: each flag once, with its help; names are kube-apiserver's where it has them.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::encryption::EncryptionFlags;
use crate::values::{durability, duration, renamed};

/// The Kubernetes API for custom resources, without Kubernetes.
#[derive(Parser)]
#[command(name = "pintle", version, about, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve the API.
    ///
    /// Without options: data in .pintle/, certificates made on first start, HTTPS on 127.0.0.1:6443, and a kubeconfig
    /// for the administrator in .pintle/admin.kubeconfig.
    Serve(Box<Serve>),
    /// Check, back up or restore the embedded store of a data directory.
    ///
    /// Check and backup work beside a running server; nothing in the directory is changed.
    #[command(subcommand)]
    Store(Store),
    /// Write all objects of a data directory or of etcd, as they are at one moment, to a file that any engine can import.
    ///
    /// Works beside running servers. Keys in etcd that are not ours are left out.
    Export(Transfer),
    /// Fill an empty data directory, or an etcd without objects, from a file that was exported, and compare what is there.
    ///
    /// Nothing is written before all of the file has been checked. Objects get new resourceVersions: clients start again.
    Import(Transfer),
    /// Look at the validation rules of definitions.
    #[command(subcommand)]
    Cel(Cel),
    /// Bring what is defined in an older way into the form of today, with its objects.
    #[command(subcommand)]
    Migrate(Migrate),
    /// Look after the versions in which objects are stored.
    #[command(subcommand)]
    Storage(Storage),
}

#[derive(Subcommand)]
pub enum Cel {
    /// Explain what the rules of CustomResourceDefinitions are estimated to cost.
    ///
    /// For each rule and message expression: the cost that Kubernetes estimates and its limit, the pieces of the
    /// expression that it comes from, and the bounds (maxLength, maxItems, maxProperties) to add to the schema where it is
    /// too much. The exit status is 1 if an expression or a schema costs too much or a rule is wrong.
    Cost {
        /// A file of definitions, YAML or JSON; - for the standard input. Can be repeated.
        #[arg(short, long, value_name = "FILE", required = true)]
        filename: Vec<PathBuf>,
    },
}

#[derive(Subcommand)]
pub enum Store {
    /// Read every byte of the store and tell what is there, or what is damaged.
    Check {
        #[command(flatten)]
        place: Place,
    },
    /// Write all objects, as they are at one moment, to a new file.
    Backup {
        #[command(flatten)]
        place: Place,

        /// The file to make; - for the standard output.
        file: PathBuf,
    },
    /// Fill a new data directory from a backup; its server makes new certificates. Clients that watch have to list
    /// again.
    Restore {
        #[command(flatten)]
        place: Place,

        /// How far the revisions of the new store are ahead of the backup. It has to be more than the number of writes
        /// since the backup was made, and more than the last time if the same backup is restored again: resourceVersions
        /// that clients have seen must not be given out twice.
        #[arg(long, value_name = "N", default_value_t = store::RESTORE_BUMP)]
        bump_revision: u64,

        /// The backup.
        file: PathBuf,
    },
}

#[derive(Args)]
pub struct Place {
    /// The data directory.
    #[arg(long, value_name = "DIR", default_value = ".pintle", env = "PINTLE_DATA_DIR")]
    pub data_dir: PathBuf,
}

#[derive(Subcommand)]
pub enum Migrate {
    /// Make a CustomResourceDefinition of a ThirdPartyResource of a running server.
    ///
    /// Objects keep their names, uids and content, and are served all the time; watches start anew.
    ThirdPartyResource {
        /// Its name, such as cron-tab.stable.example.com.
        name: String,

        /// Check and tell what would be done, and change nothing.
        #[arg(long)]
        dry_run: bool,

        /// How to reach the server.
        #[arg(long, value_name = "FILE", default_value = ".pintle/admin.kubeconfig", env = "KUBECONFIG")]
        kubeconfig: PathBuf,
    },
}

#[derive(Subcommand)]
pub enum Storage {
    /// Write objects of a running server again that may be stored in an older version.
    ///
    /// Objects whose stored version is not the storage version of their definition are written in that; then
    /// status.storedVersions names it alone, and older versions can be removed. Other clients can go on. The exit status
    /// is 1 if something is not migrated; running it again goes on.
    Migrate {
        /// Definitions, such as crontabs.stable.example.com, or groups, such as stable.example.com.
        #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
        names: Vec<String>,

        /// All definitions.
        #[arg(long)]
        all: bool,

        /// Tell what is to be done, and change nothing.
        #[arg(long)]
        dry_run: bool,

        /// How to reach the server.
        #[arg(long, value_name = "FILE", default_value = ".pintle/admin.kubeconfig", env = "KUBECONFIG")]
        kubeconfig: PathBuf,
    },
}

/// Where objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// In the data directory; every acknowledged write is on disk.
    Embedded,
    /// In memory: gone when the server stops.
    Memory,
    /// In etcd.
    Etcd,
}

/// A file, and the store that it comes from or goes to.
#[derive(Args)]
pub struct Transfer {
    /// The file; - for the standard output or input.
    pub file: PathBuf,

    #[command(flatten)]
    pub place: Place,

    #[command(flatten)]
    pub etcd: Etcd,

    #[command(flatten)]
    pub encryption: EncryptionFlags,
}

/// How etcd is reached.
#[derive(Args)]
pub struct Etcd {
    /// The etcd servers (scheme://host:port), comma separated; implies --storage etcd.
    #[arg(long, value_name = "URL,...", value_delimiter = ',', help_heading = "Storage")]
    pub etcd_servers: Vec<String>,

    /// The prefix of all keys in etcd.
    #[arg(long, value_name = "PREFIX", default_value = "/registry", help_heading = "Storage")]
    pub etcd_prefix: String,

    /// The id of the cluster that is meant, as etcd's log and our messages tell it; no other is spoken to [default: that of
    /// the first start on the data directory].
    #[arg(long, value_name = "HEX", value_parser = crate::etcd::parse_id, help_heading = "Storage")]
    pub etcd_cluster_id: Option<u64>,

    /// The authorities of the etcd servers' certificates, PEM [default: those of the system].
    #[arg(long, value_name = "FILE", help_heading = "Storage")]
    pub etcd_cafile: Option<PathBuf>,

    /// The client certificate for etcd, PEM; needs --etcd-keyfile.
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile", help_heading = "Storage")]
    pub etcd_certfile: Option<PathBuf>,

    /// The key of the client certificate for etcd, PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_certfile", help_heading = "Storage")]
    pub etcd_keyfile: Option<PathBuf>,

    /// The user of etcd; needs --etcd-password-file or the variable PINTLE_ETCD_PASSWORD.
    #[arg(long, value_name = "NAME", help_heading = "Storage")]
    pub etcd_username: Option<String>,

    /// A file with the password of the user of etcd.
    #[arg(long, value_name = "FILE", requires = "etcd_username", help_heading = "Storage")]
    pub etcd_password_file: Option<PathBuf>,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Args)]
pub struct Serve {
    /// Directory of everything the server keeps: objects, certificates, the administrator's kubeconfig.
    #[arg(long, value_name = "DIR", default_value = ".pintle", env = "PINTLE_DATA_DIR", help_heading = "Storage")]
    pub data_dir: PathBuf,

    /// Where objects are kept.
    #[arg(long, value_enum, default_value = "embedded", env = "PINTLE_STORAGE", help_heading = "Storage")]
    pub storage: Engine,

    /// When a write is acknowledged: sync when it is on disk; interval=DURATION at once, and on disk after that time; none
    /// at once, and on disk when the operating system likes. With interval and none, a crash of the machine loses writes.
    #[arg(long, value_name = "WHEN", default_value = "sync", value_parser = durability, help_heading = "Storage")]
    pub durability: store::Durability,

    #[command(flatten)]
    pub etcd: Etcd,

    #[command(flatten)]
    pub encryption: EncryptionFlags,

    /// What passes between compactions of etcd, which keeps the history of one such time; 0 leaves compaction to others.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration, help_heading = "Storage")]
    pub etcd_compaction_interval: std::time::Duration,

    /// APIs that are served besides, NAME=true: apiextensions.k8s.io/v1beta1 (definitions of 1.7 to 1.21),
    /// extensions/v1beta1 (ThirdPartyResources), storagemigration.k8s.io/v1beta1 and .../v1 (StorageVersionMigrations);
    /// api/legacy stands for the first two, api/beta for all of v1beta1, api/all for all.
    #[arg(long, value_name = "NAME=BOOL,...", value_delimiter = ',', help_heading = "Serving")]
    pub runtime_config: Vec<String>,

    /// The address to listen on.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", env = "PINTLE_BIND_ADDRESS", help_heading = "Serving")]
    pub bind_address: IpAddr,

    /// The port for HTTPS; 0 picks a free one, which the ready line and the kubeconfig tell.
    #[arg(long, value_name = "PORT", default_value_t = 6443, env = "PINTLE_SECURE_PORT", help_heading = "Serving")]
    pub secure_port: u16,

    /// Refused: kube-apiserver and Pintle call it --secure-port.
    #[arg(long, value_name = "PORT", hide = true, value_parser = renamed("secure-port"))]
    pub port: Option<String>,

    /// How long a request may take, watches aside, such as 60s or 1m30s.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration, help_heading = "Serving")]
    pub request_timeout: std::time::Duration,

    /// Features that are off unless they are named, comma separated: CBORServingAndStorage=true,
    /// ConstrainedImpersonation=true, MutatingAdmissionPolicy=true.
    #[arg(long, value_name = "NAME=BOOL,...", value_delimiter = ',', help_heading = "Serving")]
    pub feature_gates: Vec<String>,

    /// Whether the two numbers below, added up, are seats that priority levels share (FlowSchemas,
    /// PriorityLevelConfigurations), so that a noisy client waits for itself and not for others.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, help_heading = "Serving")]
    pub enable_priority_and_fairness: bool,

    /// Requests that read and may run at once, watches aside; more are answered 429. 0 for any number.
    #[arg(long, value_name = "N", default_value_t = 400, help_heading = "Serving")]
    pub max_requests_inflight: usize,

    /// Requests that write and may run at once; more are answered 429. 0 for any number.
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = "Serving")]
    pub max_mutating_requests_inflight: usize,

    /// How long the server goes on serving, not ready any more, when it is told to stop.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration, help_heading = "Serving")]
    pub shutdown_delay_duration: std::time::Duration,

    /// How long open requests may take when the server stops.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration, help_heading = "Serving")]
    pub shutdown_grace_period: std::time::Duration,

    /// Directory of the certificates that the server makes for itself [default: the data directory].
    #[arg(long, value_name = "DIR", help_heading = "Certificates")]
    pub cert_dir: Option<PathBuf>,

    /// The serving certificate and its chain, PEM; needs --tls-private-key-file.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file", help_heading = "Certificates")]
    pub tls_cert_file: Option<PathBuf>,

    /// The key of the serving certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file", help_heading = "Certificates")]
    pub tls_private_key_file: Option<PathBuf>,

    #[command(flatten)]
    pub identity: crate::identity::IdentityFlags,

    /// Who issues tokens of ServiceAccounts; the first issues, all are accepted
    /// [default: https://kubernetes.default.svc.cluster.local].
    #[arg(long, value_name = "ISSUER", help_heading = "Authentication")]
    pub service_account_issuer: Vec<String>,

    /// A file of keys, PEM, that verify tokens of ServiceAccounts, besides the signing key; can be repeated.
    #[arg(long, value_name = "FILE", help_heading = "Authentication")]
    pub service_account_key_file: Vec<PathBuf>,

    /// The private key, PEM, that signs tokens of ServiceAccounts [default: made at the first start].
    #[arg(long, value_name = "FILE", help_heading = "Authentication")]
    pub service_account_signing_key_file: Option<PathBuf>,

    /// How long a token of a ServiceAccount may be good for, 1h or more; longer requests are shortened.
    #[arg(long, value_name = "DURATION", default_value = "0", hide_default_value = true, value_parser = duration,
          help_heading = "Authentication")]
    pub service_account_max_token_expiration: std::time::Duration,

    /// Where others find the keys of ServiceAccount tokens [default: /openid/v1/jwks of this server].
    #[arg(long, value_name = "URL", help_heading = "Authentication")]
    pub service_account_jwks_uri: Option<String>,

    /// Who this server is to a token, comma separated [default: the issuers].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "Authentication")]
    pub api_audiences: Vec<String>,

    #[command(flatten)]
    pub audit: crate::audit::AuditFlags,

    #[command(flatten)]
    pub tracing: crate::traces::TracingFlags,

    /// Admission steps that are left out, comma separated: NamespaceLifecycle, MutatingAdmissionPolicy,
    /// MutatingAdmissionWebhook, ValidatingAdmissionPolicy, ValidatingAdmissionWebhook, ResourceQuota.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "Admission")]
    pub disable_admission_plugins: Vec<String>,

    /// Where a service is that webhooks and APIServices name, since there is no cluster network: NAMESPACE/NAME[:PORT]=HOST:PORT.
    /// May be given several times.
    #[arg(long, value_name = "SERVICE=ADDRESS", help_heading = "Admission")]
    pub service_address: Vec<String>,

    /// Where the cluster IPs of Services come from: a network in CIDR notation, or one of each IP family, comma separated
    /// [default: 10.0.0.0/24]. Services of webhooks and APIServices are called at their cluster IPs only if it is given.
    #[arg(long, value_name = "CIDR,...", help_heading = "Services")]
    pub service_cluster_ip_range: Option<String>,

    /// Where the node ports of Services come from [default: 30000-32767].
    #[arg(long, value_name = "FIRST-LAST", help_heading = "Services")]
    pub service_node_port_range: Option<String>,

    /// Controllers that run, comma separated: * for all that are on by default, NAME for one more, -NAME for one less.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Controllers"
    )]
    pub controllers: Vec<String>,

    /// Whether servers that share an etcd choose one that runs the controllers, by a Lease it renews every 2s; false for a
    /// server that is alone there.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, help_heading = "Controllers")]
    pub leader_elect: bool,

    /// How long events are kept after their last write; 0 for ever.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration, help_heading = "Controllers")]
    pub event_ttl: std::time::Duration,

    /// The authority that root-ca-certificate-publisher-controller tells every namespace, PEM [default: the one that
    /// signed the serving certificate].
    #[arg(long, value_name = "FILE", help_heading = "Controllers")]
    pub root_ca_file: Option<PathBuf>,

    /// How much is logged: 0 warnings, 2 what happens, 4 details, 6 everything.
    #[arg(short, long = "v", value_name = "LEVEL", default_value_t = 0, help_heading = "Logs")]
    pub v: u8,

    /// The form of logs.
    #[arg(long, value_enum, default_value = "text", help_heading = "Logs")]
    pub logging_format: LogFormat,
}
