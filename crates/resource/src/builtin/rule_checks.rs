//! The checks that `rules/rules.txt` names, in one table.

use std::collections::HashSet;
use std::net::IpAddr;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::checks::{invalid_each, labels, list, named, text};
use super::config::data_key;
use crate::limits::HOST_PORTS_REPORTED;

/// A check of a value; the value is null if the field is absent.
pub type Check = fn(&Value, &FieldPath, &mut Vec<FieldError>);

/// The check with this name.
pub fn by_name(name: &str) -> Option<Check> {
    CHECKS.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

const CHECKS: &[(&str, Check)] = &[
    ("absolute", |value, path, errors| {
        if !of(value).starts_with('/') {
            errors.push(FieldError::invalid(path, &Value::from(of(value)), "must be an absolute path"));
        }
    }),
    ("access-modes", access_modes),
    ("cidr", |value, path, errors| cidr(of(value), path, errors)),
    ("cidrs", |value, path, errors| each(value, path, |value, path| cidr(value, path, errors))),
    ("config-key", |value, path, errors| invalid_each(path, of(value), data_key(of(value)), errors)),
    ("controller-length", |value, path, errors| {
        if of(value).len() > 250 {
            errors.push(FieldError::too_long(path, 250));
        }
    }),
    ("cron", super::schedules::check),
    ("csi-driver", csi_driver),
    ("domain-path", domain_path),
    ("endpoint-ip", endpoint_ip),
    ("endpoint-ports", endpoint_ports),
    ("endpoints-namespace", |value, path, errors| match of(value) {
        "" => {
            let why = "if the endpointnamespace is set, it must be a valid namespace name";
            errors.push(FieldError::invalid(path, value, why));
        }
        namespace => invalid_each(path, namespace, names::dns1123_label(namespace), errors),
    }),
    ("endpoint-subsets", |value, path, errors| {
        for (i, subset) in value.as_array().unwrap_or_default().iter().enumerate() {
            if ["addresses", "notReadyAddresses"].iter().all(|name| list(subset, name).is_empty()) {
                let why = "must specify `addresses` or `notReadyAddresses`";
                errors.push(FieldError::required(&path.index(i), why));
            }
        }
    }),
    ("env-name", env_name),
    ("host", |value, path, errors| host(of(value), path, errors)),
    ("host-name", |value, path, errors| {
        subdomain(of(value), path, errors);
        no_address(of(value), path, errors);
    }),
    ("host-path-type", host_path_type),
    ("given", |value, path, errors| {
        if value.is_null() {
            errors.push(FieldError::required(path, ""));
        }
    }),
    ("hosts", |value, path, errors| {
        each(value, path, |value, path| match value {
            "" => subdomain(value, path, errors),
            name => served_name(name, path, errors),
        });
    }),
    ("http-header", http_header),
    ("ip", |value, path, errors| ip(of(value), path, errors)),
    ("ips", |value, path, errors| each(value, path, |value, path| ip(value, path, errors))),
    ("iqn", |value, path, errors| {
        if !of(value).is_empty() && !super::iscsi::is_qualified(of(value)) {
            errors.push(FieldError::invalid(path, value, "must be valid format"));
        }
    }),
    ("label", |value, path, errors| invalid_each(path, of(value), names::dns1123_label(of(value)), errors)),
    ("labels", labels),
    ("limit-type", |value, path, errors| {
        let problems = names::qualified_name(of(value));
        let is_name = problems.is_empty();
        errors.extend(problems.into_iter().map(|why| named(FieldError::invalid(path, value, why), value)));
        if is_name && !of(value).contains('/') && !["Container", "PersistentVolumeClaim", "Pod"].contains(&of(value)) {
            let why = "must be a standard limit type or fully qualified";
            errors.push(FieldError::invalid(path, value, why));
        }
    }),
    ("local-path", local_path),
    ("managed-by", |value, path, errors| match of(value) {
        "" => errors.push(FieldError::required(path, "")),
        name => {
            domain_path(value, path, errors);
            if name.len() > 63 {
                errors.push(FieldError::too_long(path, 63));
            }
        }
    }),
    ("mode", mode),
    ("group-version", |value, path, errors| {
        if of(value).matches('/').count() > 1 {
            errors.push(FieldError::invalid(path, value, format!("unexpected GroupVersion string: {}", of(value))));
        }
    }),
    ("no-backsteps", no_backsteps),
    ("own-path", own_path),
    ("not-empty", |value, path, errors| {
        if of(value).is_empty() {
            errors.push(FieldError::required(path, ""));
        }
    }),
    ("parameters", |value, path, errors| {
        if value.get("").is_some() {
            errors.push(FieldError::invalid(path, &Value::from(""), "field can not be empty."));
        }
    }),
    ("partition", partition),
    ("path-segment", |value, path, errors| invalid_each(path, of(value), names::path_segment(of(value)), errors)),
    ("policy-types", |value, path, errors| {
        let kinds = value.as_array().unwrap_or_default();
        // the kinds of a list that is too long are not checked
        for (i, kind) in kinds.iter().enumerate().filter(|_| kinds.len() <= 2) {
            if !["Ingress", "Egress"].contains(&of(kind)) {
                errors.push(FieldError::not_supported(&path.index(i), kind, &["Ingress", "Egress"]));
            }
        }
    }),
    ("port", port),
    ("port-name", port_name),
    ("qualified", |value, path, errors| invalid_each(path, of(value), names::qualified_name(of(value)), errors)),
    ("qualified-lower", |value, path, errors| {
        let lower = of(value).to_lowercase();
        invalid_each(path, &lower, names::qualified_name(&lower), errors);
    }),
    ("reclaim-policy", |value, path, errors| {
        if !["Delete", "Retain"].contains(&of(value)) {
            errors.push(FieldError::not_supported(path, value, &["Delete", "Retain"]));
        }
    }),
    ("scaled", |value, path, errors| {
        let (version, path) = (text(value, "apiVersion"), &path.child("apiVersion"));
        // a third part is an error of `group-version`
        let has_group = version.split_once('/').is_some_and(|(group, rest)| !group.is_empty() || rest.contains('/'));
        if !has_group && text(value, "kind") != "ReplicationController" {
            errors.push(FieldError::invalid(path, &Value::from(version), "apiVersion must specify API group"));
        }
    }),
    ("search-domains", |value, path, errors| {
        each(value, path, |value, path| {
            if value != "." {
                underscored(value.strip_suffix('.').unwrap_or(value), path, errors);
            }
        });
    }),
    ("subdomain", |value, path, errors| subdomain(of(value), path, errors)),
    ("subdomains", |value, path, errors| each(value, path, |value, path| subdomain(value, path, errors))),
    ("sysctl", sysctl),
    ("taints", super::nodes::taint_errors),
    ("time-zone", super::schedules::check_zone),
];

fn of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn each(value: &Value, path: &FieldPath, mut check: impl FnMut(&str, &FieldPath)) {
    value.as_array().unwrap_or_default().iter().enumerate().for_each(|(i, value)| check(of(value), &path.index(i)));
}

fn subdomain(value: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    invalid_each(path, value, names::dns1123_subdomain(value), errors);
}

const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// The problems of a text that must be an IP address in its canonical form.
pub fn address_problems(text: &str) -> Vec<String> {
    let (canonical, problem) = (super::ip::parse(text).map(|address| address.to_string()), ip_problem(text));
    match (problem, canonical) {
        (Some(problem), _) => vec![problem.to_owned()],
        (None, Some(canonical)) if canonical != text => vec![format!("must be in canonical form ({canonical:?})")],
        _ => vec![],
    }
}

/// Why a text is not an IP address in any form.
fn ip_problem(text: &str) -> Option<&'static str> {
    match text.parse::<IpAddr>() {
        _ if super::ip::parse(text).is_none() => Some(NO_ADDRESS),
        Err(_) => Some("must not have leading 0s"),
        Ok(address) if address.to_canonical() != address => Some("must not be an IPv4-mapped IPv6 address"),
        Ok(_) => None,
    }
}

