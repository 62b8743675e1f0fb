//! Annotations of Pods and Pod templates that stand for fields: profiles, tolerations, deletion costs, mirror Pods.

use machinery::{Map, Value, json};

use crate::core::podspec;
use crate::rule_checks;
use resource::builtin::checks::text;
use schema::at::At;

const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR_OF: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST: &str = "localhost/";
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Whether a Pod mirrors a static one of a kubelet.
pub fn is_mirror(pod: &Value) -> bool {
    given(pod).is_some_and(|annotations| annotations.get(MIRROR).is_some())
}

fn given(pod: &Value) -> Option<&Map> {
    pod.at(&["metadata", "annotations"]).and_then(Value::as_object)
}

fn annotation<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    given(pod)?.get(key)?.as_str()
}

pub fn check(pod: At) {
    check_at(pod, pod.field("metadata.annotations"));
}

/// Validates the annotations of a Pod or a template. The deletion cost is not checked if that of the old object is
/// invalid.
pub fn check_at(pod: At, annotations: At) {
    for (key, value) in given(pod.value).into_iter().flat_map(Map::iter) {
        let at = annotations.entry(key).with_value(value);
        match key.as_str() {
            MIRROR if pod.text("spec.nodeName").is_empty() => {
                at.invalid("must set spec.nodeName if mirror pod annotation is set");
            }
            TOLERATIONS if !at.as_text().is_empty() => tolerations(at.as_text(), annotations),
            DELETION_COST if !is_cost(at.as_text()) && pod.old.is_none_or(has_cost) => {
                at.invalid("must be a 32bit integer");
            }
            key if key == SECCOMP || key.starts_with(SECCOMP_OF) => {
                seccomp(annotations.field_with_dots(key).with_value(value))
            }
            key => key.strip_prefix(APP_ARMOR_OF).into_iter().for_each(|name| app_armor(pod, name, at)),
        }
    }
}

/// Updates of a Pod must not add, change or remove annotations for AppArmor profiles or mirror Pods.
pub fn changes(pod: At) {
    let what = |key: &str| match key {
        MIRROR => Some("mirror pod annotation"),
        key if key.starts_with(APP_ARMOR_OF) => Some("AppArmor annotations"),
        _ => None,
    };
    let (annotations, old) = (pod.field("metadata.annotations"), pod.old.unwrap_or(&Value::Null));
    for (key, value) in given(old).into_iter().flat_map(Map::iter) {
        let is_changed = annotation(pod.value, key) != value.as_str();
        if let Some(what) = what(key).filter(|_| is_changed) {
            annotations.entry(key).forbidden(format!("may not remove or update {what}"));
        }
    }
    for (key, _) in given(pod.value).into_iter().flat_map(Map::iter) {
        if let Some(what) = what(key).filter(|_| annotation(old, key).is_none()) {
            annotations.entry(key).forbidden(format!("may not add {what}"));
        }
    }
}

fn is_cost(text: &str) -> bool {
    let is_begun = text == "0" || text.starts_with(|c: char| c == '-' || ('1'..='9').contains(&c));
    is_begun && text.parse::<i32>().is_ok()
}

fn has_cost(pod: &Value) -> bool {
    annotation(pod, DELETION_COST).is_none_or(is_cost)
}

fn tolerations(json: &str, annotations: At) {
    let list = match machinery::value::decode(json.as_bytes()) {
        Ok(list) => list,
        Err(error) => return annotations.shown_as_text(TOLERATIONS).invalid(error.to_string()),
    };
    annotations.field_with_dots(TOLERATIONS).showing(&list, |at| at.items().for_each(podspec::toleration));
}

fn seccomp(at: At) {
    match at.as_text().strip_prefix(LOCALHOST) {
        _ if ["runtime/default", "docker/default", "unconfined"].contains(&at.as_text()) => {}
        Some(file) => at.showing(&Value::from(file), rule_checks::local_path),
        None => at.invalid("must be a valid seccomp profile"),
    }
}

fn app_armor(pod: At, name: &str, at: At) {
    let (spec, profile) = (pod.field("spec"), at.as_text());
    if !CONTAINERS.iter().any(|kind| spec.list(kind).iter().any(|container| text(container, "name") == name)) {
        at.shown_as_text(name).invalid("container not found");
    }
    if !["", "runtime/default", "unconfined"].contains(&profile) && !profile.starts_with(LOCALHOST) {
        at.invalid(format!("invalid AppArmor profile name: {}", machinery::value::quote(profile)));
    }
}

