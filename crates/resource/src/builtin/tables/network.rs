//! Ingresses, endpoints, and addresses.

use super::{NONE, at, number, selector_at, shortened, text_column, text_or};
use crate::builtin::BuiltInColumn;
use crate::builtin::checks::{list, text};
use crate::builtin::columns::AGE;
use machinery::Value;

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

pub const SLICE: &[BuiltInColumn] = &[
    text_column("AddressType", "Type of the addresses.", |o, _| text_or(o, &["addressType"], "")),
    text_column("Ports", "Ports of the endpoints.", |o, _| {
        let ports = list(o, "ports").iter().map(|port| match port.get("port").and_then(Value::as_int) {
            Some(number) => number.to_string(),
            None => port.get("name").and_then(Value::as_str).unwrap_or("*").to_owned(),
        });
        shortened(ports.collect(), "<unset>")
    }),
    text_column("Endpoints", "Addresses of the endpoints.", |o, _| {
        let addresses = list(o, "endpoints").iter().flat_map(|endpoint| list(endpoint, "addresses"));
        shortened(addresses.filter_map(Value::as_str).map(str::to_owned).collect(), "<unset>")
    }),
    AGE,
];

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

/// A cell that no column is defined for.
const UNNAMED_AGE: BuiltInColumn = BuiltInColumn { name: "", ..AGE };

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

pub const SERVICE_CIDR: &[BuiltInColumn] = &[
    text_column("CIDRs", "Ranges of addresses.", |o, _| {
        let ranges: Vec<&str> = at(o, &["spec", "cidrs"]).iter().filter_map(Value::as_str).collect();
        Value::from(ranges.join(","))
    }),
    AGE,
];