pub fn ip(value: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    errors.extend(ip_problem(value).map(|why| FieldError::invalid(path, &Value::from(value), why)));
}

pub fn cidr(value: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    errors.extend(super::ip::cidr_error(path, value, &HashSet::new(), Release::V1_37));
}

fn access_modes(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let modes: Vec<&str> = value.as_array().unwrap_or_default().iter().map(of).collect();
    for mode in &modes {
        if !KNOWN.contains(mode) {
            errors.push(FieldError::not_supported(path, &Value::from(*mode), &KNOWN));
        }
    }
    if modes.contains(&"ReadWriteOncePod") && modes.len() > 1 {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, why));
    }
}

const PATH_BYTES_MAX: usize = 253;

pub fn csi_driver(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let name = of(value);
    if name.len() > 63 {
        errors.push(FieldError::too_long(path, 63));
    }
    let lower = name.to_lowercase();
    invalid_each(path, name, names::dns1123_subdomain(&lower), errors);
}

/// The name of a driver, which may have letters of either case.
pub fn driver_name(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const CHARACTERS_MAX: usize = 63;
    let name = of(value);
    invalid_each(path, name, super::formats::caseless(&name.to_lowercase()), errors);
    if name.len() > CHARACTERS_MAX {
        let mut error = FieldError::too_long(path, CHARACTERS_MAX);
        error.detail = error.detail.replace("bytes", "characters");
        errors.push(error);
    }
}

