"""`pintle crd diff`: what a change of CustomResourceDefinitions breaks, and what cannot be compared."""

import json
import subprocess

import pytest

pytestmark = pytest.mark.cli

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
    assert out.startswith("::error file=new.yaml,title=boats.example.com v1 spec.crew::the rule "), out


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
        ("a: [", "old.yaml: "),
        ("kind: ConfigMap", "old.yaml: there is no CustomResourceDefinition"),
        ("kind: CustomResourceDefinition\nspec: {versions: 1}", "cannot unmarshal number"),
    ],
)
def test_what_cannot_be_compared(diff, text, reason):
    status, out, err = diff(text, BOATS)
    assert status == 2 and out == "" and reason in err and err.count("\n") == 1, err


def test_a_file_that_does_not_exist(launch, tmp_path):
    command = [launch.binary, "crd", "diff", "none.yaml", "none.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("pintle: cannot read none.yaml: "), done.stderr
