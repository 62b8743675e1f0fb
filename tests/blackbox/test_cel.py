"""`pintle cel cost` and the server agree on a CRD, and the limits that the command suggests are sufficient."""

import copy
import json
import pathlib
import re
import tempfile

import pytest

pytestmark = pytest.mark.cel

RULE = "self.list.all(x, self.list.exists(y, y == x))"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "fleets.harbor.example.com"},
    "spec": {
        "group": "harbor.example.com",
        "scope": "Namespaced",
        "names": {"plural": "fleets", "singular": "fleet", "kind": "Fleet"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"list": {"type": "array", "items": {"type": "string", "maxLength": 10}}},
                        "x-kubernetes-validations": [{"rule": RULE}],
                    }
                },
            }
        ],
    },
}


def cost(launch, definition):
    """The exit status and the output of `pintle cel cost`."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "crd.json")
        file.write_text(json.dumps(definition))
        done = launch.run("cel", "cost", "-f", str(file))
    return done.returncode, done.stdout + done.stderr


def with_max_items(items):
    definition: dict = copy.deepcopy(DEFINITION)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["list"]["maxItems"] = items
    return definition


def test_the_server_agrees_on_costs(launch):
    status, output = cost(launch, DEFINITION)
    assert status == 1 and "list has no maxItems" in output, output
    enough = int(re.search(r"add maxItems: (\d+) or less", output).group(1))
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
    with launch() as server:
        for definition, accepted in [(DEFINITION, False), (with_max_items(enough + 1), False), (with_max_items(enough), True)]:
            status, output = cost(launch, definition)
            code, response, _ = server.request("POST", path, definition)
            assert (status == 0) == accepted == (code == 201), (status, output, code, response)
