use std::path::Path;

use machinery::{Value, value};

use super::*;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/crd-tests")
}

/// Runs a suite of the example with a change of its text, and returns the report.
fn run(change: impl Fn(&str) -> String, update: bool) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    for file in ["boats.crd.yaml", "policy.yaml", "boats.testsuite.yaml"] {
        let text = std::fs::read_to_string(examples().join(file)).unwrap();
        let text = if file == "boats.testsuite.yaml" { change(&text) } else { text };
        std::fs::write(directory.path().join(file), text).unwrap();
    }
    let paths = vec![directory.path().to_owned()];
    let results = test(&Task { paths, update, ..Task::default() }).unwrap();
    let shown = print(&results, SuiteReport::Text).replace(&directory.path().display().to_string(), "DIR");
    (shown, std::fs::read_to_string(directory.path().join("boats.testsuite.yaml")).unwrap())
}

#[test]
fn example_passes() {
    assert_eq!(run(str::to_owned, false).0, "11 cases passed, 0 failed\n");
}

#[test]
fn definitions_are_beside_the_suite() {
    let by_name = |text: &str| text.replacen("crds: [boats.crd.yaml]", "crdName: boats.harbor.example.com", 1);
    assert_eq!(run(by_name, false).0, "11 cases passed, 0 failed\n");
    let (shown, _) = run(|text| by_name(text).replacen("boats.harbor", "ships.harbor", 1), false);
    assert!(shown.contains("there is no definition for the suite"), "{shown}");
}

#[test]
fn what_is_not_expected_fails() {
    for (from, to, wanted) in [
        (
            "        seats: 4\n  - name: the crew",
            "        seats: 5\n  - name: the crew",
            "FAIL DIR/boats.testsuite.yaml onCreate[0]: seats have a default\n  with DIR/boats.crd.yaml\n  create: another object than \
             expected is stored\n",
        ),
        (
            "expectedError: every member",
            "expectedError: each member",
            "  create: expected the error\n    each member of the crew needs a seat\n  but got\n    Boat.harbor.example.com \"test-",
        ),
        (
            "expectedError: the home",
            "expectedStatusError: the home",
            "  update: unexpected error: Boat.harbor.example.com \"test-",
        ),
        (
            "    - harbor.example.com/v1beta1 Boat is deprecated; use v1\n",
            "    - other\n",
            "create: other warnings than expected",
        ),
        ("groups: [captains]", "groups: [sailors]", "create: unexpected error: boats.harbor.example.com"),
        (
            "to: v1beta1",
            "to: v2",
            "read: unexpected error: no matches for kind \"Boat\" in version \"harbor.example.com/v2\"",
        ),
        ("expectedStatusError: a berth", "expectedStatusError: no berth", "update of the status: expected the error"),
        (
            "      expectedError: not found\n",
            "",
            "steps[5], read: unexpected error: boats.harbor.example.com \"argo\" not found",
        ),
        ("path: /spec/versions/0/schema", "path: /spec/versions/7/schema", "the definition cannot be patched"),
        ("    to: v1beta1\n", "", "to is missing: the version to read"),
        ("    to: v1beta1\n", "    to: v1beta1\n    too: 1\n", "the case has an unknown field \"too\""),
    ] {
        let (shown, _) = run(|text| text.replace(from, to), false);
        assert!(shown.contains(wanted) && shown.ends_with("10 cases passed, 1 failed\n"), "{from}: {shown}");
    }
}

#[test]
fn suites_that_cannot_run_are_named() {
    for (from, to, wanted) in [
        ("tests:", "tests: [", "ERROR DIR/boats.testsuite.yaml: line "),
        ("crds: [boats.crd.yaml]", "crds: [none.yaml]", "ERROR DIR/boats.testsuite.yaml: cannot read DIR/none.yaml"),
        (
            "crds: [boats.crd.yaml]",
            "crds: [policy.yaml]",
            "ERROR DIR/boats.testsuite.yaml: there is no definition for the suite",
        ),
        ("crds: [boats.crd.yaml]", "version: v1", "the suite names no definition"),
        ("crds: [boats.crd.yaml]", "crds: [boats.crd.yaml]\nversion: v3", "DIR/boats.crd.yaml: there is no version v3"),
    ] {
        let (shown, _) = run(|text| text.replacen(from, to, 1), false);
        assert!(
            shown.contains(wanted) && shown.ends_with("0 cases passed, 0 failed, 1 suites could not run\n"),
            "{shown}"
        );
    }
    let (shown, _) = run(|text| text.replacen("name: Boats", "names: Boats", 1), false);
    assert!(shown.contains("NOTE DIR/boats.testsuite.yaml: the field \"names\" has no effect"), "{shown}");
    let nothing = tempfile::tempdir().unwrap();
    let task = Task { paths: vec![nothing.path().to_owned()], ..Task::default() };
    assert!(test(&task).unwrap_err().to_string().starts_with("there are no suites"));
}

