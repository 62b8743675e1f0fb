//! Metrics of admission: durations and rejections.

use base::clock;
use base::metrics::{AdmissionStep, METRICS};
use machinery::Status;
use tokio::time::Instant;

use super::Operation;

/// Measures a plugin, or all plugins of a type.
pub struct Step {
    /// `None` for all plugins of a type.
    plugin: Option<&'static str>,
    /// `admit` or `validate`.
    kind: &'static str,
    operation: Operation,
    began: Instant,
}

impl Step {
    pub fn begin(plugin: impl Into<Option<&'static str>>, kind: &'static str, operation: Operation) -> Step {
        Step { plugin: plugin.into(), kind, operation, began: clock::instant() }
    }

    /// Records the result.
    pub fn end<T>(self, result: Result<T, Status>) -> Result<T, Status> {
        let rejected = if result.is_err() { "true" } else { "false" };
        let step = AdmissionStep { r#type: self.kind, operation: self.operation.as_str(), rejected };
        METRICS.admission.observe(self.plugin, step, self.began.elapsed());
        result
    }
}
