//! Service as an object: what operators write and `kubectl cluster-info` lists. Nothing gives it addresses.

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, json, names};
use schema::shape::{CONDITION, Merge, OBJECT_META, Shape, Struct, TEXT, always, given, non_empty, texts};

use super::checks::{duplicate_struct, invalid_each, items, list, one_of, text};
use super::config::TEXT_MAP;
use super::{BASE, Form, NameRule, Shipped, columns};

static PORT: Struct = Struct {
    name: "ServicePort",
    fields: &[
        given("appProtocol", TEXT),
        non_empty("name", TEXT),
        non_empty("nodePort", Shape::Int32),
        always("port", Shape::Int32),
        non_empty("protocol", Shape::Text("v1.Protocol")).or("TCP"),
        given("targetPort", Shape::Any),
    ],
};

static CLIENT_IP: Struct = Struct { name: "ClientIPConfig", fields: &[given("timeoutSeconds", Shape::Int32)] };

static AFFINITY: Struct =
    Struct { name: "SessionAffinityConfig", fields: &[given("clientIP", Shape::Struct(&CLIENT_IP))] };

static SPEC: Struct = Struct {
    name: "ServiceSpec",
    fields: &[
        given("allocateLoadBalancerNodePorts", Shape::Bool),
        non_empty("clusterIP", TEXT),
        non_empty("clusterIPs", texts()),
        non_empty("externalIPs", texts()),
        non_empty("externalName", TEXT),
        non_empty("externalTrafficPolicy", Shape::Text("v1.ServiceExternalTrafficPolicy")),
        non_empty("healthCheckNodePort", Shape::Int32),
        given("internalTrafficPolicy", Shape::Text("v1.ServiceInternalTrafficPolicy")),
        non_empty("ipFamilies", texts()),
        given("ipFamilyPolicy", TEXT),
        given("loadBalancerClass", TEXT),
        non_empty("loadBalancerIP", TEXT),
        non_empty("loadBalancerSourceRanges", texts()),
        non_empty("ports", Shape::List("[]v1.ServicePort", &Shape::Struct(&PORT)))
            .merged(Merge::PatchedByAll(&["port", "protocol"])),
        non_empty("publishNotReadyAddresses", Shape::Bool),
        non_empty("selector", TEXT_MAP).merged(Merge::Atomic),
        non_empty("sessionAffinity", Shape::Text("v1.ServiceAffinity")),
        given("sessionAffinityConfig", Shape::Struct(&AFFINITY)),
        given("trafficDistribution", TEXT),
        non_empty("type", Shape::Text("v1.ServiceType")),
    ],
};

static PORT_STATUS: Struct = Struct {
    name: "PortStatus",
    fields: &[given("error", TEXT), always("port", Shape::Int32), always("protocol", Shape::Text("v1.Protocol"))],
};

static INGRESS: Struct = Struct {
    name: "LoadBalancerIngress",
    fields: &[
        non_empty("hostname", TEXT),
        non_empty("ip", TEXT),
        given("ipMode", Shape::Text("v1.LoadBalancerIPMode")),
        non_empty("ports", Shape::List("[]v1.PortStatus", &Shape::Struct(&PORT_STATUS))),
    ],
};

static LOAD_BALANCER: Struct = Struct {
    name: "LoadBalancerStatus",
    fields: &[non_empty("ingress", Shape::List("[]v1.LoadBalancerIngress", &Shape::Struct(&INGRESS)))],
};

static STATUS: Struct = Struct {
    name: "ServiceStatus",
    fields: &[
        non_empty("conditions", Shape::List("[]v1.Condition", &Shape::Struct(&CONDITION)))
            .merged(Merge::Patched("type")),
        always("loadBalancer", Shape::Struct(&LOAD_BALANCER)),
    ],
};

static SHAPE: Struct = Struct {
    name: "Service",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
        always("spec", Shape::Struct(&SPEC)),
        always("status", Shape::Struct(&STATUS)),
    ],
};

pub const SERVICE: Shipped = Shipped {
    kind: "Service",
    plural: "services",
    singular: "service",
    short_names: &["svc"],
    categories: &["all"],
    status: true,
    name_rule: NameRule::Label,
    create_on_update: true,
    returns_deleted: true,
    columns: columns::SERVICE,
    form: Form::Typed(&SHAPE),
    default,
    prepare,
    validate,
    warnings,
    ..BASE
};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

fn or_else(object: &mut Value, name: &str, value: Value) {
    if object.get(name).is_none() {
        object.set_at(&[name], value);
    }
}

fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    or_else(spec, "sessionAffinity", Value::from("None"));
    or_else(spec, "type", Value::from("ClusterIP"));
    default_affinity(spec);
    default_traffic(spec);
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        or_else(port, "protocol", Value::from("TCP"));
        let number = port.get("port").cloned().unwrap_or_default();
        let unset = match port.get("targetPort") {
            Some(Value::String(name)) => name.is_empty(),
            target => target == Some(&Value::Int(0)),
        };
        if unset {
            port.remove_at(&["targetPort"]);
        }
        or_else(port, "targetPort", number);
    }
}

