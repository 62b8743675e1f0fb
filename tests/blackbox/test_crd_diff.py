"""`pintle crd diff`: what a change of CustomResourceDefinitions breaks, and what cannot be compared."""

import functools
import json
import re

import pytest

from documentation import COMMANDS, command_tests
from objects import DEFINITIONS

pytestmark = pytest.mark.cli


test_commands = command_tests("crd_diff")


def test_a_server(launch, tmp_path):
    """The definitions and the objects of a server; definitions that only the server has do not matter."""
    crd, boats = tmp_path / "crd.yaml", re.search(r"<<EOF\n(.*?)EOF\n", (COMMANDS / "crd_diff.txt").read_text(), re.S)[1]
    with launch() as server:
        for definition in (boats, boats.replace("boats", "ships").replace("Boat", "Ship")):
            headers = {"Content-Type": "application/yaml"}
            assert server.request("POST", DEFINITIONS, definition.encode(), headers=headers)[0] == 201
        boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "argo"}, "spec": {"crew": 9}}
        assert server.request("POST", "/apis/example.com/v1/namespaces/default/boats", boat)[0] == 201
        crd.write_text(boats)
        place = f"kubeconfig:{server.kubeconfig}"
        diff = functools.partial(launch.run, "crd", "diff", place, crd, "--objects", place, "-o", "json")
        assert diff() == "[]\n"
        crd.write_text(boats.replace("type: integer", "type: integer, maximum: 4"))
        done = diff(status=1, lines=None).stdout
        changes = [(change["check"], change["path"]) for change in json.loads(done)]
        assert changes == [("bound-added", "spec.crew"), ("object-invalid", "Boat default/argo")], done
