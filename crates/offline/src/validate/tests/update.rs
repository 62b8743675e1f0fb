//! Updates: which old object is the former state of which, and what a server would have made of it.

use super::{CRD, Files, boat, findings, inputs};
use crate::validate::*;

fn settings_of(stage: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: shop}}\nimmutable: true\ndata: {{stage: {stage}}}\n"
    )
}

fn old(old: &str, names: &[&str]) -> Settings {
    Settings { old: Some(old.to_owned()), ..inputs(names) }
}

const IMMUTABLE: &str = "data: Forbidden: field is immutable when `immutable` is set";

#[tokio::test]
async fn the_former_state_is_that_of_the_same_file() {
    let ambiguous = "metadata.name: not checked: --old has this object in several files: old/dev/cm.yaml, old/prod/cm.yaml; pass the \
                     manifests of one environment, or --old with a path";
    let (dev, prod) = (("old/dev/cm.yaml", "dev"), ("old/prod/cm.yaml", "prod"));
    for (name, before, now, input, want) in [
        (
            "nothing is changed",
            vec![dev, prod],
            vec![("new/dev/cm.yaml", "dev"), ("new/prod/cm.yaml", "prod")],
            "new",
            vec![],
        ),
        (
            "one is changed to the other",
            vec![dev, prod],
            vec![("new/dev/cm.yaml", "prod"), ("new/prod/cm.yaml", "prod")],
            "new",
            vec![format!("new/dev/cm.yaml:5:1: {IMMUTABLE}")],
        ),
        (
            "another environment is added",
            vec![dev, prod],
            vec![("new/dev/cm.yaml", "dev"), ("new/prod/cm.yaml", "prod"), ("new/test/cm.yaml", "test")],
            "new",
            vec![],
        ),
        (
            "the file is moved",
            vec![dev],
            vec![("new/apps/dev.yaml", "x")],
            "new",
            vec![format!("new/apps/dev.yaml:5:1: {IMMUTABLE}")],
        ),
        (
            "the folder is moved",
            vec![dev, prod],
            vec![("new/a/dev/cm.yaml", "dev"), ("new/a/prod/cm.yaml", "x")],
            "new",
            vec![format!("new/a/prod/cm.yaml:5:1: {IMMUTABLE}")],
        ),
        (
            "several may have been moved",
            vec![dev, prod],
            vec![("new/cm.yaml", "dev")],
            "new",
            vec![format!("new/cm.yaml:3:18: {ambiguous}")],
        ),
        ("a part of the directory", vec![dev, prod], vec![("new/dev/cm.yaml", "dev")], "new/dev", vec![]),
    ] {
        let texts: Vec<(&str, String)> =
            before.iter().chain(&now).map(|(file, stage)| (*file, settings_of(stage))).collect();
        let texts: Vec<(&str, &str)> = texts.iter().map(|(file, text)| (*file, text.as_str())).collect();
        assert_eq!(findings(&Files::new(&texts), old("old", &[input])).await, want, "{name}");
    }
}

/// Objects to which the server adds what an update must not lack or change.
const UNCHANGED: &[&str] = &[
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}\n",
    "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIP: None, selector: {a: b}, ports: [{port: 1}]}\n",
    "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {a: b}, ports: [{port: 1}]}\n",
    "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: ExternalName, externalName: a.example.com}\n",
    "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: NodePort, ipFamilyPolicy: PreferDualStack, ports: [{port: 1}]}\n",
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], dataSource: {name: s, kind: VolumeSnapshot, apiGroup: snapshot.storage.k8s.io}, resources: {requests: {storage: 1Gi}}}\n",
    "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a, namespace: shop}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n",
    "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: shop}\n",
    "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}], tolerations: [{key: k, operator: Exists}]}\n",
    "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: a}\nspec: {signerName: example.com/s, usages: [client auth], request: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIV01IMENBUUF3R3pFWk1CY0dBMVVFQXd3UVlTNWxlR0Z0Y0d4bExtTnZiVEJaTUJNR0J5cUdTTTQ5QWdFRwpDQ3FHU000OUF3RUhBMElBQk5rPQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K}\n",
    "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {serviceName: s, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}, volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}\n",
    CRD,
];