const SECONDS_OF_AFFINITY: i64 = 3 * 60 * 60;

fn default_affinity(spec: &mut Value) {
    match text(spec, "sessionAffinity") {
        "None" => drop(spec.remove_at(&["sessionAffinityConfig"])),
        "ClientIP" if spec.at(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"]).is_none() => {
            let config = json!({"clientIP": {"timeoutSeconds": (SECONDS_OF_AFFINITY)}});
            spec.set_at(&["sessionAffinityConfig"], config);
        }
        _ => {}
    }
}

/// How traffic is to be routed, by the type: which of it comes from inside, which from outside.
fn default_traffic(spec: &mut Value) {
    let (inside, outside) = match text(spec, "type") {
        "ClusterIP" => (true, !list(spec, "externalIPs").is_empty()),
        "LoadBalancer" | "NodePort" => (true, true),
        _ => (false, false),
    };
    if outside {
        or_else(spec, "externalTrafficPolicy", Value::from("Cluster"));
    }
    if inside {
        or_else(spec, "internalTrafficPolicy", Value::from("Cluster"));
    }
    if text(spec, "type") == "LoadBalancer" {
        or_else(spec, "allocateLoadBalancerNodePorts", Value::Bool(true));
    }
}

fn prepare(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["status"], json!({"loadBalancer": {}}));
    }
    let old = old.and_then(|old| old.get("spec"));
    let Some(spec) = object.get_mut("spec") else { return };
    let old = old.filter(|old| text(old, "type") != "ExternalName");
    match text(spec, "type") {
        "ExternalName" => forget_addresses(spec, old),
        _ => address(spec, old),
    }
}

/// A service that only names another one from now on has no addresses any more, unless they were changed with that.
fn forget_addresses(spec: &mut Value, old: Option<&Value>) {
    let Some(old) = old.filter(|old| text(old, "clusterIP") == text(spec, "clusterIP")) else { return };
    for name in ADDRESSES.into_iter().chain(["internalTrafficPolicy"]) {
        if spec.get(name) == old.get(name) {
            spec.remove_at(&[name]);
        }
    }
}

const ADDRESSES: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

/// Whoever leaves the addresses out keeps them. Services without any get the families that they are to be known by.
fn address(spec: &mut Value, old: Option<&Value>) {
    for (name, value) in ADDRESSES.into_iter().filter_map(|name| Some((name, old?.get(name)?.clone()))) {
        or_else(spec, name, value);
    }
    if text(spec, "clusterIP").is_empty() {
        return;
    }
    // who changes the one without the other means both
    if old.is_some_and(|old| {
        old.get("clusterIP") != spec.get("clusterIP") && old.get("clusterIPs") == spec.get("clusterIPs")
    }) {
        spec.remove_at(&["clusterIPs"]);
    }
    let one = spec.get("clusterIP").cloned().unwrap_or_default();
    or_else(spec, "clusterIPs", Value::Array(vec![one]));
    if text(spec, "clusterIP") != "None" {
        return;
    }
    let selects = spec.get("selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty());
    or_else(spec, "ipFamilyPolicy", Value::from(if selects { "SingleStack" } else { "RequireDualStack" }));
    let single = selects || text(spec, "ipFamilyPolicy") == "SingleStack";
    or_else(spec, "ipFamilies", if single { json!(["IPv4"]) } else { json!(["IPv4", "IPv6"]) });
}

fn warnings(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let Some(spec) = new.get("spec").filter(|spec| text(spec, "clusterIP") == "None") else { return vec![] };
    let ignored = [
        ("loadBalancerIP", !text(spec, "loadBalancerIP").is_empty()),
        ("externalIPs", !list(spec, "externalIPs").is_empty()),
        ("SessionAffinity", !matches!(text(spec, "sessionAffinity"), "" | "None")),
    ];
    let ignored = ignored.into_iter().filter(|(_, given)| *given);
    ignored.map(|(name, _)| format!("spec.{name} is ignored for headless services")).collect()
}

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
    let spec = new.get("spec").unwrap_or(&empty);
    let (kind, headless) = (text(spec, "type"), text(spec, "clusterIP") == "None");
    address_errors(spec, old.and_then(|old| old.get("spec")), &path, &mut errors);
    let ports: Vec<_> = items(spec, "ports", &path).collect();
    if ports.is_empty() && kind != "ExternalName" && !headless {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    if kind == "ExternalName" {
        external_errors(spec, &path, &mut errors);
    }
    let mut names = vec![];
    for (path, port) in &ports {
        port_errors(port, path, ports.len() > 1, &mut names, &mut errors);
    }
    for key in spec.get("selector").and_then(Value::as_object).into_iter().flat_map(|selector| selector.keys()) {
        invalid_each(&path.child("selector"), key, names::qualified_name(key), &mut errors);
    }
    one_of(spec, "sessionAffinity", &path, &AFFINITIES, &mut errors);
    one_of(spec, "internalTrafficPolicy", &path, &["Cluster", "Local"], &mut errors);
    let seconds = ["sessionAffinityConfig", "clientIP", "timeoutSeconds"];
    if let Some(value) = spec.at(&seconds).filter(|value| !value.as_int().is_some_and(|s| (1..=86400).contains(&s))) {
        let path = path.child(seconds[0]).child(seconds[1]).child(seconds[2]);
        errors.push(FieldError::invalid(&path, value, "must be greater than 0 and less than 86400"));
    }
    if !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), &Value::from(kind), &TYPES));
    }
    for (path, _) in ports.iter().filter(|(_, port)| kind == "ClusterIP" && port.get("nodePort").is_some()) {
        errors.push(FieldError::forbidden(&path.child("nodePort"), "may not be used when `type` is 'ClusterIP'"));
    }
    same_ports(&ports, &mut errors);
    errors
}