/// Reports profiles in fields of a Pod or a template that contradict annotations.
pub fn mismatches(pod: At) {
    let (spec, own) = (pod.field("spec"), pod.field("spec.securityContext"));
    let compare = |profile: At, key: &str, at: At, word: &str| {
        if let Some(annotation) = annotation(pod.value, key).filter(|_| profile.is_given()) {
            mismatch(at.with_value(profile.value), annotation, word);
        }
    };
    compare(own.field("seccompProfile"), SECCOMP, own.field("seccompProfile"), "seccomp");
    let is_windows = spec.text("os.name") == "windows";
    for container in CONTAINERS.iter().flat_map(|kind| spec.items_of(kind)) {
        let (name, context) = (container.text("name"), container.field("securityContext"));
        let (seccomp, profile) = (context.field("seccompProfile"), context.field("appArmorProfile"));
        compare(seccomp, &format!("{SECCOMP_OF}{name}"), seccomp, "seccomp");
        if !is_windows {
            let shown = if profile.is_given() { profile } else { own.field("appArmorProfile") };
            compare(shown, &format!("{APP_ARMOR_OF}{name}"), profile, "apparmor");
        }
    }
}

fn mismatch(profile: At, annotation: &str, word: &str) {
    let is_same = match profile.text("type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => annotation == "runtime/default" || word == "seccomp" && annotation == "docker/default",
        "Localhost" => match annotation.strip_prefix(LOCALHOST) {
            None => false,
            Some(file) if profile.field("localhostProfile").value.as_str() == Some(file) => true,
            Some(_) => {
                let why = format!("{word} profile in annotation and field must match");
                return profile.field("localhostProfile").forbidden(why);
            }
        },
        _ => true,
    };
    if !is_same {
        profile.field("type").forbidden(format!("{word} type in annotation and field must match"));
    }
}

fn app_armor_profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let file = annotation.strip_prefix(LOCALHOST).filter(|file| !file.is_empty())?;
            Some(json!({"type": "Localhost", "localhostProfile": (file)}))
        }
    }
}

/// Copies AppArmor profiles from annotations of a Pod to fields of its containers.
pub fn set_profiles(pod: &mut Value) {
    if given(pod).is_none() || pod.str_at(&["spec", "os", "name"]) == "windows" {
        return;
    }
    const FIELD: [&str; 2] = ["securityContext", "appArmorProfile"];
    let of_pod = pod.at(&["spec", "securityContext", "appArmorProfile"]).cloned();
    let annotations = given(pod).cloned().unwrap_or_default();
    for kind in CONTAINERS {
        let containers = resource::builtin::defaults::at_mut(pod, &["spec", kind]).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|container| container.at(&FIELD).is_none()) {
            let given = annotations.get(&format!("{APP_ARMOR_OF}{}", text(container, "name"))).and_then(Value::as_str);
            let profile = given.and_then(valid_profile);
            if let Some(profile) = profile.filter(|profile| Some(profile) != of_pod.as_ref()) {
                container.set_at(&FIELD, profile);
            }
        }
    }
}

/// The AppArmor profile that an annotation stands for, if it would be valid in a field.
fn valid_profile(annotation: &str) -> Option<Value> {
    let is_valid = |file: &str| file.trim() == file && file.len() <= podspec::PROFILE_BYTES_MAX;
    app_armor_profile(annotation).filter(|profile| is_valid(text(profile, "localhostProfile")))
}

/// Warns about AppArmor annotations of a new Pod, unless the container sets the field or the Pod has the same profile.
pub fn early_warnings(pod: At) {
    let (spec, annotations) = (pod.field("spec"), pod.field("metadata.annotations"));
    if spec.text("os.name") == "windows" {
        return;
    }
    let of_pod = spec.field("securityContext.appArmorProfile");
    for container in CONTAINERS.iter().flat_map(|kind| spec.items_of(kind)) {
        let key = format!("{APP_ARMOR_OF}{}", container.text("name"));
        if let Some(annotation) = annotation(pod.value, &key)
            && !container.has("securityContext.appArmorProfile")
            && valid_profile(annotation).is_none_or(|profile| profile != *of_pod.value)
        {
            annotations.entry(&key).warn(FORMER_PROFILE);
        }
    }
}

