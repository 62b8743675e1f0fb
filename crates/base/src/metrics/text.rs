//! The exposition formats: OpenMetrics if the client accepts it, otherwise Prometheus text 0.0.4.

use std::borrow::Cow;

use machinery::Value;
use machinery::patch::gotext;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub fn expose(registry: &Registry, accept: &str) -> (&'static str, String) {
    let mut text = String::new();
    // writing to memory does not fail
    let _ = encode(&mut text, registry);
    if accept.contains("application/openmetrics-text") { (OPEN_METRICS, text) } else { (PROMETHEUS, prometheus(&text)) }
}

/// Converts OpenMetrics to Prometheus text 0.0.4, in which HELP and TYPE of counters have the suffix `_total`, and which has
/// no end marker.
fn prometheus(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let described = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '));
        let next = lines.peek().copied().unwrap_or_default();
        let counts = |name: &str| next == format!("# TYPE {name} counter");
        match described {
            Some((name, help)) if counts(name) => {
                out.push_str(&format!("# HELP {name}_total {help}\n# TYPE {name}_total counter\n"));
                lines.next();
            }
            _ if line == "# EOF" => {}
            _ => {
                out.push_str(&prometheus_line(line));
                out.push('\n');
            }
        }
    }
    out
}

/// Counters without the suffix `_total`, which the library does not support: they are registered as gauges.
pub const COUNTERS: [&str; 4] = [
    "authentication_attempts",
    "authenticated_user_requests",
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_rejection_count",
];

/// A line as kube-apiserver writes it: bounds of buckets are formatted as by Go.
fn prometheus_line(line: &str) -> Cow<'_, str> {
    let described = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" gauge"));
    if let Some(name) = described.filter(|name| COUNTERS.contains(name)) {
        return format!("# TYPE {name} counter").into();
    }
    let of_bucket = |(before, _): &(&str, &str)| before.contains("_bucket{") && before.ends_with(['{', ',']);
    let bound = line.split_once("le=\"").filter(of_bucket);
    let bound = bound.and_then(|(before, rest)| Some((before, rest.split_once('"')?)));
    match bound.and_then(|(before, (bound, rest))| Some((before, bound.parse::<f64>().ok()?, rest))) {
        Some((before, bound, rest)) if bound.is_finite() => {
            format!("{before}le=\"{}\"{rest}", gotext::plain(&Value::Float(bound))).into()
        }
        _ => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    #[test]
    fn metrics_are_exposed_in_both_formats() {
        let mut registry = Registry::default();
        let (calls, open) = (Counter::<u64>::default(), Gauge::<i64>::default());
        registry.register("calls", "Calls", calls.clone());
        registry.register("open", "What is open", open.clone());
        calls.inc();
        open.set(2);
        let (kind, text) = expose(&registry, "application/openmetrics-text;version=1.0.0,*/*;q=0.1");
        assert_eq!(kind, OPEN_METRICS);
        assert_eq!(
            text.lines().take(3).collect::<Vec<_>>(),
            ["# HELP calls Calls.", "# TYPE calls counter", "calls_total 1"]
        );
        assert!(text.ends_with("# EOF\n"));
        for (line, wanted) in [
            ("a_bucket{le=\"1.0\",verb=\"GET\"} 2", "a_bucket{le=\"1\",verb=\"GET\"} 2"),
            ("a_bucket{le=\"0.05\"} 2", "a_bucket{le=\"0.05\"} 2"),
            ("a_bucket{le=\"1000000.0\"} 2", "a_bucket{le=\"1e+06\"} 2"),
            ("a_bucket{le=\"0.00001\"} 2", "a_bucket{le=\"1e-05\"} 2"),
            ("a_bucket{le=\"172800.0\"} 2", "a_bucket{le=\"172800\"} 2"),
            ("a{role=\"1.0\"} 2", "a{role=\"1.0\"} 2"),
            ("a_bucket{le=\"+Inf\"} 2", "a_bucket{le=\"+Inf\"} 2"),
            ("# TYPE authentication_attempts gauge", "# TYPE authentication_attempts counter"),
        ] {
            assert_eq!(prometheus_line(line), wanted);
        }
        let (kind, text) = expose(&registry, "*/*");
        assert_eq!(kind, PROMETHEUS);
        let wanted = "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total 1\n\
                      # HELP open What is open.\n# TYPE open gauge\nopen 2\n";
        assert_eq!(text, wanted);
    }
}
