//! The cell of an autoscaler's metrics.

use machinery::Value;

use resource::builtin::checks::text;
use resource::builtin::columns::parts::NONE;

/// The metrics of a v2 autoscaler, each as its current value and its target.
pub fn metric_texts(object: &Value) -> String {
    const SHOWN_MAX: usize = 2;
    let (metrics, current) = (object.items_at(&["spec", "metrics"]), object.items_at(&["status", "currentMetrics"]));
    if metrics.is_empty() {
        return NONE.to_owned();
    }
    let texts = metrics.iter().enumerate().map(|(i, metric)| metric_text(metric, current.get(i)));
    let shown = texts.take(SHOWN_MAX).collect::<Vec<_>>().join(", ");
    match metrics.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn metric_text(metric: &Value, current: Option<&Value>) -> String {
    const FIELDS: [(&str, &str); 5] = [
        ("External", "external"),
        ("Pods", "pods"),
        ("Object", "object"),
        ("Resource", "resource"),
        ("ContainerResource", "containerResource"),
    ];
    let Some((kind, field)) = FIELDS.into_iter().find(|(kind, _)| *kind == text(metric, "type")) else {
        return "<unknown type>".to_owned();
    };
    let (target, name) = (|name: &str| metric.at(&[field, "target", name]), metric.str_at(&[field, "name"]));
    let now = |name: &str| {
        let value = current.and_then(|current| current.at(&[field, "current", name])).filter(|value| !value.is_null());
        value.map(|value| value.as_str().map_or_else(|| value.to_json(), str::to_owned))
    };
    let unknown = || "<unknown>".to_owned();
    let shown = |name: &str| target(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_resource = field.ends_with("esource");
    match target("averageValue").filter(|value| !value.is_null()) {
        Some(_) if is_resource => {
            format!("{name}: {}/{}", now("averageValue").unwrap_or_else(unknown), shown("averageValue"))
        }
        None if is_resource => {
            let share = target("averageUtilization").and_then(Value::as_int);
            let share = share.map_or_else(|| "<auto>".to_owned(), |share| format!("{share}%"));
            let current = now("averageUtilization").map_or_else(unknown, |current| format!("{current}%"));
            format!("{name}: {current}/{share}")
        }
        Some(_) => {
            let note = if kind == "Pods" { "" } else { " (avg)" };
            format!("{}/{}{note}", now("averageValue").unwrap_or_else(unknown), shown("averageValue"))
        }
        None => format!("{}/{}", now("value").unwrap_or_else(unknown), shown("value")),
    }
}
