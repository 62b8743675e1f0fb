//! The command line of the benchmark.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use client::Protocol;

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Measure {
    /// From an empty directory to the ready line
    Ready,
    /// From a directory of many objects to the ready line
    Restart,
    /// Memory of a server that has received no request
    Idle,
    /// A re-apply in the library, compared with an update
    Ownership,
    /// From the POST of a definition to the first object that is accepted
    First,
    /// Creates by many clients
    Create,
    /// Gets by many clients
    Get,
    /// Lists of everything
    List,
    /// Lists by a label that one in fifty objects has
    Select,
    /// From a write to each of its watchers
    Watch,
    /// Events to watchers while many clients write
    Flood,
    /// Merge patches of the status by many clients
    Status,
    /// Server-side applies of new objects by many clients
    Apply,
    /// The same applies once more, which change nothing
    Reapply,
    /// One deletecollection of everything
    Delete,
    /// From the deletion of an owner to the end of its last dependent
    Collect,
    /// Many large definitions
    Crds,
    /// Validation rules, without a server, compared with the other CEL crate
    Cel,
}

impl Measure {
    /// Whether it starts its own servers, or needs none.
    pub fn is_of_start(self) -> bool {
        matches!(self, Measure::Ready | Measure::Restart | Measure::Idle | Measure::Ownership)
    }

    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

#[derive(Args)]
pub struct Flags {
    /// The server to measure; without it, the release binary is built first.
    #[arg(long, value_name = "PATH")]
    pub binary: Option<PathBuf>,

    /// Measure only these, comma separated.
    #[arg(long, value_name = "NAME,...", value_enum, value_delimiter = ',', hide_possible_values = false)]
    pub only: Vec<Measure>,

    /// Use small numbers: checks that everything works, but the results mean nothing.
    #[arg(long)]
    pub quick: bool,

    /// Number of definitions that `crds` creates.
    #[arg(long, value_name = "N")]
    pub crds: Option<usize>,

    /// Number of concurrent clients.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub clients: usize,

    /// Use one HTTP/2 connection for all clients, like client-go, instead of one HTTP/1.1 connection per client.
    #[arg(long)]
    pub http2: bool,

    /// URL of another server to measure too; prints by which factor pintle is faster.
    #[arg(long, value_name = "URL", requires = "kubeconfig")]
    pub against: Option<String>,

    /// The credentials for --against: a kubeconfig of one cluster and one user.
    #[arg(long, value_name = "FILE", requires = "against")]
    pub kubeconfig: Option<PathBuf>,

    /// Measure pintle over etcd too, one member on the same disk; PATH is the binary of etcd.
    #[arg(long, value_name = "PATH", conflicts_with = "against")]
    pub etcd: Option<PathBuf>,

    /// Also measure kube-apiserver over the same member; it is built from `tests/upstream` the first time. With --hostile, it has
    /// an empty member for each scenario.
    #[arg(long, requires = "etcd")]
    pub upstream: bool,

    /// Send hostile requests instead, and measure how they affect other clients.
    #[arg(long, conflicts_with_all = ["only", "against"])]
    pub hostile: bool,

    /// Measure servers that begin with sources or follow files instead.
    #[arg(long, conflicts_with_all = ["only", "against", "hostile", "etcd"])]
    pub from: bool,

    /// Another binary, for example an older one, to which hostile requests are sent as well.
    #[arg(long, value_name = "PATH", requires = "hostile")]
    pub beside: Option<PathBuf>,

    /// Send only the hostile requests of scenarios whose name contains this text.
    #[arg(long, value_name = "TEXT", requires = "hostile", default_value = "")]
    pub scenario: String,

    /// File for the results [default: benches/results/load.md, for complete runs].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl Flags {
    /// The version of HTTP that clients use.
    pub fn protocol(&self) -> Protocol {
        if self.http2 { Protocol::Http2 } else { Protocol::Http1 }
    }

    /// The selected measurements, in the order of the table.
    pub fn measures(&self) -> Vec<Measure> {
        let all = Measure::value_variants().iter().copied();
        all.filter(|measure| self.only.is_empty() || self.only.contains(measure)).collect()
    }
}
