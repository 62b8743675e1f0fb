//! Rules of the spec of a Pod that are neither defaults nor simple: of Pods themselves and of their templates.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Map, Value, names};

use super::checks::{invalid_each, is_set, items, list, operator_errors, shown_invalid, text};
use super::{pod_volumes, rule_checks};

type Errors = Vec<FieldError>;

fn truth(object: &Value, path: &[&str]) -> bool {
    object.at(path).and_then(Value::as_bool).unwrap_or_default()
}

/// Validates the spec of a Pod or of a template of Pods.
pub fn validate_spec(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let volumes = pod_volumes::valid_names(spec, path, errors);
    let claims: Vec<&str> = list(spec, "resourceClaims").iter().map(|claim| text(claim, "name")).collect();
    let pod = Pod { spec, volumes, claims };
    pod.containers(path, errors);
    pod.restart_policy(path, errors);
    pod.host(path, errors);
    pod.names(path, errors);
    pod.dns(path, errors);
    pod.claims(path, errors);
    if let Some(system) = spec.get("os").map(|os| text(os, "name")).filter(|name| !name.is_empty()) {
        const SYSTEMS: [&str; 2] = ["linux", "windows"];
        if !SYSTEMS.contains(&system) {
            errors.push(FieldError::not_supported(&path.child("os"), &Value::from(system), &SYSTEMS));
        }
    }
    security(spec, path, errors);
    let overhead = spec.get("overhead").and_then(Value::as_object);
    for (name, amount) in overhead.into_iter().flat_map(Map::iter) {
        // upstream shows the overhead as if it were limits
        let path = path.child("overhead").child("limits").key(name);
        container_resource(name, &path, errors);
        if amount.as_str().is_some_and(|amount| amount.starts_with('-')) {
            errors.push(FieldError::invalid(&path, amount, "must be greater than or equal to 0"));
        }
    }
    for (path, toleration) in items(spec, "tolerations", path) {
        validate_toleration(toleration, &path, errors);
    }
    affinity(spec, path, errors);
    spread(spec, path, errors);
}

struct Pod<'a> {
    spec: &'a Value,
    /// The names of the volumes.
    volumes: HashSet<&'a str>,
    claims: Vec<&'a str>,
}

impl<'a> Pod<'a> {
    fn containers(&self, path: &FieldPath, errors: &mut Errors) {
        if list(self.spec, "containers").is_empty() {
            errors.push(FieldError::required(&path.child("containers"), ""));
        }
        let mut known: HashSet<&str> = HashSet::new();
        let mut ports = HashSet::new();
        for kind in ["containers", "initContainers", "ephemeralContainers"] {
            for (path, container) in items(self.spec, kind, path) {
                self.container_name(container, &path, &mut known, errors);
                self.container(container, &path, errors);
                match kind {
                    "initContainers" => init_container(container, &path, errors),
                    _ => lifecycle(container, &path, errors),
                }
                if kind == "containers" {
                    host_ports(container, &path, &mut ports, errors);
                }
            }
        }
    }

