//! Cases of files. The errors are those of kube-apiserver 1.37.2 for the same files.

use ManifestPlugin::{MutatingPolicies, MutatingWebhooks, ValidatingPolicies, ValidatingWebhooks};
use machinery::json;

use super::*;

const PREFIX: &str = "apiVersion: admissionregistration.k8s.io/v1\n";

/// A policy with some lines in its spec.
fn policy(name: &str, more: &str) -> String {
    let rule = "{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}";
    format!(
        "{PREFIX}kind: ValidatingAdmissionPolicy\nmetadata: {{name: {name}}}\nspec:\n  {more}\n  \
         matchConstraints: {{resourceRules: [{rule}]}}\n  validations: [{{expression: 'true'}}]\n"
    )
}

fn binding(name: &str, policy: &str, more: &str) -> String {
    let metadata =
        format!("metadata: {{name: {name}}}\nspec: {{policyName: {policy}, validationActions: [Deny]{more}}}");
    format!("{PREFIX}kind: ValidatingAdmissionPolicyBinding\n{metadata}\n")
}

fn hooks(kind: &str, name: &str, client: Value) -> Value {
    let hook = json!({
        "name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": client
    });
    let api_version = "admissionregistration.k8s.io/v1";
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "webhooks": [hook]})
}

fn parse(plugin: ManifestPlugin, files: &[(&str, &str)]) -> Result<Manifests, String> {
    let files: Vec<ManifestFile> = files
        .iter()
        .map(|(path, content)| ManifestFile { path: (*path).to_owned(), content: content.as_bytes().to_vec() })
        .collect();
    Manifests::parse(plugin, &files, &FeatureGates::default())
}

fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(name).collect()
}

#[test]
fn policies_and_bindings_are_read_from_all_files() {
    let first = [policy("b.static.k8s.io", ""), binding("b.static.k8s.io", "a.static.k8s.io", "")].join("---\n");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "List", "items": []},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBindingList", "items": [
            {"metadata": {"name": "a.static.k8s.io"}, "spec": {
                "policyName": "b.static.k8s.io", "validationActions": ["Audit"], "matchResources": {}
            }}
        ]}
    ]});
    let files = [("a.yaml", &*first), ("b.yaml", &policy("a.static.k8s.io", "")), ("c.json", &list.to_json())];
    let found = parse(ValidatingPolicies, &files).unwrap();
    assert_eq!(names(&found.objects), ["a.static.k8s.io", "b.static.k8s.io"]);
    assert_eq!(names(&found.bindings), ["a.static.k8s.io", "b.static.k8s.io"]);
    assert_eq!(found.objects[0].str_at(&["spec", "failurePolicy"]), "Fail", "defaults are set");
    assert_eq!(found.bindings[0].str_at(&["spec", "matchResources", "matchPolicy"]), "Equivalent");
}

#[test]
fn webhooks_are_read() {
    let url = json!({"url": "https://localhost/a"});
    let file = hooks("MutatingWebhookConfiguration", "a.static.k8s.io", url.clone()).to_json();
    let found = parse(MutatingWebhooks, &[("a.json", &file)]).unwrap();
    let hook = &found.objects[0].get("webhooks").and_then(Value::as_array).unwrap()[0];
    assert_eq!((hook.str_at(&["reinvocationPolicy"]), hook.str_at(&["failurePolicy"])), ("Never", "Fail"));
    let file = hooks("ValidatingWebhookConfiguration", "a.static.k8s.io", url).to_json();
    assert_eq!(names(&parse(ValidatingWebhooks, &[("a.json", &file)]).unwrap().objects), ["a.static.k8s.io"]);
}

#[test]
fn hashes_are_those_of_the_contents() {
    assert_eq!(parse(ValidatingPolicies, &[]).unwrap().hash, "");
    assert_eq!(parse(ValidatingPolicies, &[("a.yaml", "")]).unwrap().hash, "");
    let of = |content: &str| hash(&[ManifestFile { path: String::new(), content: content.into() }]);
    assert_eq!(of("a"), format!("sha256:{}", base::digest::sha256_hex(b"a\0")));
    assert_ne!(of("a"), of("b"));
}

