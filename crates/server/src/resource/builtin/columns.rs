//! The columns of built-in kinds in tables.

use machinery::{Map, Value, jsonpath};

/// A column and how its cell is made; the second argument is now, in microseconds.
pub struct BuiltInColumn {
    pub name: &'static str,
    pub kind: &'static str,
    pub format: &'static str,
    pub description: &'static str,
    /// Above zero: only shown in wide tables.
    pub priority: i64,
    pub cell: fn(&Value, i64) -> Value,
}

const fn column(name: &'static str, description: &'static str, cell: fn(&Value, i64) -> Value) -> BuiltInColumn {
    BuiltInColumn { name, kind: "string", format: "", description, priority: 0, cell }
}

const fn wide(name: &'static str, description: &'static str, cell: fn(&Value, i64) -> Value) -> BuiltInColumn {
    BuiltInColumn { priority: 1, ..column(name, description, cell) }
}

const fn number(name: &'static str, description: &'static str, cell: fn(&Value, i64) -> Value) -> BuiltInColumn {
    BuiltInColumn { kind: "integer", ..column(name, description, cell) }
}

/// The description of columns that show the age.
pub const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

fn created(object: &Value) -> &str {
    object.str_at(&["metadata", "creationTimestamp"])
}

pub const AGE: BuiltInColumn = BuiltInColumn {
    name: "Age",
    kind: "string",
    format: "",
    description: AGE_DESCRIPTION,
    priority: 0,
    cell: |object, now| Value::from(jsonpath::columns::age(created(object), now)),
};

pub const CREATED_AT: BuiltInColumn = BuiltInColumn {
    name: "Created At",
    kind: "date",
    format: "",
    description: AGE_DESCRIPTION,
    priority: 0,
    cell: |object, _| Value::from(created(object)),
};

/// What kinds without columns of their own show.
pub const PLAIN: &[BuiltInColumn] = &[CREATED_AT];

pub const DESCRIPTION: BuiltInColumn =
    column("Description", "The description of this object.", |object, _| Value::from(object.str_at(&["description"])));

pub const VERSIONS: BuiltInColumn =
    column("Version(s)", "The versions in which objects of the kind are served.", |object, _| {
        Value::from(super::third_party::versions(object))
    });

fn len(object: &Value, path: &[&str]) -> usize {
    match object.at(path) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(map)) => map.len(),
        _ => 0,
    }
}

