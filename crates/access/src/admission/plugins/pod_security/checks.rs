//! The checks of the Pod Security Standards: a table, by level and version.

use std::collections::BTreeSet;

use machinery::{Release, Value};

use super::Pod;
use super::containers::{all_containers, container_names, name, security};
use super::policy::{LevelVersion, SecurityLevel};

/// A violation of a check: the reason, and the fields and containers concerned.
#[derive(Debug, PartialEq, Eq)]
pub struct Violation {
    reason: String,
    detail: String,
}

/// The reason of violations of the rules for seccomp.
const SECCOMP: &str = "seccompProfile";

type Rule = fn(Pod<'_>) -> Option<Violation>;

/// A check. Each rule is in force from a minor version on, until a later rule replaces it.
struct Check {
    id: &'static str,
    level: SecurityLevel,
    rules: &'static [(u32, Rule)],
    /// The check of the baseline level that it replaces.
    replaces: &'static str,
}

const fn baseline(id: &'static str, rules: &'static [(u32, Rule)]) -> Check {
    Check { id, level: SecurityLevel::Baseline, rules, replaces: "" }
}

const fn restricted(id: &'static str, rules: &'static [(u32, Rule)], replaces: &'static str) -> Check {
    Check { id, level: SecurityLevel::Restricted, rules, replaces }
}

/// The checks, in the order in which errors name them.
static CHECKS: [Check; 19] = [
    baseline("appArmorProfile", &[(0, app_armor)]),
    baseline("capabilities_baseline", &[(0, added_capabilities)]),
    baseline("hostNamespaces", &[(0, host_namespaces)]),
    baseline("hostPathVolumes", &[(0, host_paths)]),
    baseline("hostPorts", &[(0, host_ports)]),
    baseline("hostProbesAndHostLifecycle", &[(34, probe_hosts)]),
    baseline("privileged", &[(0, privileged)]),
    baseline("procMount", &[(0, proc_mounts), (35, |pod| unless_user_namespace(pod, proc_mounts))]),
    baseline("seLinuxOptions", &[(0, |pod| se_linux(pod, 3)), (31, |pod| se_linux(pod, 4))]),
    baseline("seccompProfile_baseline", &[(0, seccomp_annotations), (19, |pod| seccomp(pod))]),
    baseline(
        "sysctls",
        &[
            (0, |pod| sysctls(pod, 5)),
            (27, |pod| sysctls(pod, 6)),
            (29, |pod| sysctls(pod, 10)),
            (32, |pod| sysctls(pod, 12)),
            (37, |pod| sysctls(pod, 14)),
        ],
    ),
    baseline("windowsHostProcess", &[(0, host_processes)]),
    restricted("allowPrivilegeEscalation", &[(8, escalation), (25, |pod| unless_windows(pod, escalation))], ""),
    restricted(
        "capabilities_restricted",
        &[(22, capabilities), (25, |pod| unless_windows(pod, capabilities))],
        "capabilities_baseline",
    ),
    restricted("procMount_restricted", &[(35, proc_mounts)], "procMount"),
    restricted("restrictedVolumes", &[(0, volumes)], "hostPathVolumes"),
    restricted("runAsNonRoot", &[(0, non_root), (35, |pod| unless_user_namespace(pod, non_root))], ""),
    restricted("runAsUser", &[(23, run_as_user), (35, |pod| unless_user_namespace(pod, run_as_user))], ""),
    restricted(
        "seccompProfile_restricted",
        &[(19, required_seccomp), (25, |pod| unless_windows(pod, required_seccomp))],
        "seccompProfile_baseline",
    ),
];

impl Check {
    /// The rule in force in a version.
    fn rule(&self, minor: u32) -> Option<Rule> {
        self.rules.iter().rev().find(|(since, _)| *since <= minor).map(|(_, rule)| *rule)
    }
}

pub fn evaluate(level: LevelVersion, pod: Pod<'_>, release: Release) -> Vec<Violation> {
    if level.level == SecurityLevel::Privileged {
        return vec![];
    }
    let newest = release.minor();
    let minor = level.version.unwrap_or(newest).min(newest);
    let in_force = || CHECKS.iter().filter(|check| check.level <= level.level && check.rule(minor).is_some());
    let checks = in_force().filter(|check| in_force().all(|other| other.replaces != check.id));
    checks.filter_map(|check| check.rule(minor)).filter_map(|rule| rule(pod)).collect()
}

/// The reasons and details of violations, for error messages.
pub fn details(violations: &[Violation]) -> String {
    let text = |violation: &Violation| match violation.detail.as_str() {
        "" => violation.reason.clone(),
        detail => format!("{} ({detail})", violation.reason),
    };
    violations.iter().map(text).collect::<Vec<_>>().join(", ")
}

pub fn reasons(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.reason.as_str()).collect::<Vec<_>>().join(", ")
}

