use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, json};

use crate::catalogue::CATALOGUE;
use crate::stages;
use resource::builtin::GroupSource;
use resource::builtin::rules::{Pass, Ruled, check, drop_gated, in_order, set_defaults};
use schema::at::{CheckStage, FoundError, errors_of};

use super::{catalogue_of, problem};

fn ruled(name: &'static str) -> &'static Ruled {
    of(name).unwrap()
}

fn of(name: &'static str) -> Option<&'static Ruled> {
    CATALOGUE.rules().of(name)
}

#[test]
fn every_line_has_a_meaning() {
    assert_eq!(CATALOGUE.check(), Ok(()));
    for (line, want) in [
        ("core.v1.Zog name required", "unknown struct"),
        ("core.v1.EnvVar,core.v1.Zog name required", "unknown struct"),
        ("core.v1.EnvVar zog required", "unknown field"),
        ("core.v1.EnvVar name,zog required", "unknown field"),
        ("core.v1.EnvVar name", "no struct, field and rule"),
        ("core.v1.EnvVar like core.v1.EnvFromSource", "unknown package"),
        ("core.v1.EnvVar name requird", "unknown rule"),
        ("core.v1.EnvVar name immutable shown", "unknown rule"),
        ("core.v1.EnvVar name on-create only", "unknown rule"),
        ("core.v1.EnvVar name union", "unknown rule"),
        ("core.v1.EnvVar name +requird", "unknown rule"),
        ("core.v1.EnvVar name +required here", "unknown rule"),
        ("core.v1.EnvVar . required", "unknown rule"),
        ("core.v1.EnvVar . order name,zog", "unknown field"),
        ("core.v1.EnvVar name order name", "no struct"),
        ("core.v1.EnvVar valueFrom order fieldRef,zog", "unknown field"),
        ("core.v1.EnvVar valueFrom hides always zog", "unknown field"),
        ("core.v1.EnvVar valueFrom hides never fieldRef", "unknown condition"),
        ("core.v1.EnvVar name in", "an empty name"),
        ("core.v1.EnvVar name check zog", "unknown check"),
        ("core.v1.EnvVar name +format zog", "unknown format"),
        ("core.v1.EnvVar name = {", "no JSON"),
        ("core.v1.EnvVar name = 1 if value", "no field and values"),
        ("core.v1.EnvVar name = 1 if zog=a", "unknown field"),
        ("core.v1.EnvVar name min", "no number"),
        ("core.v1.EnvVar name min 1 2", "no number"),
        ("core.v1.EnvVar name range 1", "not two numbers"),
        ("core.v1.EnvVar name +max-items few", "no number"),
        ("core.v1.EnvVar name +if type", "no field and value"),
        ("core.v1.EnvVar name +if type=a", "unknown field"),
        ("core.v1.PodSpec containers +unique name,zog", "unknown field"),
        ("core.v1.EnvVar name gated Zog", "unknown gate"),
        ("core.v1.EnvVar name if value", "no finding"),
        ("core.v1.EnvVar name if value refused", "unknown finding"),
        ("core.v1.EnvVar name if value check zog", "unknown check"),
        ("core.v1.EnvVar name if value invalid:zog why", "unknown form of a value"),
        ("core.v1.EnvVar name if valueFrom.zog=a required", "unknown field"),
        ("core.v1.EnvVar name if value.zog required", "unknown field"),
        ("core.v1.EnvVar zog if value required", "unknown field"),
        ("core.v1.EnvVar name if value[a] required", "no field and values"),
        ("core.v1.EnvVar name if since=1.x required", "no release"),
        ("core.v1.EnvVar name if@zog value required", "unknown stage"),
    ] {
        let text: &'static str = format!("# a comment\n{line}").leak();
        let found = problem(GroupSource { folder: "group", rules: text, ..GroupSource::EMPTY });
        assert_eq!(found, Some(format!("group/rules.txt:2: {want}: {line}")));
    }
}

#[test]
fn findings_depend_on_conditions() {
    const LINES: &str = "batch.v1.JobStatus failed if .<was:.,since=1.36 invalid less
batch.v1.JobStatus ready if .>active forbidden more
batch.v1.JobStatus startTime if !.,conditions{Complete} required missing
batch.v1.JobStatus completionTime if .<startTime invalid:null early
batch.v1.JobStatus completedIndexes if was:.!=,.=,changed:. invalid gone
batch.v1.JobStatus conditions if #.>1,!.[type=A|B] in none
batch.v1.JobStatus . if uncountedTerminatedPods.failed[],!update invalid:empty counted";
    let of = catalogue_of(GroupSource { rules: LINES, ..GroupSource::EMPTY }).rules().of("batch.v1.JobStatus");
    let done = |kind: &str, status: &str| json!({"type": (kind), "status": (status)});
    for (status, old, want) in [
        (json!({"failed": 1, "ready": 1, "active": 1}), json!({"failed": 1}), ""),
        (json!({"ready": 1}), json!({"failed": 1}), "failed: Invalid value: 0: less|ready: Forbidden: more"),
        (json!({"conditions": [(done("Complete", "False"))]}), json!({}), ""),
        (json!({"conditions": [(done("Complete", "True"))]}), json!({}), "startTime: Required value: missing"),
        (
            json!({"startTime": "2026-01-01T00:00:01Z", "completionTime": "2026-01-01T00:00:00Z"}),
            json!({}),
            "completionTime: Invalid value: null: early",
        ),
        (json!({}), json!({"completedIndexes": "0"}), "completedIndexes: Invalid value: \"\": gone"),
        (json!({"conditions": [(done("A", "")), (done("C", ""))]}), json!({}), ""),
        (json!({"uncountedTerminatedPods": {"failed": ["a"]}}), json!({}), ""),
        (json!({"uncountedTerminatedPods": {"failed": ["a"]}}), Value::Null, ": Invalid value: \"\": counted"),
    ] {
        let old = Some(&old).filter(|old| !old.is_null());
        let found = errors_of(&status, old, Release::NEWEST, |at| check(Pass::Conditional, at, of));
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"), want, "{status}");
    }
}

#[test]
fn gates_drop_fields_and_their_defaults() {
    let group = |preemption: Value| json!({"spec": {"preemptionPolicy": (preemption)}});
    let shape = ruled("scheduling.v1beta1.PodGroup");
    for (is_on, want) in [(true, Some("PreemptLowerPriority")), (false, None)] {
        let mut defaulted = json!({"spec": {}});
        set_defaults(&mut defaulted, shape, &|_| is_on);
        assert_eq!(defaulted.at(&["spec", "preemptionPolicy"]).and_then(Value::as_str), want);
        let mut given = group(Value::from("Never"));
        drop_gated(&mut given, None, shape, &|_| is_on);
        assert_eq!(given.at(&["spec", "preemptionPolicy"]).is_some(), is_on);
    }
    let mut given = group(Value::from("Never"));
    drop_gated(&mut given, Some(&group(Value::from("Never"))), shape, &|_| false);
    assert_eq!(given, group(Value::from("Never")));
}

#[test]
fn defaults_depend_on_other_fields() {
    let now = |value: &Value| machinery::time::parse_rfc3339(value.str_at(&["timeAdded"])).is_some();
    for (go, given, want) in [
        ("resource.v1.DeviceSubRequest", json!({}), json!({"allocationMode": "ExactCount", "count": 1})),
        ("resource.v1beta1.DeviceSubRequest", json!({}), json!({"allocationMode": "ExactCount", "count": 1})),
        ("resource.v1.ExactDeviceRequest", json!({"allocationMode": "All"}), json!({"allocationMode": "All"})),
        (
            "rbac.v1.Subject",
            json!({"kind": "Group"}),
            json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io"}),
        ),
        ("rbac.v1.Subject", json!({"kind": "ServiceAccount"}), json!({"kind": "ServiceAccount"})),
        ("apps.v1.DeploymentStrategy", json!({"type": "Recreate"}), json!({"type": "Recreate"})),
        (
            "apps.v1.DeploymentStrategy",
            json!({}),
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}),
        ),
        (
            "flowcontrol.v1.QueuingConfiguration",
            json!({"queues": 0}),
            json!({"handSize": 8, "queues": 64, "queueLengthLimit": 50}),
        ),
    ] {
        let mut found = given;
        set_defaults(&mut found, ruled(go), &|_| true);
        assert_eq!(found, want, "{go}");
    }
    for go in ["resource.v1.DeviceTaint", "resource.v1beta1.DeviceTaint"] {
        let mut taint = json!({});
        set_defaults(&mut taint, ruled(go), &|_| true);
        assert!(now(&taint), "{go}");
    }
}

