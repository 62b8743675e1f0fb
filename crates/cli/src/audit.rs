//! The flags of the audit log, under kube-apiserver's names.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use server::{Audit, AuditPolicy, BatchOptions, LogMode, LogOptions, Remote};

use crate::values::{duration, number};
use crate::{files, kubeconfig};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// When an audit event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BackendMode {
    Blocking,
    Batch,
}

#[derive(Args)]
#[command(next_help_heading = "Audit")]
pub struct AuditFlags {
    /// Audit policy (audit.k8s.io/v1 Policy): which requests are recorded, and in how much detail.
    #[arg(long, value_name = "FILE")]
    audit_policy_file: Option<PathBuf>,

    /// File for audit events, one line of JSON each; - for stdout.
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    audit_log_path: Option<PathBuf>,

    /// When an audit event is written: before its request continues (blocking), or soon after (batch).
    #[arg(long, value_enum, default_value = "blocking")]
    audit_log_mode: BackendMode,

    /// Size in megabytes at which the audit log is rotated; 0 for no limit.
    #[arg(long, value_name = "MB", default_value_t = 100, value_parser = number(u64::MAX))]
    audit_log_maxsize: u64,

    /// Days for which rotated files are kept; 0 for no limit.
    #[arg(long, value_name = "DAYS", default_value_t = 0, value_parser = number(u32::MAX))]
    audit_log_maxage: u32,

    /// Number of rotated files to keep; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number(usize::MAX))]
    audit_log_maxbackup: usize,

    /// Compress rotated files with gzip.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    audit_log_compress: bool,

    /// Kubeconfig of the webhook that receives audit events (EventList).
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    audit_webhook_config_file: Option<PathBuf>,

    /// Maximum number of events in one webhook call.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = number(usize::MAX))]
    audit_webhook_batch_max_size: usize,

    /// Maximum time that an event waits for a batch to fill.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    audit_webhook_batch_max_wait: Duration,

    /// Events that may wait to be sent; more are lost.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = number(usize::MAX))]
    audit_webhook_batch_buffer_size: usize,
}

impl AuditFlags {
    /// The error is one line that names the flag.
    pub fn audit(&self) -> Result<Audit, String> {
        let Some(path) = &self.audit_policy_file else { return Ok(Audit::default()) };
        let mut audit = Audit::new(files::parse("--audit-policy-file", path, policy)?);
        if let Some(path) = &self.audit_log_path {
            let options = LogOptions {
                path: path.clone(),
                mode: if self.audit_log_mode == BackendMode::Batch { LogMode::Batch } else { LogMode::Blocking },
                size_max: self.audit_log_maxsize << 20,
                age_max: DAY * self.audit_log_maxage,
                backups_max: self.audit_log_maxbackup,
                compress: self.audit_log_compress,
            };
            audit.log(options).map_err(|why| format!("--audit-log-path: {why}"))?;
        }
        if let Some(path) = &self.audit_webhook_config_file {
            let named = |why: String| format!("--audit-webhook-config-file: {why}");
            let remote = Remote::new(&kubeconfig::read(path).map_err(named)?);
            let remote = remote.map_err(|error| named(error.into()))?;
            let options = BatchOptions {
                size_max: self.audit_webhook_batch_max_size,
                wait_max: self.audit_webhook_batch_max_wait,
                buffer: self.audit_webhook_batch_buffer_size,
            };
            audit.webhook(remote, options);
        }
        Ok(audit)
    }
}

/// Reads an audit policy. As in kube-apiserver, a policy with errors that only a strict decoder finds is used, with a warning.
fn policy(content: &[u8]) -> Result<AuditPolicy, String> {
    let document = files::lenient(content)?;
    let policy = AuditPolicy::parse(&document.value)?;
    let errors = [document.repeated, AuditPolicy::unknown_fields(&document.value)].concat();
    if !errors.is_empty() {
        let why = files::strict_error(&errors);
        tracing::warn!("Audit policy contains errors, falling back to lenient decoding: {why}");
    }
    Ok(policy)
}
