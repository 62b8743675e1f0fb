//! Places of findings.

use super::{CRD, Files, boat, findings, inputs};
use crate::validate::*;

fn deployment(replicas: &str, container: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{a: \
         b}}}}\n  template:\n    metadata: {{labels: {{a: b}}}}\n    spec:\n      containers:\n      - {{name: b, image: i}}\n      - {container}\n"
    )
}

#[tokio::test]
async fn decoding_errors_are_at_the_values_to_blame() {
    for (text, want) in [
        (
            deployment("1", "{name: c, image: i, resources: {limits: {cpu: 1x}}}"),
            vec![
                "a.yaml:12:55: spec.template.spec.containers[1].resources.limits.cpu: Deployment in version \"v1\" cannot be handled as a Deployment: quantities must match",
            ],
        ),
        (
            deployment("'3'", "{name: c, image: i, env: [{name: A, value: yes}, {name: B, value: 5}]}"),
            vec![
                "a.yaml:5:13: Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas",
                "a.yaml:12:52: Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal bool into Go struct field EnvVar.spec.template.spec.containers.env.value",
                "a.yaml:12:75: Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value",
            ],
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: c\n  d.e: {f: g}\n".to_owned(),
            vec![
                "a.yaml:6:3: data[d.e]: ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal object into Go struct field ConfigMap.data",
            ],
        ),
        (
            "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n  data: {b: 1}\n".to_owned(),
            vec![
                "a.yaml:5:13: data.b: ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number",
            ],
        ),
    ] {
        let files = Files::new(&[("a.yaml", &text)]);
        let found = findings(&files, inputs(&["a.yaml"])).await;
        let is_right = |(found, want): (&String, &&str)| found.starts_with(want);
        assert!(found.len() == want.len() && found.iter().zip(&want).all(is_right), "{found:#?}");
    }
}

#[tokio::test]
async fn keys_with_dots_and_merged_values_have_places() {
    let schema = "length: {type: integer, maximum: 10}";
    let crd = CRD.replace(
        schema,
        &format!(
            "{schema}\n              labels: {{type: object, additionalProperties: {{type: string, maxLength: 3}}}}"
        ),
    );
    assert_ne!(crd, CRD);
    let dotted = boat("\n  labels:\n    a: ok\n    d.e/f: toolong");
    let merged = boat("\n  <<: {length: 1000}");
    let files = Files::new(&[("crd.yaml", &crd), ("a.yaml", &format!("{dotted}---\n{merged}"))]);
    let found = findings(&files, Settings { crds: vec!["crd.yaml".to_owned()], ..inputs(&["a.yaml"]) }).await;
    let wanted = ["a.yaml:7:12: spec.labels.d.e/f", "a.yaml:3:18: ", "a.yaml:13:16: spec.length"];
    let are_right = found.iter().zip(wanted).all(|(found, want)| found.starts_with(want));
    assert!(found.len() == wanted.len() && are_right, "{found:?}");
}

#[tokio::test]
async fn findings_of_definitions_are_at_their_version() {
    let crd = CRD.replace("length: {type: integer, maximum: 10}", "length: {type: integr, maximum: 10}");
    let files = Files::new(&[("a.yaml", &crd)]);
    let found = findings(&files, inputs(&["a.yaml"])).await;
    let field = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[length].type: ";
    assert!(found.iter().any(|found| found.starts_with(&format!("a.yaml:19:30: {field}"))), "{found:#?}");
}

#[tokio::test]
async fn unchecked_rules_are_a_note() {
    let boat = boat("{length: x, owner: 5}");
    let files = Files::new(&[("crd.yaml", CRD), ("a.yaml", &boat)]);
    let settings = || Settings { crds: vec!["crd.yaml".to_owned()], ..inputs(&["a.yaml"]) };
    let (report, outcome) = files.report(settings()).await;
    assert!(report.contains("info[") && report.contains("some validation rules were not checked"), "{report}");
    assert_eq!(outcome.summary.errors, 2, "{report}");
}

#[tokio::test]
async fn warnings_are_at_the_field_that_they_name() {
    let affinity = "requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: node-role.kubernetes.io/master, operator: Exists}]}]}";
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  affinity:\n    nodeAffinity:\n      {affinity}\n  containers:\n  - {{name: c, image: i, resources: {{requests: {{memory: 100m}}}}}}\n"
    );
    let files = Files::new(&[("a.yaml", &pod)]);
    let found = findings(&files, inputs(&["a.yaml"])).await;
    let has = |place: &str, text: &str| found.iter().any(|found| found.starts_with(place) && found.contains(text));
    assert!(
        has("a.yaml:7:", "node-role.kubernetes.io/master is use \"node-role.kubernetes.io/control-plane\" instead"),
        "{found:#?}"
    );
    assert!(has("a.yaml:9:56", "fractional byte value"), "{found:#?}");
}

#[tokio::test]
async fn limits_among_the_manifests_apply() {
    let limits =
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec: {limits: [{type: Container, max: {cpu: 1}}]}\n";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i, resources: {limits: {cpu: 2}}}]}\n";
    for (old, texts) in [(None, [pod, limits]), (Some("a.yaml"), [limits, pod])] {
        let files = Files::new(&[("a.yaml", &texts.join("---\n"))]);
        let found = findings(&files, Settings { old: old.map(str::to_owned), ..inputs(&["a.yaml"]) }).await;
        let want = usize::from(old.is_none());
        assert_eq!(
            found.iter().filter(|found| found.contains("maximum cpu usage per Container is 1")).count(),
            want,
            "{found:?}"
        );
    }
}