#[test]
fn defaults_apply_at_every_depth() {
    let mut job = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "livenessProbe": {}}]}}}});
    set_defaults(&mut job, ruled("apps.v1.ReplicaSet"), &|_| false);
    assert_eq!(job.at(&["spec", "replicas"]), Some(&json!(1)));
    let spec = job.at(&["spec", "template", "spec"]).unwrap();
    assert_eq!(spec.str_at(&["dnsPolicy"]), "ClusterFirst");
    let container = &spec.get("containers").and_then(Value::as_array).unwrap()[0];
    assert_eq!(container.at(&["livenessProbe", "periodSeconds"]), Some(&json!(10)));
}

#[test]
fn violations_are_reported_at_their_position() {
    let pod = json!({"spec": {"restartPolicy": "Often", "containers": [{"env": [{"value": "x"}]}]}});
    let errors =
        errors_of(&pod, None, Release::NEWEST, |at| check(Pass::Written { of_status: false }, at, of("core.v1.Pod")));
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "spec.containers[0].env[0].name: Required value",
            "spec.restartPolicy: Unsupported value: \"Often\": supported values: \"Always\", \"OnFailure\", \"Never\""
        ]
    );
}

#[test]
fn errors_of_new_and_changed_fields() {
    let of = |request: Value| json!({"spec": {"devices": {"requests": [request]}}});
    let sub = |name: &str, class: &str| json!({"name": (name), "deviceClassName": (class)});
    let two = of(json!({"name": "a", "firstAvailable": [(sub("b", "c")), (sub("b", "C"))]}));
    let texts = |new: &Value, old: Option<&Value>| -> Vec<String> {
        errors_of(new, old, Release::NEWEST, |at| {
            check(Pass::Declared, at, super::rules::of("resource.v1.ResourceClaim"))
        })
        .iter()
        .map(ToString::to_string)
        .collect()
    };
    let found = texts(&two, None);
    assert!(found[0].starts_with("spec.devices.requests[0].firstAvailable[1]: Duplicate value: {\"name\":\"b\""));
    assert!(found[1].starts_with("spec.devices.requests[0].firstAvailable[1].deviceClassName: Invalid value: \"C\""));
    assert_eq!(found.len(), 2);
    assert_eq!(texts(&two, Some(&two)), [""; 0]);
    let changed = of(json!({"name": ""}));
    assert_eq!(texts(&changed, Some(&two)), ["spec: Invalid value: null: field is immutable"]);
}