fn domain_path(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (part, why) in names::domain_prefixed_path(of(value)) {
        errors.push(FieldError::invalid(path, &Value::from(part), why));
    }
}

fn endpoint_ip(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let value = Value::from(of(value));
    ip(of(&value), path, errors);
    super::ip::endpoint_errors(path, &value, errors);
}

/// If there are several ports, each needs a name.
fn endpoint_ports(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let ports = value.as_array().unwrap_or_default();
    for (i, port) in ports.iter().enumerate().filter(|_| ports.len() > 1) {
        if text(port, "name").is_empty() {
            errors.push(FieldError::required(&path.index(i).child("name"), ""));
        }
    }
}

pub fn env_name(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let name = of(value);
    let is_name = |c: char| matches!(c, ' '..='~') && c != '=';
    if !name.chars().all(is_name) {
        let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        errors.push(FieldError::invalid(path, value, why));
    }
}

fn host(value: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if value.is_empty() {
        return;
    }
    no_address(value, path, errors);
    served_name(value, path, errors);
}

fn no_address(value: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if super::ip::parse(value).is_some() {
        let why = "must be a DNS name, not an IP address";
        errors.push(FieldError::invalid(path, &Value::from(value), why));
    }
}

/// A DNS subdomain, possibly with an asterisk as its first label.
fn served_name(value: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    match value.strip_prefix("*.") {
        Some(_) if names::dns1123_subdomain(&value[2..]).is_empty() => {}
        _ if value.contains('*') => invalid_each(path, value, wildcard_problems(value), errors),
        _ => subdomain(value, path, errors),
    }
}

/// The type of a `hostPath`, which is only checked if the path is set.
fn host_path_type(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let kind = value.str_at(&["type"]);
    if !value.str_at(&["path"]).is_empty() && !KNOWN.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), &Value::from(kind), &KNOWN));
    }
}

/// Comma-separated `HOST:PORT` pairs. Each invalid pair causes an error that shows the whole text.
pub fn host_ports(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for _ in of(value).split(',').filter(|pair| !is_host_port(pair)).take(HOST_PORTS_REPORTED) {
        let why = "must be a host:port pair or multiple pairs separated by commas";
        errors.push(FieldError::invalid(path, value, why));
    }
}