fn violation(reason: impl Into<String>, detail: String) -> Option<Violation> {
    Some(Violation { reason: reason.into(), detail })
}

fn unless_windows(pod: Pod<'_>, rule: Rule) -> Option<Violation> {
    if pod.spec.str_at(&["os", "name"]) == "windows" { None } else { rule(pod) }
}

/// Applies a rule unless the Pod has its own user namespace, whose users are not those of the node.
fn unless_user_namespace(pod: Pod<'_>, rule: Rule) -> Option<Violation> {
    let has_user_namespace = pod.spec.get("hostUsers").and_then(Value::as_bool) == Some(false);
    if has_user_namespace { None } else { rule(pod) }
}

fn quoted<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    names.into_iter().map(|name| format!("\"{}\"", name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// `one` if `count` is 1, otherwise `several`.
fn plural<'a>(count: usize, one: &'a str, several: &'a str) -> &'a str {
    if count == 1 { one } else { several }
}

fn containers(names: &[&str]) -> String {
    format!("{} {}", plural(names.len(), "container", "containers"), quoted(names))
}

/// Names the owners that set a field: the Pod, containers, or both.
fn setters(of_pod: bool, names: &[&str]) -> Option<String> {
    let of_containers = (!names.is_empty()).then(|| containers(names));
    let setters: Vec<String> = of_pod.then(|| "pod".to_owned()).into_iter().chain(of_containers).collect();
    (!setters.is_empty()).then(|| setters.join(" and "))
}

fn is_true(owner: &Value, field: &str) -> bool {
    security(owner, field).and_then(Value::as_bool) == Some(true)
}

fn profile_type(owner: &Value, field: &str) -> Option<String> {
    Some(owner.at(&["securityContext", field])?.str_at(&["type"]).to_owned())
}

fn annotations(pod: Pod<'_>) -> impl Iterator<Item = (&str, &str)> {
    let all = pod.annotations.as_object().into_iter().flat_map(|all| all.iter());
    all.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn app_armor(pod: Pod<'_>) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let forbidden_type = |owner: &Value| {
        profile_type(owner, "appArmorProfile").filter(|kind| !["RuntimeDefault", "Localhost"].contains(&kind.as_str()))
    };
    let of_pod = forbidden_type(pod.spec);
    let violators = container_names(pod.spec, |container| forbidden_type(container).is_some());
    let values: BTreeSet<String> =
        of_pod.clone().into_iter().chain(all_containers(pod.spec).filter_map(forbidden_type)).collect();
    let allowed = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let mut annotated: Vec<String> = annotations(pod)
        .filter(|(key, value)| key.starts_with(PREFIX) && !allowed(value))
        .map(|(key, value)| format!("{key}={}", machinery::value::quote(value)))
        .collect();
    annotated.sort();
    let mut setters: Vec<String> = setters(of_pod.is_some(), &violators).into_iter().collect();
    if !annotated.is_empty() {
        setters.push(plural(annotated.len(), "annotation", "annotations").to_owned());
    }
    if setters.is_empty() {
        return None;
    }
    let values: Vec<String> = values.into_iter().chain(annotated).collect();
    let reason = plural(values.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    violation(reason, format!("{} must not set AppArmor profile type to {}", setters.join(" and "), quoted(values)))
}

/// The capabilities that a container adds or drops.
fn listed<'a>(container: &'a Value, list: &str) -> impl Iterator<Item = &'a str> {
    container.texts_at(&["securityContext", "capabilities", list])
}

/// Names the containers that add capabilities other than those allowed, and these capabilities.
fn adding(pod: Pod<'_>, allowed: &[&str]) -> Option<String> {
    let forbidden = |name: &&str| !allowed.contains(name);
    let violators = container_names(pod.spec, |container| listed(container, "add").any(|name| forbidden(&name)));
    let added: BTreeSet<&str> =
        all_containers(pod.spec).flat_map(|container| listed(container, "add")).filter(forbidden).collect();
    if violators.is_empty() {
        return None;
    }
    let violators = containers(&violators);
    Some(format!("{violators} must not include {} in securityContext.capabilities.add", quoted(added)))
}

fn added_capabilities(pod: Pod<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 13] = [
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
        "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    ];
    violation("non-default capabilities", adding(pod, &ALLOWED)?)
}

fn capabilities(pod: Pod<'_>) -> Option<Violation> {
    let without_drop_all = container_names(pod.spec, |container| !listed(container, "drop").any(|name| name == "ALL"));
    let drop_detail = (!without_drop_all.is_empty())
        .then(|| format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&without_drop_all)));
    let details: Vec<String> = drop_detail.into_iter().chain(adding(pod, &["NET_BIND_SERVICE"])).collect();
    if details.is_empty() { None } else { violation("unrestricted capabilities", details.join("; ")) }
}

