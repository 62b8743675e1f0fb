//! Connections to Pods, Services and Nodes: logs, exec, attach, port forwarding and proxies. Requests are checked as
//! kube-apiserver checks them, and then fail, because there is no kubelet and no Pod to connect to.

use std::sync::Arc;
use std::time::Duration;

use access::admission::Operation;
use base::clock;
use base::request::parse_int;
use machinery::field::{FieldError, FieldPath};
use machinery::status::Reason;
use machinery::time::{normal_time, parse_rfc3339};
use machinery::types::{Container, GoBase, Printed, go_struct};
use machinery::{Map, Release, Result, Status, Value};
use objects::Stored;
use resource::builtin::Connect;
use tokio::net::TcpStream;

use super::admit::Admit;
use super::context::Context;
use super::request::{Request, check_key};
use crate::limits;

/// Checks a connection, and returns the error with which it fails. `Ok` stands for an empty log.
pub async fn connect(context: &Context, request: &Request, connect: Connect) -> Result<()> {
    if connect != Connect::Log && request.query().has("dryRun") {
        return Err(Status::bad_request("dryRun is not supported"));
    }
    check_key(request.resource.namespaced.then(|| request.namespace().as_str()), request.name())?;
    if let Connect::Streams(kind) | Connect::Proxy(kind) = connect {
        let (operation, name) = (Operation::Connect, request.name());
        let admit = Admit { context, request, operation, name, options: &Value::Null, dry_run: false };
        admit.connect(options(request, kind)?).await?;
    }
    match connect {
        Connect::Log => {
            check_log_options(request)?;
            let pod = find(request, request.name())?;
            let container = container(request, &pod)?;
            match pod.str_at(&["spec", "nodeName"]) {
                "" => Ok(()),
                node => Err(kubelet(context, node, &log_path(request, &container)).await),
            }
        }
        Connect::Streams(options) => {
            let pod = find(request, request.name())?;
            let forwards = options == "PodPortForwardOptions";
            let container = if forwards { String::new() } else { container(request, &pod)? };
            match pod.str_at(&["spec", "nodeName"]) {
                "" => Err(Status::bad_request(format!("pod {} does not have a host assigned", request.name()))),
                node => Err(kubelet(context, node, &log_path(request, &container)).await),
            }
        }
        Connect::Proxy("PodProxyOptions") => Err(pod_proxy(request).await?),
        Connect::Proxy("ServiceProxyOptions") => service_proxy(request),
        Connect::Proxy(_) => {
            let (name, port) = split(request, "node")?;
            let _ = find(request, &name)?;
            let (host, kubelet_port) = node_address(context, &name)?;
            let port = if port.is_empty() { kubelet_port.to_string() } else { port };
            Err(unreachable(&host, &port).await)
        }
    }
}

/// How much of a log a request wants.
pub struct WantedLog {
    /// Lines at its end.
    pub tail: Option<i64>,
    /// The time of its first line, in seconds since the Unix epoch.
    pub since: Option<i64>,
    pub bytes: Option<i64>,
}

/// Checks a request for a log, and returns its container and how much is wanted.
pub fn container_log(request: &Request) -> Result<(String, WantedLog)> {
    check_key(request.resource.namespaced.then(|| request.namespace().as_str()), request.name())?;
    check_log_options(request)?;
    let pod = find(request, request.name())?;
    let number = |name: &str| request.query().get(name).map(parse_int).transpose();
    let time = request.query().get("sinceTime").and_then(parse_rfc3339).map(|(seconds, _)| seconds);
    let since = number("sinceSeconds")?.map(|seconds| clock::now_seconds().saturating_sub(seconds)).or(time);
    Ok((container(request, &pod)?, WantedLog { tail: number("tailLines")?, since, bytes: number("limitBytes")? }))
}

/// The options of a connection, as admission sees them.
fn options(request: &Request, kind: &str) -> Result<Value> {
    let mut options = Map::new();
    options.insert("kind", Value::from(kind));
    options.insert("apiVersion", Value::from("v1"));
    let of = go_struct(&format!("core.v1.{kind}"));
    for field in of.map_or(&[][..], |of| &of.fields) {
        let mut all = request.query().all(field.name);
        let value = match (field.go_type.container, field.go_type.base) {
            (Container::List, GoBase::Int32) => {
                all.map(|text| parse_int(text).map(Value::Int)).collect::<Result<_, _>>()?
            }
            (Container::List, _) => all.map(Value::from).collect(),
            (_, GoBase::Bool) => Value::from(request.query().flag(field.name)),
            _ if field.name == "path" => Value::from(path_behind(request)),
            _ => Value::from(all.next().unwrap_or_default()),
        };
        if !is_zero(&value) {
            options.insert(field.name, value);
        } else if field.printed == Printed::Always {
            options.insert(field.name, Value::Null);
        }
    }
    Ok(Value::Object(options))
}

