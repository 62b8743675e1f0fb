"""`pintle cel cost` and the server agree on a CRD, and the limits that the command suggests are sufficient."""

import json
import re

import pytest

from objects import DEFINITIONS, definition

pytestmark = pytest.mark.cel

LIST = {"type": "array", "items": {"type": "string", "maxLength": 10}}
RULES = [{"rule": "self.list.all(x, self.list.exists(y, y == x))"}]


def fleets(**limit):
    return definition("fleets", "harbor.example.com", {"properties": {"list": {**LIST, **limit}}, "x-kubernetes-validations": RULES})


def test_the_server_agrees_on_costs(launch, tmp_path):
    file = tmp_path / "crd.json"
    file.write_text(json.dumps(fleets()))
    output = launch.run("cel", "cost", "-f", file, status=1, lines=None)
    assert "list has no maxItems" in output, output
    enough = int(re.search(r"add maxItems: (\d+) or less", output).group(1))
    with launch() as server:
        for crd, status, code in ((fleets(), 1, 422), (fleets(maxItems=enough + 1), 1, 422), (fleets(maxItems=enough), 0, 201)):
            file.write_text(json.dumps(crd))
            launch.run("cel", "cost", "-f", file, status=status, lines=None)
            found, response, _ = server.request("POST", DEFINITIONS + "?dryRun=All", crd)
            assert found == code, response
