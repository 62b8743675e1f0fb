//! Containers: names, ports, probes and restarts.

use std::collections::HashSet;

use machinery::names;

use crate::core::podspec::Pod;
use crate::core::podspec::environment::{environment, environment_source};
use crate::core::podspec::resources::resources;
use crate::rule_checks::port_name_problems;
use schema::at::At;

impl Pod<'_, '_> {
    pub(super) fn containers(&self) {
        self.spec.field("containers").required_if(self.spec.list("containers").is_empty(), "");
        let (mut known, mut ports) = (HashSet::new(), HashSet::new());
        let grace = self.spec.int(GRACE);
        for kind in ["containers", "initContainers", "ephemeralContainers"] {
            for container in self.spec.items_of(kind) {
                container_name(container, kind, &mut known);
                self.container(container, kind);
                match kind {
                    "initContainers" => init_container(container, grace),
                    "ephemeralContainers" => self.ephemeral_container(container),
                    _ => {
                        lifecycle(container, grace);
                        host_ports(container, &mut ports);
                    }
                }
            }
        }
    }

    fn container(&self, container: At, kind: &str) {
        container.field("image").require_text("");
        container.field("terminationMessagePolicy").require_text("");
        for variable in container.items_of("env") {
            environment(variable);
            let volume = variable.field_or_empty("valueFrom.fileKeyRef.volumeName");
            if variable.has("valueFrom.fileKeyRef") && !self.volume_names.contains(volume.as_text()) {
                volume.not_found();
            }
        }
        // upstream leaves out the index
        let sources = container.field("envFrom");
        sources.items().for_each(|source| environment_source(sources.with_value(source.value)));
        self.mounts(container);
        self.devices(container);
        ports(container);
        resources(container, &self.claims);
        // ephemeral containers have neither restart policies nor rules
        if kind != "ephemeralContainers" {
            let has_policy = container.has("restartPolicy");
            if !container.list("restartPolicyRules").is_empty() && !has_policy {
                container.field("restartPolicy").required("must specify restartPolicy when restart rules are used");
            }
            if kind != "initContainers" || has_policy {
                restart_rules(container);
            }
        }
        self.resize_policies(container);
    }

    fn resize_policies(&self, container: At) {
        let is_never = self.spec.text("restartPolicy") == "Never";
        let (policies, mut known) = (container.field("resizePolicy"), HashSet::new());
        for policy in policies.items() {
            let resource = policy.text("resourceName");
            if !known.insert(resource) {
                policy.with_value(policy.field_or_empty("resourceName").value).duplicate();
            }
            for (name, choices) in
                [("resourceName", ["cpu", "memory"]), ("restartPolicy", ["NotRequired", "RestartContainer"])]
            {
                match policy.text(name) {
                    "" => policies.required(""),
                    _ => policies.with_value(policy.field(name).value).shown_as_json().one_of(&choices),
                }
            }
            if is_never && policy.text("restartPolicy") != "NotRequired" {
                let shown = policy.field_or_empty("restartPolicy").value;
                policies
                    .with_value(shown)
                    .shown_as_json()
                    .invalid("must be 'NotRequired' when pod `restartPolicy` is 'Never'");
            }
        }
    }
}

const GRACE: &str = "terminationGracePeriodSeconds";

fn restart_rules(container: At) {
    const RULES_MAX: usize = 20;
    const CODES_MAX: usize = 255;
    container.field("restartPolicyRules").max_items(RULES_MAX);
    for rule in container.items_of("restartPolicyRules") {
        rule.field_or_empty("action").shown_as_json().one_of(&["Restart", "RestartAllContainers"]);
        let codes = rule.field("exitCodes");
        if !codes.is_given() {
            codes.required("must be specified");
            continue;
        }
        codes.field_or_empty("operator").shown_as_json().one_of(&["In", "NotIn"]);
        codes.field("values").max_items(CODES_MAX);
    }
}

/// The name of a container must be a label that no container before it has. Missing names count as equal, except those
/// of init containers.
fn container_name<'v>(container: At<'_, 'v>, kind: &str, known: &mut HashSet<&'v str>) {
    let name = container.field_or_empty("name");
    name.check_required_text(names::dns1123_label);
    let is_counted = !name.as_text().is_empty() || kind != "initContainers";
    if known.contains(name.as_text()) || is_counted && !known.insert(name.as_text()) {
        name.duplicate();
    }
}

fn init_container(container: At, grace: Option<i64>) {
    if container.text("restartPolicy") == "Always" {
        return lifecycle(container, grace);
    }
    for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if container.has(name) {
            container.field(name).forbidden("may not be set for init containers without restartPolicy=Always");
        }
    }
}

/// Checks handlers that sleep, and the rules of probes that come before all others. `grace` is the grace period of the
/// Pod in seconds.
fn lifecycle(container: At, grace: Option<i64>) {
    sleeps(container.field("lifecycle"), grace);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.field(name);
        let (grace, threshold) = (probe.field(GRACE), probe.field("successThreshold"));
        grace.at_least(1, "must be greater than 0");
        if name == "readinessProbe" {
            grace.invalid_if(grace.is_given(), "must not be set for readinessProbes");
        } else if threshold.is_given() && threshold.value.as_int() != Some(1) {
            threshold.invalid("must be 1");
        }
    }
}

/// Handlers must not sleep longer than the grace period of the Pod.
fn sleeps(lifecycle: At, grace: Option<i64>) {
    const DEFAULT_SECONDS: i64 = 30;
    // a negative grace period counts as one second
    let most = grace.map_or(DEFAULT_SECONDS, |grace| if grace < 0 { 1 } else { grace });
    for hook in ["postStart", "preStop"] {
        let handler = lifecycle.field(hook);
        let is_other = ["exec", "httpGet", "tcpSocket"].iter().any(|other| handler.has(other));
        let seconds = handler.int("sleep.seconds").unwrap_or_default();
        if handler.has("sleep") && !is_other && !(0..=most).contains(&seconds) {
            let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({most})");
            handler.field("sleep").shown_verbatim(&seconds.to_string()).invalid(why);
        }
    }
}

fn ports(container: At) {
    let mut known = HashSet::new();
    for port in container.items_of("ports") {
        let name = port.text("name");
        if !name.is_empty() && port_name_problems(name).is_empty() {
            port.field("name").unique(&mut known);
        }
        port.field("protocol").require_text("");
    }
}

fn host_ports<'v>(container: At<'_, 'v>, known: &mut HashSet<(i64, &'v str, &'v str)>) {
    for port in container.items_of("ports") {
        let Some(number) = port.int("hostPort").filter(|number| *number != 0) else { continue };
        let (protocol, address) = (port.text("protocol"), port.text("hostIP"));
        if !known.insert((number, protocol, address)) {
            port.field("hostPort").shown_as_text(&format!("{protocol}/{address}/{number}")).duplicate();
        }
    }
}

/// The images of containers in Pods, and of ephemeral containers, must not have whitespace around them. Those in
/// templates may.
pub fn image(container: At) {
    let image = container.field("image");
    image.invalid_if(image.as_text().trim() != image.as_text(), "must not have leading or trailing whitespace");
}
