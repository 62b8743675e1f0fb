//! Tracing: the flag and the file that it names.

use std::path::PathBuf;

use clap::Args;
use server::TracingConfiguration;

#[derive(Args)]
pub struct TracingFlags {
    /// TracingConfiguration (apiserver.config.k8s.io/v1): the OTLP collector (gRPC) of spans and the sampling rate per
    /// million requests.
    #[arg(long, value_name = "FILE", help_heading = "Logs")]
    tracing_config_file: Option<PathBuf>,
}

impl TracingFlags {
    /// The error is one line that names the flag.
    pub fn configuration(&self) -> Result<Option<TracingConfiguration>, String> {
        let Some(path) = &self.tracing_config_file else { return Ok(None) };
        let wrong = |why: String| format!("--tracing-config-file: {}: {why}", path.display());
        let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let value = machinery::yaml::decode(&text).map_err(|error| wrong(error.to_string()))?.value;
        TracingConfiguration::parse(&value).map(Some).map_err(wrong)
    }
}