fn is_zero(value: &Value) -> bool {
    *value == Value::from(false) || *value == Value::from("") || value.as_array().is_some_and(<[Value]>::is_empty)
}

/// The path behind `proxy`, with the slashes around it.
fn path_behind(request: &Request) -> String {
    let info = &request.authorized.info;
    let segments: Vec<&str> = info.path.split('/').filter(|segment| !segment.is_empty()).collect();
    let behind = &segments[segments.len().saturating_sub(info.rest)..];
    let end = if info.path.ends_with('/') { "/" } else { "" };
    behind.iter().map(|segment| format!("/{segment}")).collect::<String>() + end
}

fn find(request: &Request, name: &str) -> Result<Value> {
    request.check_path(name)?;
    let key = request.resource.key(request.namespace(), name);
    let stored = request.resource.collection.get(&key.path);
    stored.map(|stored| stored.body.to_value(stored.revision)).ok_or_else(|| request.resource.not_found(name))
}

/// The name and the port in the path of a proxy: `name`, `name:port` or `scheme:name:port`.
fn split(request: &Request, kind: &str) -> Result<(String, String)> {
    let parts: Vec<&str> = request.name().split(':').collect();
    match parts[..] {
        [name] if !name.is_empty() => Ok((name.to_owned(), String::new())),
        [name, port] | ["" | "http" | "https", name, port] if !name.is_empty() => {
            Ok((name.to_owned(), port.to_owned()))
        }
        _ => Err(Status::bad_request(format!("invalid {kind} request {:?}", request.name().as_str()))),
    }
}

