//! Reports of manifests in files, from the first byte to the last.

mod place;
mod update;

use super::*;
use crate::findings::{Colours, Detail, Form};

pub const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              length: {type: integer, maximum: 10}
              owner: {type: string}
            x-kubernetes-validations:
            - {rule: self.owner == oldSelf.owner, message: the owner is final}
";

pub fn boat(spec: &str) -> String {
    format!("apiVersion: example.com/v1\nkind: Boat\nmetadata: {{name: a}}\nspec: {spec}\n")
}

pub struct Files(tempfile::TempDir);

impl Files {
    pub fn new(files: &[(&str, &str)]) -> Files {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Files(directory)
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    /// The report, without the path of the directory, and the outcome.
    pub async fn report(&self, settings: Settings) -> (String, Outcome) {
        let settings = Settings {
            inputs: settings.inputs.iter().map(|name| self.at(name)).collect(),
            crds: settings.crds.iter().map(|name| self.at(name)).collect(),
            policies: settings.policies.iter().map(|name| self.at(name)).collect(),
            old: settings.old.map(|name| self.at(&name)),
            ..settings
        };
        let mut out = vec![];
        let outcome = run(&settings, &mut out).await.unwrap();
        (String::from_utf8(out).unwrap().replace(&self.at(""), ""), outcome)
    }
}

pub fn inputs(names: &[&str]) -> Settings {
    Settings { inputs: names.iter().map(|name| (*name).to_owned()).collect(), ..Settings::default() }
}

/// The places and messages of the findings in a report as JSON.
pub async fn findings(files: &Files, settings: Settings) -> Vec<String> {
    let (report, _) = files.report(Settings { style: Form::Json.into(), ..settings }).await;
    let report = machinery::value::decode(report.as_bytes()).unwrap();
    let shown = |finding: &machinery::Value| {
        let number = |field: &str| finding.get(field).and_then(machinery::Value::as_int).unwrap();
        let text = |field: &str| finding.str_at(&[field]).to_owned();
        let field = if text("field").is_empty() { String::new() } else { format!("{}: ", text("field")) };
        format!("{}:{}:{}: {field}{}", text("file"), number("line"), number("column"), text("message"))
    };
    report.items_at(&["findings"]).iter().map(shown).collect()
}

#[tokio::test]
async fn each_finding_has_its_place_and_the_text_of_the_server() {
    let unknown = boat("\n  length: 11 # too long\n  sial: red");
    let list =
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: Bad_Name}\n";
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: -1\n  selector: {matchLabels: {a: \
                      b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}\n";
    let lower = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and \
                 end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    for (text, want) in [
        (boat("{length: 9}"), vec![]),
        (
            unknown,
            vec![
                "a.yaml:6:3: spec.sial: unknown field".to_owned(),
                "a.yaml:5:11: spec.length: Invalid value: 11: spec.length in body should be less than or equal to 10".to_owned(),
            ],
        ),
        (
            list.to_owned(),
            vec![format!("a.yaml:6:20: metadata.name: Invalid value: \"Bad_Name\": {lower}")],
        ),
        (
            deployment.to_owned(),
            vec!["a.yaml:5:13: spec.replicas: Invalid value: -1: must be greater than or equal to 0".to_owned()],
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: 1}\n".to_owned(),
            vec![
                "a.yaml:4:11: data.b: ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into \
                 Go struct field ConfigMap.data of type string"
                    .to_owned(),
            ],
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: 1, c: x, d: 2, e: 3, f: x}\n".to_owned(),
            [("11", 'b'), ("23", 'd'), ("29", 'e')]
                .map(|(column, field)| {
                    format!(
                        "a.yaml:4:{column}: data.{field}: ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot \
                         unmarshal number into Go struct field ConfigMap.data of type string"
                    )
                })
                .to_vec(),
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nkind: ConfigMap\n".to_owned(),
            vec!["a.yaml:4:1: key \"kind\" already set in map".to_owned()],
        ),
        (
            "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: a}\n".to_owned(),
            vec!["a.yaml:2:7: kind: no matches for kind \"Ingress\" in version \"extensions/v1beta1\"; Kubernetes 1.22 removed it; use \
                 networking.k8s.io/v1".to_owned()],
        ),
        ("a: 1\n".to_owned(), vec!["a.yaml:1:1: this is not a Kubernetes object: it has no apiVersion and no kind".to_owned()]),
        ("- a\n".to_owned(), vec!["a.yaml:1:1: the document is not an object".to_owned()]),
    ] {
        // the definition comes last
        let files = Files::new(&[("a.yaml", &format!("{text}---\n{CRD}"))]);
        assert_eq!(findings(&files, inputs(&["a.yaml"])).await, want, "{text}");
    }
}