    fn container_name(
        &self,
        container: &'a Value,
        path: &FieldPath,
        known: &mut HashSet<&'a str>,
        errors: &mut Errors,
    ) {
        let name = text(container, "name");
        if name.is_empty() {
            return errors.push(FieldError::required(&path.child("name"), ""));
        }
        invalid_each(&path.child("name"), name, names::dns1123_label(name), errors);
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
        }
    }

    fn container(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        let image = text(container, "image");
        if image.is_empty() {
            errors.push(FieldError::required(&path.child("image"), ""));
        } else if image.trim() != image {
            let why = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(&path.child("image"), &Value::from(image), why));
        }
        if text(container, "terminationMessagePolicy").is_empty() {
            errors.push(FieldError::required(&path.child("terminationMessagePolicy"), ""));
        }
        for (path, variable) in items(container, "env", path) {
            environment(variable, &path, errors);
            let reference = variable.at(&["valueFrom", "fileKeyRef"]).filter(|reference| !reference.is_null());
            if let Some(reference) = reference
                && !self.volumes.contains(text(reference, "volumeName"))
            {
                let (path, name) =
                    (path.child("valueFrom").child("fileKeyRef").child("volumeName"), text(reference, "volumeName"));
                errors.push(FieldError::not_found(&path, &Value::from(name)));
            }
        }
        let sources = path.child("envFrom");
        list(container, "envFrom").iter().for_each(|source| environment_source(source, &sources, errors));
        self.mounts(container, path, errors);
        ports(container, path, errors);
        resources(container, path, &self.claims, errors);
        self.restart_rules(container, path, errors);
    }

    fn restart_rules(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        if !list(container, "restartPolicyRules").is_empty() && !is_set(container, "restartPolicy") {
            let why = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(&path.child("restartPolicy"), why));
        }
        if !path.as_str().contains("initContainers") || is_set(container, "restartPolicy") {
            restart_rules(container, path, errors);
        }
        let pod_policy = text(self.spec, "restartPolicy");
        let (path, mut known) = (path.child("resizePolicy"), HashSet::new());
        for policy in list(container, "resizePolicy") {
            let (resource, given) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
            if !known.insert(resource) {
                errors.push(FieldError::duplicate(&path, &Value::from(resource)));
            }
            for (value, choices) in [(resource, ["cpu", "memory"]), (given, ["NotRequired", "RestartContainer"])] {
                if value.is_empty() {
                    errors.push(FieldError::required(&path, ""));
                } else if !choices.contains(&value) {
                    errors.push(FieldError::not_supported(&path, &Value::from(value), &choices));
                }
            }
            if pod_policy == "Never" && !given.is_empty() && given != "NotRequired" {
                let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
                errors.push(FieldError::invalid(&path, &Value::from(given), why));
            }
        }
    }

    fn mounts(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        let mut places = HashSet::new();
        for (path, mount) in items(container, "volumeMounts", path) {
            let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), ""));
            }
            if !self.volumes.contains(name) {
                errors.push(FieldError::not_found(&path.child("name"), &Value::from(name)));
            }
            mount_modes(mount, container, &path, errors);
            if !place.is_empty() && !places.insert(place) {
                let why = "must be unique";
                errors.push(FieldError::invalid(&path.child("mountPath"), &Value::from(place), why));
            }
        }
        for (path, device) in items(container, "volumeDevices", path) {
            let name = text(device, "name");
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), ""));
            }
            if !self.volumes.contains(name) {
                errors.push(FieldError::not_found(&path.child("name"), &Value::from(name)));
            }
        }
    }

    fn restart_policy(&self, path: &FieldPath, errors: &mut Errors) {
        let policy = text(self.spec, "restartPolicy");
        if policy.is_empty() {
            errors.push(FieldError::required(&path.child("restartPolicy"), ""));
        }
        if text(self.spec, "dnsPolicy").is_empty() {
            errors.push(FieldError::required(&path.child("dnsPolicy"), ""));
        }
    }

    fn host(&self, path: &FieldPath, errors: &mut Errors) {
        if truth(self.spec, &["hostPID"]) && truth(self.spec, &["shareProcessNamespace"]) {
            let why = "ShareProcessNamespace and HostPID cannot both be enabled";
            errors.push(FieldError::invalid(&path.child("shareProcessNamespace"), &Value::Bool(true), why));
        }
    }

    fn names(&self, path: &FieldPath, errors: &mut Errors) {
        let mut known = HashSet::new();
        for (path, gate) in items(self.spec, "schedulingGates", path) {
            let name = text(gate, "name");
            if !known.insert(name) {
                errors.push(FieldError::duplicate(&path, &Value::from(name)));
            }
        }
    }

    /// Each ResourceClaim is named, or made from a template.
    fn claims(&self, path: &FieldPath, errors: &mut Errors) {
        let mut known = HashSet::new();
        for (path, claim) in items(self.spec, "resourceClaims", path) {
            let name = text(claim, "name");
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), ""));
            } else if !known.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
            } else {
                invalid_each(&path.child("name"), name, names::dns1123_label(name), errors);
            }
            const SOURCES: [&str; 2] = ["resourceClaimName", "resourceClaimTemplateName"];
            let why = match SOURCES.iter().filter(|source| is_set(claim, source)).count() {
                0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                1 => "",
                _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            };
            if !why.is_empty() {
                errors.push(shown_invalid(&path, claim, "core.PodResourceClaim", why));
            }
            for source in SOURCES.into_iter().filter(|source| is_set(claim, source)) {
                let name = text(claim, source);
                invalid_each(&path.child(source), name, names::dns1123_subdomain(name), errors);
            }
        }
    }

    fn dns(&self, path: &FieldPath, errors: &mut Errors) {
        let (policy, path) = (text(self.spec, "dnsPolicy"), path.child("dnsConfig"));
        let empty = Value::object();
        let config = self.spec.get("dnsConfig").unwrap_or(&empty);
        if policy == "None" {
            if !is_set(self.spec, "dnsConfig") {
                let why = "must provide `dnsConfig` when `dnsPolicy` is None";
                errors.push(FieldError::required(&path, why));
            } else if list(config, "nameservers").is_empty() {
                let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
                errors.push(FieldError::required(&path.child("nameservers"), why));
            }
        }
        const SERVERS_MAX: usize = 3;
        if list(config, "nameservers").len() > SERVERS_MAX {
            let (given, why) =
                (config.get("nameservers").cloned().unwrap_or_default(), "must not have more than 3 nameservers");
            errors.push(FieldError::invalid(&path.child("nameservers"), &given, why));
        }
        for (path, option) in items(config, "options", &path) {
            if text(option, "name").is_empty() {
                errors.push(FieldError::required(&path, "must not be empty"));
            }
        }
    }
}

