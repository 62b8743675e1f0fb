//! The checks that `rules.txt` names, in one table.

use std::collections::HashSet;
use std::net::IpAddr;

use machinery::field::FieldPath;
use machinery::{FieldError, Release, Value, names};

use crate::limits::HOST_PORTS_REPORTED;
use resource::builtin::checks::labels;
use resource::builtin::{Check, Named};
use schema::at::At;

/// The checks that rules of several groups name.
pub const CHECKS: Named<Check> = &[
    ("absolute", |at| {
        at.or_empty().invalid_if(!at.as_text().starts_with('/'), "must be an absolute path");
    }),
    ("access-modes", access_modes),
    ("cidr", cidr),
    ("cidrs", |at| at.items().for_each(cidr)),
    ("controller-length", |at| at.max_bytes(250)),
    ("csi-driver", csi_driver),
    ("domain-path", domain_path),
    ("endpoint-ip", |at| {
        ip(at);
        crate::ip::endpoint(at.or_empty());
    }),
    ("endpoint-ports", |at| {
        // if there are several ports, each needs a name
        at.items().skip_while(|_| at.items().len() < 2).for_each(|port| port.field("name").require_text(""));
    }),
    ("endpoints-namespace", |at| match at.as_text() {
        "" => at.invalid("if the endpointnamespace is set, it must be a valid namespace name"),
        _ => at.check_text(names::dns1123_label),
    }),
    ("endpoint-subsets", |at| {
        for subset in at.items() {
            if ["addresses", "notReadyAddresses"].iter().all(|name| subset.list(name).is_empty()) {
                subset.required("must specify `addresses` or `notReadyAddresses`");
            }
        }
    }),
    ("env-name", env_name),
    ("host", |at| {
        if !at.as_text().is_empty() {
            no_address(at);
            served_name(at);
        }
    }),
    ("host-name", |at| {
        subdomain(at);
        no_address(at);
    }),
    ("host-path-type", host_path_type),
    ("given", |at| {
        at.require("");
    }),
    ("hosts", |at| at.items().for_each(served_name)),
    ("http-header", http_header),
    ("ip", ip),
    ("ips", |at| at.items().for_each(ip)),
    ("label", |at| at.check_text(names::dns1123_label)),
    ("labels", labels),
    ("limit-type", |at| {
        let (before, kind) = (at.count(), at.as_text());
        at.shown_as_json().check_text(names::qualified_name);
        let is_name = at.count() == before;
        if is_name && !kind.contains('/') && !["Container", "PersistentVolumeClaim", "Pod"].contains(&kind) {
            at.invalid("must be a standard limit type or fully qualified");
        }
    }),
    ("local-path", local_path),
    ("managed-by", |at| match at.as_text() {
        "" => at.required(""),
        _ => {
            domain_path(at);
            at.max_bytes(63);
        }
    }),
    ("mode", mode),
    ("group-version", |at| {
        if at.as_text().matches('/').count() > 1 {
            at.invalid(format!("unexpected GroupVersion string: {}", at.as_text()));
        }
    }),
    ("no-backsteps", no_backsteps),
    ("own-path", own_path),
    ("not-empty", |at| at.require_text("")),
    ("parameters", |at| {
        at.shown_as_text("").invalid_if(at.value.get("").is_some(), "field can not be empty.");
    }),
    ("partition", partition),
    ("path-segment", |at| at.check_text(names::path_segment)),
    ("policy-types", |at| {
        // the kinds of a list that is too long are not checked
        at.items().take_while(|_| at.items().len() <= 2).for_each(|kind| kind.one_of(&["Ingress", "Egress"]));
    }),
    ("port", port),
    ("port-name", |at| at.check_text(port_name_problems)),
    ("qualified", |at| at.check_text(names::qualified_name)),
    ("qualified-lower", |at| {
        let lower = at.as_text().to_lowercase();
        at.shown_as_text(&lower).invalid_each(names::qualified_name(&lower));
    }),
    ("reclaim-policy", |at| at.one_of(&["Delete", "Retain"])),
    ("scaled", |at| {
        let version = at.field_or_empty("apiVersion");
        // a third part is an error of `group-version`
        let parts = version.as_text().split_once('/');
        let has_group = parts.is_some_and(|(group, rest)| !group.is_empty() || rest.contains('/'));
        if !has_group && at.text("kind") != "ReplicationController" {
            version.invalid("apiVersion must specify API group");
        }
    }),
    ("search-domains", |at| at.items().filter(|domain| domain.as_text() != ".").for_each(underscored)),
    ("subdomain", subdomain),
    ("subdomains", |at| at.items().for_each(subdomain)),
    ("sysctl", sysctl),
];

fn subdomain(at: At) {
    at.check_text(names::dns1123_subdomain);
}

const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// The problems of a text that must be an IP address in its canonical form.
pub fn address_problems(text: &str) -> Vec<String> {
    let (canonical, problem) = (crate::ip::parse(text).map(|address| address.to_string()), ip_problem(text));
    match (problem, canonical) {
        (Some(problem), _) => vec![problem.to_owned()],
        (None, Some(canonical)) if canonical != text => vec![format!("must be in canonical form ({canonical:?})")],
        _ => vec![],
    }
}

/// Why a text is not an IP address in any form.
fn ip_problem(text: &str) -> Option<&'static str> {
    match text.parse::<IpAddr>() {
        _ if crate::ip::parse(text).is_none() => Some(NO_ADDRESS),
        Err(_) => Some("must not have leading 0s"),
        Ok(address) if address.to_canonical() != address => Some("must not be an IPv4-mapped IPv6 address"),
        Ok(_) => None,
    }
}

pub fn ip(at: At) {
    at.check_text(|text| ip_problem(text).map(str::to_owned).into_iter().collect());
}