fn count(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

pub const DATA: BuiltInColumn = column(
    "Data",
    "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData field, this is enforced during validation process.",
    |object, _| count(len(object, &["data"]) + len(object, &["binaryData"])),
);

pub const SECRET_DATA: BuiltInColumn = column(
    "Data",
    "Data contains the secret data. Each key must consist of alphanumeric characters, '-', '_' or '.'. The serialized form of the secret data is a base64 encoded string, representing the arbitrary (possibly non-string) data value here. Described in https://tools.ietf.org/html/rfc4648#section-4",
    |object, _| count(len(object, &["data"])),
);

pub const PHASE: BuiltInColumn =
    column("Status", "The status of the namespace", |object, _| Value::from(object.str_at(&["status", "phase"])));

pub const TYPE: BuiltInColumn = column(
    "Type",
    "Used to facilitate programmatic handling of secret data. More info: https://kubernetes.io/docs/concepts/configuration/secret/#secret-types",
    |object, _| Value::from(object.str_at(&["type"])),
);

pub const HOLDER: BuiltInColumn = column(
    "Holder",
    "holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used, the holder identity must be equal to the elected LeaseCandidate.metadata.name field.",
    |object, _| Value::from(object.str_at(&["spec", "holderIdentity"])),
);

pub const ROLE: BuiltInColumn = column(
    "Role",
    "RoleRef can reference a Role in the current namespace or a ClusterRole in the global namespace. If the RoleRef cannot be resolved, the Authorizer must return an error.",
    |object, _| {
        let part = |name: &str| object.str_at(&["roleRef", name]).to_owned();
        Value::from(format!("{}/{}", part("kind"), part("name")))
    },
);

pub const CLUSTER_ROLE: BuiltInColumn = BuiltInColumn {
    description: "RoleRef can only reference a ClusterRole in the global namespace. If the RoleRef cannot be resolved, the Authorizer must return an error.",
    ..ROLE
};

pub const USERS: BuiltInColumn = wide("Users", "Users in the roleBinding", |object, _| subjects(object, "User"));
pub const GROUPS: BuiltInColumn = wide("Groups", "Groups in the roleBinding", |object, _| subjects(object, "Group"));
pub const ACCOUNTS: BuiltInColumn =
    wide("ServiceAccounts", "ServiceAccounts in the roleBinding", |object, _| subjects(object, "ServiceAccount"));
pub const CLUSTER_USERS: BuiltInColumn = BuiltInColumn { description: "Users in the clusterRoleBinding", ..USERS };
pub const CLUSTER_GROUPS: BuiltInColumn = BuiltInColumn { description: "Groups in the clusterRoleBinding", ..GROUPS };
pub const CLUSTER_ACCOUNTS: BuiltInColumn =
    BuiltInColumn { description: "ServiceAccounts in the clusterRoleBinding", ..ACCOUNTS };

/// The subjects of a kind, those in namespaces with them.
fn subjects(binding: &Value, kind: &str) -> Value {
    let all = binding.get("subjects").and_then(Value::as_array).unwrap_or_default();
    let of_kind = all.iter().filter(|subject| subject.str_at(&["kind"]) == kind);
    let text = |subject: &Value| match kind {
        "ServiceAccount" => format!("{}/{}", subject.str_at(&["namespace"]), subject.str_at(&["name"])),
        _ => subject.str_at(&["name"]).to_owned(),
    };
    Value::from(of_kind.map(text).collect::<Vec<_>>().join(", "))
}

pub const WEBHOOKS: BuiltInColumn =
    number("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration", |object, _| {
        count(len(object, &["webhooks"]))
    });

pub const VALIDATIONS: BuiltInColumn = number(
    "Validations",
    "Validations indicates the number of validation rules defined in this configuration",
    |object, _| count(len(object, &["spec", "validations"])),
);

pub const MUTATIONS: BuiltInColumn = number(
    "Mutations",
    "Mutation indicates the number of mutations rules defined in this configuration",
    |object, _| count(len(object, &["spec", "mutations"])),
);

pub const PARAM_KIND: BuiltInColumn =
    column("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy", |object, _| {
        match object.at(&["spec", "paramKind"]) {
            None => Value::from("<unset>"),
            Some(kind) => Value::from(format!("{}/{}", kind.str_at(&["apiVersion"]), kind.str_at(&["kind"]))),
        }
    });

pub const POLICY_NAME: BuiltInColumn = column(
    "PolicyName",
    "PolicyName indicates the policy definition which the policy binding binded to",
    |object, _| Value::from(object.str_at(&["spec", "policyName"])),
);

pub const PARAM_REF: BuiltInColumn =
    column("ParamRef", "ParamRef indicates the param resource which sets the configuration param", |object, _| {
        let Some(reference) = object.at(&["spec", "paramRef"]) else { return Value::from("<unset>") };
        let (namespace, name) = (reference.str_at(&["namespace"]), reference.str_at(&["name"]));
        Value::from(match reference.get("selector") {
            Some(selector) if name.is_empty() => selector_text(selector),
            _ if namespace.is_empty() => format!("*/{name}"),
            _ => format!("{namespace}/{name}"),
        })
    });

/// A LabelSelector as Go's protobuf types print themselves.
fn selector_text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let labels: String = labels.map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default())).collect();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default();
    let requirement = |it: &Value| {
        let values = it.get("values").and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str);
        let values = values.collect::<Vec<_>>().join(" ");
        let (key, operator) = (it.str_at(&["key"]), it.str_at(&["operator"]));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    };
    let expressions: String = expressions.iter().map(requirement).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

