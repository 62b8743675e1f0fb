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

/// The field of seccomp profiles, and the reason of violations of the rules for them.
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

fn joined(texts: impl IntoIterator<Item = String>) -> String {
    texts.into_iter().collect::<Vec<_>>().join(", ")
}

/// The plural of a noun, unless `count` is 1.
fn noun(count: usize, one: &str) -> String {
    format!("{one}{}", if count == 1 { "" } else { "s" })
}

/// The verb of `count` subjects.
fn uses(count: usize) -> &'static str {
    if count == 1 { "uses" } else { "use" }
}

fn containers(names: &[&str]) -> String {
    format!("{} {}", noun(names.len(), "container"), quoted(names))
}

/// Names the containers for which a predicate holds; `None` without such containers.
fn violators<'p>(pod: Pod<'p>, predicate: impl Fn(&'p Value) -> bool) -> Option<String> {
    let names = container_names(pod.spec, predicate);
    (!names.is_empty()).then(|| containers(&names))
}

/// Finds the containers with values that a rule forbids. Returns their names and these values; `None` if there are none.
fn forbidden<'p, T: Ord, I: IntoIterator<Item = T>>(
    pod: Pod<'p>,
    values: impl Fn(&'p Value) -> I,
) -> Option<(Vec<&'p str>, BTreeSet<T>)> {
    let names = container_names(pod.spec, |container| values(container).into_iter().next().is_some());
    (!names.is_empty()).then(|| (names, all_containers(pod.spec).flat_map(values).collect()))
}

/// Names the owners that set a field: the Pod, containers, or both.
fn setters<'p>(pod: Pod<'p>, sets: impl Fn(&'p Value) -> bool) -> Option<String> {
    let of_pod = sets(pod.spec).then(|| "pod".to_owned());
    let setters: Vec<String> = of_pod.into_iter().chain(violators(pod, sets)).collect();
    (!setters.is_empty()).then(|| setters.join(" and "))
}

/// The Pod and its containers, each of which may have a security context.
fn owners(pod: Pod<'_>) -> impl Iterator<Item = &Value> {
    std::iter::once(pod.spec).chain(all_containers(pod.spec))
}

fn flag(owner: &Value, field: &str) -> Option<bool> {
    security(owner, field).and_then(Value::as_bool)
}

fn profile_type<'p>(owner: &'p Value, field: &str) -> Option<&'p str> {
    Some(owner.at(&["securityContext", field])?.str_at(&["type"]))
}

/// The type of a profile, unless the baseline level allows it.
fn forbidden_profile<'p>(owner: &'p Value, field: &str) -> Option<&'p str> {
    profile_type(owner, field).filter(|kind| !["RuntimeDefault", "Localhost"].contains(kind))
}

/// The annotations with relevant keys and forbidden values, in the order of their texts.
fn annotated(pod: Pod<'_>, is_relevant: impl Fn(&str) -> bool, is_allowed: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let all = pod.annotations.as_object().into_iter().flat_map(|all| all.iter());
    all.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .filter(|(key, value)| is_relevant(key) && !is_allowed(value))
        .map(|(key, value)| format!("{key}={}", machinery::value::quote(value)))
        .collect()
}

fn app_armor(pod: Pod<'_>) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let forbidden_type = |owner| forbidden_profile(owner, "appArmorProfile");
    let types: BTreeSet<&str> = owners(pod).filter_map(forbidden_type).collect();
    let is_allowed = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotated = annotated(pod, |key| key.starts_with(PREFIX), is_allowed);
    let setters = setters(pod, |owner| forbidden_type(owner).is_some()).into_iter();
    let annotations = (!annotated.is_empty()).then(|| noun(annotated.len(), "annotation"));
    let setters: Vec<String> = setters.chain(annotations).collect();
    if setters.is_empty() {
        return None;
    }
    let values: Vec<&str> = types.into_iter().chain(annotated.iter().map(String::as_str)).collect();
    let reason = noun(values.len(), "forbidden AppArmor profile");
    violation(reason, format!("{} must not set AppArmor profile type to {}", setters.join(" and "), quoted(values)))
}

/// The capabilities that a container adds or drops.
fn listed<'a>(container: &'a Value, list: &str) -> impl Iterator<Item = &'a str> {
    container.texts_at(&["securityContext", "capabilities", list])
}