fn address_errors(spec: &Value, old: Option<&Value>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let path = path.child("clusterIPs");
    let (all, one) = (spec.get("clusterIPs").cloned().unwrap_or_default(), text(spec, "clusterIP"));
    let first = list(spec, "clusterIPs").first().and_then(Value::as_str).unwrap_or_default();
    let named = |spec: &Value| text(spec, "type") == "ExternalName";
    if named(spec) {
        return;
    }
    if first != one {
        let why = if one.is_empty() {
            "must be empty when `clusterIP` is not specified"
        } else {
            "first value must match `clusterIP`"
        };
        errors.push(FieldError::invalid(&path, &all, why));
    }
    let before = old.filter(|old| !named(old)).map(|old| text(old, "clusterIP")).unwrap_or_default();
    if !before.is_empty() && before != one && first == one {
        errors.push(FieldError::invalid(&path.index(0), &all, "may not change once set"));
    }
}

fn same_ports(ports: &[(FieldPath, &Value)], errors: &mut Vec<FieldError>) {
    let key = |port: &Value| (text(port, "protocol").to_owned(), port.get("port").and_then(Value::as_int));
    for (i, (path, port)) in ports.iter().enumerate() {
        if ports.iter().take(i).any(|(_, before)| key(before) == key(port)) {
            let (protocol, number) = key(port);
            let shown = [
                ("Name", Value::from("")),
                ("Protocol", Value::from(protocol)),
                ("AppProtocol", Value::Null),
                ("Port", Value::Int(number.unwrap_or_default())),
                ("TargetPort", Value::Int(0)),
                ("NodePort", Value::Int(0)),
            ];
            errors.push(duplicate_struct(path, &shown));
        }
    }
}

fn external_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if !text(spec, "clusterIP").is_empty() || !list(spec, "clusterIPs").is_empty() {
        errors.push(FieldError::forbidden(&path.child("clusterIPs"), "may not be set for ExternalName services"));
    }
    let name = text(spec, "externalName");
    if name.is_empty() {
        return errors.push(FieldError::required(&path.child("externalName"), ""));
    }
    // it may end with a dot
    let messages = names::dns1123_subdomain(name.strip_suffix('.').unwrap_or(name));
    invalid_each(&path.child("externalName"), name, messages, errors);
}

fn port_errors<'a>(
    port: &'a Value,
    path: &FieldPath,
    named: bool,
    names: &mut Vec<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    let name = text(port, "name");
    if name.is_empty() {
        if named {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
    } else {
        let path = path.child("name");
        invalid_each(&path, name, names::dns1123_label(name), errors);
        if names.contains(&name) {
            errors.push(FieldError::duplicate(&path, &Value::from(name)));
        }
        names.push(name);
    }
    let number = port.get("port").cloned().unwrap_or_default();
    if !number.as_int().is_some_and(|number| (1..=65535).contains(&number)) {
        errors.push(FieldError::invalid(&path.child("port"), &number, "must be between 1 and 65535, inclusive"));
    }
    let target = port.get("targetPort").and_then(Value::as_int);
    if target.is_some_and(|number| !(1..=65535).contains(&number)) {
        let why = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("targetPort"), &Value::from(target.unwrap_or_default()), why));
    }
    let application = text(port, "appProtocol");
    if !application.is_empty() {
        invalid_each(&path.child("appProtocol"), application, names::qualified_name(application), errors);
    }
    let protocol = text(port, "protocol");
    if !PROTOCOLS.contains(&protocol) {
        errors.push(FieldError::not_supported(&path.child("protocol"), &Value::from(protocol), &PROTOCOLS));
    }
}