pub const REQUESTS: BuiltInColumn = column(
    "Request",
    "Request represents a minimum amount of cpu/memory that a container may consume.",
    |object, _| usage(object, false),
);

pub const LIMITS: BuiltInColumn = column(
    "Limit",
    "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
    |object, _| usage(object, true),
);

/// What is used of what is allowed, for limits or for all else.
fn usage(quota: &Value, limits: bool) -> Value {
    let hard = quota.at(&["status", "hard"]).and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let shown = hard.filter(|(name, _)| name.starts_with("limits.") == limits).map(|(name, hard)| {
        let used = quota.at(&["status", "used", name]).and_then(Value::as_str).unwrap_or("0");
        format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
    });
    Value::from(shown.collect::<Vec<_>>().join(", "))
}

/// The columns of events, whichever group they are read from.
pub const EVENT: &[BuiltInColumn] = &[
    column("Last Seen", "The time at which the most recent occurrence of this event was recorded.", |event, now| {
        since(last_seen(event), now)
    }),
    column("Type", "Type of this event (Normal, Warning), new types could be added in the future", |event, _| {
        Value::from(event.str_at(&["type"]))
    }),
    column(
        "Reason",
        "This should be a short, machine understandable string that gives the reason for the transition into the object's current status.",
        |event, _| Value::from(event.str_at(&["reason"])),
    ),
    column("Object", "The object that this event is about.", |event, _| {
        let object = either(event, "involvedObject", "regarding");
        let (kind, name) = (object.str_at(&["kind"]).to_lowercase(), object.str_at(&["name"]));
        Value::from(if name.is_empty() { kind } else { format!("{kind}/{name}") })
    }),
    wide("Subobject", SUBOBJECT_DESCRIPTION, |event, _| {
        Value::from(either(event, "involvedObject", "regarding").str_at(&["fieldPath"]))
    }),
    wide(
        "Source",
        "The component reporting this event. Should be a short machine understandable string.",
        |event, _| {
            let source = either(event, "source", "deprecatedSource");
            let controller = either(event, "reportingComponent", "reportingController").as_str().unwrap_or_default();
            let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
            let component = or(source.str_at(&["component"]), controller);
            let instance = or(source.str_at(&["host"]), event.str_at(&["reportingInstance"]));
            Value::from(if instance.is_empty() { component } else { format!("{component}, {instance}") })
        },
    ),
    column("Message", "A human-readable description of the status of this operation.", |event, _| {
        Value::from(either(event, "message", "note").as_str().unwrap_or_default().trim())
    }),
    wide(
        "First Seen",
        "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)",
        |event, now| since(first_seen(event), now),
    ),
    wide("Count", "The number of times this event has occurred.", |event, _| {
        let one = |value: &Value| value.as_int().filter(|count| *count != 0);
        let count = event.at(&["series", "count"]).or_else(|| Some(either(event, "count", "deprecatedCount")));
        Value::Int(count.and_then(one).unwrap_or(1))
    }),
    BuiltInColumn {
        format: "name",
        ..wide("Name", NAME_DESCRIPTION, |event, _| Value::from(event.str_at(&["metadata", "name"])))
    },
];

const SUBOBJECT_DESCRIPTION: &str = "If referring to a piece of an object instead of an entire object, this string should contain a valid JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object reference is to a container within a pod, this would take on a value like: \"spec.containers{name}\" (where \"name\" refers to the name of the container that triggered the event) or if no container name is specified \"spec.containers[2]\" (container with index 2 in this pod). This syntax is chosen only to have some well-defined way of referencing a part of an object.";

/// The description of columns that show the name.
pub const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// A member by its name in one group or the other.
fn either<'a>(event: &'a Value, core: &str, new: &str) -> &'a Value {
    event.get(core).or_else(|| event.get(new)).unwrap_or(&Value::Null)
}

