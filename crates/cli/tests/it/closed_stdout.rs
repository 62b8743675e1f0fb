//! Commands whose stdout is closed by its reader, as `head` does.

use std::process::{Command, Stdio};

const DEFINITION: &str = r#"
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
          spec: {type: object, x-kubernetes-validations: [{rule: "true"}], properties: {size: {type: integer}}}
"#;

#[test]
fn commands_end_in_silence_with_the_status_of_sigpipe() {
    let place = tempfile::tempdir().unwrap();
    let (old, new) = (place.path().join("old.yaml"), place.path().join("new.yaml"));
    std::fs::write(&old, DEFINITION).unwrap();
    std::fs::write(&new, DEFINITION.replace("size:", "length:")).unwrap();
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    let kube_apiserver = place.path().join("kube-apiserver");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pintle"), &kube_apiserver).unwrap();
    let (pintle, kube_apiserver) = (env!("CARGO_BIN_EXE_pintle"), kube_apiserver.to_str().unwrap());
    for command in [
        [pintle, "version"].as_slice(),
        &[pintle, "crd", "diff", old, new],
        &[pintle, "test", "--schema"],
        &[pintle, "cel", "cost", "-f", old],
        &[pintle, "validate", old],
        &[kube_apiserver, "--version"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = Command::new(command[0]).args(&command[1..]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let done = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&done.stderr);
        assert_eq!((done.status.code(), &*printed), (Some(141), ""), "{command:?}");
    }
}