#[test]
fn one_member_of_a_union_is_set() {
    let slice = |attribute: Value| json!({"spec": {"devices": [{"attributes": {"a": (attribute)}}]}});
    let texts = |attribute: Value| -> Vec<String> {
        let found = errors_of(&slice(attribute), None, Release::NEWEST, |at| {
            check(Pass::Declared, at, of("resource.v1.ResourceSlice"))
        });
        found.iter().map(ToString::to_string).collect()
    };
    assert_eq!(texts(json!({"int": 1})), [""; 0]);
    let head = "spec.devices[0].attributes[a]: Invalid value: ";
    assert!(texts(json!({}))[0].starts_with(&format!("{head}\"\": must specify one of: `int`, `bool`")));
    let both = texts(json!({"int": 1, "bool": true}));
    assert!(both[0].starts_with(&format!("{head}\"{{int, bool}}\": must specify exactly one of: `int`")));
}

#[test]
fn parts_have_an_order_of_their_own() {
    let path = |text: &str| FieldPath::new(text);
    let errors = vec![
        FieldError::forbidden(&path("spec"), "changed"),
        FieldError::duplicate(&path("spec.containers[0].name"), &Value::Null),
        FieldError::required(&path("spec.containers[1].name"), ""),
        FieldError::required(&path("spec.containers[0].image"), ""),
        FieldError::required(&path("spec.volumes[1].nfs.path"), ""),
        FieldError::required(&path("spec.volumes[1].nfs.server"), ""),
    ];
    let want = [
        errors[5].clone(),
        errors[4].clone(),
        errors[3].clone(),
        errors[1].clone(),
        errors[2].clone(),
        errors[0].clone(),
    ];
    let found = errors.into_iter().map(|error| FoundError { error, stage: CheckStage::Field });
    assert_eq!(in_order(of("core.v1.Pod"), found.collect()), want);
}

