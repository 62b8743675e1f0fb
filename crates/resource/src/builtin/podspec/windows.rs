//! The operating system of a Pod: the options for Windows, and the fields that Pods for Windows cannot have.

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::host::CONTAINERS;
use super::{Errors, truth};
use crate::builtin::checks::{is_set, items, list, named, text};

/// The fields that the security context of a Pod for Windows cannot have.
const POD_CONTEXT: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
];
/// The fields that the spec of a Pod for Windows cannot have.
const SPEC: [&str; 4] = ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];
/// The fields that the security contexts of containers in Pods for Windows cannot have.
const CONTAINER_CONTEXT: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// The security contexts of all containers, with their paths.
fn contexts<'a>(spec: &'a Value, path: &FieldPath) -> Vec<(FieldPath, &'a Value)> {
    let of = |kind| items(spec, kind, path);
    let context = |(path, container): (FieldPath, &'a Value)| {
        (path.child("securityContext"), container.get("securityContext").unwrap_or(&Value::Null))
    };
    CONTAINERS.into_iter().flat_map(of).map(context).collect()
}

/// Reports fields that the operating system of the Pod does not support.
pub(super) fn system_errors(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let own = (path.child("securityContext"), spec.get("securityContext").unwrap_or(&Value::Null));
    let contexts = contexts(spec, path);
    match spec.str_at(&["os", "name"]) {
        "linux" => {
            let with_options =
                [own].into_iter().chain(contexts).filter(|(_, context)| is_set(context, "windowsOptions"));
            errors.extend(with_options.map(|(path, _)| {
                FieldError::forbidden(&path.child("windowsOptions"), "windows options cannot be set for a linux pod")
            }));
        }
        "windows" => {
            let mut refuse = |object: &Value, names: &[&str], path: &FieldPath| {
                let given = names.iter().filter(|name| is_given(object, name));
                errors.extend(
                    given.map(|name| FieldError::forbidden(&path.child(name), "cannot be set for a windows pod")),
                );
            };
            refuse(own.1, &POD_CONTEXT, &own.0);
            refuse(own.1, &["seLinuxChangePolicy"], &own.0);
            refuse(spec, &SPEC, path);
            contexts.iter().for_each(|(path, context)| refuse(context, &CONTAINER_CONTEXT, path));
        }
        _ => {}
    }
}

/// Whether a field counts as set. The fields for namespaces of the host are not pointers in Go, so false counts as
/// absent.
fn is_given(object: &Value, name: &str) -> bool {
    match name {
        "hostPID" | "hostIPC" => truth(object, &[name]),
        "sysctls" => !list(object, name).is_empty(),
        _ => is_set(object, name),
    }
}

/// On Windows, either all containers of a Pod are host processes or none is.
pub(super) fn host_processes(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let is_host_process = |context: &Value| context.at(&["windowsOptions", "hostProcess"]).and_then(Value::as_bool);
    let of_pod = spec.get("securityContext").and_then(is_host_process);
    let contexts = contexts(spec, path);
    for (path, own) in contexts.iter().filter_map(|(path, context)| Some((path, is_host_process(context)?))) {
        if let Some(of_pod) = of_pod.filter(|of_pod| *of_pod != own) {
            let why = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            let path = path.child("windowsOptions").child("hostProcess");
            errors.push(FieldError::invalid(&path, &Value::Bool(own), why));
        }
    }
    let count = contexts.iter().filter(|(_, context)| is_host_process(context).or(of_pod) == Some(true)).count();
    if count == 0 {
        return;
    }
    if count != contexts.len() {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid(path, &Value::from(""), why));
    }
    if !truth(spec, &["hostNetwork"]) {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(&path.child("hostNetwork"), &Value::Bool(false), why));
    }
}