fn first_seen(event: &Value) -> &str {
    let first = either(event, "firstTimestamp", "deprecatedFirstTimestamp").as_str();
    first.unwrap_or_else(|| event.str_at(&["eventTime"]))
}

fn last_seen(event: &Value) -> &str {
    if event.get("series").is_some() {
        return event.str_at(&["series", "lastObservedTime"]);
    }
    let last = either(event, "lastTimestamp", "deprecatedLastTimestamp").as_str();
    last.unwrap_or_else(|| first_seen(event))
}

fn since(time: &str, now: i64) -> Value {
    Value::from(jsonpath::columns::age(time, now))
}

/// A cell of what is limited, which exempt levels don't have.
fn of_limited(level: &Value, path: &[&str]) -> Value {
    match level.at(&["spec", "limited"]) {
        None => Value::from("<none>"),
        Some(limited) => match limited.at(path).and_then(Value::as_int) {
            Some(number) => Value::Int(number),
            None => Value::from("<none>"),
        },
    }
}

pub const PRIORITY_LEVEL: BuiltInColumn = column(
    "PriorityLevel",
    "`name` is the name of the priority level configuration being referenced Required.",
    |object, _| Value::from(object.str_at(&["spec", "priorityLevelConfiguration", "name"])),
);

pub const MATCHING_PRECEDENCE: BuiltInColumn = column(
    "MatchingPrecedence",
    "`matchingPrecedence` is used to choose among the FlowSchemas that match a given request. The chosen FlowSchema is among those with the numerically lowest (which we take to be logically highest) MatchingPrecedence.  Each MatchingPrecedence value must be ranged in [1,10000]. Note that if the precedence is not specified, it will be set to 1000 as default.",
    |object, _| object.at(&["spec", "matchingPrecedence"]).cloned().unwrap_or_default(),
);

pub const DISTINGUISHER_METHOD: BuiltInColumn = column(
    "DistinguisherMethod",
    "`distinguisherMethod` defines how to compute the flow distinguisher for requests that match this schema. `nil` specifies that the distinguisher is disabled and thus will always be the empty string.",
    |object, _| match object.str_at(&["spec", "distinguisherMethod", "type"]) {
        "" => Value::from("<none>"),
        method => Value::from(method),
    },
);

pub const MISSING_LEVEL: BuiltInColumn =
    column("MissingPL", "references a broken or non-existent PriorityLevelConfiguration", |object, _| {
        let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        let dangling = conditions.iter().find(|condition| condition.str_at(&["type"]) == "Dangling");
        Value::from(dangling.map_or("?", |condition| condition.str_at(&["status"])))
    });

pub const LEVEL_TYPE: BuiltInColumn = column(
    "Type",
    "`type` indicates whether this priority level is subject to limitation on request execution.  A value of `\"Exempt\"` means that requests of this priority level are not subject to a limit (and thus are never queued) and do not detract from the capacity made available to other priority levels.  A value of `\"Limited\"` means that (a) requests of this priority level _are_ subject to limits and (b) some of the server's limited capacity is made available exclusively to this priority level. Required.",
    |object, _| Value::from(object.str_at(&["spec", "type"])),
);

pub const CONCURRENCY_SHARES: BuiltInColumn = column(
    "NominalConcurrencyShares",
    "`nominalConcurrencyShares` (NCS) contributes to the computation of the NominalConcurrencyLimit (NominalCL) of this level. This is the number of execution seats available at this priority level. This is used both for requests dispatched from this priority level as well as requests dispatched from other priority levels borrowing seats from this level. The server's concurrency limit (ServerCL) is divided among the Limited priority levels in proportion to their NCS values:\n\nNominalCL(i)  = ceil( ServerCL * NCS(i) / sum_ncs ) sum_ncs = sum[priority level k] NCS(k)\n\nBigger numbers mean a larger nominal concurrency limit, at the expense of every other priority level.\n\nIf not specified, this field defaults to a value of 30.\n\nSetting this field to zero supports the construction of a \"jail\" for this priority level that is used to hold some request(s)",
    |object, _| of_limited(object, &["nominalConcurrencyShares"]),
);

