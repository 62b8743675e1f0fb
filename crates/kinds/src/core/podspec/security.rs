//! Security contexts.

use std::collections::HashSet;

use machinery::Value;

use crate::core::podspec::host::CONTAINERS;
use crate::core::podspec::windows;
use crate::rule_checks::{is_sysctl, local_path};
use schema::at::At;

pub(super) fn check(spec: At) {
    let (context, mut known) = (spec.field("securityContext"), HashSet::new());
    for sysctl in context.items_of("sysctls") {
        let name = sysctl.field_or_empty("name");
        if !known.insert(name.as_text()) && is_sysctl(name.as_text()) {
            name.duplicate();
        }
        let conflicts = [
            ("hostNetwork", "net."),
            ("hostIPC", "kernel.shm"),
            ("hostIPC", "kernel.msg"),
            ("hostIPC", "kernel.sem"),
            ("hostIPC", "fs.mqueue."),
        ];
        let is_conflict = |(host, prefix): &&(&str, &str)| spec.is_true(host) && name.as_text().starts_with(prefix);
        if let Some((host, _)) = conflicts.iter().find(is_conflict) {
            name.invalid(format!("may not be specified when '{host}' is true"));
        }
    }
    for group in context.items_of("supplementalGroups") {
        group.within(0..=i64::from(i32::MAX));
    }
    profiles(context);
    windows::options(context);
    for container in CONTAINERS.iter().flat_map(|kind| spec.items_of(kind)) {
        of_container(container.field("securityContext"), spec);
    }
}

fn of_container(context: At, spec: At) {
    let shares_users = *spec.field("hostUsers").value != Value::Bool(false);
    profiles(context);
    windows::options(context);
    if shares_users && context.text("procMount") == "Unmasked" {
        context.field("procMount").invalid("`hostUsers` must be false to use `Unmasked`");
    }
    if *context.field("allowPrivilegeEscalation").value != Value::Bool(false) {
        return;
    }
    let shown = context.shown_as_go("core.SecurityContext");
    if context.is_true("privileged") {
        shown.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    if context.items_of("capabilities.add").any(|name| name.as_text() == "CAP_SYS_ADMIN") {
        shown.invalid("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
    }
}

/// The longest name of the file of a profile: a path of Linux without its terminating zero.
pub const PROFILE_BYTES_MAX: usize = 4095;

fn app_armor_file(at: At) {
    let file = at.as_text();
    if file.trim() != file {
        at.invalid("must not be padded with whitespace");
    } else if file.is_empty() {
        at.required("must be set when AppArmor type is Localhost");
    }
    at.max_bytes(PROFILE_BYTES_MAX);
}

/// Profiles of a host name their file; others do not.
fn profiles(context: At) {
    for (field, name) in [("appArmorProfile", "AppArmor"), ("seccompProfile", "seccomp")] {
        let profile = context.field(field);
        let file = profile.field("localhostProfile");
        match (profile.text("type"), file.is_given()) {
            ("Localhost", false) => file.required(format!("must be set when {name} type is Localhost")),
            ("Localhost", true) if name == "seccomp" => local_path(file),
            ("Localhost", true) => app_armor_file(file),
            // another type of AppArmor is the only error of its profile
            (kind, true) if name == "AppArmor" && !matches!(kind, "RuntimeDefault" | "Unconfined") => {}
            (_, true) => {
                let why = format!("can only be set when {name} type is Localhost");
                match name {
                    // upstream shows the whole profile
                    "seccomp" => file.with_value(profile.value).shown_as_go("core.SeccompProfile").invalid(why),
                    _ => file.shown_as_json().invalid(why),
                }
            }
            (_, false) => {}
        }
    }
}