#[test]
fn invalid_files_of_policies() {
    let good = policy("p.static.k8s.io", "");
    let with = |binding: String| format!("{good}---\n{binding}");
    let name = "b.static.k8s.io";
    let cases = [
        (format!("# a\n---\n{good}"), "Object 'Kind' is missing in '# a'"),
        ("a: b".to_owned(), "Object 'Kind' is missing in 'a: b'"),
        ("kind: ValidatingAdmissionPolicy".to_owned(), "Object 'apiVersion' is missing in "),
        ("7".to_owned(), "couldn't get version/kind; json parse error: json: cannot unmarshal number"),
        ("a: [".to_owned(), "yaml: line 1: did not find expected node content"),
        ("{a: b}".to_owned(), "couldn't get version/kind; json parse error: invalid character 'a'"),
        (
            "kind: ConfigMap\napiVersion: v1".to_owned(),
            r#"no kind "ConfigMap" is registered for version "v1" in scheme"#,
        ),
        ("kind: Status\napiVersion: v1".to_owned(), "unsupported resource type *v1.Status"),
        (good.replace("k8s.io/v1", "k8s.io/v1beta1"), "unsupported resource type *v1beta1.ValidatingAdmissionPolicy"),
        (format!("{PREFIX}kind: MutatingAdmissionPolicy"), "unsupported resource type *v1.MutatingAdmissionPolicy"),
        (policy(name, "foo: 1"), r#"strict decoding error: unknown field "spec.foo""#),
        (policy(name, "failurePolicy: Fail\n  failurePolicy: Fail"), "key \"failurePolicy\" already set in map"),
        (
            policy(name, "variables: 7"),
            "json: cannot unmarshal number into Go struct field ValidatingAdmissionPolicySpec.spec.variables of type []v1.Variable",
        ),
        (policy("p", ""), r#""p" in file "a.yaml" must have a name ending with ".static.k8s.io""#),
        (
            policy("''", ""),
            r#"ValidatingAdmissionPolicy "": metadata.name: Required value: name or generateName is required"#,
        ),
        (
            with(policy("p.static.k8s.io", "")),
            r#"duplicate name "p.static.k8s.io" found in file "a.yaml" (previously seen in "a.yaml")"#,
        ),
        (
            policy("p.static.k8s.io", "paramKind: {apiVersion: v1, kind: ConfigMap}"),
            r#"ValidatingAdmissionPolicy "p.static.k8s.io": spec.paramKind is not supported for static manifests"#,
        ),
        (
            policy("p.static.k8s.io", "failurePolicy: X"),
            r#"ValidatingAdmissionPolicy "p.static.k8s.io": spec.failurePolicy: Unsupported value: "X": supported values: "Fail", "Ignore""#,
        ),
        (
            policy("p.static.k8s.io", "variables: [{name: a, expression: object.}]"),
            r#"spec.variables[0].expression: Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error"#,
        ),
        (
            with(binding(name, "p.static.k8s.io", ", paramRef: {name: x, parameterNotFoundAction: Deny}")),
            r#"binding "b.static.k8s.io": spec.paramRef is not supported for static manifests"#,
        ),
        (
            with(binding(name, "''", "")),
            r#"ValidatingAdmissionPolicyBinding "b.static.k8s.io": spec.policyName: Required value"#,
        ),
        (
            with(binding(name, "q", "")),
            r#"binding "b.static.k8s.io": spec.policyName "q" must end with ".static.k8s.io""#,
        ),
    ];
    for (content, want) in cases {
        let found = parse(ValidatingPolicies, &[("a.yaml", &content)]).map(|found| found.hash);
        let is_named = |why: &String| why.starts_with("error loading a.yaml: ") && why.contains(want);
        assert!(found.as_ref().is_err_and(is_named), "{found:?}\n{want}");
    }
}

#[test]
fn errors_name_the_file() {
    let found = parse(ValidatingPolicies, &[("a.yaml", "--- x\na: b")]).unwrap_err();
    assert_eq!(found, r#"failed to split YAML documents in file "a.yaml": invalid Yaml document separator: x"#);
    let files = [("a.yml", &*policy("p.static.k8s.io", "")), ("b.yaml", &policy("p.static.k8s.io", ""))];
    let found = parse(ValidatingPolicies, &files).unwrap_err();
    let want =
        r#"error loading b.yaml: duplicate name "p.static.k8s.io" found in file "b.yaml" (previously seen in "a.yml")"#;
    assert_eq!(found, want);
    let found =
        parse(ValidatingPolicies, &[("a.yaml", &binding("b.static.k8s.io", "p.static.k8s.io", ""))]).unwrap_err();
    let want = r#"binding "b.static.k8s.io" references policy "p.static.k8s.io" which does not exist in the manifest directory"#;
    assert_eq!(found, want);
}

#[test]
fn invalid_lists() {
    let of = |more: Value| {
        let mut list =
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyList"});
        more.as_object().unwrap().iter().for_each(|(field, value)| list.set_at(&[field], value.clone()));
        list
    };
    let cases = [
        (
            of(json!({"x": 1, "metadata": {"y": 1}, "items": [{"metadata": {"name": "a"}, "spec": {"z": 1}}]})),
            r#"strict decoding error: unknown field "items[0].spec.z", unknown field "metadata.y", unknown field "x""#,
        ),
        (
            of(json!({"items": [{"metadata": {"name": "a"}, "spec": {"variables": 1}}]})),
            "json: cannot unmarshal number into Go struct field ValidatingAdmissionPolicySpec.items.spec.variables of type []v1.Variable",
        ),
        (
            of(json!({"items": [{}]})),
            r#"ValidatingAdmissionPolicy "": [metadata.name: Required value: name or generateName is required, "#,
        ),
        (
            of(json!({"kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap"}]})),
            r#"failed to decode list item: no kind "ConfigMap" is registered for version "v1""#,
        ),
        (of(json!({"kind": "List", "items": [null]})), "failed to decode list item: Object 'Kind' is missing in "),
        (of(json!({"kind": "List", "foo": 1})), r#"strict decoding error: unknown field "foo""#),
        (of(json!({"kind": "List", "items": 7})), "json: cannot unmarshal number"),
    ];
    for (list, want) in cases {
        let found = parse(ValidatingPolicies, &[("a.json", &list.to_json())]).map(|found| found.hash);
        let want = format!("error loading a.json: {want}");
        assert!(found.as_ref().is_err_and(|why| why.starts_with(&want)), "{found:?}\n{want}");
    }
}

#[test]
fn invalid_webhooks() {
    let service = json!({"service": {"name": "a", "namespace": "b"}});
    let kind = "ValidatingWebhookConfiguration";
    let cases = [
        (
            hooks(kind, "h.static.k8s.io", service),
            r#"webhook "a.b.c" in "h.static.k8s.io" (file "a.json"): clientConfig.service is not supported for static manifests; use clientConfig.url instead"#,
        ),
        (
            hooks(kind, "h.static.k8s.io", json!({})),
            r#"ValidatingWebhookConfiguration "h.static.k8s.io": webhooks[0].clientConfig: Required value: exactly one of url or service is required"#,
        ),
        (hooks(kind, "h", json!({"url": "https://a"})), r#""h" in file "a.json" must have a name ending with"#),
        (
            hooks("MutatingWebhookConfiguration", "h", json!({})),
            "unsupported resource type *v1.MutatingWebhookConfiguration",
        ),
    ];
    for (object, want) in cases {
        let found = parse(ValidatingWebhooks, &[("a.json", &object.to_json())]).map(|found| found.hash);
        let want = format!("error loading a.json: {want}");
        assert!(found.as_ref().is_err_and(|why| why.starts_with(&want)), "{found:?}\n{want}");
    }
    let twice = r#"{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "a", "name": "b"}}"#;
    let found = parse(MutatingWebhooks, &[("a.json", twice)]).unwrap_err();
    assert_eq!(found, r#"error loading a.json: strict decoding error: duplicate field "metadata.name""#);
}

#[test]
fn any_bytes_are_an_error_and_not_a_panic() {
    let run = || {
        let deep = |open: &str| open.repeat(200_000);
        for content in
            [&*deep("["), &deep("{\"a\":"), &deep("- "), &deep("---\n"), "\0", "\u{feff}", "k8s\0\u{1}", "- a"]
        {
            assert!(parse(MutatingPolicies, &[("a.yaml", content)]).is_err(), "{}", &content[..content.len().min(20)]);
        }
        let invalid = [ManifestFile { path: "a.yaml".to_owned(), content: vec![0xff, 0xfe, 0x80] }];
        assert!(Manifests::parse(MutatingPolicies, &invalid, &FeatureGates::default()).is_err());
        let nested =
            format!("{}{}", "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[".repeat(4000), "]}".repeat(4000));
        assert!(parse(MutatingPolicies, &[("a.json", &nested)]).unwrap().objects.is_empty());
    };
    // as much as the threads of a server have
    std::thread::Builder::new().stack_size(64 << 20).spawn(run).unwrap().join().unwrap();
}