/// Validates the Windows options of a security context.
pub(super) fn options(context: &Value, path: &FieldPath, errors: &mut Errors) {
    const SPEC_KIB_MAX: usize = 64;
    let Some(options) = context.get("windowsOptions").filter(|options| !options.is_null()) else { return };
    let path = path.child("windowsOptions");
    if is_set(options, "gmsaCredentialSpecName") {
        let name = text(options, "gmsaCredentialSpecName");
        invalid(&path.child("gmsaCredentialSpecName"), name, names::dns1123_subdomain(name), errors);
    }
    let credentials = text(options, "gmsaCredentialSpec");
    let problem = match credentials.len() {
        0 => Some("gmsaCredentialSpec cannot be an empty string".to_owned()),
        bytes if bytes > SPEC_KIB_MAX * 1024 => {
            Some(format!("gmsaCredentialSpec size must be under {SPEC_KIB_MAX} KiB"))
        }
        _ => None,
    };
    if is_set(options, "gmsaCredentialSpec") {
        invalid(&path.child("gmsaCredentialSpec"), credentials, problem.into_iter().collect(), errors);
    }
    if is_set(options, "runAsUserName") {
        let name = text(options, "runAsUserName");
        invalid(&path.child("runAsUserName"), name, user_problems(name), errors);
    }
}

/// Adds errors about a text that is a pointer in Go, which errors show as JSON.
fn invalid(path: &FieldPath, text: &str, problems: Vec<String>, errors: &mut Errors) {
    let value = Value::from(text);
    errors.extend(problems.into_iter().map(|problem| named(FieldError::invalid(path, &value, problem), &value)));
}

/// The problems of a Windows user name: `USER` or `DOMAIN\USER`.
fn user_problems(name: &str) -> Vec<String> {
    const USER_BYTES_MAX: usize = 104;
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".to_owned()];
    }
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".to_owned()];
    }
    let (mut problems, user) = match name.split('\\').collect::<Vec<_>>()[..] {
        [user] => (vec![], user),
        [domain, user] => (domain_problems(domain), user),
        _ => return vec!["runAsUserName cannot contain more than one backslash".to_owned()],
    };
    match user.len() {
        0 => problems.push("runAsUserName's User cannot be empty".to_owned()),
        bytes if bytes > USER_BYTES_MAX => {
            problems.push(format!("runAsUserName's User length must not be longer than {USER_BYTES_MAX} characters"));
        }
        _ => {}
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        problems.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(|c| r#""/\:;|=,+*?<>@[]"#.contains(c)) {
        let why = r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#;
        problems.push(why.to_owned());
    }
    problems
}

fn domain_problems(domain: &str) -> Vec<String> {
    const BYTES_MAX: usize = 256;
    const NETBIOS_CHARACTERS_MAX: usize = 15;
    let mut problems = vec![];
    if domain.len() >= BYTES_MAX {
        problems.push(format!("runAsUserName's Domain length must be under {BYTES_MAX} characters"));
    }
    let is_netbios = (1..=NETBIOS_CHARACTERS_MAX).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(|c| r#"\/:*?"<>|"#.contains(c));
    let is_dns = domain.split('.').all(|label| names::dns1123_label(&label.to_ascii_lowercase()).is_empty());
    if !is_netbios && !is_dns {
        problems.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users() {
        let long = |c: &str, count: usize, rest: &str| c.repeat(count) + rest;
        let cases = [
            ("u".to_owned(), &[][..]),
            ("a b".to_owned(), &[]),
            ("a_b\\u..".to_owned(), &[]),
            (long("ä", 15, "\\u"), &[]),
            (long("d", 63, ".d\\u"), &[]),
            (String::new(), &["empty string"]),
            ("u\x01".to_owned(), &["control"]),
            ("u\x7f".to_owned(), &["control"]),
            ("a\\b\\c".to_owned(), &["backslash"]),
            ("\\".to_owned(), &["NetBios", "User cannot be empty"]),
            (".a\\u".to_owned(), &["NetBios"]),
            ("a*b\\u@".to_owned(), &["NetBios", "following characters"]),
            (long("ä", 16, "\\u"), &["NetBios"]),
            (long("d", 64, ".d\\u"), &["NetBios"]),
            (long("d", 256, "\\u"), &["under 256", "NetBios"]),
            (long("u", 105, ""), &["longer than 104"]),
            (". .".to_owned(), &["periods"]),
        ];
        for (name, expected) in cases {
            let problems = user_problems(&name);
            assert_eq!(problems.len(), expected.len(), "{name}: {problems:?}");
            let pairs = problems.iter().zip(expected);
            pairs.for_each(|(problem, part)| assert!(problem.contains(part), "{name}: {problem}"));
        }
    }
}