fn host_namespaces(pod: Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared = shared.filter(|field| pod.spec.is_true_at(&[field]));
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    if shared.is_empty() { None } else { violation("host namespaces", shared.join(", ")) }
}

fn host_paths(pod: Pod<'_>) -> Option<Violation> {
    let volumes = pod.spec.items_at(&["volumes"]).iter().filter(|volume| volume.get("hostPath").is_some());
    let names: Vec<&str> = volumes.map(name).collect();
    if names.is_empty() {
        return None;
    }
    violation("hostPath volumes", format!("{} {}", plural(names.len(), "volume", "volumes"), quoted(names)))
}

fn host_ports(pod: Pod<'_>) -> Option<Violation> {
    let ports = |container: &Value| -> Vec<i64> {
        let ports =
            container.items_at(&["ports"]).iter().filter_map(|port| port.get("hostPort").and_then(Value::as_int));
        ports.filter(|port| *port != 0).collect()
    };
    let violators = container_names(pod.spec, |container| !ports(container).is_empty());
    let used: BTreeSet<String> = all_containers(pod.spec).flat_map(ports).map(|port| port.to_string()).collect();
    if violators.is_empty() {
        return None;
    }
    let (verb, noun) = (plural(violators.len(), "uses", "use"), plural(used.len(), "hostPort", "hostPorts"));
    let used = used.into_iter().collect::<Vec<_>>().join(", ");
    violation("hostPort", format!("{} {verb} {noun} {used}", containers(&violators)))
}

/// The hosts that the probes and hooks of a container name.
fn hosts(container: &Value) -> Vec<&str> {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| container.get(probe));
    let hooks = ["postStart", "preStop"].map(|hook| container.at(&["lifecycle", hook]));
    let handlers = probes.into_iter().chain(hooks).flatten();
    let hosts = handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|action| handler.str_at(&[action, "host"])));
    hosts.filter(|host| !host.is_empty()).collect()
}