#[tokio::test]
async fn text_shows_the_source_line() {
    let files = Files::new(&[("crd.yaml", CRD), ("a.yaml", &boat("{length: 11}"))]);
    let settings = Settings { crds: vec!["crd.yaml".to_owned()], ..inputs(&["a.yaml"]) };
    let (report, outcome) = files.report(settings).await;
    let want = "\
error[FieldValueInvalid]: spec.length: Invalid value: 11: spec.length in body should be less than or equal to 10
 --> a.yaml:4:16
  |
4 | spec: {length: 11}
  |                ^^ Boat a

1 file, 1 object: 1 error, 0 warnings
";
    assert_eq!(report, want);
    let summary = Summary { files: 1, objects: 1, invalid: 1, errors: 1, ..Summary::default() };
    assert_eq!(outcome, Outcome { summary, is_incomplete: false });
}

#[tokio::test]
async fn other_forms() {
    let files = Files::new(&[("a.yaml", &format!("{CRD}---\n{}", boat("{length: 11}")))]);
    for (form, want) in [
        (
            Form::Github,
            "::error file=a.yaml,line=27,col=16,endColumn=18,title=Boat a::spec.length: Invalid value: 11: spec.length in body \
             should be less than or equal to 10\n1 file, 2 objects: 1 error, 0 warnings\n",
        ),
        (
            Form::Junit,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"pintle\">\n  <testsuite name=\"a.yaml\" tests=\"2\" \
             failures=\"1\" skipped=\"0\">\n    <testcase classname=\"a.yaml\" name=\"CustomResourceDefinition boats.example.com\"/>\n    \
             <testcase classname=\"a.yaml\" name=\"Boat a\">\n      <failure type=\"FieldValueInvalid\" message=\"spec.length: \
             Invalid value: 11: spec.length in body should be less than or equal to 10\">a.yaml:27: spec.length: Invalid value: \
             11: spec.length in body should be less than or equal to 10</failure>\n    </testcase>\n  </testsuite>\n\
             </testsuites>\n",
        ),
    ] {
        let (report, _) = files.report(Settings { style: form.into(), ..inputs(&["a.yaml"]) }).await;
        assert_eq!(report, want);
    }
    let (report, _) = files.report(Settings { style: Form::Sarif.into(), ..inputs(&["a.yaml"]) }).await;
    let report = machinery::value::decode(report.as_bytes()).unwrap();
    let run = &report.items_at(&["runs"])[0];
    let result = &run.items_at(&["results"])[0];
    assert_eq!(result.str_at(&["ruleId"]), "FieldValueInvalid");
    let region = &result.items_at(&["locations"])[0].at(&["physicalLocation", "region"]).unwrap().to_json();
    assert_eq!(region, r#"{"endColumn":18,"startColumn":16,"startLine":27}"#);
    let rule = &run.items_at(&["tool", "driver", "rules"])[0];
    assert_eq!(rule.str_at(&["id"]), "FieldValueInvalid");
    assert_eq!(rule.str_at(&["shortDescription", "text"]), "A value is invalid");
    assert_eq!(run.items_at(&["invocations"])[0].to_json(), r#"{"executionSuccessful":true}"#);
}

#[tokio::test]
async fn fingerprints_depend_on_neither_lines_nor_values() {
    let fingerprints = async |text: &str| {
        let files = Files::new(&[("crd.yaml", CRD), ("a.yaml", text)]);
        let (report, _) = files.report(Settings { style: Form::Sarif.into(), ..inputs(&["crd.yaml", "a.yaml"]) }).await;
        let report = machinery::value::decode(report.as_bytes()).unwrap();
        let results = report.items_at(&["runs"])[0].items_at(&["results"]).to_vec();
        let hash =
            |result: &machinery::Value| result.str_at(&["partialFingerprints", "primaryLocationLineHash"]).to_owned();
        results.iter().map(hash).collect::<Vec<_>>()
    };
    let one = fingerprints(&boat("{length: 11}")).await;
    assert_eq!(one.len(), 1);
    assert_eq!(one, fingerprints(&format!("# moved\n{}", boat("{length: 12}"))).await);
    let twice = fingerprints(&[boat("{length: 11}"), boat("{length: 12}")].join("---\n")).await;
    assert_eq!((&twice[0], twice.len()), (&one[0], 2));
    assert_ne!(twice[0], twice[1]);
}

#[tokio::test]
async fn github_shows_errors_first_and_the_number_of_the_rest() {
    let warned = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i, resources: {requests: {memory: 100m}}}]}\n";
    let boats = std::iter::repeat_n(boat("{length: 11}"), 12).collect::<Vec<_>>().join("---\n");
    let files = Files::new(&[("crd.yaml", CRD), ("a.yaml", &format!("{warned}---\n{boats}"))]);
    let settings = Settings { style: Form::Github.into(), ..inputs(&["crd.yaml", "a.yaml"]) };
    let (report, outcome) = files.report(settings).await;
    assert_eq!((outcome.summary.errors, outcome.summary.warnings), (12, 1));
    let commands: Vec<&str> = report.lines().filter(|line| line.starts_with("::")).collect();
    assert_eq!(commands.iter().filter(|line| line.starts_with("::error file=")).count(), 9);
    assert_eq!(commands[9], "::error title=pintle::and 3 more, in the log of this step");
    assert!(commands[10].starts_with("::warning file="), "{report}");
    assert_eq!(report.lines().filter(|line| line.starts_with("error: a.yaml:")).count(), 3, "{report}");
}