fn http_header(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let name = of(value);
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        let why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
        // upstream reports the error at the list of headers, not at the header
        let list = path.as_str().rsplit_once('[').map_or(path.as_str(), |(list, _)| list);
        errors.push(FieldError::invalid(&FieldPath::new(list), &Value::from(name), why));
    }
}

/// The permission bits of a file.
pub fn mode(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if value.as_int().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(path, value, why));
    }
}

pub fn no_backsteps(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if of(value).split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(path, value, "must not contain '..'"));
    }
}

/// A relative path that does not begin with `..`, which volumes reserve for their own files.
pub fn own_path(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    local_path(value, path, errors);
    if of(value).starts_with("..") && !of(value).starts_with("../") {
        errors.push(FieldError::invalid(path, value, "must not start with '..'"));
    }
}

pub fn local_path(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if of(value).starts_with('/') {
        errors.push(FieldError::invalid(path, value, "must be a relative path"));
    }
    no_backsteps(value, path, errors);
}

pub fn port(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    match value {
        Value::String(name) => invalid_each(path, name, port_name_problems(name), errors),
        number => {
            let number = number.as_int().unwrap_or_default();
            if !(1..=65535).contains(&number) {
                let why = "must be between 1 and 65535, inclusive";
                errors.push(FieldError::invalid(path, &Value::Int(number), why));
            }
        }
    }
}

fn port_name(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    invalid_each(path, of(value), port_name_problems(of(value)), errors);
}

/// The partition of a disk, where zero means the whole disk. Errors use upstream's name of the field.
fn partition(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if value.as_int().is_some_and(|partition| !(0..=255).contains(&partition)) {
        let path = FieldPath::new(path.as_str().replace("gcePersistentDisk", "persistentDisk"));
        errors.push(FieldError::invalid(&path, value, "must be between 1 and 255, inclusive"));
    }
}

/// Whether a text is `HOST:PORT`. Either part may be empty; a host that contains colons needs brackets.
fn is_host_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let host = host.strip_prefix('[').map_or((!host.contains(':')).then_some(host), |host| host.strip_suffix(']'));
    host.is_some_and(|host| !host.contains(['[', ']'])) && !port.contains(['[', ']'])
}

/// The problems of a port name, which must be an IANA service name.
pub fn port_name_problems(name: &str) -> Vec<String> {
    let mut problems = vec![];
    if name.len() > 15 {
        problems.push("must be no more than 15 characters".to_owned());
    }
    if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') || name.is_empty() {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.chars().any(|c| c.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

fn underscored(value: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut invalid = |why: &str| errors.push(FieldError::invalid(path, &Value::from(value), why));
    if value.len() > PATH_BYTES_MAX {
        invalid("must be no more than 253 characters");
    }
    let is_label = |label: &str| {
        let (word, label) =
            (|c: char| c.is_ascii_lowercase() || c.is_ascii_digit(), label.strip_prefix('_').unwrap_or(label));
        label.starts_with(word) && label.ends_with(word) && label.chars().all(|c| word(c) || matches!(c, '-' | '_'))
    };
    if !value.split('.').all(is_label) {
        invalid(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')",
        );
    }
}

/// Whether a name is that of a kernel parameter.
pub fn is_sysctl(name: &str) -> bool {
    let is_part = |part: &str| {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        part.starts_with(word) && part.ends_with(word) && part.chars().all(|c| word(c) || matches!(c, '-' | '_'))
    };
    name.len() <= PATH_BYTES_MAX && name.split(['.', '/']).all(is_part)
}

fn sysctl(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if !is_sysctl(of(value)) {
        let why = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
        errors.push(FieldError::invalid(path, value, why));
    }
}

/// A subdomain whose first label is an asterisk.
fn wildcard_problems(value: &str) -> Vec<String> {
    let rest = value.strip_prefix("*.").unwrap_or("*");
    let is_valid = names::dns1123_subdomain(rest).is_empty();
    let why = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    if is_valid { vec![] } else { vec![why.to_owned()] }
}
