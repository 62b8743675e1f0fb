//! Validation of the update strategies of Deployments, DaemonSets and StatefulSets.

use machinery::Value;
use machinery::field::{FieldError, FieldPath};

use super::checks::{invalid_internal, is_set, text};

type Errors = Vec<FieldError>;

const NO_PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// The number in a percentage; `None` if the text is not one.
fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty())?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().unwrap_or(i64::MAX))
}

/// The amount of a number or a percentage; 0 for other values. A number written as text is rejected elsewhere, but
/// counts here.
fn amount(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::Int(number)) => *number,
        Some(Value::String(text)) => percent(text).or_else(|| text.parse().ok()).unwrap_or_default(),
        _ => 0,
    }
}

/// Checks that a value is a percentage or a number that is not negative.
fn number_or_percent(value: &Value, path: &FieldPath, errors: &mut Errors) {
    match value {
        Value::String(text) if percent(text).is_none() => errors.push(FieldError::invalid(path, value, NO_PERCENT)),
        Value::Int(..0) => errors.push(FieldError::invalid(path, value, "must be greater than or equal to 0")),
        _ => {}
    }
}

fn at_most_all(value: &Value, path: &FieldPath, errors: &mut Errors) {
    if value.as_str().and_then(percent).is_some_and(|share| share > 100) {
        errors.push(FieldError::invalid(path, value, "must not be greater than 100%"));
    }
}

/// Validates how a workload is rolled out.
pub fn check(object: &Value, path: &FieldPath, errors: &mut Errors) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match object.str_at(&["kind"]) {
        "Deployment" => deployment(spec, path, errors),
        "DaemonSet" => {
            daemon_set(spec.get("updateStrategy").unwrap_or(&Value::Null), &path.child("updateStrategy"), errors)
        }
        "StatefulSet" => {
            stateful_set(spec.get("updateStrategy").unwrap_or(&Value::Null), &path.child("updateStrategy"), errors);
            let policy = text(spec, "podManagementPolicy");
            if !["OrderedReady", "Parallel"].contains(&policy) {
                let why = "must be 'OrderedReady' or 'Parallel'";
                errors.push(FieldError::invalid(&path.child("podManagementPolicy"), &Value::from(policy), why));
            }
        }
        _ => {}
    }
}

fn deployment(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let number = |name: &str| spec.get(name).and_then(Value::as_int);
    if let Some(deadline) = number("progressDeadlineSeconds")
        && deadline <= number("minReadySeconds").unwrap_or_default()
    {
        let path = path.child("progressDeadlineSeconds");
        errors.push(FieldError::invalid(&path, &Value::Int(deadline), "must be greater than minReadySeconds"));
    }
    let (strategy, path) = (spec.get("strategy").unwrap_or(&Value::Null), path.child("strategy"));
    let rolling = strategy.get("rollingUpdate").filter(|rolling| !rolling.is_null());
    match (text(strategy, "type"), rolling) {
        ("Recreate", Some(_)) => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(&path.child("rollingUpdate"), why));
        }
        ("RollingUpdate", Some(rolling)) => {
            let path = path.child("rollingUpdate");
            for name in ["maxUnavailable", "maxSurge"] {
                rolling.get(name).into_iter().for_each(|value| number_or_percent(value, &path.child(name), errors));
            }
            let (unavailable, path) = (rolling.get("maxUnavailable"), path.child("maxUnavailable"));
            if amount(unavailable) == 0 && amount(rolling.get("maxSurge")) == 0 {
                let given = unavailable.cloned().unwrap_or_default();
                errors.push(FieldError::invalid(&path, &given, "may not be 0 when `maxSurge` is 0"));
            }
            unavailable.into_iter().for_each(|value| at_most_all(value, &path, errors));
        }
        ("Recreate" | "RollingUpdate" | "", _) => {}
        _ => {
            let shown = invalid_internal(&path, strategy, "apps.DeploymentStrategy", "").value;
            let error = FieldError::not_supported(&path, &Value::Null, &["Recreate", "RollingUpdate"]);
            errors.push(FieldError { value: shown, ..error });
        }
    }
}