#[tokio::test]
async fn what_was_created_before_can_be_applied_again() {
    for text in UNCHANGED {
        let labelled = text.replacen("metadata: {", "metadata: {labels: {now: there}, ", 1);
        assert_ne!(labelled, *text);
        for new in [*text, &labelled] {
            let files = Files::new(&[("old/a.yaml", text), ("new/a.yaml", new)]);
            let created = findings(&files, inputs(&["old"])).await;
            let updated = findings(&files, old("old", &["new"])).await;
            // a request that is no certificate request is refused before and after
            let errors = |found: &[String]| found.iter().filter(|finding| !finding.contains("spec.request")).count();
            assert_eq!((errors(&created), errors(&updated)), (0, 0), "{new}: {created:?} {updated:?}");
        }
    }
}

#[tokio::test]
async fn what_a_server_has_stored_keeps_its_fields() {
    let stored = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, uid: u-1}\nspec:\n  selector: {matchLabels: {controller-uid: \
                  u-1}}\n  template:\n    metadata: {labels: {controller-uid: u-1}}\n    spec: {restartPolicy: Never, containers: [{name: \
                  c, image: i}]}\n";
    let files = Files::new(&[("old/a.yaml", stored), ("new/a.yaml", stored)]);
    assert_eq!(findings(&files, old("old", &["new"])).await, [""; 0]);
    let changed = stored.replace("image: i", "image: j");
    let files = Files::new(&[("old/a.yaml", stored), ("new/a.yaml", &changed)]);
    let found = findings(&files, old("old", &["new"])).await;
    assert!(
        matches!(&found[..], [one] if one.contains("spec.template: Invalid value") && one.ends_with("field is immutable")),
        "{found:?}"
    );
}

/// Objects that would affect others if they were stored, many times over: each run must find the same.
#[tokio::test]
async fn no_object_affects_the_verdict_on_another_and_nothing_is_called() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("https://{}/collect", listener.local_addr().unwrap());
    let hook = |kind: &str, i: usize| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}WebhookConfiguration\nmetadata: {{name: hook{i}}}\nwebhooks:\n- name: \
             hook.example.com\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  failurePolicy: Fail\n  clientConfig: {{url: {url:?}}}\n  \
             rules: [{{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}}]\n"
        )
    };
    let mut text = String::new();
    for i in 0..60 {
        text += &format!("{}---\n{}---\n", hook("Validating", i), hook("Mutating", i));
        text += &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{i}}}\ndata: {{a: b}}\n---\n");
        text += &format!(
            "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {{name: v1.apps}}\nspec: {{group: apps, version: v1, \
             groupPriorityMinimum: 1, versionPriority: 1, insecureSkipTLSVerify: true, service: {{name: s{i}, namespace: shop}}}}\n---\n"
        );
        text += &format!(
            "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{name: r{i}}}\nspec: {{selector: {{matchLabels: {{a: b}}}}, template: \
             {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}}}\n---\n"
        );
    }
    let files = Files::new(&[("a.yaml", &text)]);
    let (first, outcome) = files.report(old("a.yaml", &["a.yaml"])).await;
    assert_eq!(outcome.summary.errors, 0, "{first}");
    for _ in 0..2 {
        assert_eq!(files.report(old("a.yaml", &["a.yaml"])).await.0, first);
    }
    let called = listener.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(called, Err(std::io::ErrorKind::WouldBlock));
}

#[tokio::test]
async fn conversion_webhooks_are_not_called() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let at = listener.local_addr().unwrap();
    let conversion = format!(
        "  conversion: {{strategy: Webhook, webhook: {{conversionReviewVersions: [v1], clientConfig: {{url: 'https://{at}/c'}}}}}}\n  versions:\n"
    );
    let crd = CRD.replace("  versions:\n", &conversion)
        + "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n";
    let newer = boat("{length: 1}").replace("example.com/v1", "example.com/v2");
    let files = Files::new(&[("crd.yaml", &crd), ("old/a.yaml", &boat("{length: 1}")), ("a.yaml", &newer)]);
    for settings in [inputs(&["a.yaml"]), old("old", &["a.yaml"])] {
        let found = findings(&files, Settings { crds: vec!["crd.yaml".to_owned()], ..settings }).await;
        assert!(matches!(&found[..], [one] if one.contains("nothing is called without a server")), "{found:?}");
    }
    assert_eq!(listener.accept().map(|_| ()).map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
}

#[tokio::test]
async fn generated_values_in_messages_are_the_same_in_every_run() {
    let job = UNCHANGED[0];
    let changed = job.replace("image: i", "image: j");
    let files = Files::new(&[("old/a.yaml", job), ("new/a.yaml", &changed)]);
    let first = findings(&files, old("old", &["new"])).await;
    assert!(matches!(&first[..], [one] if one.contains("controller-uid")), "{first:?}");
    assert_eq!(findings(&files, old("old", &["new"])).await, first);
}