/// How mounts are seen outside of a container, and whether they are read-only below. Upstream leaves out their index.
fn mount_modes(mount: &Value, container: &Value, path: &FieldPath, errors: &mut Errors) {
    let path = FieldPath::new(path.as_str().rsplit_once('[').map_or(path.as_str(), |(list, _)| list));
    if text(mount, "mountPropagation") == "Bidirectional" && !truth(container, &["securityContext", "privileged"]) {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(&path.child("mountPropagation"), why));
    }
    const MODES: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];
    let (mode, path) = (text(mount, "recursiveReadOnly"), path.child("recursiveReadOnly"));
    if !is_set(mount, "recursiveReadOnly") {
        return;
    }
    if !MODES.contains(&mode) {
        return errors.push(FieldError::not_supported(&path, &Value::from(mode), &MODES));
    }
    if mode == "Disabled" {
        return;
    }
    if !truth(mount, &["readOnly"]) {
        let why = "may only be specified when readOnly is true";
        errors.push(FieldError::forbidden(&path, why));
    }
    if !["", "None"].contains(&text(mount, "mountPropagation")) {
        let why = "may only be specified when mountPropagation is None or not specified";
        errors.push(FieldError::forbidden(&path, why));
    }
}

fn restart_rules(container: &Value, path: &FieldPath, errors: &mut Errors) {
    const ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
    for (path, rule) in items(container, "restartPolicyRules", path) {
        let action = text(rule, "action");
        if action.is_empty() {
            errors.push(FieldError::required(&path.child("action"), ""));
        } else if !ACTIONS.contains(&action) {
            errors.push(FieldError::not_supported(&path.child("action"), &Value::from(action), &ACTIONS));
        }
        if !is_set(rule, "exitCodes") {
            errors.push(FieldError::required(&path.child("exitCodes"), "must be specified"));
        }
    }
}

const NO_SIDECAR: &str = "may not be set for init containers without restartPolicy=Always";

/// Drops the errors behind the first `own` that lie within probes which init containers may not have.
pub fn drop_unchecked(errors: &mut Vec<FieldError>, own: usize) {
    let is_unchecked = |error: &&FieldError| error.detail == NO_SIDECAR;
    let paths: Vec<String> = errors[..own].iter().filter(is_unchecked).map(|error| error.field.clone()).collect();
    let is_within = |error: &FieldError| paths.iter().any(|path| error.field.starts_with(path.as_str()));
    let mut place = 0;
    errors.retain(|error| {
        place += 1;
        place <= own || !is_within(error)
    });
}