pub const QUEUES: BuiltInColumn = column(
    "Queues",
    "`queues` is the number of queues for this priority level. The queues exist independently at each apiserver. The value must be positive.  Setting it to 1 effectively precludes shufflesharding and thus makes the distinguisher method of associated flow schemas irrelevant.  This field has a default value of 64.",
    |object, _| of_limited(object, &["limitResponse", "queuing", "queues"]),
);

pub const HAND_SIZE: BuiltInColumn = column(
    "HandSize",
    "`handSize` is a small positive number that configures the shuffle sharding of requests into queues.  When enqueuing a request at this priority level the request's flow identifier (a string pair) is hashed and the hash value is used to shuffle the list of queues and deal a hand of the size specified here.  The request is put into one of the shortest queues in that hand. `handSize` must be no larger than `queues`, and should be significantly smaller (so that a few heavy flows do not saturate most of the queues).  See the user-facing documentation for more extensive guidance on setting this field.  This field has a default value of 8.",
    |object, _| of_limited(object, &["limitResponse", "queuing", "handSize"]),
);

pub const QUEUE_LENGTH: BuiltInColumn = column(
    "QueueLengthLimit",
    "`queueLengthLimit` is the maximum number of requests allowed to be waiting in a given queue of this priority level at a time; excess requests are rejected.  This value must be positive.  If not specified, it will be defaulted to 50.",
    |object, _| of_limited(object, &["limitResponse", "queuing", "queueLengthLimit"]),
);

pub const API_SERVICE: BuiltInColumn =
    column("Service", "The reference to the service that hosts this API endpoint.", |object, _| {
        let part = |name: &str| object.str_at(&["spec", "service", name]).to_owned();
        match object.at(&["spec", "service"]) {
            None => Value::from("Local"),
            Some(_) => Value::from(format!("{}/{}", part("namespace"), part("name"))),
        }
    });

pub const AVAILABLE: BuiltInColumn = column("Available", "Whether this service is available.", |object, _| {
    let all = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let found = all.iter().find(|condition| condition.str_at(&["type"]) == "Available");
    let said = |condition: &Value| match (condition.str_at(&["status"]), condition.str_at(&["reason"])) {
        ("True", _) | (_, "") => condition.str_at(&["status"]).to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    };
    Value::from(found.map_or("Unknown".to_owned(), said))
});

/// The name where upstream does not say that it is one.
pub const PLAIN_NAME: BuiltInColumn =
    column("Name", NAME_DESCRIPTION, |object, _| Value::from(object.str_at(&["metadata", "name"])));

pub const MIGRATED_RESOURCE: BuiltInColumn = column("Resource", "GroupResource to migrate", |object, _| {
    let part = |name: &str| object.str_at(&["spec", "resource", name]);
    match part("group") {
        "" => Value::from(part("resource")),
        group => Value::from(format!("{}.{group}", part("resource"))),
    }
});

