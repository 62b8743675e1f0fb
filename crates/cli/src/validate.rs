//! `pintle validate`: the verdict of the server on files, without a server.

use std::io::BufWriter;
use std::process::ExitCode;

use clap::Args;
use client::{Result, fail};
use offline::findings::{Colours, Detail, Form, Style};
use offline::validate::{Empty, Others, Outcome, Settings};
use server::Release;

use crate::logs;
use crate::values::{release, words};

/// The exit status if something is wrong with an object, and if an input could not be read.
const FINDINGS: u8 = 1;
pub const INCOMPLETE: u8 = 2;

#[derive(Args)]
pub struct Validate {
    /// Manifests, YAML or JSON: files, directories with everything below them, globs, git:REF or git:REF:PATH; - for stdin.
    #[arg(value_name = "PATH", required = true)]
    pub inputs: Vec<String>,

    /// CustomResourceDefinitions that the objects need, as PATH, or those of a server: kubeconfig for the current context,
    /// or kubeconfig:FILE. May be repeated. Those among the manifests are found anyway.
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<String>,

    /// Admission policies that apply to the objects, with their bindings, as PATH. May be repeated. Those among the manifests are
    /// found anyway.
    #[arg(long, value_name = "PATH")]
    pub policies: Vec<String>,

    /// The objects as they were before, as PATH, or those of a server: kubeconfig or kubeconfig:FILE. An object that existed is
    /// checked as an update: transition rules, immutable fields, ratcheting.
    #[arg(long, value_name = "PATH")]
    pub old: Option<String>,

    /// Release of Kubernetes whose verdict is asked for: 1.35, 1.36 or 1.37. May be repeated.
    #[arg(long, value_name = "VERSION", value_delimiter = ',', value_parser = release)]
    pub kubernetes_version: Vec<Release>,

    /// Leave out objects of kinds that nothing defines, instead of reporting them.
    #[arg(long)]
    pub ignore_missing: bool,

    /// Leave out objects of a kind, such as Secret or Certificate.cert-manager.io. May be repeated.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub skip: Vec<String>,

    /// Leave out files, by patterns such as templates/ or **/*.test.yaml. May be repeated. The file .pintleignore in the current
    /// directory has such patterns, one a line.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub ignore: Vec<String>,

    /// Report files in directories that are no manifests, such as values.yaml, instead of leaving them out.
    #[arg(long)]
    pub strict_files: bool,

    /// Succeed although the inputs have no objects, instead of exiting with 2.
    #[arg(long)]
    pub allow_empty: bool,

    /// Features to switch on or off, as for pintle serve.
    #[arg(long, value_name = "NAME=BOOL,...", value_delimiter = ',')]
    pub feature_gates: Vec<String>,

    /// APIs to switch on or off, as for pintle serve.
    #[arg(long, value_name = "NAME=BOOL,...", value_delimiter = ',')]
    pub runtime_config: Vec<String>,

    /// The form of the report.
    #[arg(short, long, value_parser = words(&FORMS), default_value = "text")]
    pub output: Form,

    /// Print the numbers of errors and warnings instead of the findings. Only with the form text.
    #[arg(long, conflicts_with = "quiet")]
    pub summary: bool,

    /// Print errors only: nothing at all if there are none. Only with the form text.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Validate {
    /// The form of the report. Fails with a one-line message.
    fn style(&self) -> Result<Style> {
        let detail = match (self.quiet, self.summary) {
            (true, _) => Detail::Errors,
            (_, true) => Detail::Numbers,
            _ => Detail::Everything,
        };
        let form = self.output;
        if detail != Detail::Everything && form != Form::Text {
            return fail("--summary and --quiet are for -o text");
        }
        Ok(Style { form, detail, colours: if logs::has_colours() { Colours::On } else { Colours::Off } })
    }
}

/// The forms of a report.
const FORMS: [(&str, Form); 5] = [
    ("text", Form::Text),
    ("json", Form::Json),
    ("junit", Form::Junit),
    ("sarif", Form::Sarif),
    ("github", Form::Github),
];

/// Checks the inputs and prints the report. The exit status is 0 if all objects are good, 1 if not, and 2 if an input could not
/// be read. The error is one line: nothing could be checked.
pub fn run(task: &Validate) -> Result<ExitCode> {
    let settings = Settings {
        inputs: task.inputs.clone(),
        crds: task.crds.clone(),
        policies: task.policies.clone(),
        old: task.old.clone(),
        releases: task.kubernetes_version.clone(),
        feature_gates: task.feature_gates.clone(),
        runtime_config: task.runtime_config.clone(),
        ignores_missing: task.ignore_missing,
        skipped_kinds: task.skip.clone(),
        ignored: task.ignore.clone(),
        others: if task.strict_files { Others::Reported } else { Others::LeftOut },
        empty: if task.allow_empty { Empty::Allowed } else { Empty::IsAnError },
        style: task.style()?,
    };
    let out = BufWriter::new(logs::Stdout);
    let Outcome { summary, is_incomplete } =
        offline::engine::runtime()?.block_on(offline::validate::run(&settings, out))?;
    Ok(match (is_incomplete, summary.errors) {
        (true, _) => ExitCode::from(INCOMPLETE),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::from(FINDINGS),
    })
}