fn init_container(container: &Value, path: &FieldPath, errors: &mut Errors) {
    let is_sidecar = text(container, "restartPolicy") == "Always";
    if is_sidecar {
        return lifecycle(container, path, errors);
    }
    for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if is_set(container, name) {
            errors.push(FieldError::forbidden(&path.child(name), NO_SIDECAR));
        }
    }
}

fn lifecycle(container: &Value, path: &FieldPath, errors: &mut Errors) {
    let grace = ["readinessProbe", "terminationGracePeriodSeconds"];
    if let Some(seconds) = container.at(&grace).filter(|seconds| !seconds.is_null()) {
        let path = path.child(grace[0]).child(grace[1]);
        errors.push(FieldError::invalid(&path, seconds, "must not be set for readinessProbes"));
    }
    for name in ["livenessProbe", "startupProbe"] {
        let seconds = container.at(&[name, grace[1]]).filter(|seconds| seconds.as_int().is_some_and(|it| it < 1));
        if let Some(seconds) = seconds {
            let path = path.child(name).child(grace[1]);
            errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
        }
    }
    for name in ["livenessProbe", "startupProbe"] {
        let threshold = container.at(&[name, "successThreshold"]).filter(|number| number.as_int() != Some(1));
        if let Some(threshold) = threshold {
            errors.push(FieldError::invalid(&path.child(name).child("successThreshold"), threshold, "must be 1"));
        }
    }
}

/// The sources of a variable's value, in the order in which errors name them.
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

const DOWNWARD: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The amounts of a container that a variable may show.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

fn environment(variable: &Value, path: &FieldPath, errors: &mut Errors) {
    let Some(source) = variable.get("valueFrom").filter(|source| !source.is_null()) else { return };
    let path = path.child("valueFrom");
    let mut invalid = |why: &str| errors.push(FieldError::invalid(&path, &Value::from(""), why));
    let given = SOURCES.iter().filter(|name| is_set(source, name)).count();
    match given {
        0 => invalid(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        _ if !text(variable, "value").is_empty() => invalid("may not be specified when `value` is not empty"),
        1 => {}
        _ => invalid("may not have more than one field specified at a time"),
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = source.get(name) {
            let (name_path, value) = (path.child(name).child("name"), text(reference, "name"));
            invalid_each(&name_path, value, names::dns1123_subdomain(value), errors);
        }
    }
    if let Some(reference) = source.get("fieldRef") {
        let (path, field) = (path.child("fieldRef").child("fieldPath"), text(reference, "fieldPath"));
        match text(reference, "apiVersion") {
            "" | "v1" => field_path(field, &path, errors),
            version => {
                let why = format!("error converting fieldPath: unsupported pod version: {version}");
                errors.push(FieldError::invalid(&path, &Value::from(field), why));
            }
        }
    }
    if let Some(reference) = source.get("resourceFieldRef") {
        let (path, resource) = (path.child("resourceFieldRef").child("resource"), text(reference, "resource"));
        let is_huge = ["limits.", "requests."]
            .iter()
            .any(|kind| resource.strip_prefix(kind).is_some_and(|name| name.starts_with("hugepages-")));
        if !resource.is_empty() && !RESOURCES.contains(&resource) && !is_huge {
            errors.push(FieldError::not_supported(&path, &Value::from(resource), &RESOURCES));
        }
    }
}

fn field_path(field: &str, path: &FieldPath, errors: &mut Errors) {
    let is_subscript = |name: &str| field.starts_with(&format!("metadata.{name}['")) && field.ends_with("']");
    if field.is_empty() || DOWNWARD.contains(&field) || is_subscript("labels") || is_subscript("annotations") {
        return;
    }
    let value = Value::from(field);
    // labels of the downward API that are no variables
    const OTHERS: [&str; 5] =
        ["metadata.labels", "metadata.annotations", "spec.restartPolicy", "spec.schedulerName", "status.phase"];
    if OTHERS.contains(&field) {
        return errors.push(FieldError::not_supported(path, &value, &DOWNWARD));
    }
    let why = format!("error converting fieldPath: field label not supported: {field}");
    errors.push(FieldError::invalid(path, &value, why));
}

fn environment_source(source: &Value, path: &FieldPath, errors: &mut Errors) {
    let given = ["configMapRef", "secretRef"].iter().filter(|name| is_set(source, name)).count();
    let mut invalid = |why: &str| errors.push(FieldError::invalid(path, &Value::from(""), why));
    match given {
        0 => invalid("must specify one of: `configMapRef` or `secretRef`"),
        2 => invalid("may not have more than one field specified at a time"),
        _ => {}
    }
}

fn ports(container: &Value, path: &FieldPath, errors: &mut Errors) {
    let mut known = HashSet::new();
    for (path, port) in items(container, "ports", path) {
        let name = text(port, "name");
        if !name.is_empty() && rule_checks::port_name_problems(name).is_empty() && !known.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
        }
        if text(port, "protocol").is_empty() {
            errors.push(FieldError::required(&path.child("protocol"), ""));
        }
    }
}