pub const MIGRATION_STATUS: BuiltInColumn = column("Status", "Status of the migration", |object, _| {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let told = conditions.iter().filter(|condition| condition.str_at(&["status"]) == "True");
    let mut kinds = told.map(|condition| condition.str_at(&["type"]));
    let last = kinds.rfind(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
    Value::from(last.unwrap_or("Unknown"))
});

/// The columns of services.
pub const SERVICE: &[BuiltInColumn] = &[
    column("Type", SERVICE_TYPE_DESCRIPTION, |service, _| Value::from(service.str_at(&["spec", "type"]))),
    column("Cluster-IP", CLUSTER_IP_DESCRIPTION, |service, _| {
        let addresses = texts(service, &["spec", "clusterIPs"]);
        Value::from(addresses.first().copied().unwrap_or("<none>"))
    }),
    column("External-IP", EXTERNAL_IP_DESCRIPTION, |service, _| Value::from(external_address(service))),
    column("Port(s)", PORTS_DESCRIPTION, |service, _| Value::from(ports(service))),
    AGE,
    wide("Selector", SELECTOR_DESCRIPTION, |service, _| {
        let selector = service.at(&["spec", "selector"]).and_then(Value::as_object).into_iter().flat_map(Map::iter);
        let terms: Vec<String> =
            selector.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        Value::from(if terms.is_empty() { "<none>".to_owned() } else { terms.join(",") })
    }),
];

const SERVICE_TYPE_DESCRIPTION: &str = "type determines how the Service is exposed. Defaults to ClusterIP. Valid options are ExternalName, ClusterIP, NodePort, and LoadBalancer. \"ClusterIP\" allocates a cluster-internal IP address for load-balancing to endpoints. Endpoints are determined by the selector or if that is not specified, by manual construction of an Endpoints object or EndpointSlice objects. If clusterIP is \"None\", no virtual IP is allocated and the endpoints are published as a set of endpoints rather than a virtual IP. \"NodePort\" builds on ClusterIP and allocates a port on every node which routes to the same endpoints as the clusterIP. \"LoadBalancer\" builds on NodePort and creates an external load-balancer (if supported in the current cloud) which routes to the same endpoints as the clusterIP. \"ExternalName\" aliases this service to the specified externalName. Several other fields do not apply to ExternalName services. More info: https://kubernetes.io/docs/concepts/services-networking/service/#publishing-services-service-types";
const CLUSTER_IP_DESCRIPTION: &str = "clusterIP is the IP address of the service and is usually assigned randomly. If an address is specified manually, is in-range (as per system configuration), and is not in use, it will be allocated to the service; otherwise creation of the service will fail. This field may not be changed through updates unless the type field is also being changed to ExternalName (which requires this field to be blank) or the type field is being changed from ExternalName (in which case this field may optionally be specified, as describe above).  Valid values are \"None\", empty string (\"\"), or a valid IP address. Setting this to \"None\" makes a \"headless service\" (no virtual IP), which is useful when direct endpoint connections are preferred and proxying is not required.  Only applies to types ClusterIP, NodePort, and LoadBalancer. If this field is specified when creating a Service of type ExternalName, creation will fail. This field will be wiped when updating a Service to type ExternalName. More info: https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies";
const EXTERNAL_IP_DESCRIPTION: &str = "externalIPs is a list of IP addresses for which nodes in the cluster will also accept traffic for this service.  These IPs are not managed by Kubernetes.  The user is responsible for ensuring that traffic arrives at a node with this IP.  A common example is external load-balancers that are not part of the Kubernetes system.";
const PORTS_DESCRIPTION: &str = "The list of ports that are exposed by this service. More info: https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies";
const SELECTOR_DESCRIPTION: &str = "Route service traffic to pods with label keys and values matching this selector. If empty or not present, the service is assumed to have an external process managing its endpoints, which Kubernetes will not modify. Only applies to types ClusterIP, NodePort, and LoadBalancer. Ignored if type is ExternalName. More info: https://kubernetes.io/docs/concepts/services-networking/service/";

fn texts<'a>(object: &'a Value, path: &[&str]) -> Vec<&'a str> {
    let list = object.at(path).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