#[tokio::test]
async fn what_is_left_out_is_skipped_in_junit() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n";
    let files = Files::new(&[("d/values.yaml", "a: 1\n"), ("d/a.yaml", secret)]);
    let skipped = || Settings { skipped_kinds: vec!["Secret".to_owned()], ..inputs(&["d"]) };
    let (report, _) = files.report(Settings { style: Form::Junit.into(), ..skipped() }).await;
    assert!(report.contains("<testcase classname=\"d/a.yaml\" name=\"Secret s\"><skipped/></testcase>"), "{report}");
    assert!(report.contains("name=\"left out\" tests=\"1\" failures=\"0\" skipped=\"1\""), "{report}");
    let (report, _) = files.report(Settings { style: Form::Sarif.into(), ..skipped() }).await;
    assert!(report.contains("left out: 1 objects, 1 files"), "{report}");
}

#[tokio::test]
async fn texts_show_everything_or_errors_or_numbers() {
    let text = [boat("{length: 11}"), boat("{}")].join("---\n");
    let files = Files::new(&[("crd.yaml", CRD), ("a.yaml", &text), ("b.yaml", &boat("{}"))]);
    let report = async |detail, colours, names: &[&str]| {
        let style = Style { form: Form::Text, detail, colours };
        let settings = Settings { style, crds: vec!["crd.yaml".to_owned()], ..inputs(names) };
        files.report(settings).await.0
    };
    let numbers = report(Detail::Numbers, Colours::Off, &["a.yaml", "b.yaml"]).await;
    assert_eq!(numbers, "a.yaml: 1 error, 0 warnings\n2 files, 3 objects: 1 error, 0 warnings\n");
    assert_eq!(report(Detail::Errors, Colours::Off, &["b.yaml"]).await, "");
    let errors = report(Detail::Errors, Colours::Off, &["a.yaml"]).await;
    assert!(errors.starts_with("error[FieldValueInvalid]") && errors.ends_with("^^ Boat a\n\n"), "{errors}");
    let coloured = report(Detail::Everything, Colours::On, &["a.yaml"]).await;
    assert!(coloured.starts_with("\u{1b}[1;31merror[FieldValueInvalid]\u{1b}[0m: spec.length"), "{coloured}");
    assert!(coloured.contains("\u{1b}[1;31m^^\u{1b}[0m Boat a\n"), "{coloured}");
}