const FORMER_PROFILE: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";

/// Warns about annotations of a Pod or a template that have no effect or that fields have replaced.
pub fn warnings(pod: At) {
    const FORMER: [(&str, &str); 3] = [
        ("scheduler.alpha.kubernetes.io/critical-pod", "v1.16+; use the \"priorityClassName\""),
        ("security.alpha.kubernetes.io/sysctls", "v1.11+; use the \"sysctls\""),
        ("security.alpha.kubernetes.io/unsafe-sysctls", "v1.11+; use the \"sysctls\""),
    ];
    let (annotations, spec) = (pod.field("metadata.annotations"), pod.field("spec"));
    for (key, why) in FORMER.into_iter().filter(|(key, _)| annotations.entry(key).is_given()) {
        annotations.entry(key).warn(format!("non-functional in {why} field instead"));
    }
    let seccomp = |context: At, key: &str| {
        if !context.has("seccompProfile") && annotations.entry(key).is_given() {
            annotations.entry(key).warn("non-functional in v1.27+; use the \"seccompProfile\" field instead");
        }
    };
    seccomp(spec.field("securityContext"), SECCOMP);
    let of_pod = spec.field("securityContext.appArmorProfile");
    for container in CONTAINERS.iter().flat_map(|kind| spec.items_of(kind)) {
        let (name, own) = (container.text("name"), container.field("securityContext"));
        seccomp(own, &format!("{SECCOMP_OF}{name}"));
        let key = format!("{APP_ARMOR_OF}{name}");
        // a Pod itself got these as early warnings; templates did not
        let is_seen = pod.is_root() || own.has("appArmorProfile");
        if let Some(annotation) = annotation(pod.value, &key).filter(|_| !is_seen)
            && app_armor_profile(annotation).is_none_or(|profile| profile != *of_pod.value)
        {
            annotations.entry(&key).warn(FORMER_PROFILE);
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::Release;

    use super::*;
    use schema::at::{errors_of, warnings_of};

    fn texts(annotations: Value, spec: Value) -> Vec<String> {
        let pod = json!({"metadata": {"annotations": (annotations)}, "spec": (spec)});
        let found = errors_of(&pod, None, Release::NEWEST, |pod| {
            check(pod);
            mismatches(pod);
        });
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn annotations_of_new_pods_are_former_unless_a_field_has_their_profile() {
        let (none, unconfined) = (json!({}), json!({"appArmorProfile": {"type": "Unconfined"}}));
        for (annotation, of_pod, of_container, want) in [
            ("unconfined", &none, &none, true),
            ("unconfined", &none, &unconfined, false),
            ("unconfined", &unconfined, &none, false),
            ("runtime/default", &unconfined, &none, true),
            ("zog", &none, &none, true),
        ] {
            let mut annotations = Value::object();
            annotations.set_at(&[&format!("{APP_ARMOR_OF}c")], Value::from(annotation));
            let containers = json!([{"name": "c", "securityContext": (of_container.clone())}]);
            let spec = json!({"securityContext": (of_pod.clone()), "containers": containers});
            let pod = json!({"metadata": {"annotations": annotations}, "spec": spec});
            let warnings = warnings_of(&pod, None, Release::NEWEST, early_warnings);
            assert_eq!(!warnings.is_empty(), want, "{}", pod.to_json());
        }
    }

    #[test]
    fn annotations_stand_for_fields() {
        let spec =
            json!({"containers": [{"name": "c", "securityContext": {"appArmorProfile": {"type": "Unconfined"}}}]});
        for (key, value, want) in [
            (
                MIRROR,
                "x",
                r#"metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set"#,
            ),
            (DELETION_COST, "-5", ""),
            (
                DELETION_COST,
                "+5",
                r#"metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+5": must be a 32bit integer"#,
            ),
            (
                SECCOMP,
                "x",
                r#"metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "x": must be a valid seccomp profile"#,
            ),
            ("container.apparmor.security.beta.kubernetes.io/c", "unconfined", ""),
            (
                "container.apparmor.security.beta.kubernetes.io/c",
                "runtime/default",
                "spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match",
            ),
        ] {
            let mut annotations = Value::object();
            annotations.set_at(&[key], Value::from(value));
            assert_eq!(texts(annotations, spec.clone()).join("|"), want, "{key}: {value}");
        }
    }
}