fn host_ports<'a>(
    container: &'a Value,
    path: &FieldPath,
    known: &mut HashSet<(i64, &'a str, &'a str)>,
    errors: &mut Errors,
) {
    for (path, port) in items(container, "ports", path) {
        let Some(number) = port.get("hostPort").and_then(Value::as_int).filter(|number| *number != 0) else { continue };
        let (protocol, address) = (text(port, "protocol"), text(port, "hostIP"));
        if !known.insert((number, protocol, address)) {
            let shown = format!("{protocol}/{address}/{number}");
            errors.push(FieldError::duplicate(&path.child("hostPort"), &Value::from(shown)));
        }
    }
}

/// The resources that containers may have without a domain.
const STANDARD: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];

fn resources(container: &Value, path: &FieldPath, claims: &[&str], errors: &mut Errors) {
    let Some(resources) = container.get("resources") else { return };
    let path = path.child("resources");
    for (path, claim) in items(resources, "claims", &path) {
        let name = text(claim, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if !claims.contains(&name) {
            let known = if claims.is_empty() { "which is empty".to_owned() } else { format!("{claims:?}") };
            let mut error = FieldError::not_found(&path, &Value::from(name));
            error.detail = format!("must be one of the names in pod.spec.resourceClaims {known}");
            errors.push(error);
        }
    }
    for kind in ["limits", "requests"] {
        let amounts = resources.get(kind).and_then(Value::as_object);
        for (name, amount) in amounts.into_iter().flat_map(Map::iter) {
            let path = path.child(kind).key(name);
            container_resource(name, &path, errors);
            if amount.as_str().is_some_and(|amount| amount.starts_with('-')) {
                errors.push(FieldError::invalid(&path, amount, "must be greater than or equal to 0"));
            }
        }
    }
    let amount = |kind: &str, name: &str| {
        resources.at(&[kind, name]).and_then(Value::as_str).and_then(|text| Quantity::parse(text).ok())
    };
    let requests = resources.get("requests").and_then(Value::as_object);
    for (name, shown) in requests.into_iter().flat_map(Map::iter) {
        let (request, limit) = (amount("requests", name), amount("limits", name));
        if let (Some(request), Some(limit)) = (request, limit)
            && request.compare(&limit).is_gt()
        {
            let why = format!("must be less than or equal to {name} limit of {}", resources.str_at(&["limits", name]));
            errors.push(FieldError::invalid(&path.child("requests"), shown, why));
        }
    }
}

/// The resources without a domain that containers may not have.
const COUNTED: [&str; 18] = [
    "configmaps",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
    "requests.hugepages-",
];

/// A resource of a container.
pub fn container_resource(name: &str, path: &FieldPath, errors: &mut Errors) {
    let problems = names::qualified_name(name);
    let is_name = problems.is_empty();
    invalid_each(path, name, problems, errors);
    let is_known = name.contains('/') || STANDARD.contains(&name) || name.starts_with("hugepages-");
    let mut invalid = |why: &str| errors.push(FieldError::invalid(path, &Value::from(name), why));
    if !is_known && !COUNTED.contains(&name) && is_name {
        invalid("must be a standard resource type or fully qualified");
    }
    if !is_known {
        invalid("must be a standard resource for containers");
    }
}

fn security(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let path = path.child("securityContext");
    let empty = Value::object();
    let context = spec.get("securityContext").unwrap_or(&empty);
    let mut known = HashSet::new();
    for (path, sysctl) in items(context, "sysctls", &path) {
        let name = text(sysctl, "name");
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
        }
        let conflicts = [
            ("hostNetwork", "net."),
            ("hostIPC", "kernel.shm"),
            ("hostIPC", "kernel.msg"),
            ("hostIPC", "kernel.sem"),
            ("hostIPC", "fs.mqueue."),
        ];
        let conflict = conflicts.iter().find(|(host, prefix)| truth(spec, &[host]) && name.starts_with(prefix));
        if let Some((host, _)) = conflict {
            let why = format!("may not be specified when '{host}' is true");
            errors.push(FieldError::invalid(&path.child("name"), &Value::from(name), why));
        }
    }
    profiles(context, &path, errors);
    for kind in ["containers", "initContainers"] {
        for (path, container) in items(spec, kind, &FieldPath::new(path.as_str().trim_end_matches(".securityContext")))
        {
            let context = container.get("securityContext").unwrap_or(&empty);
            let path = path.child("securityContext");
            profiles(context, &path, errors);
            let escalates = context.get("allowPrivilegeEscalation").and_then(Value::as_bool) == Some(false);
            let added = context.at(&["capabilities", "add"]).and_then(Value::as_array).unwrap_or_default();
            let is_admin = added.iter().any(|name| name.as_str() == Some("CAP_SYS_ADMIN"));
            for (is_set, what) in [
                (truth(context, &["privileged"]), "`privileged` to true"),
                (is_admin, "`capabilities.Add` CAP_SYS_ADMIN"),
            ] {
                if escalates && is_set {
                    let why = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
                    errors.push(shown_invalid(&path, context, "core.SecurityContext", why));
                }
            }
        }
    }
}