#[tokio::test]
async fn policies_warn_beside_unknown_fields() {
    let policy = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]}
  validations: [{expression: 'false', message: no owner}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Warn]}
";
    let files = Files::new(&[
        ("policy.yaml", policy),
        ("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nkond: 1\n"),
        (
            "a.json",
            "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"},\n \"data\": {\"x\": \"1\",\n  \"x\": \"2\"}}",
        ),
    ]);
    let settings = |name| Settings { policies: vec!["policy.yaml".to_owned()], ..inputs(&[name]) };
    let warning = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': no owner";
    let found = findings(&files, settings("a.yaml")).await;
    assert_eq!(found, ["a.yaml:4:1: kond: unknown field".to_owned(), format!("a.yaml:3:18: {warning}")]);
    let found = findings(&files, settings("a.json")).await;
    assert_eq!(found[0], "a.json:3:3: data.x: duplicate field");
    assert!(found[1].ends_with(warning), "{found:?}");
}

#[tokio::test]
async fn what_cannot_be_read_is_reported_and_the_rest_is_checked() {
    let files = Files::new(&[
        ("a.yaml", &boat("{}")),
        ("b.yaml", "kind: {{ .Values.kind }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"),
        ("crd.yaml", CRD),
        ("bytes.yaml", "a: \u{1}\n"),
        ("empty/notes.txt", ""),
    ]);
    let settings = || inputs(&["none.yaml", "empty", "b.yaml", "bytes.yaml", "crd.yaml", "a.yaml"]);
    let want = [
        "none.yaml:0:0: cannot read none.yaml: No such file or directory (os error 2)",
        "empty:0:0: empty: the directory has no manifests (*.yaml, *.yml, *.json)",
        "b.yaml:1:1: this is a Helm template, not YAML: render it first, as in \"helm template CHART | pintle validate -\"",
        "b.yaml:5:1: metadata.name: Required value: name or generateName is required",
        "bytes.yaml:1:1: this is not YAML: control characters are not allowed",
    ];
    let mut found = findings(&files, settings()).await;
    found.sort();
    let mut want = want.to_vec();
    want.sort_unstable();
    assert_eq!(found, want);
    let (_, outcome) = files.report(settings()).await;
    assert!(outcome.is_incomplete);
}

#[tokio::test]
async fn updates_are_checked_against_what_was_before() {
    let old = boat("{length: 12, owner: ann}");
    for (new, want) in [
        ("{length: 12, owner: ann}", vec![]),
        ("{length: 9, owner: bob}", vec!["a.yaml:4:1: spec: Invalid value: the owner is final"]),
        (
            "{length: 13, owner: ann}",
            vec!["a.yaml:4:16: spec.length: Invalid value: 13: spec.length in body should be less than or equal to 10"],
        ),
    ] {
        let files = Files::new(&[("crd.yaml", CRD), ("old/a.yaml", &old), ("a.yaml", &boat(new))]);
        let settings = || Settings { crds: vec!["crd.yaml".to_owned()], ..inputs(&["a.yaml"]) };
        let settings = Settings { old: Some("old".to_owned()), ..settings() };
        assert_eq!(findings(&files, settings).await, want, "{new}");
    }
}

