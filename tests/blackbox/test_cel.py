"""`pintle cel cost` and the server agree on a CRD, and the limits that the command suggests are sufficient."""

import json
import pathlib
import re
import tempfile

import pytest

from definitions import definition

pytestmark = pytest.mark.cel

SCHEMA: dict = {
    "type": "object",
    "properties": {"list": {"type": "array", "items": {"type": "string", "maxLength": 10}}},
    "x-kubernetes-validations": [{"rule": "self.list.all(x, self.list.exists(y, y == x))"}],
}
DEFINITION = definition("fleets", "Fleet", SCHEMA)


def cost(launch, crd):
    """The exit status and the output of `pintle cel cost`."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "crd.json")
        file.write_text(json.dumps(crd))
        done = launch.run("cel", "cost", "-f", str(file))
    return done.returncode, done.stdout + done.stderr


def with_max_items(items):
    return definition("fleets", "Fleet", {**SCHEMA, "properties": {"list": {**SCHEMA["properties"]["list"], "maxItems": items}}})


def test_the_server_agrees_on_costs(launch):
    status, output = cost(launch, DEFINITION)
    assert status == 1 and "list has no maxItems" in output, output
    enough = int(re.search(r"add maxItems: (\d+) or less", output).group(1))
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
    with launch() as server:
        for crd, accepted in [(DEFINITION, False), (with_max_items(enough + 1), False), (with_max_items(enough), True)]:
            status, output = cost(launch, crd)
            code, response, _ = server.request("POST", path, crd)
            assert (status == 0) == accepted == (code == 201), (status, output, code, response)