/// Profiles of a host name their file; others do not.
fn profiles(context: &Value, path: &FieldPath, errors: &mut Errors) {
    for (field, name) in [("appArmorProfile", "AppArmor"), ("seccompProfile", "seccomp")] {
        let Some(profile) = context.get(field) else { continue };
        let path = path.child(field).child("localhostProfile");
        match (text(profile, "type"), profile.get("localhostProfile")) {
            ("Localhost", None) => {
                errors.push(FieldError::required(&path, format!("must be set when {name} type is Localhost")));
            }
            (kind, Some(given)) if kind != "Localhost" => {
                let why = format!("can only be set when {name} type is Localhost");
                errors.push(FieldError::invalid(&path, given, why));
            }
            _ => {}
        }
    }
}

/// Validates a toleration of a Pod or of a RuntimeClass.
pub fn validate_toleration(toleration: &Value, path: &FieldPath, errors: &mut Errors) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
    if key.is_empty() && operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&path.child("operator"), &Value::from(operator), why));
    }
    if is_set(toleration, "tolerationSeconds") && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), &Value::from(effect), why));
    }
    match operator {
        "Equal" | "" => {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                let why = problems.join(";");
                errors.push(FieldError::invalid(&path.child("operator"), &Value::from(value), why));
            }
        }
        "Exists" if !value.is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(&path.child("operator"), &Value::from(value), why));
        }
        "Exists" => {}
        other => {
            errors.push(FieldError::not_supported(&path.child("operator"), &Value::from(other), &["Equal", "Exists"]))
        }
    }
    if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.push(FieldError::not_supported(&path.child("effect"), &Value::from(effect), &known));
    }
}