fn probe_hosts(pod: Pod<'_>) -> Option<Violation> {
    let violators: BTreeSet<&str> =
        container_names(pod.spec, |container| !hosts(container).is_empty()).into_iter().collect();
    let used: BTreeSet<&str> = all_containers(pod.spec).flat_map(hosts).collect();
    if violators.is_empty() {
        return None;
    }
    let violators: Vec<&str> = violators.into_iter().collect();
    let noun = plural(used.len(), "probe or lifecycle host", "probe or lifecycle hosts");
    let detail =
        format!("{} {} {noun} {}", containers(&violators), plural(violators.len(), "uses", "use"), quoted(used));
    violation("probe or lifecycle host", detail)
}

fn privileged(pod: Pod<'_>) -> Option<Violation> {
    let violators = container_names(pod.spec, |container| is_true(container, "privileged"));
    if violators.is_empty() {
        return None;
    }
    violation("privileged", format!("{} must not set securityContext.privileged=true", containers(&violators)))
}

fn proc_mounts(pod: Pod<'_>) -> Option<Violation> {
    let mount = |container: &Value| -> Option<String> {
        let mount = security(container, "procMount").and_then(Value::as_str)?;
        (mount != "Default").then(|| mount.to_owned())
    };
    let violators = container_names(pod.spec, |container| mount(container).is_some());
    let mounts: BTreeSet<String> = all_containers(pod.spec).filter_map(mount).collect();
    if violators.is_empty() {
        return None;
    }
    violation(
        "procMount",
        format!("{} must not set securityContext.procMount to {}", containers(&violators), quoted(mounts)),
    )
}

/// Checks that SELinux options have one of the first `allowed` types, and neither a user nor a role.
fn se_linux(pod: Pod<'_>, allowed: usize) -> Option<Violation> {
    const TYPES: [&str; 4] = ["container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    let field = |owner: &Value, field: &str| owner.str_at(&["securityContext", "seLinuxOptions", field]).to_owned();
    let kind = |owner: &Value| -> Option<String> {
        let kind = field(owner, "type");
        (!kind.is_empty() && !TYPES[..allowed].contains(&kind.as_str())).then_some(kind)
    };
    let sets = |owner: &Value, name: &str| !field(owner, name).is_empty();
    let is_bad = |owner: &Value| kind(owner).is_some() || sets(owner, "user") || sets(owner, "role");
    let setters = setters(is_bad(pod.spec), &container_names(pod.spec, is_bad))?;
    let owners = || std::iter::once(pod.spec).chain(all_containers(pod.spec));
    let kinds: BTreeSet<String> = owners().filter_map(kind).collect();
    let mut problems = vec![];
    if !kinds.is_empty() {
        problems.push(format!("{} {}", plural(kinds.len(), "type", "types"), quoted(kinds)));
    }
    for name in ["user", "role"] {
        if owners().any(|owner| sets(owner, name)) {
            problems.push(format!("{name} may not be set"));
        }
    }
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {}", problems.join("; "));
    violation("seLinuxOptions", detail)
}

fn seccomp_annotations(pod: Pod<'_>) -> Option<Violation> {
    const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    let allowed =
        |value: &str| ["runtime/default", "docker/default"].contains(&value) || value.starts_with("localhost/");
    let is_relevant = |key: &str| {
        key == OF_POD
            || key.strip_prefix(OF_CONTAINER).is_some_and(|container_name| {
                all_containers(pod.spec).any(|container| name(container) == container_name)
            })
    };
    let forbidden: BTreeSet<String> = annotations(pod)
        .filter(|(key, value)| is_relevant(key) && !allowed(value))
        .map(|(key, value)| format!("{key}={}", machinery::value::quote(value)))
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    let noun = plural(forbidden.len(), "annotation", "annotations");
    let forbidden = forbidden.into_iter().collect::<Vec<_>>().join(", ");
    violation(SECCOMP, format!("forbidden {noun} {forbidden}"))
}

fn seccomp_type(owner: &Value) -> Option<String> {
    profile_type(owner, "seccompProfile")
}

/// Checks that all seccomp profiles are allowed.
fn seccomp(pod: Pod<'_>) -> Option<Violation> {
    let forbidden_type =
        |owner: &Value| seccomp_type(owner).filter(|kind| !["Localhost", "RuntimeDefault"].contains(&kind.as_str()));
    let pod_type = forbidden_type(pod.spec);
    let violators = container_names(pod.spec, |container| forbidden_type(container).is_some());
    let setters = setters(pod_type.is_some(), &violators)?;
    let container_types = all_containers(pod.spec).filter_map(forbidden_type);
    let types: BTreeSet<String> = pod_type.into_iter().chain(container_types).collect();
    violation(SECCOMP, format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(types)))
}