#[test]
fn expected_objects_are_written() {
    let wrong = |text: &str| {
        let text = text.replace("        seats: 4\n  - name: the crew", "        seats: 5\n  - name: the crew");
        text.replace("        crew: 3\n        seats: 4\n", "        crew: 7\n")
    };
    let (shown, written) = run(wrong, true);
    assert!(shown.contains("updated DIR/boats.testsuite.yaml: 2 expected objects"), "{shown}");
    assert!(shown.ends_with("11 cases passed, 0 failed\n"), "{shown}");
    let (shown, _) = run(|text| text.replace("expectedError: every member", "expectedError: each member"), true);
    assert!(shown.ends_with("10 cases passed, 1 failed\n"), "an error is not written: {shown}");
    let anchored = |text: &str| {
        let text = text.replacen("    expected: |\n", "    expected: &first |\n", 1);
        text.replacen("        seats: 4\n", "        seats: 5\n", 1) + "kind: *first\n"
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.testsuite.yaml");
    let text = anchored(&std::fs::read_to_string(examples().join("boats.testsuite.yaml")).unwrap());
    std::fs::write(&file, &text).unwrap();
    for other in ["boats.crd.yaml", "policy.yaml"] {
        std::fs::copy(examples().join(other), directory.path().join(other)).unwrap();
    }
    let error = test(&Task { paths: vec![file.clone()], update: true, ..Task::default() }).unwrap_err();
    assert!(error.to_string().starts_with("cannot update "), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "the file stays as it was");
    let original = std::fs::read_to_string(examples().join("boats.testsuite.yaml")).unwrap();
    assert_eq!(written, original);
}

#[test]
fn coverage_has_what_no_case_has_seen() {
    let results = test(&Task { paths: vec![examples()], coverage: true, ..Task::default() }).unwrap();
    let line = |covered: &CoveredExpression| {
        format!("{} {}: {}", covered.missing().unwrap_or("covered"), covered.place, covered.expression)
    };
    let lines: Vec<String> = results.coverage.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "covered v1: !has(self.status) || !has(self.status.berth) || self.status.berth != ''",
            "covered v1 spec: self.crew <= self.seats",
            "never true v1 spec.home: self == oldSelf",
            "never false v1beta1: !has(self.status) || !has(self.status.berth) || self.status.berth != ''",
            "never false v1beta1 spec: self.crew <= self.seats",
            "never reached v1beta1 spec.home: self == oldSelf",
            "covered ValidatingAdmissionPolicy captains validations[0]: object.spec.crew < 100 || 'captains' in request.userInfo.groups",
        ]
    );
    let report = print(&results, SuiteReport::Text);
    let path = examples().join("boats.crd.yaml");
    let listed = format!("{}\n  never true: v1 spec.home: self == oldSelf\n", path.display());
    assert!(
        report.starts_with(&listed) && report.contains("3 of 7 expressions were both true and false (42 %)\n"),
        "{report}"
    );
    assert!(
        report.ends_with("3 of 7 expressions were both true and false (42 %)\n11 cases passed, 0 failed\n"),
        "{report}"
    );
}