/// Where a service is reached from outside.
fn external_address(service: &Value) -> String {
    let outside = texts(service, &["spec", "externalIPs"]);
    let or =
        |addresses: Vec<&str>, other: &str| if addresses.is_empty() { other.to_owned() } else { addresses.join(",") };
    match service.str_at(&["spec", "type"]) {
        "ClusterIP" | "NodePort" => or(outside, "<none>"),
        "LoadBalancer" => {
            let ingress =
                service.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array).unwrap_or_default();
            let given = |ingress: &'_ Value| match ingress.str_at(&["ip"]) {
                "" => ingress.str_at(&["hostname"]).to_owned(),
                ip => ip.to_owned(),
            };
            let balanced: Vec<String> = ingress.iter().map(given).filter(|address| !address.is_empty()).collect();
            or(balanced.iter().map(String::as_str).chain(outside).collect(), "<pending>")
        }
        "ExternalName" => service.str_at(&["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn ports(service: &Value) -> String {
    let list = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
    let number = |port: &Value, name: &str| port.get(name).and_then(Value::as_int).unwrap_or_default();
    let shown =
        list.iter().map(|port| match (number(port, "port"), number(port, "nodePort"), port.str_at(&["protocol"])) {
            (inside, 0, protocol) => format!("{inside}/{protocol}"),
            (inside, outside, protocol) => format!("{inside}:{outside}/{protocol}"),
        });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "<none>".to_owned() } else { shown.join(",") }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn services_are_shown_by_their_addresses() {
        let cells = |spec: Value, status: Value| -> Vec<Value> {
            let service = json!({"spec": spec, "status": status});
            SERVICE.iter().filter(|column| column.name != "Age").map(|column| (column.cell)(&service, 0)).collect()
        };
        let balanced = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "h"}]}});
        let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 443, "nodePort": 30443, "protocol": "TCP"}]);
        let cases = [
            (json!({"type": "ClusterIP"}), Value::Null, ["ClusterIP", "<none>", "<none>", "<none>", "<none>"]),
            (
                json!({"type": "NodePort", "clusterIPs": ["10.0.0.1"], "ports": ports, "selector": {"a": "b", "c": "d"}}),
                Value::Null,
                ["NodePort", "10.0.0.1", "<none>", "80/TCP,443:30443/TCP", "a=b,c=d"],
            ),
            (json!({"type": "LoadBalancer"}), Value::Null, ["LoadBalancer", "<none>", "<pending>", "<none>", "<none>"]),
            (
                json!({"type": "LoadBalancer", "externalIPs": ["9.9.9.9"]}),
                balanced,
                ["LoadBalancer", "<none>", "1.2.3.4,h,9.9.9.9", "<none>", "<none>"],
            ),
            (
                json!({"type": "ExternalName", "externalName": "x.io"}),
                Value::Null,
                ["ExternalName", "<none>", "x.io", "<none>", "<none>"],
            ),
        ];
        for (spec, status, wanted) in cases {
            assert_eq!(cells(spec, status), wanted.map(Value::from));
        }
    }

    #[test]
    fn bindings_are_shown_by_their_params() {
        let labels = json!({"selector": {"matchLabels": {"a": "2", "z": "1"}}, "parameterNotFoundAction": "Deny"});
        let expressions = json!({"selector": {"matchExpressions": [
            {"key": "k", "operator": "In", "values": ["b", "a"]},
            {"key": "q", "operator": "Exists"}
        ]}});
        let cases = [
            (Value::Null, "<unset>"),
            (json!({"name": "n"}), "*/n"),
            (json!({"name": "n", "namespace": "ns"}), "ns/n"),
            (
                labels,
                "&LabelSelector{MatchLabels:map[string]string{a: 2,z: 1,},MatchExpressions:[]LabelSelectorRequirement{},}",
            ),
            (
                expressions,
                "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{\
                 LabelSelectorRequirement{Key:k,Operator:In,Values:[b a],},\
                 LabelSelectorRequirement{Key:q,Operator:Exists,Values:[],},},}",
            ),
            (
                json!({"selector": {}}),
                "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}",
            ),
        ];
        for (reference, wanted) in cases {
            let mut binding = json!({"spec": {"policyName": "p"}});
            if reference != Value::Null {
                binding.set_at(&["spec", "paramRef"], reference);
            }
            assert_eq!((PARAM_REF.cell)(&binding, 0), Value::from(wanted));
        }
    }
}
