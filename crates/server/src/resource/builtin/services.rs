//! Service as an object: what operators write and `kubectl cluster-info` lists. Nothing gives it addresses.

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, json};
use schema::shape::{CONDITION, Merge, OBJECT_META, Shape, Struct, TEXT, always, given, non_empty, texts};

use super::checks::{items, text};
use super::config::TEXT_MAP;
use super::{BASE, Form, NameRule, Shipped, columns};

static PORT: Struct = Struct {
    name: "ServicePort",
    fields: &[
        given("appProtocol", TEXT),
        non_empty("name", TEXT),
        non_empty("nodePort", Shape::Int32),
        always("port", Shape::Int32),
        non_empty("protocol", Shape::Text("v1.Protocol")),
        given("targetPort", Shape::Any),
    ],
};

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
        non_empty("ports", Shape::List("[]v1.ServicePort", &Shape::Struct(&PORT))).merged(Merge::Patched("port")),
        non_empty("publishNotReadyAddresses", Shape::Bool),
        non_empty("selector", TEXT_MAP),
        non_empty("sessionAffinity", Shape::Text("v1.ServiceAffinity")),
        given("sessionAffinityConfig", Shape::Any),
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
    returns_deleted: true,
    columns: columns::SERVICE,
    form: Form::Typed(&SHAPE),
    default,
    prepare,
    validate,
    ..BASE
};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
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
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        or_else(port, "protocol", Value::from("TCP"));
        let number = port.get("port").cloned().unwrap_or_default();
        or_else(port, "targetPort", number);
    }
}

fn prepare(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["status"], json!({"loadBalancer": {}}));
    }
}

fn validate(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
    let spec = new.get("spec").unwrap_or(&empty);
    let (kind, headless) = (text(spec, "type"), text(spec, "clusterIP") == "None");
    let ports: Vec<_> = items(spec, "ports", &path).collect();
    if ports.is_empty() && kind != "ExternalName" && !headless {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    for (path, port) in &ports {
        port_errors(port, path, ports.len() > 1, &mut errors);
    }
    if !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), &Value::from(kind), &TYPES));
    }
    errors
}

fn port_errors(port: &Value, path: &FieldPath, named: bool, errors: &mut Vec<FieldError>) {
    if named && text(port, "name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let number = port.get("port").cloned().unwrap_or_default();
    if !number.as_int().is_some_and(|number| (1..=65535).contains(&number)) {
        errors.push(FieldError::invalid(&path.child("port"), &number, "must be between 1 and 65535, inclusive"));
    }
    let protocol = text(port, "protocol");
    if !PROTOCOLS.contains(&protocol) {
        errors.push(FieldError::not_supported(&path.child("protocol"), &Value::from(protocol), &PROTOCOLS));
    }
}
