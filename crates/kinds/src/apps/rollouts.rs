//! Validation of the update strategies of Deployments, DaemonSets and StatefulSets.

use machinery::Value;

use schema::at::At;

const NO_PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// The number in a percentage; `None` if the text is not one.
fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty())?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().unwrap_or(i64::MAX))
}

/// The amount of a number or a percentage; 0 for other values. A number written as text is rejected elsewhere, but
/// counts here.
fn amount(at: At) -> i64 {
    match at.value {
        Value::Int(number) => *number,
        Value::String(text) => percent(text).or_else(|| text.parse().ok()).unwrap_or_default(),
        _ => 0,
    }
}

/// Checks that a value is a percentage or a number that is not negative.
fn number_or_percent(at: At) {
    match at.value {
        Value::String(text) if percent(text).is_none() => at.invalid(NO_PERCENT),
        Value::Int(..0) => at.invalid("must be greater than or equal to 0"),
        _ => {}
    }
}

fn at_most_all(at: At) {
    at.invalid_if(percent(at.as_text()).is_some_and(|share| share > 100), "must not be greater than 100%");
}

/// Validates how a workload is rolled out.
pub fn check(kind: &str, spec: At) {
    match kind {
        "Deployment" => deployment(spec),
        "DaemonSet" => daemon_set(spec.field("updateStrategy")),
        "StatefulSet" => stateful_set(spec.field("updateStrategy")),
        _ => {}
    }
}

fn deployment(spec: At) {
    let strategy = spec.field("strategy");
    let rolling = strategy.field("rollingUpdate");
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    match (strategy.text("type"), rolling.is_given()) {
        ("RollingUpdate", true) => {
            number_or_percent(unavailable);
            number_or_percent(surge);
            unavailable.invalid_if(amount(unavailable) == 0 && amount(surge) == 0, "may not be 0 when `maxSurge` is 0");
            at_most_all(unavailable);
        }
        ("Recreate" | "RollingUpdate" | "", _) => {}
        _ => strategy.shown_as_go("apps.DeploymentStrategy").unsupported(&["Recreate", "RollingUpdate"]),
    }
}

fn daemon_set(strategy: At) {
    let rolling = strategy.field("rollingUpdate");
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    match (strategy.text("type"), rolling.is_given()) {
        ("RollingUpdate", false) => rolling.required(""),
        ("RollingUpdate", true) => {
            for share in [unavailable, surge] {
                number_or_percent(share);
                at_most_all(share);
            }
            match (amount(unavailable) != 0, amount(surge) != 0) {
                (true, true) => surge.invalid("may not be set when maxUnavailable is non-zero"),
                (false, false) => unavailable.required("cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        ("OnDelete" | "", _) => {}
        _ => strategy.shown_as_go("apps.DaemonSetUpdateStrategy").unsupported(&["RollingUpdate", "OnDelete"]),
    }
}

fn stateful_set(strategy: At) {
    let rolling = strategy.field("rollingUpdate");
    let unavailable = rolling.field("maxUnavailable");
    match (strategy.text("type"), rolling.is_given()) {
        ("OnDelete", true) => rolling
            .shown_as_go("apps.RollingUpdateStatefulSetStrategy")
            .invalid("only allowed for updateStrategy 'RollingUpdate'"),
        ("RollingUpdate", _) if unavailable.is_given() => {
            number_or_percent(unavailable);
            unavailable.invalid_if(amount(unavailable) == 0, "cannot be 0");
            at_most_all(unavailable);
        }
        ("OnDelete" | "RollingUpdate", _) => {}
        ("", _) => strategy.required(""),
        _ => strategy.shown_as_go("apps.StatefulSetUpdateStrategy").invalid("must be 'RollingUpdate' or 'OnDelete'"),
    }
}

#[cfg(test)]
mod tests {
    use machinery::field::FieldPath;
    use machinery::{Release, json};

    use super::*;
    use schema::at::errors_at;

    #[test]
    fn rollouts_are_checked_by_kind() {
        let all = |kind: &str, spec: Value| -> Vec<String> {
            let errors = errors_at(&FieldPath::new("spec"), &spec, None, Release::NEWEST, |at| check(kind, at));
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
