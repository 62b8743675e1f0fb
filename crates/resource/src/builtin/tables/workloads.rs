//! Deployments and their like, Jobs, Pods, autoscalers.

use super::{NONE, at, boolean, flag, int, integer, joined, number, selector_at, size, text_column, text_or, wide};
use crate::builtin::BuiltInColumn;
use crate::builtin::autoscaling_versions::newest;
use crate::builtin::checks::text;
use crate::builtin::columns::AGE;
use machinery::{Value, jsonpath};

const CONTAINERS: BuiltInColumn = wide(text_column("Containers", "Names of the containers.", |object, _| {
    joined(at(object, &["spec", "template", "spec", "containers"]), "name")
}));

const IMAGES: BuiltInColumn = wide(text_column("Images", "Images of the containers.", |object, _| {
    joined(at(object, &["spec", "template", "spec", "containers"]), "image")
}));

const SELECTOR: BuiltInColumn = wide(text_column("Selector", "Labels of the selected Pods.", |object, _| {
    selector_at(object, &["spec", "selector"])
}));

const DESIRED: BuiltInColumn =
    integer("Desired", "Number of wanted replicas.", |object, _| int(object, &["spec", "replicas"]));

const CURRENT: BuiltInColumn =
    integer("Current", "Number of replicas.", |object, _| int(object, &["status", "replicas"]));

const READY_REPLICAS: BuiltInColumn =
    integer("Ready", "Number of ready replicas.", |object, _| int(object, &["status", "readyReplicas"]));

const READY_OF: BuiltInColumn = text_column("Ready", "Ready and wanted replicas.", |object, _| {
    Value::from(format!("{}/{}", number(object, &["status", "readyReplicas"]), number(object, &["spec", "replicas"])))
});