#[tokio::test]
async fn previous_objects_are_found_in_every_form() {
    let owned = |owner: &str| boat(&format!("{{owner: {owner}}}"));
    let item = |text: String| format!("- {}", text.replace('\n', "\n  ").trim_end());
    let other = owned("bob").replace("name: a", "name: b");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}\n{}\n", item(other.clone()), item(owned("ann")));
    let json = |text: &str| machinery::yaml::decode(text.as_bytes()).unwrap().value.to_json();
    for old in [
        owned("ann"),
        format!("# comment\n{other}---\n{}", owned("ann")),
        list,
        format!("{}\n{}\n", json(&other), json(&owned("ann"))),
        // the last one counts
        format!("{}---\n{}", owned("bob"), owned("ann")),
    ] {
        for (new, want) in [
            (owned("ann"), vec![]),
            (owned("tim"), vec!["a.yaml:4:1: spec: Invalid value: the owner is final".to_owned()]),
        ] {
            let files = Files::new(&[("old/a.yaml", &old), ("a.yaml", &new), ("crd.yaml", CRD)]);
            let settings =
                Settings { old: Some("old".to_owned()), crds: vec!["crd.yaml".to_owned()], ..inputs(&["a.yaml"]) };
            assert_eq!(findings(&files, settings).await, want, "{old}");
        }
    }
}

#[tokio::test]
async fn changes_of_definitions_are_updates() {
    for (new, want) in [
        (CRD.to_owned(), vec![]),
        (
            CRD.replace("Namespaced", "Cluster"),
            vec!["crd.yaml:6:10: spec.scope: Invalid value: \"Cluster\": field is immutable"],
        ),
    ] {
        let files = Files::new(&[("old/crd.yaml", CRD), ("crd.yaml", &new)]);
        let settings = Settings { old: Some("old".to_owned()), ..inputs(&["crd.yaml"]) };
        assert_eq!(findings(&files, settings).await, want);
    }
}

#[tokio::test]
async fn policies_apply_with_their_parameters() {
    let policies = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: short}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [boats]}
  validations:
  - expression: object.spec.length < int(params.data.most)
    message: too long for the harbor
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: short}
spec:
  policyName: short
  validationActions: [Deny]
  paramRef: {name: most, namespace: default, parameterNotFoundAction: Deny}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: most}
data: {most: '5'}
";
    for (length, want) in [
        (4, vec![]),
        (
            5,
            vec![
                "a.yaml:3:18: boats.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'short' with binding 'short' denied \
                 request: too long for the harbor",
            ],
        ),
    ] {
        let files = Files::new(&[
            ("crd.yaml", CRD),
            ("p/p.yaml", policies),
            ("a.yaml", &boat(&format!("{{length: {length}}}"))),
        ]);
        let settings =
            Settings { crds: vec!["crd.yaml".to_owned()], policies: vec!["p".to_owned()], ..inputs(&["a.yaml"]) };
        assert_eq!(findings(&files, settings).await, want, "{length}");
    }
}

#[tokio::test]
async fn releases_are_compared() {
    let policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: a}\n";
    let files = Files::new(&[("a.yaml", policy)]);
    let settings = Settings { releases: Release::ALL.to_vec(), ..inputs(&["a.yaml"]) };
    let (report, _) = files.report(settings).await;
    let note = "no matches for kind \"MutatingAdmissionPolicy\" in version \"admissionregistration.k8s.io/v1\"";
    assert!(report.contains(note), "{report}");
    assert!(report.contains("  = note: with Kubernetes 1.35\n"), "{report}");
}

#[tokio::test]
async fn missing_definitions_can_be_ignored_and_reports_are_equal() {
    let mut text = String::new();
    for i in 0..400 {
        text.push_str(&format!("{}---\n", boat("{length: 11}").replace("name: a", &format!("name: a{i}"))));
    }
    let files = Files::new(&[("crd.yaml", CRD), ("a.yaml", &text)]);
    let (report, outcome) = files.report(Settings { ignores_missing: true, ..inputs(&["a.yaml"]) }).await;
    assert_eq!(
        (report.as_str(), outcome.summary.skipped),
        ("1 file, 0 objects, 400 skipped: 0 errors, 0 warnings\n", 400)
    );
    let settings = || Settings { crds: vec!["crd.yaml".to_owned()], ..inputs(&["a.yaml"]) };
    let (first, _) = files.report(settings()).await;
    let (second, _) = files.report(settings()).await;
    assert_eq!(first.matches("error[").count(), 400);
    assert!(first == second, "two reports of the same files differ");
}