/// Policies with each kind of expression.
const POLICIES: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: crews}
spec:
  matchConstraints: {resourceRules: RULES}
  matchConditions:
  - {name: large, expression: object.spec.crew > 1}
  - {name: failing, expression: '!has(object.spec.crew) || object.spec.crew < 90 || object.spec.none'}
  variables:
  - {name: most, expression: '5'}
  - {name: even, expression: object.spec.crew % 2 == 0}
  - {name: unused, expression: '1'}
  validations:
  - {expression: variables.even || object.spec.crew < variables.most, messageExpression: \"'at most ' + string(variables.most)\"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: crews}
spec: {policyName: crews, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: paint}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: RULES}
  matchConditions:
  - {name: crewed, expression: object.spec.crew > 0}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {\"color\": \"red\"}}}'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: paint}
spec: {policyName: paint}
";

#[test]
fn coverage_has_all_expressions_of_policies() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("boats.crd.yaml", &std::fs::read_to_string(examples().join("boats.crd.yaml")).unwrap());
    let rules = "[{apiGroups: [harbor.example.com], apiVersions: ['*'], operations: [CREATE], resources: [boats]}]";
    write("policy.yaml", &POLICIES.replace("RULES", rules));
    let boat = |crew: u32, more: &str| {
        format!(
            "  - initial: {{apiVersion: harbor.example.com/v1, kind: Boat, spec: {{crew: {crew}, seats: 99}}}}\n    {more}\n"
        )
    };
    let painted = |crew: u32| {
        let metadata = "metadata: {labels: {color: red}}";
        format!(
            "expected: {{apiVersion: harbor.example.com/v1, kind: Boat, {metadata}, spec: {{crew: {crew}, seats: 99}}}}"
        )
    };
    let cases = [
        boat(1, &painted(1)),
        boat(2, &painted(2)),
        boat(7, "expectedError: at most 5"),
        boat(95, "expectedError: none"),
    ];
    let suite =
        format!("crds: [boats.crd.yaml]\nversion: v1\nfiles: [policy.yaml]\ntests:\n  onCreate:\n{}", cases.concat());
    write("boats.testsuite.yaml", &suite);
    let results = test(&Task { paths: vec![directory.path().to_owned()], coverage: true, ..Task::default() }).unwrap();
    assert_eq!(results.failures(), 0, "{}", print(&results, SuiteReport::Text));
    let line = |covered: &CoveredExpression| format!("{}: {}", covered.place, covered.missing().unwrap_or("covered"));
    let lines: Vec<String> =
        results.coverage.iter().filter(|covered| covered.place.contains("Policy")).map(line).collect();
    assert_eq!(
        lines,
        [
            "MutatingAdmissionPolicy paint matchConditions[0]: never false",
            "MutatingAdmissionPolicy paint mutations[0]: covered",
            "ValidatingAdmissionPolicy crews matchConditions[0]: covered",
            "ValidatingAdmissionPolicy crews matchConditions[1]: covered",
            "ValidatingAdmissionPolicy crews variables.most: covered",
            "ValidatingAdmissionPolicy crews variables.even: covered",
            "ValidatingAdmissionPolicy crews variables.unused: never reached",
            "ValidatingAdmissionPolicy crews validations[0]: covered",
            "ValidatingAdmissionPolicy crews validations[0].messageExpression: covered",
        ]
    );
}

const TABLE: &str = "\
files: [policy.yaml]
tests:
  verdicts:
  - {name: owned, verdict: allowed, objects: [{file: owned.yaml}]}
  - {name: old, verdict: warned, message: is old, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: old, labels: {owner: a}}, data: {age: old}}}
  - {verdict: denied, message: wants an owner, object: {file: lost.yaml}}
";

const TABLE_POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]}
  validations: [RULE]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [ACTION]}
---
";

/// A suite with a table, policies for a built-in kind, and objects in files.
fn table(change: impl Fn(&str) -> String, task: Task) -> (String, Result<Results, crate::error::Error>) {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let policy = |name: &str, rule: &str, action: &str| {
        TABLE_POLICY.replace("NAME", name).replace("RULE", rule).replace("ACTION", action)
    };
    let owners =
        "{expression: \"has(object.metadata.labels) && 'owner' in object.metadata.labels\", message: wants an owner}";
    let ages = "{expression: \"!has(object.data) || object.data.age != 'old'\", message: is old}";
    write("policy.yaml", &(policy("owners", owners, "Deny") + &policy("ages", ages, "Warn")));
    let map = |name: &str, labels: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {labels}}}\n")
    };
    write("owned.yaml", &[map("a", "{owner: a}"), map("b", "{owner: b}")].join("---\n"));
    write("lost.yaml", &map("lost", "{}"));
    write("table.testsuite.yaml", &change(TABLE));
    let results = test(&Task { paths: vec![directory.path().to_owned()], ..task });
    let shown = results.as_ref().map(|results| print(results, SuiteReport::Text)).unwrap_or_default();
    (shown.replace(&directory.path().display().to_string(), "DIR"), results)
}