/// Errors of one field that several functions of kube-apiserver check.
#[test]
fn stages_have_positions() {
    let found = |field: &str, stage| FoundError { error: FieldError::forbidden(&FieldPath::new(field), ""), stage };
    let cases = [
        (
            "core.v1.Pod",
            vec![
                found("spec.tolerations[0].key", CheckStage::Field),
                found("spec.containers[0].securityContext.runAsUser", stages::SYSTEM),
                found("spec.hostNetwork", stages::HOST_USERS),
                found("spec", stages::HOST_PROCESS),
                found("spec.containers[0].ports[0].hostPort", stages::HOST_PORTS),
                found("spec.containers[1].image", CheckStage::Field),
                found("spec.restartPolicy", stages::WHOLE),
                found("spec.restartPolicy", CheckStage::Field),
                found("spec.tolerations", stages::UPDATE),
            ],
            [5, 4, 7, 3, 2, 0, 1, 6, 8],
        ),
        (
            "batch.v1.Job",
            vec![
                found("spec.completions", CheckStage::Change),
                found("spec.template.metadata.labels", stages::SELECTION),
                found("spec.template.spec.volumes[0].name", CheckStage::Field),
                found("spec.selector", CheckStage::Field),
                found("spec.backoffLimitPerIndex", CheckStage::Field),
                found("spec.backoffLimitPerIndex", CheckStage::Rule),
                found("spec.selector", stages::SELECTION),
                found("metadata.name", CheckStage::Across),
                found("metadata.name", CheckStage::Field),
            ],
            [8, 6, 5, 4, 2, 3, 1, 0, 7],
        ),
    ];
    for (kind, all, want) in cases {
        // each error has its number as the detail
        let numbered = |(number, found): (usize, FoundError)| FoundError {
            error: FieldError { detail: number.to_string(), ..found.error },
            ..found
        };
        let errors = in_order(of(kind), all.into_iter().enumerate().map(numbered).collect());
        let order: Vec<usize> = errors.iter().map(|error| error.detail.parse().unwrap()).collect();
        assert_eq!(order, want, "{kind}");
    }
}

#[test]
fn errors_are_in_the_order_of_their_kind() {
    let required =
        |path: &str| FoundError { error: FieldError::required(&FieldPath::new(path), ""), stage: CheckStage::Field };
    let changed = FieldError::forbidden(&FieldPath::new("spec.capacity"), "field is immutable");
    let changed = FoundError { error: changed, stage: CheckStage::Change };
    let found = vec![
        changed.clone(),
        required("spec.zog"),
        required("spec.csi.driver"),
        required("spec"),
        required("spec.capacity"),
        required("spec.accessModes"),
    ];
    let errors = in_order(of("core.v1.PersistentVolume"), found);
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    let want = ["spec.accessModes", "spec.capacity", "spec.csi.driver", "spec", "spec.zog", "spec.capacity"];
    assert_eq!(fields, want);
    // a kind without an order
    let errors = in_order(of("core.v1.ConfigMap"), vec![changed, required("a")]);
    assert_eq!(errors[0].field, "spec.capacity");
}
