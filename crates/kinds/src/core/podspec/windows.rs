//! The operating system of a Pod: the options for Windows, and the fields that Pods for Windows cannot have.

use machinery::{Value, names};

use crate::core::podspec::host::CONTAINERS;
use crate::stages;
use schema::at::At;

/// The fields that the security context of a Pod for Windows cannot have.
const POD_CONTEXT: [&str; 10] = [
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser",
    "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy",
];
/// The fields that the spec of a Pod for Windows cannot have.
const SPEC: [&str; 4] = ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];
/// The fields that the security contexts of containers in Pods for Windows cannot have.
const CONTAINER_CONTEXT: [&str; 10] = [
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
];

/// Calls `check` with the security context of each container.
fn each_context<'v>(spec: At<'_, 'v>, mut check: impl FnMut(At<'_, 'v>)) {
    CONTAINERS
        .iter()
        .for_each(|kind| spec.items_of(kind).for_each(|container| check(container.field("securityContext"))));
}

/// Reports fields that the operating system of the Pod does not support.
pub(super) fn system(spec: At) {
    let spec = spec.in_stage(stages::SYSTEM);
    let own = spec.field("securityContext");
    match spec.text("os.name") {
        "linux" => {
            let refuse = |context: At| {
                context.field("windowsOptions").forbid("windows options cannot be set for a linux pod");
            };
            refuse(own);
            each_context(spec, refuse);
        }
        "windows" => {
            let refuse = |object: At, names: &[&str]| {
                for name in names.iter().filter(|name| is_set(object, name)) {
                    object.field(name).forbidden("cannot be set for a windows pod");
                }
            };
            refuse(own, &POD_CONTEXT);
            refuse(own, &["seLinuxChangePolicy"]);
            refuse(spec, &SPEC);
            each_context(spec, |context| refuse(context, &CONTAINER_CONTEXT));
        }
        _ => {}
    }
}

/// Whether a field counts as set. The fields for namespaces of the host are not pointers in Go, so false counts as
/// absent.
fn is_set(object: At, name: &str) -> bool {
    match name {
        "hostPID" | "hostIPC" => object.is_true(name),
        "sysctls" => !object.list(name).is_empty(),
        _ => object.has(name),
    }
}

/// On Windows, either all containers of a Pod are host processes or none is.
pub(super) fn host_processes(spec: At) {
    let spec = spec.in_stage(stages::HOST_PROCESS);
    let of = |context: At| context.field("windowsOptions.hostProcess").value.as_bool();
    let of_pod = of(spec.field("securityContext"));
    let (mut count, mut hosted) = (0, 0);
    each_context(spec, |context| {
        let own = of(context);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && own != of_pod
        {
            let why = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            context.field("windowsOptions.hostProcess").invalid(why);
        }
        count += 1;
        hosted += usize::from(own.or(of_pod) == Some(true));
    });
    if hosted == 0 {
        return;
    }
    if hosted != count {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        spec.shown_as_text("").invalid(why);
    }
    if !spec.is_true("hostNetwork") {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        spec.field("hostNetwork").with_value(&Value::Bool(false)).invalid(why);
    }
}

/// Validates the Windows options of a security context. Errors show their texts as JSON, since they are pointers in Go.
pub(super) fn options(context: At) {
    const SPEC_KIB_MAX: usize = 64;
    let options = context.field("windowsOptions");
    let [name, credentials, user] = ["gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"]
        .map(|name| options.field(name).shown_as_json());
    name.check_text_if_given(names::dns1123_subdomain);
    match credentials.as_text().len() {
        _ if !credentials.is_given() => {}
        0 => credentials.invalid("gmsaCredentialSpec cannot be an empty string"),
        bytes if bytes > SPEC_KIB_MAX * 1024 => {
            credentials.invalid(format!("gmsaCredentialSpec size must be under {SPEC_KIB_MAX} KiB"));
        }
        _ => {}
    }
    user.check_text_if_given(user_problems);
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
