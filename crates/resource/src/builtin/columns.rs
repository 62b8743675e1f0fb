//! The columns of built-in kinds in tables.

use machinery::{Map, Value, jsonpath};

/// A table column. The second argument of `cell` is the current time in microseconds.
pub struct BuiltInColumn {
    pub name: &'static str,
    pub kind: &'static str,
    pub format: &'static str,
    pub description: &'static str,
    /// Columns above 0 are only shown in wide output.
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
pub const AGE_DESCRIPTION: &str = "Time at which the server created the object, in UTC.";

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

/// The columns of kinds without columns of their own.
pub const PLAIN: &[BuiltInColumn] = &[CREATED_AT];

/// The columns of CRDs.
pub const OF_DEFINITIONS: &[BuiltInColumn] = &[
    column("Scope", "Namespaced or Cluster.", |crd, _| Value::from(crd.str_at(&["spec", "scope"]))),
    column("Versions", "The served versions.", served_versions),
    CREATED_AT,
    wide("Group", "The API group.", |crd, _| Value::from(crd.str_at(&["spec", "group"]))),
    wide("Kind", "The kind of the instances.", |crd, _| Value::from(crd.str_at(&["spec", "names", "kind"]))),
    wide("ShortNames", "Short names.", |crd, _| {
        let names = crd.at(&["spec", "names", "shortNames"]).and_then(Value::as_array).unwrap_or_default();
        Value::from(names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
    }),
    BuiltInColumn {
        kind: "boolean",
        ..wide("Established", "Whether the instances are served.", |crd, _| {
            Value::Bool(schema::definition::is_condition_true(crd, "Established"))
        })
    },
];

fn served_versions(crd: &Value, _now: i64) -> Value {
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let is = |version: &Value, key: &str| version.get(key) == Some(&Value::Bool(true));
    let served = versions.iter().filter(|version| is(version, "served"));
    let shown = |version: &Value| {
        format!("{}{}", version.str_at(&["name"]), if is(version, "storage") { "(storage)" } else { "" })
    };
    let mut names: Vec<String> = served.map(shown).collect();
    names.sort_unstable();
    Value::from(names.join(","))
}

pub const DESCRIPTION: BuiltInColumn =
    column("Description", "Description given in the ThirdPartyResource.", |object, _| {
        Value::from(object.str_at(&["description"]))
    });

pub const VERSIONS: BuiltInColumn = column("Version(s)", "Versions in which the kind is served.", |object, _| {
    Value::from(schema::definition::third_party_versions(object).join(","))
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

pub const DATA: BuiltInColumn = column("Data", "Number of entries in `data` and `binaryData`.", |object, _| {
    count(len(object, &["data"]) + len(object, &["binaryData"]))
});

pub const SECRET_DATA: BuiltInColumn =
    column("Data", "Number of entries in `data`.", |object, _| count(len(object, &["data"])));

pub const PHASE: BuiltInColumn = column("Status", "Phase of the namespace: Active or Terminating.", |object, _| {
    Value::from(object.str_at(&["status", "phase"]))
});

pub const TYPE: BuiltInColumn =
    column("Type", "Type of the secret, which says which keys its data has.", |object, _| {
        Value::from(object.str_at(&["type"]))
    });

pub const HOLDER: BuiltInColumn = column("Holder", "Identity that holds the lease now.", |object, _| {
    Value::from(object.str_at(&["spec", "holderIdentity"]))
});

pub const ROLE: BuiltInColumn = column("Role", "The Role or ClusterRole that is granted.", |object, _| {
    let part = |name: &str| object.str_at(&["roleRef", name]).to_owned();
    Value::from(format!("{}/{}", part("kind"), part("name")))
});

pub const CLUSTER_ROLE: BuiltInColumn = BuiltInColumn { description: "The ClusterRole that is granted.", ..ROLE };

pub const USERS: BuiltInColumn = wide("Users", "Users among the subjects.", |object, _| subjects(object, "User"));
pub const GROUPS: BuiltInColumn = wide("Groups", "Groups among the subjects.", |object, _| subjects(object, "Group"));
pub const ACCOUNTS: BuiltInColumn =
    wide("ServiceAccounts", "ServiceAccounts among the subjects.", |object, _| subjects(object, "ServiceAccount"));

/// The subjects of one kind, with their namespaces if they have any.
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
    number("Webhooks", "Number of webhooks.", |object, _| count(len(object, &["webhooks"])));

pub const VALIDATIONS: BuiltInColumn =
    number("Validations", "Number of validations.", |object, _| count(len(object, &["spec", "validations"])));

pub const MUTATIONS: BuiltInColumn =
    number("Mutations", "Number of mutations.", |object, _| count(len(object, &["spec", "mutations"])));

pub const PARAM_KIND: BuiltInColumn =
    column("ParamKind", "Kind of the objects that parameterize the policy.", |object, _| {
        match object.at(&["spec", "paramKind"]) {
            None => Value::from("<unset>"),
            Some(kind) => Value::from(format!("{}/{}", kind.str_at(&["apiVersion"]), kind.str_at(&["kind"]))),
        }
    });

pub const POLICY_NAME: BuiltInColumn =
    column("PolicyName", "The policy that is bound.", |object, _| Value::from(object.str_at(&["spec", "policyName"])));

pub const PARAM_REF: BuiltInColumn =
    column("ParamRef", "The object, or the selector of the objects, with the parameters.", |object, _| {
        let Some(reference) = object.at(&["spec", "paramRef"]) else { return Value::from("<unset>") };
        let (namespace, name) = (reference.str_at(&["namespace"]), reference.str_at(&["name"]));
        Value::from(match reference.get("selector") {
            Some(selector) if name.is_empty() => go_selector_text(selector),
            _ if namespace.is_empty() => format!("*/{name}"),
            _ => format!("{namespace}/{name}"),
        })
    });

/// A LabelSelector as the `String` method of Go's generated protobuf code prints it.
fn go_selector_text(selector: &Value) -> String {
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

pub const REQUESTS: BuiltInColumn =
    column("Request", "Used and allowed amounts of everything but limits.", |object, _| {
        usage(object, |name| !is_limit(name))
    });

pub const LIMITS: BuiltInColumn =
    column("Limit", "Used and allowed amounts of limits.", |object, _| usage(object, is_limit));

fn is_limit(resource: &str) -> bool {
    resource.starts_with("limits.")
}

/// The used and the hard amounts of those resources of a quota for which `is_shown` is true.
fn usage(quota: &Value, is_shown: fn(&str) -> bool) -> Value {
    let hard = quota.at(&["status", "hard"]).and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let shown = hard.filter(|(name, _)| is_shown(name)).map(|(name, hard)| {
        let used = quota.at(&["status", "used", name]).and_then(Value::as_str).unwrap_or("0");
        format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
    });
    Value::from(shown.collect::<Vec<_>>().join(", "))
}

/// The columns of Events, whichever API group they are read through.
pub const EVENT: &[BuiltInColumn] = &[
    column("Last Seen", "Time since the event last happened.", |event, now| since(last_seen(event), now)),
    column("Type", "Normal or Warning.", |event, _| Value::from(event.str_at(&["type"]))),
    column("Reason", "One word, for programs, on why the event happened.", |event, _| {
        Value::from(event.str_at(&["reason"]))
    }),
    column("Object", "The object concerned.", |event, _| {
        let object = either(event, "involvedObject", "regarding");
        let (kind, name) = (object.str_at(&["kind"]).to_lowercase(), object.str_at(&["name"]));
        Value::from(if name.is_empty() { kind } else { format!("{kind}/{name}") })
    }),
    wide(
        "Subobject",
        "Path of the part of the object that is concerned, such as `spec.containers{name}`.",
        |event, _| Value::from(either(event, "involvedObject", "regarding").str_at(&["fieldPath"])),
    ),
    wide("Source", "Component that reported the event, and the host or instance it ran on.", |event, _| {
        let source = either(event, "source", "deprecatedSource");
        let controller = either(event, "reportingComponent", "reportingController").as_str().unwrap_or_default();
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        let component = or(source.str_at(&["component"]), controller);
        let instance = or(source.str_at(&["host"]), event.str_at(&["reportingInstance"]));
        Value::from(if instance.is_empty() { component } else { format!("{component}, {instance}") })
    }),
    column("Message", "What happened, in words.", |event, _| {
        Value::from(either(event, "message", "note").as_str().unwrap_or_default().trim())
    }),
    wide("First Seen", "Time since the event first happened.", |event, now| since(first_seen(event), now)),
    wide("Count", "How often the event has happened.", |event, _| {
        let one = |value: &Value| value.as_int().filter(|count| *count != 0);
        let count = event.at(&["series", "count"]).or_else(|| Some(either(event, "count", "deprecatedCount")));
        Value::Int(count.and_then(one).unwrap_or(1))
    }),
    BuiltInColumn {
        format: "name",
        ..wide("Name", NAME_DESCRIPTION, |event, _| Value::from(event.str_at(&["metadata", "name"])))
    },
];

/// The description of columns that show the name.
pub const NAME_DESCRIPTION: &str = "Name of the object, unique among the objects of its resource in one namespace.";

/// A field of an Event that has one name in the core group and another in events.k8s.io.
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

/// A cell for a field of `spec.limited`, which exempt priority levels do not have.
fn of_limited(level: &Value, path: &[&str]) -> Value {
    match level.at(&["spec", "limited"]) {
        None => Value::from("<none>"),
        Some(limited) => match limited.at(path).and_then(Value::as_int) {
            Some(number) => Value::Int(number),
            None => Value::from("<none>"),
        },
    }
}

pub const PRIORITY_LEVEL: BuiltInColumn =
    column("PriorityLevel", "The priority level that matching requests get.", |object, _| {
        Value::from(object.str_at(&["spec", "priorityLevelConfiguration", "name"]))
    });

pub const MATCHING_PRECEDENCE: BuiltInColumn = column(
    "MatchingPrecedence",
    "Of several FlowSchemas that match a request, the one with the lowest value is used: 1 to 10000.",
    |object, _| object.at(&["spec", "matchingPrecedence"]).cloned().unwrap_or_default(),
);

pub const DISTINGUISHER_METHOD: BuiltInColumn = column(
    "DistinguisherMethod",
    "What separates the flows of this schema: the user, the namespace, or nothing.",
    |object, _| match object.str_at(&["spec", "distinguisherMethod", "type"]) {
        "" => Value::from("<none>"),
        method => Value::from(method),
    },
);

pub const MISSING_LEVEL: BuiltInColumn = column("MissingPL", "Whether the priority level is missing.", |object, _| {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let dangling = conditions.iter().find(|condition| condition.str_at(&["type"]) == "Dangling");
    Value::from(dangling.map_or("?", |condition| condition.str_at(&["status"])))
});

pub const LEVEL_TYPE: BuiltInColumn =
    column("Type", "Exempt (never queued and never limited) or Limited.", |object, _| {
        Value::from(object.str_at(&["spec", "type"]))
    });

pub const CONCURRENCY_SHARES: BuiltInColumn = column(
    "NominalConcurrencyShares",
    "Share of the server's seats: its part of the sum over all Limited levels.",
    |object, _| of_limited(object, &["nominalConcurrencyShares"]),
);

pub const QUEUES: BuiltInColumn = column("Queues", "Number of queues over which flows are spread.", |object, _| {
    of_limited(object, &["limitResponse", "queuing", "queues"])
});

pub const HAND_SIZE: BuiltInColumn =
    column("HandSize", "How many queues a flow may use; a request joins the shortest of them.", |object, _| {
        of_limited(object, &["limitResponse", "queuing", "handSize"])
    });

pub const QUEUE_LENGTH: BuiltInColumn =
    column("QueueLengthLimit", "How many requests may wait in one queue; more are refused.", |object, _| {
        of_limited(object, &["limitResponse", "queuing", "queueLengthLimit"])
    });

pub const API_SERVICE: BuiltInColumn =
    column("Service", "The Service behind this group and version, or Local.", |object, _| {
        let part = |name: &str| object.str_at(&["spec", "service", name]).to_owned();
        match object.at(&["spec", "service"]) {
            None => Value::from("Local"),
            Some(_) => Value::from(format!("{}/{}", part("namespace"), part("name"))),
        }
    });

pub const AVAILABLE: BuiltInColumn = column("Available", "Whether the aggregated API server responds.", |object, _| {
    let all = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let found = all.iter().find(|condition| condition.str_at(&["type"]) == "Available");
    let said = |condition: &Value| match (condition.str_at(&["status"]), condition.str_at(&["reason"])) {
        ("True", _) | (_, "") => condition.str_at(&["status"]).to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    };
    Value::from(found.map_or("Unknown".to_owned(), said))
});

/// The name column without the format `name`, as upstream has it for some kinds.
pub const PLAIN_NAME: BuiltInColumn =
    column("Name", NAME_DESCRIPTION, |object, _| Value::from(object.str_at(&["metadata", "name"])));

pub const MIGRATED_RESOURCE: BuiltInColumn =
    column("Resource", "The resource whose objects are rewritten.", |object, _| {
        let part = |name: &str| object.str_at(&["spec", "resource", name]);
        match part("group") {
            "" => Value::from(part("resource")),
            group => Value::from(format!("{}.{group}", part("resource"))),
        }
    });

pub const MIGRATION_STATUS: BuiltInColumn = column("Status", "Running, Failed, Succeeded, or Unknown.", |object, _| {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let current = conditions.iter().filter(|condition| condition.str_at(&["status"]) == "True");
    let mut kinds = current.map(|condition| condition.str_at(&["type"]));
    let last = kinds.rfind(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
    Value::from(last.unwrap_or("Unknown"))
});

/// The columns of services.
pub const SERVICE: &[BuiltInColumn] = &[
    column("Type", "How the Service is reached: ClusterIP, NodePort, LoadBalancer or ExternalName.", |service, _| {
        Value::from(service.str_at(&["spec", "type"]))
    }),
    column("Cluster-IP", "Address of the Service inside the cluster, or None where it has none.", |service, _| {
        let addresses = texts(service, &["spec", "clusterIPs"]);
        Value::from(addresses.first().copied().unwrap_or("<none>"))
    }),
    column("External-IP", "Addresses outside the cluster at which the Service is reached.", |service, _| {
        Value::from(external_address(service))
    }),
    column("Port(s)", "Ports of the Service, with node port and protocol.", |service, _| Value::from(ports(service))),
    AGE,
    wide("Selector", "Labels of the pods behind the Service.", |service, _| {
        let selector = service.at(&["spec", "selector"]).and_then(Value::as_object).into_iter().flat_map(Map::iter);
        let terms: Vec<String> =
            selector.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        Value::from(if terms.is_empty() { "<none>".to_owned() } else { terms.join(",") })
    }),
];

fn texts<'a>(object: &'a Value, path: &[&str]) -> Vec<&'a str> {
    let list = object.at(path).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

/// The external addresses of a Service.
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
    fn shows_addresses_of_services() {
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
    fn shows_params_of_bindings() {
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