/// Names the containers that add capabilities other than those allowed, and these capabilities.
fn adding(pod: Pod<'_>, allowed: &[&str]) -> Option<String> {
    let (violators, added) =
        forbidden(pod, |container| listed(container, "add").filter(|name| !allowed.contains(name)))?;
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
    let without_drop_all = violators(pod, |container| !listed(container, "drop").any(|name| name == "ALL"));
    let drop_detail =
        without_drop_all.map(|containers| format!("{containers} must set securityContext.capabilities.drop=[\"ALL\"]"));
    let details: Vec<String> = drop_detail.into_iter().chain(adding(pod, &["NET_BIND_SERVICE"])).collect();
    if details.is_empty() { None } else { violation("unrestricted capabilities", details.join("; ")) }
}

fn host_namespaces(pod: Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared = joined(shared.filter(|field| pod.spec.is_true_at(&[field])).map(|field| format!("{field}=true")));
    if shared.is_empty() { None } else { violation("host namespaces", shared) }
}

fn host_paths(pod: Pod<'_>) -> Option<Violation> {
    let volumes = pod.spec.items_at(&["volumes"]).iter().filter(|volume| volume.get("hostPath").is_some());
    let names: Vec<&str> = volumes.map(name).collect();
    if names.is_empty() {
        return None;
    }
    violation("hostPath volumes", format!("{} {}", noun(names.len(), "volume"), quoted(names)))
}

fn host_ports(pod: Pod<'_>) -> Option<Violation> {
    let (violators, used) = forbidden(pod, |container| {
        let ports = container.items_at(&["ports"]).iter();
        let ports = ports.filter_map(|port| port.get("hostPort").and_then(Value::as_int));
        ports.filter(|port| *port != 0).map(|port| port.to_string())
    })?;
    let (verb, noun) = (uses(violators.len()), noun(used.len(), "hostPort"));
    violation("hostPort", format!("{} {verb} {noun} {}", containers(&violators), joined(used)))
}

/// The hosts that the probes and hooks of a container name.
fn hosts(container: &Value) -> impl Iterator<Item = &str> {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| container.get(probe));
    let hooks = ["postStart", "preStop"].map(|hook| container.at(&["lifecycle", hook]));
    let handlers = probes.into_iter().chain(hooks).flatten();
    let hosts = handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|action| handler.str_at(&[action, "host"])));
    hosts.filter(|host| !host.is_empty())
}

fn probe_hosts(pod: Pod<'_>) -> Option<Violation> {
    const REASON: &str = "probe or lifecycle host";
    let (mut violators, used) = forbidden(pod, hosts)?;
    violators.sort_unstable();
    violators.dedup();
    let (verb, noun) = (uses(violators.len()), noun(used.len(), REASON));
    violation(REASON, format!("{} {verb} {noun} {}", containers(&violators), quoted(used)))
}

fn privileged(pod: Pod<'_>) -> Option<Violation> {
    let violators = violators(pod, |container| flag(container, "privileged") == Some(true))?;
    violation("privileged", format!("{violators} must not set securityContext.privileged=true"))
}

fn proc_mounts(pod: Pod<'_>) -> Option<Violation> {
    let (violators, mounts) = forbidden(pod, |container| {
        security(container, "procMount").and_then(Value::as_str).filter(|mount| *mount != "Default")
    })?;
    let violators = containers(&violators);
    violation("procMount", format!("{violators} must not set securityContext.procMount to {}", quoted(mounts)))
}

/// Checks that SELinux options have one of the first `allowed` types, and neither a user nor a role.
fn se_linux(pod: Pod<'_>, allowed: usize) -> Option<Violation> {
    const TYPES: [&str; 4] = ["container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    fn option<'p>(owner: &'p Value, field: &str) -> Option<&'p str> {
        Some(owner.str_at(&["securityContext", "seLinuxOptions", field])).filter(|text| !text.is_empty())
    }
    let kind = |owner| option(owner, "type").filter(|kind| !TYPES[..allowed].contains(kind));
    let is_bad = |owner| kind(owner).or(option(owner, "user")).or(option(owner, "role")).is_some();
    let setters = setters(pod, is_bad)?;
    let kinds: BTreeSet<&str> = owners(pod).filter_map(kind).collect();
    let mut problems = vec![];
    if !kinds.is_empty() {
        problems.push(format!("{} {}", noun(kinds.len(), "type"), quoted(kinds)));
    }
    for name in ["user", "role"] {
        if owners(pod).any(|owner| option(owner, name).is_some()) {
            problems.push(format!("{name} may not be set"));
        }
    }
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {}", problems.join("; "));
    violation("seLinuxOptions", detail)
}

