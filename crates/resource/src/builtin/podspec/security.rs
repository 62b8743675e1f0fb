//! Security contexts.

use std::collections::HashSet;

use machinery::Value;
use machinery::field::{FieldError, FieldPath};

use super::{Errors, truth, windows};
use crate::builtin::checks::{invalid_internal, items, named, text};
use crate::builtin::rule_checks::{is_sysctl, local_path};

pub(super) fn security(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let path = path.child("securityContext");
    let context = spec.get("securityContext").unwrap_or(&Value::Null);
    let mut known = HashSet::new();
    for (path, sysctl) in items(context, "sysctls", &path) {
        let name = text(sysctl, "name");
        if !known.insert(name) && is_sysctl(name) {
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
    for (path, group) in items(context, "supplementalGroups", &path) {
        if group.as_int().is_some_and(|group| !(0..=i64::from(i32::MAX)).contains(&group)) {
            errors.push(FieldError::invalid(&path, group, "must be between 0 and 2147483647, inclusive"));
        }
    }
    profiles(context, &path, errors);
    windows::options(context, &path, errors);
    let shares_users = spec.get("hostUsers").and_then(Value::as_bool) != Some(false);
    for kind in ["containers", "initContainers"] {
        for (path, container) in items(spec, kind, &FieldPath::new(path.as_str().trim_end_matches(".securityContext")))
        {
            let context = container.get("securityContext").unwrap_or(&Value::Null);
            let path = path.child("securityContext");
            profiles(context, &path, errors);
            windows::options(context, &path, errors);
            if shares_users && text(context, "procMount") == "Unmasked" {
                let why = "`hostUsers` must be false to use `Unmasked`";
                errors.push(FieldError::invalid(&path.child("procMount"), &Value::from("Unmasked"), why));
            }
            let escalates = context.get("allowPrivilegeEscalation").and_then(Value::as_bool) == Some(false);
            let added = context.at(&["capabilities", "add"]).and_then(Value::as_array).unwrap_or_default();
            let is_admin = added.iter().any(|name| name.as_str() == Some("CAP_SYS_ADMIN"));
            for (is_set, what) in [
                (truth(context, &["privileged"]), "`privileged` to true"),
                (is_admin, "`capabilities.Add` CAP_SYS_ADMIN"),
            ] {
                if escalates && is_set {
                    let why = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
                    errors.push(invalid_internal(&path, context, "core.SecurityContext", why));
                }
            }
        }
    }
}

/// The longest name of the file of a profile: a path of Linux without its terminating zero.
pub const PROFILE_BYTES_MAX: usize = 4095;

fn app_armor_file(given: &Value, path: &FieldPath, errors: &mut Errors) {
    let file = given.as_str().unwrap_or_default();
    if file.trim() != file {
        errors.push(FieldError::invalid(path, given, "must not be padded with whitespace"));
    } else if file.is_empty() {
        errors.push(FieldError::required(path, "must be set when AppArmor type is Localhost"));
    }
    if file.len() > PROFILE_BYTES_MAX {
        errors.push(FieldError::too_long(path, PROFILE_BYTES_MAX));
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
            ("Localhost", Some(given)) if name == "seccomp" => {
                crate::builtin::at::at_path(given, &path, errors, local_path)
            }
            ("Localhost", Some(given)) => app_armor_file(given, &path, errors),
            // another type of AppArmor is the only error of its profile
            (kind, Some(_)) if name == "AppArmor" && !matches!(kind, "RuntimeDefault" | "Unconfined") => {}
            (_, Some(given)) => {
                let why = format!("can only be set when {name} type is Localhost");
                errors.push(match name {
                    // upstream shows the whole profile
                    "seccomp" => invalid_internal(&path, profile, "core.SeccompProfile", why),
                    _ => named(FieldError::invalid(&path, given, why), given),
                });
            }
            _ => {}
        }
    }
}