/// Checks that all seccomp profiles are allowed, and that every container has one.
fn required_seccomp(pod: Pod<'_>) -> Option<Violation> {
    let forbidden = seccomp(pod);
    let missing = container_names(pod.spec, |container| seccomp_type(container).is_none());
    if forbidden.is_some() || seccomp_type(pod.spec).is_some() || missing.is_empty() {
        return forbidden;
    }
    let must = "must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
    violation(SECCOMP, format!("pod or {} {must}", containers(&missing)))
}

/// Checks that only the first `allowed` safe sysctls are set: they are in the order in which versions have added them.
fn sysctls(pod: Pod<'_>, allowed: usize) -> Option<Violation> {
    const SAFE: [&str; 14] = [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net.ipv4.tcp_slow_start_after_idle",
        "net.ipv4.tcp_notsent_lowat",
    ];
    let set = pod.spec.items_at(&["securityContext", "sysctls"]).iter().map(name);
    let forbidden: Vec<&str> = set.filter(|name| !SAFE[..allowed].contains(name)).collect();
    if forbidden.is_empty() { None } else { violation("forbidden sysctls", forbidden.join(", ")) }
}

fn host_processes(pod: Pod<'_>) -> Option<Violation> {
    let is_host = |owner: &Value| owner.is_true_at(&["securityContext", "windowsOptions", "hostProcess"]);
    let setters = setters(is_host(pod.spec), &container_names(pod.spec, is_host))?;
    violation("hostProcess", format!("{setters} must not set securityContext.windowsOptions.hostProcess=true"))
}

fn escalation(pod: Pod<'_>) -> Option<Violation> {
    let may_escalate =
        |container: &Value| security(container, "allowPrivilegeEscalation").and_then(Value::as_bool) != Some(false);
    let violators = container_names(pod.spec, may_escalate);
    if violators.is_empty() {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&violators));
    violation("allowPrivilegeEscalation != false", detail)
}

fn volumes(pod: Pod<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
        "secret",
    ];
    let kind = |volume: &Value| -> String {
        let fields = volume.as_object().into_iter().flat_map(|fields| fields.keys());
        fields.map(|key| key.as_str()).find(|key| *key != "name").unwrap_or("unknown").to_owned()
    };
    let violators = pod.spec.items_at(&["volumes"]).iter();
    let violators: Vec<&Value> =
        violators.filter(|volume| ALLOWED.iter().all(|field| volume.get(field).is_none())).collect();
    if violators.is_empty() {
        return None;
    }
    let kinds: BTreeSet<String> = violators.iter().map(|volume| kind(volume)).collect();
    let detail = format!(
        "{} {} {} {} {}",
        plural(violators.len(), "volume", "volumes"),
        quoted(violators.iter().map(|volume| name(volume))),
        plural(violators.len(), "uses", "use"),
        plural(kinds.len(), "restricted volume type", "restricted volume types"),
        quoted(&kinds)
    );
    violation("restricted volume types", detail)
}