fn affinity(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let path = path.child("affinity");
    let empty = Value::object();
    let affinity = spec.get("affinity").unwrap_or(&empty);
    let (required, preferred) =
        ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution");
    if let Some(node) = affinity.get("nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = node.get(required) {
            node_selector(selector, &path.child(required), errors);
        }
        for (path, term) in items(node, preferred, &path) {
            if let Some(preference) = term.get("preference") {
                selector_term(preference, &path.child("preference"), errors);
            }
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = affinity.get(kind) else { continue };
        let path = path.child(kind);
        let plain = items(terms, required, &path).collect::<Vec<_>>();
        let weighted = items(terms, preferred, &path)
            .filter_map(|(path, term)| Some((path.child("podAffinityTerm"), term.get("podAffinityTerm")?)));
        for (path, term) in plain.into_iter().chain(weighted) {
            for selector in ["labelSelector", "namespaceSelector"] {
                selector_operators(term.get(selector), &path.child(selector), errors);
            }
        }
    }
}

/// The operators of a label selector, and their values.
pub fn selector_operators(selector: Option<&Value>, path: &FieldPath, errors: &mut Errors) {
    let Some(selector) = selector else { return };
    for (path, requirement) in items(selector, "matchExpressions", path) {
        operator_errors(requirement, &path, errors);
        for (path, value) in items(requirement, "values", &path) {
            let value = value.as_str().unwrap_or_default();
            invalid_each(&path, value, names::label_value(value), errors);
        }
    }
}

/// A selector of Nodes.
pub fn node_selector(selector: &Value, path: &FieldPath, errors: &mut Errors) {
    for (path, term) in items(selector, "nodeSelectorTerms", path) {
        selector_term(term, &path, errors);
    }
}

fn selector_term(term: &Value, path: &FieldPath, errors: &mut Errors) {
    for (path, requirement) in items(term, "matchExpressions", path) {
        let values = list(requirement, "values");
        let mut push = |error: FieldError| errors.push(error);
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                push(FieldError::required(&path.child("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                push(FieldError::forbidden(&path.child("values"), why));
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                push(FieldError::required(&path.child("values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                let why = "not a valid selector operator";
                push(FieldError::invalid(&path.child("operator"), &Value::from(other), why));
            }
        }
        for (path, value) in items(requirement, "values", &path) {
            let value = value.as_str().unwrap_or_default();
            invalid_each(&path, value, names::label_value(value), errors);
        }
    }
    for (path, requirement) in items(term, "matchFields", path) {
        let (operator, key) = (text(requirement, "operator"), text(requirement, "key"));
        match operator {
            "In" | "NotIn" if list(requirement, "values").len() != 1 => {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(&path.child("values"), why));
            }
            "In" | "NotIn" => {}
            other => {
                let why = "not a valid selector operator";
                errors.push(FieldError::invalid(&path.child("operator"), &Value::from(other), why));
            }
        }
        if key == "metadata.name" {
            for (path, value) in items(requirement, "values", &path) {
                let value = value.as_str().unwrap_or_default();
                invalid_each(&path, value, names::dns1123_subdomain(value), errors);
            }
        } else {
            let why = "not a valid field selector key";
            errors.push(FieldError::invalid(&path.child("key"), &Value::from(key), why));
        }
    }
}

fn spread(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let mut known = vec![];
    for (path, constraint) in items(spec, "topologySpreadConstraints", path) {
        let unsatisfiable = text(constraint, "whenUnsatisfiable");
        let key = text(constraint, "topologyKey");
        let (constraints, place) = (list(spec, "topologySpreadConstraints"), known.len());
        known.push((key, unsatisfiable));
        let is_same =
            |other: &Value| (text(other, "topologyKey"), text(other, "whenUnsatisfiable")) == (key, unsatisfiable);
        let choices = ["DoNotSchedule", "ScheduleAnyway"];
        if !choices.contains(&unsatisfiable) {
            let path = path.child("whenUnsatisfiable");
            errors.push(FieldError::not_supported(&path, &Value::from(unsatisfiable), &choices));
        }
        // the first of equal constraints is reported
        if constraints.iter().skip(place + 1).any(is_same) {
            let shown = format!("{{{key}, {unsatisfiable}}}");
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, &Value::from(shown)));
        }
        selector_operators(constraint.get("labelSelector"), &path.child("labelSelector"), errors);
    }
}