#[tokio::test]
async fn definitions_that_cannot_be_read_and_inputs_without_objects_are_errors() {
    let broken = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: \"boats\" x}\n";
    let files = Files::new(&[
        ("a.yaml", &boat("{}")),
        ("crds/crd.yaml", CRD),
        ("broken.yaml", broken),
        ("mixed/crd.yaml", broken),
        ("mixed/template.yaml", "kind: {{ .Values.kind }}\n"),
        ("notes.yaml", "x: [\n"),
        ("empty.yaml", ""),
        ("comment.yaml", "# nothing\n---\n"),
    ]);
    let at = |crds: &str| Settings { crds: vec![crds.to_owned()], ignores_missing: true, ..inputs(&["a.yaml"]) };
    let not_yaml = "this is not YAML: did not find expected ',' or '}'";
    for (settings, want) in [
        (at("crds"), vec![]),
        (at("none.yaml"), vec!["none.yaml: cannot read none.yaml: No such file or directory (os error 2)".to_owned()]),
        (at("broken.yaml"), vec![format!("broken.yaml: broken.yaml:3: {not_yaml}")]),
        (at("mixed"), vec![format!("mixed/crd.yaml: mixed/crd.yaml:3: {not_yaml}")]),
        (
            at("notes.yaml"),
            vec!["notes.yaml: notes.yaml:1: this is not YAML: did not find expected node content".to_owned()],
        ),
        (at("empty.yaml"), vec!["empty.yaml: empty.yaml: there are no objects".to_owned()]),
        (
            inputs(&["empty.yaml"]),
            vec!["empty.yaml: there are no objects; with --allow-empty, this is no error".to_owned()],
        ),
        (
            inputs(&["comment.yaml"]),
            vec!["comment.yaml: there are no objects; with --allow-empty, this is no error".to_owned()],
        ),
        (Settings { empty: Empty::Allowed, ..inputs(&["empty.yaml"]) }, vec![]),
    ] {
        let found: Vec<String> =
            findings(&files, settings.clone()).await.iter().map(|finding| finding.replace(":0:0", "")).collect();
        let found: Vec<String> = found.iter().map(|finding| finding.replace(&files.at(""), "")).collect();
        assert_eq!(found, want, "{settings:?}");
        assert_eq!(files.report(settings).await.1.is_incomplete, !want.is_empty());
    }
}

#[tokio::test]
async fn the_name_of_a_file_begins_no_line_of_a_report() {
    let files = Files::new(&[("m/b\nerror: c.yaml", "kind: [")]);
    let (report, _) = files.report(inputs(&["m"])).await;
    assert!(report.contains("b\\nerror: c.yaml:1:"), "{report}");
}

const CHAINSAW: &str = "apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata: {name: t}
spec:
  steps:
  - try:
    - apply: {file: install.yaml}
    - assert: {file: expected.yaml}
    - error: {file: ./refused.yaml}
";

