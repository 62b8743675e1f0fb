"""Transcripts that `pintle record` writes and `pintle replay` sends, and those of the repository."""

import json
import sys

import pytest

from documentation import ROOT, command_tests
from objects import workspace
from pintle import TOKEN

pytestmark = [pytest.mark.testing, pytest.mark.timeout(180)]

# a client of a workspace that sends and accepts protobuf
GO_CLIENT = """
import http.client, json, os, ssl
from urllib.parse import urlparse

url, protobuf = urlparse(os.environ["URL"]), "application/vnd.kubernetes.protobuf"

def call(method, path, body=None, kind=protobuf, accept=protobuf + ", application/json"):
    connection = http.client.HTTPSConnection(url.hostname, url.port, context=ssl._create_unverified_context(), timeout=30)
    headers = {"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": kind, "Accept": accept, "User-Agent": "manager/1"}
    connection.request(method, url.path + path, body, headers)
    response = connection.getresponse()
    content = response.read()
    assert response.status < 300, (method, path, response.status, content)
    return content

def create(path, object):
    return call("POST", path, json.dumps(object), "application/json")

labels = {"app": "a"}
template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
place = "/apis/apps/v1/namespaces/default/deployments"
created = create(place, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": labels}, "template": template}})
assert created.startswith(b"k8s\\0")
call("PUT", place + "/a", created)
call("GET", place)
maps = "/api/v1/namespaces/default/configmaps"
for name in "ab":
    create(maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": name}})
call("GET", maps + "?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name!=kube-root-ca.crt", accept=protobuf + ";stream=watch, application/json")
secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "hidden-1", "b": "hidden-2", "c": "hidden-1"}}
create("/api/v1/namespaces/default/secrets", secret)
call("GET", "/api/v1/namespaces/default/secrets/s")
"""


test_commands = command_tests("record")


def test_protobuf_is_replayed_as_json(launch, tmp_path):
    """As a Go client sends it: a read in protobuf, whose bytes are written again."""
    (tmp_path / "client.py").write_text(GO_CLIENT)
    file = tmp_path / "go.json"
    with launch("--testing", "--workspaces") as server:
        client = ("env", f"URL={server.url}{workspace(server, 'a')}", f"TOKEN={TOKEN}", sys.executable, tmp_path / "client.py")
        launch.run("record", "-o", file, "--workspace", "a", "--", *client, server=server)
        text = file.read_text()
        assert "base64" not in text and "vnd.kubernetes.protobuf" not in text and "hidden" not in text, text
        assert "uthorization" not in text and TOKEN not in text
        steps = {step["id"].split("-", 1)[1]: step for step in json.loads(text)["steps"]}
        assert steps["update-deployments"]["body"]["spec"]["template"]["spec"]["containers"][0]["image"] == "i"
        assert [event["type"] for event in next(step for step in json.loads(text)["steps"] if step.get("collect"))["answer"]] == ["ADDED"] * 2
        data = steps["get-secrets"]["answer"]["body"]["data"]
        assert data["a"] == data["c"] != data["b"], data
        workspace(server, "b")
        assert launch.run("replay", file, "--workspace", "b", server=server).stdout.endswith(" compared, 0 different\n")


@pytest.mark.parametrize("name", ["corners", "built-in-lists", "custom-corners", "broken-lists", "definition-applies"])
def test_recorded_from_kube_apiserver(launch, name):
    """Transcripts of kube-apiserver are replayed as the harness does it."""
    with launch() as server:
        launch.run("replay", ROOT / "tests/transcripts" / f"{name}.json", timeout=170, server=server)
