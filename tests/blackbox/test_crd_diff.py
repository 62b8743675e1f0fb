"""`pintle crd diff`: what a change of CustomResourceDefinitions breaks, and what cannot be compared."""

import json
import subprocess

import pytest

pytestmark = pytest.mark.cli

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

BOATS = """
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
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {crew: {type: integer}}}}}
"""


@pytest.fixture
def diff(launch, tmp_path):
    """Compares two texts; returns the exit status, stdout and stderr."""

    def compare(old, new, *flags):
        (tmp_path / "old.yaml").write_text(old)
        (tmp_path / "new.yaml").write_text(new)
        command = [launch.binary, "crd", "diff", "old.yaml", "new.yaml", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    return compare


def test_what_breaks(diff):
    rule = "crew: {type: integer, x-kubernetes-validations: [{rule: self > 1}]}"
    status, out, err = diff(BOATS, BOATS.replace("crew: {type: integer}", rule))
    assert status == 1 and err == "", err
    first = "breaking: boats.example.com v1 spec.crew: the rule self > 1 is added (estimated cost 2 of 10000000) [rule-added]"
    assert out.splitlines()[0] == first, out
    assert diff(BOATS, BOATS.replace("crew: {type: integer}", rule)) == (status, out, err)
    status, out, _ = diff(BOATS, BOATS.replace("crew: {type: integer}", rule), "-o", "json")
    assert status == 1 and [row["check"] for row in json.loads(out)] == ["rule-added"]
    _, out, _ = diff(BOATS, BOATS.replace("crew: {type: integer}", rule), "-o", "github")
    assert out.startswith("::error file=new.yaml,line=14,col="), out
    assert ",title=CustomResourceDefinition boats.example.com::v1 spec.crew: the rule " in out, out
    _, out, _ = diff(BOATS, BOATS.replace("crew: {type: integer}", rule), "-o", "sarif")
    assert [result["ruleId"] for result in json.loads(out)["runs"][0]["results"]] == ["rule-added"]
    _, out, _ = diff(BOATS, BOATS.replace("crew: {type: integer}", rule), "-o", "junit")
    assert '<failure type="rule-added"' in out, out


def test_what_does_not_break(diff):
    assert diff(BOATS, BOATS) == (0, "", "")
    more = BOATS.replace("{crew: {type: integer}}", "{crew: {type: integer}, name: {type: string}}")
    status, out, _ = diff(BOATS, more)
    assert (status, out) == (0, "info: boats.example.com v1 spec.name: there is a field [field-added]\n")
    described = BOATS.replace("crew: {type: integer}", "crew: {type: integer, description: d}")
    assert diff(BOATS, described)[0] == 0
    assert diff(BOATS, described, "--strict")[0] == 1


@pytest.mark.parametrize(
    "text, reason",
    [
        ("a: [", "old.yaml:1: this is not YAML: "),
        ("kind: ConfigMap", "old.yaml: there is no CustomResourceDefinition"),
        ("kind: CustomResourceDefinition\nspec: {versions: 1}", "cannot unmarshal number"),
    ],
)
def test_what_cannot_be_compared(diff, text, reason):
    status, out, err = diff(text, BOATS)
    assert status == 2 and out == "" and reason in err and err.count("\n") == 1, err


def test_a_file_that_does_not_exist(launch, tmp_path):
    for place, reason in [("none.yaml", "cannot read none.yaml: "), ("git:none:crd.yaml", "git: ")]:
        command = [launch.binary, "crd", "diff", place, place]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.startswith(f"pintle: {reason}") and done.stderr.count("\n") == 1, done.stderr


def test_a_commit_and_real_objects(launch, tmp_path):
    def run(*command):
        return subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=tmp_path)

    crd, boats = tmp_path / "crd.yaml", tmp_path / "boats.yaml"
    crd.write_text(BOATS)
    run("git", "init", "-q")
    run("git", "add", "crd.yaml")
    done = run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "a")
    assert done.returncode == 0, done
    crd.write_text(BOATS.replace("type: integer", "type: integer, maximum: 4"))
    boat = "apiVersion: example.com/v1\nkind: Boat\nmetadata: {name: NAME}\nspec: {crew: CREW}\n---\n"
    boats.write_text(boat.replace("NAME", "argo").replace("CREW", "9") + boat.replace("NAME", "ilex").replace("CREW", "2"))
    done = run(launch.binary, "crd", "diff", "git:HEAD:crd.yaml", "crd.yaml", "--objects", "boats.yaml", "-o", "json")
    changes = [(change["check"], change["path"]) for change in json.loads(done.stdout)]
    assert done.returncode == 1 and changes == [("bound-added", "spec.crew"), ("object-invalid", "Boat argo")], done
    rule = "openAPIV3Schema: {x-kubernetes-validations: [{rule: self.spec.crew < 5}], "
    crd.write_text(BOATS.replace("openAPIV3Schema: {", rule))
    done = run(launch.binary, "crd", "diff", "git:HEAD:crd.yaml", "crd.yaml", "--objects", "boats.yaml", "-o", "json")
    assert [change["check"] for change in json.loads(done.stdout)] == ["rule-added", "object-refused"], done


def test_a_server(launch, tmp_path):
    """The definitions and the objects of a server; definitions that only the server has do not matter."""
    crd = tmp_path / "crd.yaml"
    with launch() as server:
        for definition in (BOATS, BOATS.replace("boats", "ships").replace("Boat", "Ship")):
            headers = {"Content-Type": "application/yaml"}
            assert server.request("POST", DEFINITIONS, definition.encode(), headers=headers)[0] == 201
        boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "argo"}, "spec": {"crew": 9}}
        assert server.request("POST", "/apis/example.com/v1/namespaces/default/boats", boat)[0] == 201
        crd.write_text(BOATS)
        place = f"kubeconfig:{server.kubeconfig}"
        command = [launch.binary, "crd", "diff", place, str(crd), "--objects", place, "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", ""), done
        crd.write_text(BOATS.replace("type: integer", "type: integer, maximum: 4"))
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        changes = [(change["check"], change["path"]) for change in json.loads(done.stdout)]
        assert changes == [("bound-added", "spec.crew"), ("object-invalid", "Boat default/argo")], done
