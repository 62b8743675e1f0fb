"""`pintle cel eval`: the value of an expression and of its parts."""

import json
import subprocess

import pytest

from programs import ROOT

pytestmark = pytest.mark.cel

BOAT = "apiVersion: harbor.example.com/v1\nkind: Boat\nspec: {crew: 5, seats: 4}\n"
CRD = str(ROOT / "examples" / "crd-tests" / "boats.crd.yaml")


@pytest.fixture
def evaluate(launch, tmp_path):
    (tmp_path / "boat.yaml").write_text(BOAT)
    (tmp_path / "old.yaml").write_text(BOAT.replace("5", "3"))

    def run(*arguments):
        command = [launch.binary, "cel", "eval", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    return run


def test_values_of_the_parts(evaluate):
    status, out, err = evaluate("self.spec.crew <= self.spec.seats", "-f", "boat.yaml", "--crd", CRD)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "value: false",
        "type:  bool",
        "cost:  7",
        "trace:",
        "  self.spec.crew <= self.spec.seats = false (cost 7)",
        "    self.spec.crew = 5 (cost 3)",
        "    self.spec.seats = 4 (cost 3)",
    ]
    status, out, _ = evaluate("self.spec.crew - oldSelf.spec.crew", "-f", "boat.yaml", "--old", "old.yaml", "-o", "json")
    assert status == 0 and json.loads(out)["value"] == 2


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["1 +"], "Syntax error"),
        (["self.x", "-f", "none.yaml"], "cannot read none.yaml: "),
        (["self.spec.x", "-f", "boat.yaml"], "the expression fails: no such key: x"),
        (["self.spec.x", "-f", "boat.yaml", "--crd", CRD], "undefined field 'x'"),
        (["self.x", "-f", "boat.yaml", "--crd", "old.yaml"], "old.yaml: there is no CustomResourceDefinition of Boat"),
    ],
)
def test_what_cannot_be_evaluated(evaluate, arguments, reason):
    status, _, err = evaluate(*arguments)
    assert status == 1 and reason in err, err