pub const DEPLOYMENT: &[BuiltInColumn] = &[
    READY_OF,
    text_column("Up-to-date", "Replicas of the current template.", |object, _| {
        int(object, &["status", "updatedReplicas"])
    }),
    text_column("Available", "Replicas that are available.", |object, _| int(object, &["status", "availableReplicas"])),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub const REPLICAS: &[BuiltInColumn] = &[DESIRED, CURRENT, READY_REPLICAS, AGE, CONTAINERS, IMAGES, SELECTOR];

pub const STATEFUL_SET: &[BuiltInColumn] = &[READY_OF, AGE, CONTAINERS, IMAGES];

pub const DAEMON_SET: &[BuiltInColumn] = &[
    integer("Desired", "Nodes that should run a Pod.", |o, _| int(o, &["status", "desiredNumberScheduled"])),
    integer("Current", "Nodes that run a Pod.", |o, _| int(o, &["status", "currentNumberScheduled"])),
    integer("Ready", "Nodes with a ready Pod.", |o, _| int(o, &["status", "numberReady"])),
    integer("Up-to-date", "Nodes with a Pod of the current template.", |o, _| {
        int(o, &["status", "updatedNumberScheduled"])
    }),
    integer("Available", "Nodes with an available Pod.", |o, _| int(o, &["status", "numberAvailable"])),
    text_column("Node Selector", "Labels of the selected Nodes.", |o, _| {
        selector_at(o, &["spec", "template", "spec", "nodeSelector"])
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub const JOB: &[BuiltInColumn] = &[
    text_column("Status", "What has become of the Job.", |object, _| Value::from(job_status(object))),
    text_column("Completions", "Succeeded and wanted Pods.", |object, _| {
        let (done, wanted) = (number(object, &["status", "succeeded"]), object.at(&["spec", "completions"]));
        let wanted = wanted.and_then(Value::as_int).unwrap_or(1);
        Value::from(format!("{done}/{wanted}"))
    }),
    text_column("Duration", "Time from the start to the completion.", |object, now| {
        let (start, end) = (object.str_at(&["status", "startTime"]), object.str_at(&["status", "completionTime"]));
        let end = machinery::time::parse_rfc3339(end).map_or(now, |(seconds, _)| seconds.saturating_mul(1_000_000));
        Value::from(if start.is_empty() { String::new() } else { jsonpath::columns::age(start, end) })
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn job_status(job: &Value) -> &'static str {
    let holds = |kind: &str| {
        let conditions = at(job, &["status", "conditions"]).iter();
        conditions.filter(|c| text(c, "type") == kind).any(|c| text(c, "status") == "True")
    };
    let states = [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ];
    match states.into_iter().find(|(kind, _)| holds(kind)) {
        Some((_, state)) => state,
        None if !job.str_at(&["metadata", "deletionTimestamp"]).is_empty() => "Terminating",
        None => "Running",
    }
}

pub const CRON_JOB: &[BuiltInColumn] = &[
    text_column("Schedule", "When Jobs are started, in cron's form.", |o, _| text_or(o, &["spec", "schedule"], "")),
    text_column("Timezone", "Time zone of the schedule.", |o, _| text_or(o, &["spec", "timeZone"], NONE)),
    boolean("Suspend", "Whether no Jobs are started.", |o, _| {
        let suspended = o.at(&["spec", "suspend"]).and_then(Value::as_bool).unwrap_or_default();
        Value::from(if suspended { "True" } else { "False" })
    }),
    integer("Active", "Number of running Jobs.", |o, _| size(at(o, &["status", "active"]))),
    text_column("Last Schedule", "Time since a Job was started.", |o, now| {
        match o.str_at(&["status", "lastScheduleTime"]) {
            "" => Value::from(NONE),
            time => Value::from(jsonpath::columns::age(time, now)),
        }
    }),
    AGE,
    wide(text_column("Containers", "Names of the containers.", |o, _| joined(at(o, CRON_CONTAINERS), "name"))),
    wide(text_column("Images", "Images of the containers.", |o, _| joined(at(o, CRON_CONTAINERS), "image"))),
    wide(text_column("Selector", "Labels of the selected Pods.", |o, _| {
        selector_at(o, &["spec", "jobTemplate", "spec", "selector"])
    })),
];

const CRON_CONTAINERS: &[&str] = &["spec", "jobTemplate", "spec", "template", "spec", "containers"];

pub const REVISION: &[BuiltInColumn] = &[
    text_column("Controller", "Owner of the revision.", |object, _| {
        let owners = at(object, &["metadata", "ownerReferences"]).iter();
        let owner = owners.into_iter().find(|owner| flag(owner, &["controller"]) == Value::Bool(true));
        let shown = owner.map(|owner| {
            let group = text(owner, "apiVersion").split_once('/').map_or("", |(group, _)| group);
            let dot = if group.is_empty() { "" } else { "." };
            format!("{}{dot}{group}/{}", text(owner, "kind").to_lowercase(), text(owner, "name"))
        });
        Value::from(shown.unwrap_or_else(|| NONE.to_owned()))
    }),
    text_column("Revision", "Number of the revision.", |object, _| int(object, &["revision"])),
    AGE,
];

pub const AUTOSCALER: &[BuiltInColumn] = &[
    text_column("Reference", "Object that is scaled.", |o, _| {
        let part = |name: &str| o.str_at(&["spec", "scaleTargetRef", name]).to_owned();
        Value::from(format!("{}/{}", part("kind"), part("name")))
    }),
    text_column("Targets", "Metrics, and their targets.", |o, _| Value::from(metric_texts(&newest(o)))),
    text_column("MinPods", "Least number of Pods.", |o, _| {
        Value::from(number(o, &["spec", "minReplicas"]).to_string())
    }),
    text_column("MaxPods", "Greatest number of Pods.", |o, _| int(o, &["spec", "maxReplicas"])),
    text_column("Replicas", "Number of Pods.", |o, _| int(o, &["status", "currentReplicas"])),
    AGE,
];

/// The metrics of a v2 autoscaler, each as its current value and its target.
fn metric_texts(object: &Value) -> String {
    const SHOWN_MAX: usize = 2;
    let (metrics, current) = (at(object, &["spec", "metrics"]), at(object, &["status", "currentMetrics"]));
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