fn non_root(pod: Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    let run_as_non_root = |owner: &Value| security(owner, "runAsNonRoot").and_then(Value::as_bool);
    let violators = container_names(pod.spec, |container| run_as_non_root(container) == Some(false));
    if let Some(setters) = setters(run_as_non_root(pod.spec) == Some(false), &violators) {
        return violation(REASON, format!("{setters} must not set securityContext.runAsNonRoot=false"));
    }
    let without_value = container_names(pod.spec, |container| run_as_non_root(container).is_none());
    if run_as_non_root(pod.spec) == Some(true) || without_value.is_empty() {
        return None;
    }
    violation(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&without_value)))
}

fn run_as_user(pod: Pod<'_>) -> Option<Violation> {
    let is_root = |owner: &Value| security(owner, "runAsUser").and_then(Value::as_int) == Some(0);
    let setters = setters(is_root(pod.spec), &container_names(pod.spec, is_root))?;
    violation("runAsUser=0", format!("{setters} must not set runAsUser=0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    fn check(level: SecurityLevel, version: Option<u32>, spec: Value) -> String {
        let pod = json!({"metadata": {}, "spec": spec});
        details(&evaluate(LevelVersion { level, version }, Pod::of(&pod), Release::NEWEST))
    }

    fn conforming() -> Value {
        json!({"name": "a", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"}
        }})
    }

    #[test]
    fn checks_are_in_order_of_their_names() {
        let ids: Vec<&str> = CHECKS.iter().map(|check| check.id).collect();
        let of = |level: SecurityLevel| CHECKS.iter().filter(move |check| check.level == level).map(|check| check.id);
        for level in [SecurityLevel::Baseline, SecurityLevel::Restricted] {
            assert!(of(level).is_sorted(), "{ids:?}");
        }
        assert!(CHECKS.iter().all(|check| check.replaces.is_empty() || ids.contains(&check.replaces)));
    }

    #[test]
    fn pods_are_checked_by_level_and_version() {
        let plain = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        let good = json!({"containers": (Value::Array(vec![conforming()]))});
        let host = json!({"hostNetwork": true, "hostPID": true, "containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 443}]}]});
        let mount = json!({"containers": [{"name": "a", "securityContext": {"procMount": "Unmasked"}}]});
        let mut relaxed = mount.clone();
        relaxed.set_at(&["hostUsers"], Value::from(false));
        let all = "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers \"a\", \"b\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers \"a\", \"b\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";
        let proc = "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")";
        let cases = [
            (SecurityLevel::Privileged, None, host.clone(), ""),
            (SecurityLevel::Baseline, None, plain.clone(), ""),
            (
                SecurityLevel::Baseline,
                None,
                host,
                "host namespaces (hostNetwork=true, hostPID=true), hostPort (container \"a\" uses hostPorts 443, 80)",
            ),
            (SecurityLevel::Restricted, None, plain.clone(), all),
            (
                SecurityLevel::Restricted,
                Some(7),
                plain,
                "runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true)",
            ),
            (SecurityLevel::Restricted, None, good, ""),
            (SecurityLevel::Baseline, None, mount, proc),
            (SecurityLevel::Baseline, None, relaxed.clone(), ""),
            (SecurityLevel::Baseline, Some(34), relaxed, proc),
        ];
        for (level, version, spec, want) in cases {
            assert_eq!(check(level, version, spec.clone()), want, "{level:?} {}", spec.to_json());
        }
    }

    #[test]
    fn one_profile_of_the_pod_is_enough() {
        let mut spec = json!({"securityContext": {"seccompProfile": {"type": "Localhost"}, "runAsNonRoot": true}});
        let mut container = conforming();
        container.remove_at(&["securityContext", "seccompProfile"]);
        container.remove_at(&["securityContext", "runAsNonRoot"]);
        spec.set_at(&["containers"], Value::Array(vec![container]));
        assert_eq!(check(SecurityLevel::Restricted, None, spec), "");
    }
}
