//! The table columns of the kinds in the catalogue.

use machinery::{Map, Value, jsonpath};

use super::BuiltInColumn;
use super::checks::{list, text};
use super::columns::AGE;

type Cell = fn(&Value, i64) -> Value;

const fn text_column(name: &'static str, description: &'static str, cell: Cell) -> BuiltInColumn {
    BuiltInColumn { name, kind: "string", format: "", description, priority: 0, cell }
}

const fn integer(name: &'static str, description: &'static str, cell: Cell) -> BuiltInColumn {
    BuiltInColumn { kind: "integer", ..text_column(name, description, cell) }
}

const fn boolean(name: &'static str, description: &'static str, cell: Cell) -> BuiltInColumn {
    BuiltInColumn { kind: "boolean", ..text_column(name, description, cell) }
}

const fn wide(column: BuiltInColumn) -> BuiltInColumn {
    BuiltInColumn { priority: 1, ..column }
}

const NONE: &str = "<none>";

/// The text at a path, or `absent`.
fn text_or(object: &Value, path: &[&str], absent: &str) -> Value {
    match object.str_at(path) {
        "" => Value::from(absent),
        text => Value::from(text),
    }
}

fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_int).unwrap_or_default()
}

fn int(object: &Value, path: &[&str]) -> Value {
    Value::Int(number(object, path))
}

fn flag(object: &Value, path: &[&str]) -> Value {
    Value::Bool(object.at(path).and_then(Value::as_bool).unwrap_or_default())
}

fn size(items: &[Value]) -> Value {
    Value::Int(i64::try_from(items.len()).unwrap_or(i64::MAX))
}

fn at<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// The texts of a field of each item, separated by commas.
fn joined(items: &[Value], field: &str) -> Value {
    Value::from(items.iter().map(|item| text(item, field)).collect::<Vec<_>>().join(","))
}

