//! Tracing: the flag and the file that it names.

use std::path::PathBuf;

use clap::Args;
use client::Result;
use server::TracingConfiguration;

use crate::files;

#[derive(Args)]
pub struct TracingFlags {
    /// TracingConfiguration (apiserver.config.k8s.io/v1): the OTLP collector (gRPC) of spans and the sampling rate per
    /// million requests.
    #[arg(long, value_name = "FILE", help_heading = "Logs")]
    tracing_config_file: Option<PathBuf>,
}

impl TracingFlags {
    /// The error is one line that names the flag.
    pub fn configuration(&self) -> Result<Option<TracingConfiguration>> {
        let path = self.tracing_config_file.as_deref();
        path.map(|path| {
            files::parse("--tracing-config-file", path, |content| {
                Ok(TracingConfiguration::parse(&files::decode(content)?)?)
            })
        })
        .transpose()
    }
}