fn check_log_options(request: &Request) -> Result<()> {
    if let Some(time) = request.query().get("sinceTime").filter(|time| !matches!(*time, "" | "null")) {
        normal_time(time).map_err(Status::bad_request)?;
    }
    let mut errors = vec![];
    for (name, least) in [("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)] {
        let Some(number) = request.query().get(name).map(parse_int).transpose()? else { continue };
        if number < least {
            let why = match least {
                0 => "must be greater than or equal to 0",
                _ => "must be greater than 0",
            };
            errors.push(FieldError::invalid(&FieldPath::new(name), &Value::Int(number), why));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid("", "PodLogOptions", request.name(), &errors)) }
}

/// The container that the request names, or else the Pod's only one.
fn container(request: &Request, pod: &Value) -> Result<String> {
    let names = |list: &str| -> Vec<String> {
        pod.items_at(&["spec", list]).iter().map(|container| container.str_at(&["name"]).to_owned()).collect()
    };
    let all: Vec<String> =
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(names).collect();
    let pod_name = request.name();
    match (request.query().get("container").unwrap_or_default(), &names("containers")[..]) {
        ("", [only]) => Ok(only.clone()),
        ("", _) => Err(Status::bad_request(format!(
            "a container name must be specified for pod {pod_name}, choose one of: [{}]",
            all.join(" ")
        ))),
        (given, _) if all.iter().any(|name| name == given) => Ok(given.to_owned()),
        (given, _) => Err(Status::bad_request(format!("container {given} is not valid for pod {pod_name}"))),
    }
}

fn log_path(request: &Request, container: &str) -> String {
    let (namespace, name) = (request.namespace(), request.name());
    match request.subresource.as_str() {
        "log" => format!("containerLogs/{namespace}/{name}/{container}"),
        "portforward" => format!("portForward/{namespace}/{name}"),
        stream => format!("{stream}/{namespace}/{name}/{container}"),
    }
}

/// The address and port of the kubelet of a Node.
fn node_address(context: &Context, name: &str) -> Result<(String, i64)> {
    // kube-apiserver reads the Node within the request for the Pod, whose resource its errors name
    let not_found = || Status::not_found("", "pods", name);
    let nodes = context.registry.get("", "nodes").ok_or_else(not_found)?;
    let stored: Arc<Stored> = nodes.collection.get(&nodes.key("", name).path).ok_or_else(not_found)?;
    let node = stored.body.to_value(stored.revision);
    let addresses = node.items_at(&["status", "addresses"]);
    let of_kind = |kind: &str| addresses.iter().find(|address| address.str_at(&["type"]) == kind);
    // the order of kube-apiserver's --kubelet-preferred-address-types
    let order = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
    let Some(preferred) = order.into_iter().find_map(of_kind) else {
        let why = format!("no preferred addresses found; known addresses: {}", list(addresses));
        return Err(Status::internal(why));
    };
    let port = node.at(&["status", "daemonEndpoints", "kubeletEndpoint", "Port"]).and_then(Value::as_int);
    Ok((preferred.str_at(&["address"]).to_owned(), port.filter(|port| *port > 0).unwrap_or(10_250)))
}

/// The addresses, as Go prints them.
fn list(addresses: &[Value]) -> String {
    let text = |address: &Value| format!("{{{} {}}}", address.str_at(&["type"]), address.str_at(&["address"]));
    format!("[{}]", addresses.iter().map(text).collect::<Vec<_>>().join(" "))
}

/// The error of a request to the kubelet of a Node.
async fn kubelet(context: &Context, node: &str, path: &str) -> Status {
    match node_address(context, node) {
        Err(status) => status,
        Ok((host, port)) => {
            let why = dial(&host, &port.to_string()).await;
            let address = join(&host, &port.to_string());
            Status::internal(format!("Get \"https://{address}/{path}\": {why}"))
        }
    }
}

async fn pod_proxy(request: &Request) -> Result<Status> {
    let (name, port) = split(request, "pod")?;
    let pod = find(request, &name)?;
    let address = pod.str_at(&["status", "podIP"]);
    if !is_allowed(address) {
        return Err(Status::bad_request("address not allowed"));
    }
    let containers = pod.items_at(&["spec", "containers"]);
    let first_port = |container: &Value| container.at(&["ports"])?.as_array()?.first()?.get("containerPort")?.as_int();
    let default_port = containers.iter().find_map(first_port).unwrap_or(80);
    let port = if port.is_empty() { default_port.to_string() } else { port };
    Ok(unreachable(address, &port).await)
}

/// Whether kube-apiserver would connect to this address of a Pod. It must not be a loopback, link-local, multicast or
/// unspecified address.
fn is_allowed(address: &str) -> bool {
    match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(v4)) => {
            !v4.is_loopback() && !v4.is_link_local() && !v4.is_multicast() && !v4.is_unspecified()
        }
        Ok(std::net::IpAddr::V6(v6)) => {
            !v6.is_loopback() && !v6.is_unicast_link_local() && !v6.is_multicast() && !v6.is_unspecified()
        }
        Err(_) => false,
    }
}

fn service_proxy(request: &Request) -> Result<()> {
    let (name, port) = split(request, "service")?;
    if request.resource.release < Release::V1_37 {
        find(request, &name)?;
    }
    if let Ok(number) = port.parse::<i64>() {
        let service = find(request, &name)?;
        let ports = service.items_at(&["spec", "ports"]);
        if !ports.iter().any(|port| port.get("port").and_then(Value::as_int) == Some(number)) {
            let why = format!("no service port {number} found for service {name:?}");
            return Err(Status::new(Reason::ServiceUnavailable, why));
        }
    }
    // kube-apiserver calls only endpoints of running Pods, and no Pod runs
    Err(Status::new(Reason::ServiceUnavailable, format!("no endpoints available for service {name:?}")))
}

/// The 503 of a proxy.
async fn unreachable(host: &str, port: &str) -> Status {
    let why = dial(host, port).await;
    Status::new(Reason::ServiceUnavailable, format!("error trying to reach service: {why}"))
}

/// A host and a port; an IPv6 address is in brackets.
fn join(host: &str, port: &str) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Tries to connect, and returns the error as Go's `net` package words it.
async fn dial(host: &str, port: &str) -> String {
    let address = join(host, port);
    let limit = Duration::from_secs(limits::DIAL_SECONDS);
    match tokio::time::timeout(limit, TcpStream::connect(&address)).await {
        Err(_) => format!("dial tcp {address}: i/o timeout"),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            format!("dial tcp {address}: connect: connection refused")
        }
        Ok(Err(error)) => format!("dial tcp {address}: connect: {error}"),
        Ok(Ok(_)) => format!("dial tcp {address}: this server does not call kubelets"),
    }
}