/// The text of a selector: a LabelSelector, or the labels themselves.
pub fn selector_text(selector: &Map) -> String {
    let labels = |map: &Map| -> Vec<String> {
        map.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect()
    };
    let of_labels = selector.get("matchLabels").and_then(Value::as_object).map(labels);
    let parts = match (selector.get("matchLabels"), selector.get("matchExpressions")) {
        (None, None) => labels(selector),
        _ => of_labels.unwrap_or_default(),
    };
    let key = |part: &str| part.split('=').next().unwrap_or_default().to_owned();
    let mut keyed: Vec<(String, String)> = parts.into_iter().map(|part| (key(&part), part)).collect();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default();
    keyed.extend(expressions.iter().map(|one| (text(one, "key").to_owned(), expression_text(one))));
    // by key alone: requirements of one key keep their order
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    keyed.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

fn expression_text(expression: &Value) -> String {
    let key = text(expression, "key");
    let mut values: Vec<&str> = list(expression, "values").iter().filter_map(Value::as_str).collect();
    values.sort_unstable();
    let values = values.join(",");
    match text(expression, "operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    }
}

fn selector_at(object: &Value, path: &[&str]) -> Value {
    let found = object.at(path).and_then(Value::as_object).map(selector_text).unwrap_or_default();
    Value::from(if found.is_empty() { NONE } else { &found })
}

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

pub const POD: &[BuiltInColumn] = &[
    text_column("Ready", "Ready and all containers.", |pod, _| {
        let ready =
            at(pod, &["status", "containerStatuses"]).iter().filter(|s| flag(s, &["ready"]) == Value::Bool(true));
        Value::from(format!("{}/{}", ready.count(), at(pod, &["spec", "containers"]).len()))
    }),
    text_column("Status", "Phase of the Pod, or why it is not running.", |pod, _| pod_status(pod)),
    text_column("Restarts", "How often containers were started again.", |pod, _| {
        let restarts = at(pod, &["status", "containerStatuses"]).iter().map(|status| number(status, &["restartCount"]));
        Value::from(restarts.sum::<i64>().to_string())
    }),
    AGE,
    wide(text_column("IP", "Address of the Pod.", |pod, _| text_or(pod, &["status", "podIP"], NONE))),
    wide(text_column("Node", "Node that runs the Pod.", |pod, _| text_or(pod, &["spec", "nodeName"], NONE))),
    wide(text_column("Nominated Node", "Node on which room is made for the Pod.", |pod, _| {
        text_or(pod, &["status", "nominatedNodeName"], NONE)
    })),
    wide(text_column("Readiness Gates", "Conditions that are met, of those that are awaited.", |pod, _| {
        let gates = at(pod, &["spec", "readinessGates"]);
        let conditions = at(pod, &["status", "conditions"]);
        let is_met = |gate: &&Value| {
            let of_gate = conditions.iter().filter(|c| text(c, "type") == text(gate, "conditionType"));
            of_gate.into_iter().any(|c| text(c, "status") == "True")
        };
        match gates.len() {
            0 => Value::from(NONE),
            all => Value::from(format!("{}/{all}", gates.iter().filter(is_met).count())),
        }
    })),
];

/// The reason of the Pod or of a waiting or terminated container; otherwise its phase.
fn pod_status(pod: &Value) -> Value {
    if !pod.str_at(&["metadata", "deletionTimestamp"]).is_empty() {
        return Value::from("Terminating");
    }
    let reasons = at(pod, &["status", "containerStatuses"])
        .iter()
        .rev()
        .flat_map(|status| ["waiting", "terminated"].map(|state| status.str_at(&["state", state, "reason"])));
    let first = [pod.str_at(&["status", "reason"])].into_iter().chain(reasons).find(|reason| !reason.is_empty());
    Value::from(first.unwrap_or_else(|| pod.str_at(&["status", "phase"])))
}

pub const POD_TEMPLATE: &[BuiltInColumn] = &[
    text_column("Containers", "Names of the containers.", |o, _| {
        joined(at(o, &["template", "spec", "containers"]), "name")
    }),
    text_column("Images", "Images of the containers.", |o, _| {
        joined(at(o, &["template", "spec", "containers"]), "image")
    }),
    text_column("Pod Labels", "Labels of the Pods.", |o, _| selector_at(o, &["template", "metadata", "labels"])),
];

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

pub const NODE: &[BuiltInColumn] = &[
    text_column("Status", "Whether the Node is ready, and takes Pods.", |node, _| Value::from(node_status(node))),
    text_column("Roles", "Roles by labels.", |node, _| Value::from(node_roles(node))),
    AGE,
    text_column("Version", "Version of the kubelet.", |node, _| {
        text_or(node, &["status", "nodeInfo", "kubeletVersion"], "")
    }),
    wide(text_column("Internal-IP", "Address in the cluster.", |node, _| node_address(node, "InternalIP"))),
    wide(text_column("External-IP", "Address outside of the cluster.", |node, _| node_address(node, "ExternalIP"))),
    wide(text_column("OS-Image", "Operating system.", |node, _| {
        text_or(node, &["status", "nodeInfo", "osImage"], "<unknown>")
    })),
    wide(text_column("Kernel-Version", "Version of the kernel.", |node, _| {
        let version = text_or(node, &["status", "nodeInfo", "kernelVersion"], "<unknown>");
        match node.str_at(&["status", "nodeInfo", "architecture"]) {
            "" => version,
            architecture => Value::from(format!("{} ({architecture})", version.as_str().unwrap_or_default())),
        }
    })),
    wide(text_column("Container-Runtime", "Runtime of containers and its version.", |node, _| {
        text_or(node, &["status", "nodeInfo", "containerRuntimeVersion"], "<unknown>")
    })),
];

fn node_status(node: &Value) -> String {
    let ready = at(node, &["status", "conditions"]).iter().find(|condition| text(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(node, &["spec", "unschedulable"]) == Value::Bool(true) {
        status += ",SchedulingDisabled";
    }
    status
}

fn node_roles(node: &Value) -> String {
    const PREFIX: &str = "node-role.kubernetes.io/";
    let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let role = |(key, value): (&machinery::Text, &Value)| match (key.strip_prefix(PREFIX), key.as_str()) {
        (Some(role), _) if !role.is_empty() => Some(role.to_owned()),
        (None, "kubernetes.io/role") => value.as_str().filter(|role| !role.is_empty()).map(str::to_owned),
        _ => None,
    };
    let mut roles: Vec<String> = labels.filter_map(role).collect();
    roles.sort();
    if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }
}

fn node_address(node: &Value, kind: &str) -> Value {
    let found = at(node, &["status", "addresses"]).iter().find(|address| text(address, "type") == kind);
    found.map_or_else(|| Value::from(NONE), |address| Value::from(text(address, "address")))
}

/// Access modes, abbreviated.
fn modes(modes: &[Value]) -> Value {
    let short = |mode: &Value| match mode.as_str().unwrap_or_default() {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        _ => "",
    };
    Value::from(modes.iter().map(short).collect::<Vec<_>>().join(","))
}

const ATTRIBUTES_CLASS: BuiltInColumn =
    text_column("VolumeAttributesClass", "Class of the volume's attributes.", |o, _| {
        text_or(o, &["spec", "volumeAttributesClassName"], "<unset>")
    });
const STORAGE_CLASS_NAME: BuiltInColumn =
    text_column("StorageClass", "StorageClass of the volume.", |o, _| text_or(o, &["spec", "storageClassName"], ""));
const VOLUME_MODE: BuiltInColumn =
    wide(text_column("VolumeMode", "Filesystem or Block.", |o, _| text_or(o, &["spec", "volumeMode"], "<unset>")));

pub const CLAIM: &[BuiltInColumn] = &[
    text_column("Status", "Phase of the claim.", |o, _| {
        let is_deleted = !o.str_at(&["metadata", "deletionTimestamp"]).is_empty();
        if is_deleted { Value::from("Terminating") } else { text_or(o, &["status", "phase"], "") }
    }),
    text_column("Volume", "PersistentVolume that is bound.", |o, _| text_or(o, &["spec", "volumeName"], "")),
    text_column("Capacity", "Capacity of the volume.", |o, _| match o.str_at(&["spec", "volumeName"]) {
        "" => Value::from(""),
        _ => text_or(o, &["status", "capacity", "storage"], "0"),
    }),
    text_column("Access Modes", "How the volume may be mounted.", |o, _| match o.str_at(&["spec", "volumeName"]) {
        "" => Value::from(""),
        _ => modes(at(o, &["status", "accessModes"])),
    }),
    STORAGE_CLASS_NAME,
    ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
];

pub const VOLUME: &[BuiltInColumn] = &[
    text_column("Capacity", "Capacity of the volume.", |o, _| text_or(o, &["spec", "capacity", "storage"], "0")),
    text_column("Access Modes", "How the volume may be mounted.", |o, _| modes(at(o, &["spec", "accessModes"]))),
    text_column("Reclaim Policy", "What happens to the volume after its claim.", |o, _| {
        text_or(o, &["spec", "persistentVolumeReclaimPolicy"], "")
    }),
    text_column("Status", "Phase of the volume.", |o, _| {
        let is_deleted = !o.str_at(&["metadata", "deletionTimestamp"]).is_empty();
        if is_deleted { Value::from("Terminating") } else { text_or(o, &["status", "phase"], "") }
    }),
    text_column("Claim", "PersistentVolumeClaim that is bound.", |o, _| {
        let part = |name: &str| o.str_at(&["spec", "claimRef", name]).to_owned();
        Value::from(if part("name").is_empty() {
            String::new()
        } else {
            format!("{}/{}", part("namespace"), part("name"))
        })
    }),
    STORAGE_CLASS_NAME,
    ATTRIBUTES_CLASS,
    text_column("Reason", "Why the volume is in its phase.", |o, _| text_or(o, &["status", "reason"], "")),
    AGE,
    VOLUME_MODE,
];

pub const STORAGE_CLASS: &[BuiltInColumn] = &[
    text_column("Provisioner", "Provisioner of volumes.", |o, _| text_or(o, &["provisioner"], "")),
    text_column("ReclaimPolicy", "What happens to volumes after their claims.", |o, _| {
        text_or(o, &["reclaimPolicy"], "")
    }),
    text_column("VolumeBindingMode", "When volumes are bound.", |o, _| text_or(o, &["volumeBindingMode"], "")),
    text_column("AllowVolumeExpansion", "Whether volumes can grow.", |o, _| flag(o, &["allowVolumeExpansion"])),
    AGE,
];

pub const INGRESS_CLASS: &[BuiltInColumn] = &[
    text_column("Controller", "Controller of the class.", |o, _| text_or(o, &["spec", "controller"], "")),
    text_column("Parameters", "Object with more parameters.", |o, _| {
        let part = |name: &str| o.str_at(&["spec", "parameters", name]).to_owned();
        let group = part("apiGroup");
        let dot = if group.is_empty() { "" } else { "." };
        Value::from(match part("name").is_empty() {
            true => NONE.to_owned(),
            false => format!("{}{dot}{group}/{}", part("kind"), part("name")),
        })
    }),
    AGE,
];

pub const INGRESS: &[BuiltInColumn] = &[
    text_column("Class", "Class of the Ingress.", |o, _| text_or(o, &["spec", "ingressClassName"], NONE)),
    text_column("Hosts", "Hosts of the rules.", |o, _| {
        let hosts: Vec<&str> =
            at(o, &["spec", "rules"]).iter().map(|rule| text(rule, "host")).filter(|host| !host.is_empty()).collect();
        Value::from(match hosts.len() {
            0 => "*".to_owned(),
            1..=3 => hosts.join(","),
            all => format!("{} + {} more...", hosts[..3].join(","), all - 3),
        })
    }),
    text_column("Address", "Addresses of the load balancer.", |o, _| {
        let points = at(o, &["status", "loadBalancer", "ingress"]).iter();
        let address = |point: &Value| match text(point, "ip") {
            "" => text(point, "hostname").to_owned(),
            ip => ip.to_owned(),
        };
        Value::from(points.map(address).collect::<Vec<_>>().join(","))
    }),
    text_column("Ports", "Ports of the Ingress.", |o, _| {
        Value::from(if at(o, &["spec", "tls"]).is_empty() { "80" } else { "80, 443" })
    }),
    AGE,
];

pub const NETWORK_POLICY: &[BuiltInColumn] = &[
    text_column("Pod-Selector", "Labels of the selected Pods.", |o, _| selector_at(o, &["spec", "podSelector"])),
    AGE,
];

pub const RUNTIME_CLASS: &[BuiltInColumn] = &[text_column("Handler", "", |o, _| text_or(o, &["handler"], "")), AGE];

pub const DISRUPTION_BUDGET: &[BuiltInColumn] = &[
    text_column("Min Available", "Pods that stay available.", |o, _| count_or_share(o, "minAvailable")),
    text_column("Max Unavailable", "Pods that may be unavailable.", |o, _| count_or_share(o, "maxUnavailable")),
    integer("Allowed Disruptions", "Pods that may be evicted now.", |o, _| int(o, &["status", "disruptionsAllowed"])),
    AGE,
];

fn count_or_share(budget: &Value, name: &str) -> Value {
    match budget.at(&["spec", name]) {
        Some(Value::Int(count)) => Value::from(count.to_string()),
        Some(Value::String(share)) => Value::String(share.clone()),
        _ => Value::from("N/A"),
    }
}

pub const PRIORITY_CLASS: &[BuiltInColumn] = &[
    integer("Value", "Priority of Pods of the class.", |o, _| int(o, &["value"])),
    boolean("Global-Default", "Whether Pods without a class have this one.", |o, _| flag(o, &["globalDefault"])),
    AGE,
    text_column("PreemptionPolicy", "Whether Pods of the class preempt others.", |o, _| {
        text_or(o, &["preemptionPolicy"], "")
    }),
];

pub const CSI_DRIVER: &[BuiltInColumn] = &[
    boolean("AttachRequired", "Whether volumes are attached.", |o, _| flag(o, &["spec", "attachRequired"])),
    boolean("PodInfoOnMount", "Whether the driver is told of Pods.", |o, _| flag(o, &["spec", "podInfoOnMount"])),
    boolean("StorageCapacity", "Whether capacity is considered.", |o, _| flag(o, &["spec", "storageCapacity"])),
    text_column("TokenRequests", "Audiences of tokens that the driver needs.", |o, _| {
        let requests = at(o, &["spec", "tokenRequests"]);
        if requests.is_empty() { Value::from("<unset>") } else { joined(requests, "audience") }
    }),
    boolean("RequiresRepublish", "Whether volumes are published repeatedly.", |o, _| {
        flag(o, &["spec", "requiresRepublish"])
    }),
    text_column("Modes", "How volumes may be used.", |o, _| {
        let modes = at(o, &["spec", "volumeLifecycleModes"]).iter().filter_map(Value::as_str);
        Value::from(modes.collect::<Vec<_>>().join(","))
    }),
    AGE,
];

pub const CSI_NODE: &[BuiltInColumn] =
    &[integer("Drivers", "Number of drivers on the Node.", |o, _| size(at(o, &["spec", "drivers"]))), AGE];

pub const ATTACHMENT: &[BuiltInColumn] = &[
    BuiltInColumn {
        format: "name",
        ..text_column("Attacher", "Driver that attaches the volume.", |o, _| text_or(o, &["spec", "attacher"], ""))
    },
    text_column("PV", "PersistentVolume that is attached.", |o, _| {
        text_or(o, &["spec", "source", "persistentVolumeName"], "")
    }),
    text_column("Node", "Node to which it is attached.", |o, _| text_or(o, &["spec", "nodeName"], "")),
    boolean("Attached", "Whether it is attached.", |o, _| flag(o, &["status", "attached"])),
    AGE,
];

pub const ATTRIBUTES_CLASS_ITSELF: &[BuiltInColumn] =
    &[text_column("DriverName", "Driver of the class.", |o, _| text_or(o, &["driverName"], "")), AGE];

pub const RESOURCE_CLAIM: &[BuiltInColumn] = &[
    text_column("State", "What is reserved and allocated.", |o, _| {
        let allocated = o.at(&["status", "allocation"]).is_some();
        let reserved = !at(o, &["status", "reservedFor"]).is_empty();
        let deleted = !o.str_at(&["metadata", "deletionTimestamp"]).is_empty();
        let states = [("deleted", deleted), ("allocated", allocated), ("reserved", reserved)];
        let states: Vec<&str> = states.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name).collect();
        Value::from(if states.is_empty() { "pending".to_owned() } else { states.join(",") })
    }),
    AGE,
];

pub const SLICE: &[BuiltInColumn] = &[
    text_column("AddressType", "Type of the addresses.", |o, _| text_or(o, &["addressType"], "")),
    text_column("Ports", "Ports of the endpoints.", |o, _| {
        let ports = list(o, "ports").iter().map(|port| match port.get("port").and_then(Value::as_int) {
            Some(port) => port.to_string(),
            None => "*".to_owned(),
        });
        shortened(ports.collect(), "<unset>")
    }),
    text_column("Endpoints", "Addresses of the endpoints.", |o, _| {
        let addresses = list(o, "endpoints").iter().flat_map(|endpoint| list(endpoint, "addresses"));
        shortened(addresses.filter_map(Value::as_str).map(str::to_owned).collect(), "<unset>")
    }),
    AGE,
];

/// The first three texts, and how many more there are.
fn shortened(texts: Vec<String>, none: &str) -> Value {
    Value::from(match texts.len() {
        0 => none.to_owned(),
        1..=3 => texts.join(","),
        all => format!("{} + {} more...", texts[..3].join(","), all - 3),
    })
}

pub const ENDPOINTS: &[BuiltInColumn] = &[
    text_column("Endpoints", "Addresses and ports.", |o, _| {
        let mut shown = vec![];
        for subset in list(o, "subsets") {
            for address in list(subset, "addresses") {
                let ip = text(address, "ip");
                match list(subset, "ports") {
                    [] => shown.push(ip.to_owned()),
                    ports => shown.extend(ports.iter().map(|port| format!("{ip}:{}", number(port, &["port"])))),
                }
            }
        }
        shortened(shown, if list(o, "subsets").is_empty() { NONE } else { "" })
    }),
    AGE,
];

pub const AUTOSCALER: &[BuiltInColumn] = &[
    text_column("Reference", "Object that is scaled.", |o, _| {
        let part = |name: &str| o.str_at(&["spec", "scaleTargetRef", name]).to_owned();
        Value::from(format!("{}/{}", part("kind"), part("name")))
    }),
    text_column("Targets", "Metrics, and their targets.", |o, _| {
        Value::from(metric_texts(&super::autoscaling_versions::newest(o)))
    }),
    text_column("MinPods", "Least number of Pods.", |o, _| {
        Value::from(number(o, &["spec", "minReplicas"]).to_string())
    }),
    text_column("MaxPods", "Greatest number of Pods.", |o, _| int(o, &["spec", "maxReplicas"])),
    text_column("Replicas", "Number of Pods.", |o, _| int(o, &["status", "currentReplicas"])),
    AGE,
];

/// The metrics of an autoscaler of v2, each as its current value and its target.
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

pub const COMPONENT: &[BuiltInColumn] = &[
    text_column("Status", "Whether the component is healthy.", |o, _| {
        let status = at(o, &["conditions"]).first().map(|condition| text(condition, "status")).unwrap_or_default();
        Value::from(match status {
            "True" => "Healthy",
            "False" => "Unhealthy",
            _ => "Unknown",
        })
    }),
    text_column("Message", "What the component reports.", |o, _| {
        Value::from(at(o, &["conditions"]).first().map(|condition| text(condition, "message")).unwrap_or_default())
    }),
    text_column("Error", "Why it cannot be asked.", |o, _| {
        Value::from(at(o, &["conditions"]).first().map(|condition| text(condition, "error")).unwrap_or_default())
    }),
];

const SIGNER: BuiltInColumn =
    text_column("SignerName", "Signer that is asked.", |o, _| text_or(o, &["spec", "signerName"], NONE));

pub const SIGNING_REQUEST: &[BuiltInColumn] = &[
    AGE,
    SIGNER,
    text_column("Requestor", "User who asks.", |o, _| text_or(o, &["spec", "username"], "")),
    text_column("RequestedDuration", "How long the certificate is to be valid.", |o, _| {
        let seconds = o.at(&["spec", "expirationSeconds"]).and_then(Value::as_int);
        Value::from(seconds.map_or_else(
            || NONE.to_owned(),
            |seconds| jsonpath::columns::human_duration(seconds.saturating_mul(1_000_000_000)),
        ))
    }),
    text_column("Condition", "What has become of the request.", |o, _| Value::from(signing_state(o))),
];

fn signing_state(object: &Value) -> String {
    let has = |kind: &str| at(object, &["status", "conditions"]).iter().any(|c| text(c, "type") == kind);
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if object.str_at(&["status", "certificate"]).is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

pub const TRUST_BUNDLE: &[BuiltInColumn] = &[SIGNER];

pub const POD_CERTIFICATE_REQUEST: &[BuiltInColumn] = &[
    text_column("PodName", "Pod that asks.", |o, _| text_or(o, &["spec", "podName"], "")),
    text_column("ServiceAccountName", "ServiceAccount of the Pod.", |o, _| {
        text_or(o, &["spec", "serviceAccountName"], "")
    }),
    text_column("NodeName", "Node of the Pod.", |o, _| text_or(o, &["spec", "nodeName"], "")),
    text_column("SignerName", "Signer that is asked.", |o, _| text_or(o, &["spec", "signerName"], "")),
    text_column("State", "What has become of the request.", |o, _| {
        let mut conditions = at(o, &["status", "conditions"]).iter().map(|condition| text(condition, "type"));
        Value::from(conditions.rfind(|kind| ["Issued", "Denied", "Failed"].contains(kind)).unwrap_or("Pending"))
    }),
    text_column("UnverifiedUserAnnotations", "Annotations of the user.", |o, _| {
        let annotations = o.at(&["spec", "unverifiedUserAnnotations"]).and_then(Value::as_object);
        let shown: Vec<String> = annotations
            .into_iter()
            .flat_map(Map::iter)
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        Value::from(if shown.is_empty() { NONE.to_owned() } else { shown.join(",") })
    }),
];

pub const IP_ADDRESS: &[BuiltInColumn] = &[
    text_column("ParentRef", "Object that has the address.", |o, _| {
        let part = |name: &str| o.str_at(&["spec", "parentRef", name]);
        if o.at(&["spec", "parentRef"]).is_none() {
            return Value::from(NONE);
        }
        let group = if part("group").is_empty() { String::new() } else { format!(".{}", part("group")) };
        let namespace = if part("namespace").is_empty() { String::new() } else { format!("/{}", part("namespace")) };
        Value::from(format!("{}{group}{namespace}/{}", part("resource"), part("name")).to_lowercase())
    }),
    UNNAMED_AGE,
];

/// A cell that no column is defined for.
const UNNAMED_AGE: BuiltInColumn = BuiltInColumn { name: "", ..AGE };

pub const SERVICE_CIDR: &[BuiltInColumn] = &[
    text_column("CIDRs", "Ranges of addresses.", |o, _| {
        let ranges: Vec<&str> = at(o, &["spec", "cidrs"]).iter().filter_map(Value::as_str).collect();
        Value::from(ranges.join(","))
    }),
    AGE,
];

pub const RESOURCE_SLICE: &[BuiltInColumn] = &[
    text_column("Node", "Node that has the devices.", |o, _| text_or(o, &["spec", "nodeName"], "")),
    text_column("Driver", "Driver of the devices.", |o, _| text_or(o, &["spec", "driver"], "")),
    text_column("Pool", "Pool of the devices.", |o, _| text_or(o, &["spec", "pool", "name"], "")),
    AGE,
];

pub const TAINT_RULE: &[BuiltInColumn] = &[
    text_column("Key", "Key of the taint.", |o, _| text_or(o, &["spec", "taint", "key"], "")),
    text_column("Value", "Value of the taint.", |o, _| text_or(o, &["spec", "taint", "value"], "")),
    text_column("Effect", "Effect of the taint.", |o, _| text_or(o, &["spec", "taint", "effect"], "")),
    text_column("TimeAdded", "Time of the taint.", |o, now| {
        Value::from(jsonpath::columns::age(o.str_at(&["spec", "taint", "timeAdded"]), now))
    }),
    AGE,
];