#[tokio::test]
async fn what_is_no_manifest_is_left_out_of_directories() {
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let typo = "kind: ConfigMap\nmetadata: {name: a}\n";
    let files = Files::new(&[
        ("m/a.yaml", &map("a")),
        ("m/package.json", "{\"name\": \"x\"}"),
        ("m/chart/Chart.yaml", "apiVersion: v2\nname: x\n"),
        ("m/chart/values.yaml", "kind: Deployment\n"),
        ("m/other.yaml", "replicas: 1\n---\nlist: [a]\n"),
        ("m/component.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [a.yaml]\n"),
        ("m/typo.yaml", typo),
        ("m/templates/b.yaml", &map("Bad_Name")),
        ("m/overlay/kustomization.yaml", "patches:\n- path: ./part.yaml\n"),
        ("m/overlay/part.yaml", &map("Bad_Name")),
        ("m/overlay/patches/unused.yaml", &map("Bad_Name")),
        ("m/overlay/some_patch.yaml", &map("Bad_Name")),
        ("m/chart/templates/c.yaml", "{{- if .Values.x }}\nkind: ConfigMap\n{{- end }}\n"),
        ("m/chart/files/d.yaml", "kind: Pod\n{{- end }}\n"),
        ("m/kuttl/00-assert.yaml", &map("Bad_Name")),
        ("m/kuttl/00-errors.yaml", &map("Bad_Name")),
        ("m/chainsaw/chainsaw-test.yaml", CHAINSAW),
        ("m/chainsaw/expected.yaml", &map("Bad_Name")),
        ("m/chainsaw/refused.yaml", &map("Bad_Name")),
        ("m/chainsaw/install.yaml", &map("installed")),
    ]);
    let templates = || vec!["**/templates/".to_owned()];
    let no_version = "m/typo.yaml:2:18: this is not a Kubernetes object: it has no apiVersion";
    let settings = || Settings { ignored: templates(), ..inputs(&["m"]) };
    assert_eq!(findings(&files, settings()).await, [no_version]);
    let (report, outcome) = files.report(settings()).await;
    assert_eq!((outcome.summary.files, outcome.summary.ignored_files), (3, 16));
    let line = "16 files are left out as no manifest or as ignored: m/chainsaw/chainsaw-test.yaml, m/chainsaw/expected.yaml, m/chainsaw/refused.yaml and 13 more; see \
                --strict-files\n";
    assert!(report.contains(line), "{report}");
    let strict = Settings { others: Others::Reported, ..settings() };
    assert_eq!(files.report(strict).await.1.summary.errors, 16);
    assert_eq!(files.report(inputs(&["m/chart"])).await.1.summary.ignored_files, 4);
    let environment = Settings { crds: vec!["m/overlay".to_owned()], ..inputs(&["m/a.yaml"]) };
    assert!(findings(&files, environment).await.is_empty());
    // what is named is meant
    assert_eq!(files.report(inputs(&["m/chart/values.yaml"])).await.1.summary.errors, 1);
}

#[tokio::test]
async fn kinds_are_skipped_with_their_repeated_keys() {
    let item = |kind: &str, name: &str| format!("- apiVersion: v1\n  kind: {kind}\n  metadata: {{name: {name}}}\n");
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n{}  data: {{}}\n  data: {{}}\n{}{}  data: {{}}\n  data: {{}}\n",
        item("Secret", "a"),
        item("ConfigMap", "b"),
        item("ConfigMap", "c")
    );
    let files = Files::new(&[("a.yaml", &list)]);
    let repeated = |line: usize| format!("a.yaml:{line}:3: key \"data\" already set in map");
    for (skipped, want) in [
        (vec![], vec![repeated(8), repeated(16)]),
        (vec!["secret"], vec![repeated(16)]),
        (vec!["Secret.core", "ConfigMap"], vec![repeated(8)]),
    ] {
        let skipped_kinds = skipped.iter().map(|kind| (*kind).to_owned()).collect();
        let found = findings(&files, Settings { skipped_kinds, ..inputs(&["a.yaml"]) }).await;
        assert_eq!(found, want, "{skipped:?}");
    }
}

#[tokio::test]
async fn what_is_no_text_ends_at_once() {
    let settings = Settings { inputs: vec!["/dev/zero".to_owned()], ..Settings::default() };
    let mut out = vec![];
    let outcome = run(&settings, &mut out).await.unwrap();
    let report = String::from_utf8(out).unwrap();
    assert!(outcome.is_incomplete && report.contains("cannot read /dev/zero: this is not text"), "{report}");
    let wide: Vec<u8> = "\u{feff}apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let files = Files::new(&[]);
    std::fs::write(files.at("wide.yaml"), wide).unwrap();
    let (report, outcome) = files.report(inputs(&["wide.yaml"])).await;
    assert!(!outcome.is_incomplete, "{report}");
}