#[test]
fn tables_have_a_verdict_for_each_object() {
    let plain = || Task { coverage: true, ..Task::default() };
    let (shown, results) = table(str::to_owned, plain());
    let results = results.unwrap();
    assert!(
        shown.ends_with("2 of 2 expressions were both true and false (100 %)\n4 cases passed, 0 failed\n"),
        "{shown}"
    );
    assert!(results.coverage.iter().all(|covered| covered.file.ends_with("policy.yaml")));
    let names: Vec<&str> = results.suites[0].cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["owned: ConfigMap a", "owned: ConfigMap b", "old: ConfigMap old", "ConfigMap lost"]);
    for (from, to, want) in [
        (
            "warned, message: is old",
            "allowed",
            "unexpected warning: Validation failed for ValidatingAdmissionPolicy 'ages'",
        ),
        ("is old", "is new", "expected the warning\n    is new\n  but got\n    Validation failed"),
        ("denied, message: wants an owner", "allowed", "unexpected error: configmaps \"lost\" is forbidden"),
        ("verdict: allowed", "verdict: denied", "expected the error\n    \n  but got none"),
        ("{file: lost.yaml}", "{file: nosuch.yaml}", "nosuch.yaml"),
        ("{file: lost.yaml}", "{file: owned.yaml}", "object: wanted a file with one object, not 2"),
        ("allowed", "good", "verdicts[0]: the verdict is \"good\"; wanted allowed, warned or denied"),
    ] {
        let (shown, _) = table(|text| text.replacen(from, to, 1), Task::default());
        assert!(shown.contains(want), "{to}: {shown}");
    }
}

#[test]
fn cases_are_selected_by_patterns() {
    for (run, skip, want) in [
        (Some("ConfigMap (a|lost)$"), None, "2 cases passed, 0 failed, 2 left out\n"),
        (None, Some("old"), "3 cases passed, 0 failed, 1 left out\n"),
        (Some(r"verdicts\[0\]"), Some("ConfigMap b"), "1 cases passed, 0 failed, 3 left out\n"),
    ] {
        let selection = Selection::new(run, skip).unwrap();
        assert_eq!(table(str::to_owned, Task { selection, ..Task::default() }).0, want);
    }
    let selection = Selection::new(Some("nosuch"), None).unwrap();
    let (_, results) = table(str::to_owned, Task { selection, ..Task::default() });
    assert_eq!(results.unwrap_err().to_string(), "no case has a name that --run and --skip leave");
    assert!(Selection::new(Some("("), None).unwrap_err().to_string().starts_with("--run: error parsing regexp: "));
}

#[test]
fn reports_are_well_formed() {
    let results = test(&Task { paths: vec![examples()], ..Task::default() }).unwrap();
    let json = value::decode(print(&results, SuiteReport::Json).as_bytes()).unwrap();
    assert_eq!((json.get("passed"), json.get("failed")), (Some(&Value::Int(11)), Some(&Value::Int(0))));
    let junit = print(&results, SuiteReport::Junit);
    assert_eq!(junit.matches("<testcase ").count(), 11);
    assert!(junit.contains("tests=\"11\" failures=\"0\""));
}

/// The schema has the fields that the reader knows.
#[test]
fn schema_describes_the_format() {
    let schema = value::decode(SCHEMA.as_bytes()).unwrap();
    let fields = |path: &[&str]| -> Vec<String> {
        schema.at(path).and_then(Value::as_object).unwrap().keys().map(ToString::to_string).collect()
    };
    for field in fields(&["properties"]) {
        let suite = format!("crds: [a]\ntests: {{}}\n{field}: null\n");
        let suite = if field == "tests" || field == "crds" { "crds: [a]\ntests: {}\n".to_owned() } else { suite };
        assert_eq!(format::read(Path::new("s"), suite.as_bytes()).unwrap().unwrap().notes, [""; 0], "{field}");
    }
    for form in fields(&["properties", "tests", "properties"]) {
        let kind = if form == "scenarios" { "scenario" } else { form.as_str() };
        for field in fields(&["$defs", kind, "properties"]) {
            let suite = format!("crds: [a]\ntests: {{{form}: [{{{field}: null}}]}}\n");
            let Ok(Some(suite)) = format::read(Path::new("s"), suite.as_bytes()) else { continue };
            let problem = suite.cases[0].steps.as_ref().err().cloned().unwrap_or_default();
            assert!(!problem.contains("unknown field"), "{form}.{field}: {problem}");
        }
    }
}