fn seccomp_annotations(pod: Pod<'_>) -> Option<Violation> {
    const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    let is_allowed =
        |value: &str| ["runtime/default", "docker/default"].contains(&value) || value.starts_with("localhost/");
    let is_relevant = |key: &str| {
        key == OF_POD
            || key.strip_prefix(OF_CONTAINER).is_some_and(|container_name| {
                all_containers(pod.spec).any(|container| name(container) == container_name)
            })
    };
    let forbidden = annotated(pod, is_relevant, is_allowed);
    if forbidden.is_empty() {
        return None;
    }
    violation(SECCOMP, format!("forbidden {} {}", noun(forbidden.len(), "annotation"), joined(forbidden)))
}

/// Checks that all seccomp profiles are allowed.
fn seccomp(pod: Pod<'_>) -> Option<Violation> {
    let forbidden_type = |owner| forbidden_profile(owner, SECCOMP);
    let setters = setters(pod, |owner| forbidden_type(owner).is_some())?;
    let types: BTreeSet<&str> = owners(pod).filter_map(forbidden_type).collect();
    violation(SECCOMP, format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(types)))
}

/// Checks that all seccomp profiles are allowed, and that every container has one.
fn required_seccomp(pod: Pod<'_>) -> Option<Violation> {
    let is_missing = |owner: &Value| profile_type(owner, SECCOMP).is_none();
    if let Some(forbidden) = seccomp(pod) {
        return Some(forbidden);
    }
    let missing = violators(pod, is_missing).filter(|_| is_missing(pod.spec))?;
    let must = "must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
    violation(SECCOMP, format!("pod or {missing} {must}"))
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
    let setters = setters(pod, |owner| owner.is_true_at(&["securityContext", "windowsOptions", "hostProcess"]))?;
    violation("hostProcess", format!("{setters} must not set securityContext.windowsOptions.hostProcess=true"))
}

fn escalation(pod: Pod<'_>) -> Option<Violation> {
    let violators = violators(pod, |container| flag(container, "allowPrivilegeEscalation") != Some(false))?;
    let detail = format!("{violators} must set securityContext.allowPrivilegeEscalation=false");
    violation("allowPrivilegeEscalation != false", detail)
}

fn volumes(pod: Pod<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
        "secret",
    ];
    fn kind(volume: &Value) -> &str {
        let mut fields = volume.as_object().into_iter().flat_map(|fields| fields.keys()).map(|key| key.as_str());
        fields.find(|key| *key != "name").unwrap_or("unknown")
    }
    let violators = pod.spec.items_at(&["volumes"]).iter();
    let violators: Vec<&Value> =
        violators.filter(|volume| ALLOWED.iter().all(|field| volume.get(field).is_none())).collect();
    if violators.is_empty() {
        return None;
    }
    let kinds: BTreeSet<&str> = violators.iter().map(|volume| kind(volume)).collect();
    let detail = format!(
        "{} {} {} {} {}",
        noun(violators.len(), "volume"),
        quoted(violators.iter().map(|volume| name(volume))),
        uses(violators.len()),
        noun(kinds.len(), "restricted volume type"),
        quoted(&kinds)
    );
    violation("restricted volume types", detail)
}

fn non_root(pod: Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if let Some(setters) = setters(pod, |owner| flag(owner, "runAsNonRoot") == Some(false)) {
        return violation(REASON, format!("{setters} must not set securityContext.runAsNonRoot=false"));
    }
    let is_missing = |owner: &Value| flag(owner, "runAsNonRoot").is_none();
    let without_value = violators(pod, is_missing).filter(|_| is_missing(pod.spec))?;
    violation(REASON, format!("pod or {without_value} must set securityContext.runAsNonRoot=true"))
}

fn run_as_user(pod: Pod<'_>) -> Option<Violation> {
    let setters = setters(pod, |owner| security(owner, "runAsUser").and_then(Value::as_int) == Some(0))?;
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
