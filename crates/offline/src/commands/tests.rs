//! What the commands make of objects in files.

use super::*;
use crate::error::Error;

const CRD: &str = "\
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
    additionalPrinterColumns:
    - {name: Length, type: integer, jsonPath: .spec.length}
    - {name: Sail, type: string, jsonPath: .spec.sail, priority: 1}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              length: {type: integer, maximum: 10}
              sail: {type: string, default: red}
  - {name: v2, served: true, storage: false, schema: *schema}
";
const BOAT: &str = "apiVersion: example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 11, oar: 2}\n";

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("crd.yaml"), CRD).unwrap();
        std::fs::write(directory.path().join("a.yaml"), BOAT).unwrap();
        Files(directory)
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn settings(&self) -> CommandInputs {
        CommandInputs { inputs: vec![self.at("a.yaml")], crds: vec![self.at("crd.yaml")], ..CommandInputs::default() }
    }
}

fn shown(objects: Result<Vec<Value>, Error>) -> String {
    objects.unwrap().iter().map(Value::to_json).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn objects_are_defaulted_pruned_and_converted() {
    let files = Files::new();
    let object = |version: &str, spec: &str| {
        format!(r#"{{"apiVersion":"example.com/{version}","kind":"Boat","metadata":{{"name":"a"}},"spec":{spec}}}"#)
    };
    assert_eq!(shown(defaulted(&files.settings()).await), object("v1", r#"{"length":11,"sail":"red"}"#));
    assert_eq!(shown(pruned(&files.settings()).await), object("v1", r#"{"length":11}"#));
    assert_eq!(shown(converted(&files.settings(), "v2").await), object("v2", r#"{"length":11,"sail":"red"}"#));
    let why = converted(&files.settings(), "v3").await.unwrap_err();
    assert_eq!(why.to_string(), "no matches for kind \"Boat\" in version \"example.com/v3\"");
}

#[tokio::test]
async fn tables_have_the_columns_of_the_definition() {
    let files = Files::new();
    assert_eq!(table(&files.settings(), false).await.unwrap(), "NAME   LENGTH\na      11\n");
    assert_eq!(table(&files.settings(), true).await.unwrap(), "NAME   LENGTH   SAIL\na      11       red\n");
}

#[tokio::test]
async fn configurations_are_applied_with_conflicts() {
    let files = Files::new();
    let live = "apiVersion: example.com/v1\nkind: Boat\nmetadata:\n  name: a\n  managedFields:\n  - {manager: ann, operation: Apply, \
                apiVersion: example.com/v1, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:length: {}}}}\nspec: {length: 5}\n";
    std::fs::write(files.at("live.yaml"), live).unwrap();
    std::fs::write(files.at("a.yaml"), BOAT.replace("11, oar: 2", "6")).unwrap();
    let applied = |live: Vec<String>, force: bool| {
        let settings = files.settings();
        async move { apply(&settings, &live, "bob", force).await.unwrap().remove(0) }
    };
    let refused = "Apply failed with 1 conflict: conflict with \"ann\": .spec.length".to_owned();
    assert_eq!(applied(vec![files.at("live.yaml")], false).await, Applied::Refused(refused));
    for (live, force, managers) in [(vec![], false, vec!["bob"]), (vec![files.at("live.yaml")], true, vec!["bob"])] {
        let Applied::Object(object) = applied(live, force).await else { panic!("the apply was refused") };
        let managed = object.items_at(&["metadata", "managedFields"]);
        assert_eq!(managed.iter().map(|entry| entry.str_at(&["manager"])).collect::<Vec<_>>(), managers);
        assert_eq!(object.at(&["spec", "length"]), Some(&Value::Int(6)));
    }
}

#[tokio::test]
async fn kinds_and_fields_are_explained() {
    let files = Files::new();
    let crds = [files.at("crd.yaml")];
    let text = explain("boats.spec", &crds, Release::NEWEST).await.unwrap();
    let want = "GROUP:      example.com\nKIND:       Boat\nVERSION:    v1\n\nFIELD: spec <Object>\n\nDESCRIPTION:\n    \
                <empty>\n\nFIELDS:\n  length\t<integer>\n  sail\t<string>\n";
    assert_eq!(text, want);
    let pod = explain("po.spec.containers", &[], Release::NEWEST).await.unwrap();
    assert!(pod.contains("FIELD: containers <[]Container>") && pod.contains("  name\t<string> -required-\n"), "{pod}");
    // references to objects are named, others are their type, as kubectl guesses them
    let fields = explain("pods.spec.containers.resources", &[], Release::NEWEST).await.unwrap();
    assert!(fields.contains("FIELD: resources <ResourceRequirements>\n"), "{fields}");
    assert!(fields.contains("  limits\t<map[string]Quantity>\n"), "{fields}");
    let metadata = explain("pods.metadata", &[], Release::NEWEST).await.unwrap();
    assert!(metadata.contains("  creationTimestamp\t<string>\n"), "{metadata}");
    for (path, why) in [
        ("boats.sail", "field \"sail\" does not exist"),
        ("ships", "the server does not have a resource type \"ships\""),
    ] {
        assert_eq!(explain(path, &crds, Release::NEWEST).await.unwrap_err().to_string(), why);
    }
}