pub fn cidr(at: At) {
    crate::ip::cidr(at, at.as_text(), &HashSet::new(), Release::V1_37);
}

fn access_modes(at: At) {
    const KNOWN: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let modes: Vec<&str> = at.items().map(|mode| mode.as_text()).collect();
    for mode in modes.iter().filter(|mode| !KNOWN.contains(mode)) {
        at.push(FieldError::not_supported(&at.path(), &Value::from(*mode), &KNOWN));
    }
    if modes.contains(&"ReadWriteOncePod") && modes.len() > 1 {
        at.forbidden("may not use ReadWriteOncePod with other access modes");
    }
}

const PATH_BYTES_MAX: usize = 253;

pub fn csi_driver(at: At) {
    at.max_bytes(63);
    at.check_text(|name| names::dns1123_subdomain(&name.to_lowercase()));
}

/// The name of a driver, which may have letters of either case.
pub fn driver_name(at: At) {
    const CHARACTERS_MAX: usize = 63;
    at.check_text(|name| resource::builtin::formats::caseless(&name.to_lowercase()));
    if at.as_text().len() > CHARACTERS_MAX {
        let detail = format!("may not be more than {CHARACTERS_MAX} characters");
        at.push(FieldError { detail, ..FieldError::too_long(&at.path(), CHARACTERS_MAX) });
    }
}

fn domain_path(at: At) {
    for (part, why) in names::domain_prefixed_path(at.as_text()) {
        at.shown_as_text(part).invalid(why);
    }
}

pub fn env_name(at: At) {
    let is_name = |c: char| matches!(c, ' '..='~') && c != '=';
    if !at.as_text().chars().all(is_name) {
        at.invalid("a valid environment variable name must consist only of printable ASCII characters other than '='");
    }
}

fn no_address(at: At) {
    at.invalid_if(crate::ip::parse(at.as_text()).is_some(), "must be a DNS name, not an IP address");
}

/// A DNS subdomain, possibly with an asterisk as its first label.
fn served_name(at: At) {
    match at.as_text().strip_prefix("*.") {
        Some(rest) if names::dns1123_subdomain(rest).is_empty() => {}
        _ if at.as_text().contains('*') => at.check_text(wildcard_problems),
        _ => subdomain(at),
    }
}

/// The type of a `hostPath`, which is only checked if the path is set.
fn host_path_type(at: At) {
    const KNOWN: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    if !at.text("path").is_empty() {
        at.field_or_empty("type").one_of(&KNOWN);
    }
}

/// Comma-separated `HOST:PORT` pairs. Each invalid pair causes an error that shows the whole text.
pub fn host_ports(at: At) {
    for _ in at.as_text().split(',').filter(|pair| !is_host_port(pair)).take(HOST_PORTS_REPORTED) {
        at.invalid("must be a host:port pair or multiple pairs separated by commas");
    }
}

fn http_header(at: At) {
    let name = at.as_text();
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        // upstream reports the error at the list of headers, not at the header
        let path = at.path();
        let list = path.as_str().rsplit_once('[').map_or(path.as_str(), |(list, _)| list);
        at.or_empty().with_path(&FieldPath::new(list)).invalid("a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')");
    }
}

/// The permission bits of a file.
pub fn mode(at: At) {
    if at.value.as_int().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        at.invalid("must be a number between 0 and 0777 (octal), both inclusive");
    }
}

pub fn no_backsteps(at: At) {
    at.invalid_if(at.as_text().split('/').any(|part| part == ".."), "must not contain '..'");
}

/// A relative path that does not begin with `..`, which volumes reserve for their own files.
pub fn own_path(at: At) {
    local_path(at);
    at.invalid_if(at.as_text().starts_with("..") && !at.as_text().starts_with("../"), "must not start with '..'");
}

pub fn local_path(at: At) {
    at.invalid_if(at.as_text().starts_with('/'), "must be a relative path");
    no_backsteps(at);
}

pub fn port(at: At) {
    match at.value {
        Value::String(_) => at.check_text(port_name_problems),
        Value::Int(_) => at.within(1..=65535),
        _ => at.with_value(&Value::Int(0)).within(1..=65535),
    }
}

/// The partition of a disk, where zero means the whole disk. Errors use upstream's name of the field.
fn partition(at: At) {
    if at.value.as_int().is_some_and(|partition| !(0..=255).contains(&partition)) {
        let path = FieldPath::new(at.path().as_str().replace("gcePersistentDisk", "persistentDisk"));
        at.with_path(&path).invalid("must be between 1 and 255, inclusive");
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

fn underscored(at: At) {
    let value = at.as_text().strip_suffix('.').unwrap_or(at.as_text());
    at.shown_as_text(value).invalid_if(value.len() > PATH_BYTES_MAX, "must be no more than 253 characters");
    let is_label = |label: &str| {
        let (word, label) =
            (|c: char| c.is_ascii_lowercase() || c.is_ascii_digit(), label.strip_prefix('_').unwrap_or(label));
        label.starts_with(word) && label.ends_with(word) && label.chars().all(|c| word(c) || matches!(c, '-' | '_'))
    };
    if !value.split('.').all(is_label) {
        at.shown_as_text(value).invalid("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')");
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

fn sysctl(at: At) {
    if !is_sysctl(at.as_text()) {
        at.invalid(
            "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
        );
    }
}

/// A subdomain whose first label is an asterisk.
fn wildcard_problems(value: &str) -> Vec<String> {
    let rest = value.strip_prefix("*.").unwrap_or("*");
    let is_valid = names::dns1123_subdomain(rest).is_empty();
    let why = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    if is_valid { vec![] } else { vec![why.to_owned()] }
}