fn daemon_set(strategy: &Value, path: &FieldPath, errors: &mut Errors) {
    match (text(strategy, "type"), strategy.get("rollingUpdate").filter(|rolling| !rolling.is_null())) {
        ("RollingUpdate", None) => errors.push(FieldError::required(&path.child("rollingUpdate"), "")),
        ("RollingUpdate", Some(rolling)) => {
            let path = path.child("rollingUpdate");
            for name in ["maxUnavailable", "maxSurge"] {
                if let Some(value) = rolling.get(name) {
                    number_or_percent(value, &path.child(name), errors);
                    at_most_all(value, &path.child(name), errors);
                }
            }
            let surge = rolling.get("maxSurge");
            match (amount(rolling.get("maxUnavailable")) != 0, amount(surge) != 0) {
                (true, true) => {
                    let (given, why) =
                        (surge.cloned().unwrap_or_default(), "may not be set when maxUnavailable is non-zero");
                    errors.push(FieldError::invalid(&path.child("maxSurge"), &given, why));
                }
                (false, false) => {
                    let why = "cannot be 0 when maxSurge is 0";
                    errors.push(FieldError::required(&path.child("maxUnavailable"), why));
                }
                _ => {}
            }
        }
        ("OnDelete" | "", _) => {}
        _ => {
            let shown = invalid_internal(path, strategy, "apps.DaemonSetUpdateStrategy", "").value;
            let error = FieldError::not_supported(path, &Value::Null, &["RollingUpdate", "OnDelete"]);
            errors.push(FieldError { value: shown, ..error });
        }
    }
}

fn stateful_set(strategy: &Value, path: &FieldPath, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate").filter(|rolling| !rolling.is_null());
    match (text(strategy, "type"), rolling) {
        ("OnDelete", Some(rolling)) => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(invalid_internal(
                &path.child("rollingUpdate"),
                rolling,
                "apps.RollingUpdateStatefulSetStrategy",
                why,
            ));
        }
        ("RollingUpdate", Some(rolling)) if is_set(rolling, "maxUnavailable") => {
            let (value, path) = (
                rolling.get("maxUnavailable").unwrap_or(&Value::Null),
                path.child("rollingUpdate").child("maxUnavailable"),
            );
            number_or_percent(value, &path, errors);
            if amount(Some(value)) == 0 {
                errors.push(FieldError::invalid(&path, value, "cannot be 0"));
            }
            at_most_all(value, &path, errors);
        }
        ("OnDelete" | "RollingUpdate", _) => {}
        ("", _) => errors.push(FieldError::required(path, "")),
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(invalid_internal(path, strategy, "apps.StatefulSetUpdateStrategy", why));
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn rollouts_are_checked_by_kind() {
        let all = |kind: &str, spec: Value| -> Vec<String> {
            let mut errors = vec![];
            check(&json!({"kind": kind, "spec": spec}), &FieldPath::new("spec"), &mut errors);
            errors.iter().map(ToString::to_string).collect()
        };
        let rolling = |amounts: Value| json!({"type": "RollingUpdate", "rollingUpdate": amounts});
        let none = json!({"maxUnavailable": "0%", "maxSurge": 0});
        assert_eq!(
            all("Deployment", json!({"strategy": (rolling(none.clone()))})),
            [r#"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0"#]
        );
        assert_eq!(
            all("DaemonSet", json!({"updateStrategy": (rolling(none))})),
            ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]
        );
        let share = json!({"maxUnavailable": "101%"});
        assert_eq!(
            all("StatefulSet", json!({"podManagementPolicy": "Parallel", "updateStrategy": (rolling(share))})),
            [
                r#"spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%"#
            ]
        );
        let unknown = json!({"type": "Zog"});
        let want = r#"spec.strategy: Unsupported value: {"Type":"Zog","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate""#;
        assert_eq!(all("Deployment", json!({"strategy": unknown})), [want]);
    }
}
