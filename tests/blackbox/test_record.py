"""Transcripts that `pintle record` writes and `pintle replay` sends, and those of the repository."""

import json
import os
import subprocess
import sys

import pytest

import kubectl.client as kubectl
from documentation import ROOT
from pintle import TOKEN

pytestmark = [pytest.mark.testing, pytest.mark.timeout(180)]

WORKSPACES = "/apis/workspaces.pintle.dev/v1alpha1/workspaces"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Boat, plural: boats, singular: boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {sails: {type: integer, maximum: MAX}}}}}}
"""
BOAT = """
apiVersion: example.com/v1
kind: Boat
metadata: {name: ann}
spec: {sails: SAILS}
"""
SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {password: hidden-password}
"""

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


@pytest.fixture
def server(launch):
    with launch("--testing", "--workspaces") as server:
        for name in ("a", "b"):
            server.ok("POST", WORKSPACES, {"apiVersion": "workspaces.pintle.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": name}})
        yield server


def runner(launch, server, tmp_path):
    """Runs pintle, or the script of a shell with kubectl for workspace a, while a recording runs."""
    env = {**os.environ, "KUBECONFIG": server.kubeconfig, "PATH": f"{kubectl.built().parent}:{os.environ['PATH']}"}

    def run(*arguments):
        return launch.run(*arguments, timeout=120, env=env)

    config = tmp_path / "a.kubeconfig"
    config.write_text(run("workspace", "kubeconfig", "a").stdout)
    # a kubeconfig of a workspace is one for all commands
    assert run("settle", "--kubeconfig", str(config)).returncode == 0
    assert run("workspace", "kubeconfig", "b", "--kubeconfig", str(config)).stdout.count("/clusters/b") == 1

    def record(file, script, *flags):
        script = f"export KUBECONFIG={config}\n{script}"
        return run("record", "-o", str(file), "--workspace", "a", *flags, "--", "bash", "-ec", script)

    return run, record


def test_a_bug_report(launch, server, tmp_path):
    """What was recorded in one workspace is the same in another one, and differs where the API does."""
    run, record = runner(launch, server, tmp_path)
    (tmp_path / "crd.yaml").write_text(DEFINITION.replace("MAX", "3"))
    (tmp_path / "boat.yaml").write_text(BOAT.replace("SAILS", "2"))
    (tmp_path / "bad.yaml").write_text(BOAT.replace("SAILS", "4"))
    (tmp_path / "secret.yaml").write_text(SECRET)
    file = tmp_path / "bug.json"
    result = record(
        file,
        f"""cd {tmp_path}
kubectl apply -f crd.yaml
kubectl wait --for condition=established crd/boats.example.com
kubectl apply -f boat.yaml
kubectl get boats --watch --output-watch-events > events & watch=$!
until grep -q ann events; do sleep 0.05; done
kubectl label boat ann a=b
! kubectl apply -f bad.yaml
kubectl apply -f secret.yaml
kubectl create -f - <<EOF
apiVersion: example.com/v1
kind: Boat
metadata: {{generateName: b-}}
EOF
kubectl replace -f boat.yaml
kubectl delete boat --all
kill $watch
""",
    )
    assert result.returncode == 0, result
    text = file.read_text()
    assert "hidden-password" not in text and "aGlkZGVu" not in text and "uthorization" not in text and TOKEN not in text
    steps = json.loads(text)["steps"]
    assert {"watch-boats", "create-boats", "patch-boats", "create-secrets"} <= {step["id"].split("-", 1)[1] for step in steps if "collect" not in step}
    assert any(step.get("collect") and step["events"] for step in steps)
    replayed = run("replay", str(file), "--workspace", "b")
    assert replayed.returncode == 0 and replayed.stdout.endswith(" compared, 0 different\n"), replayed.stdout

    changed = tmp_path / "changed.json"
    changed.write_text(text.replace('"maximum":3', '"maximum":4'))
    server.ok("DELETE", WORKSPACES + "/b")
    server.ok("POST", WORKSPACES, {"apiVersion": "workspaces.pintle.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": "c"}})
    replayed = run("replay", str(changed), "--server", f"{server.url}/clusters/c")
    assert replayed.returncode == 1, replayed
    assert ": recorded 422 (-), this server 200 (+)\n" in replayed.stdout, replayed.stdout


def test_secrets_if_asked_for(launch, server, tmp_path):
    run, record = runner(launch, server, tmp_path)
    (tmp_path / "secret.yaml").write_text(SECRET)
    file = tmp_path / "secret.json"
    assert record(file, f"kubectl apply -f {tmp_path}/secret.yaml", "--secrets").returncode == 0
    assert "hidden-password" in file.read_text()
    assert record(file, "exit 7").returncode == 7, "that of the command"


def test_protobuf_is_replayed_as_json(launch, server, tmp_path):
    """As a Go client sends it: a read in protobuf, whose bytes are written again."""
    run, record = runner(launch, server, tmp_path)
    (tmp_path / "client.py").write_text(GO_CLIENT)
    file = tmp_path / "go.json"
    environment = f"URL={server.url}/clusters/a TOKEN={TOKEN}"
    result = record(file, f"{environment} {sys.executable} {tmp_path}/client.py")
    assert result.returncode == 0, result
    text = file.read_text()
    assert "base64" not in text and "vnd.kubernetes.protobuf" not in text and "hidden" not in text, text
    steps = {step["id"].split("-", 1)[1]: step for step in json.loads(text)["steps"]}
    assert steps["update-deployments"]["body"]["spec"]["template"]["spec"]["containers"][0]["image"] == "i"
    assert [event["type"] for event in next(step for step in json.loads(text)["steps"] if step.get("collect"))["answer"]] == ["ADDED"] * 2
    data = steps["get-secrets"]["answer"]["body"]["data"]
    assert data["a"] == data["c"] != data["b"], data
    replayed = run("replay", str(file), "--workspace", "b")
    assert replayed.returncode == 0 and replayed.stdout.endswith(" compared, 0 different\n"), replayed.stdout


def test_replay_follows_the_kubeconfig(launch, server, tmp_path):
    """Also its flags about the certificate of the server."""
    run, record = runner(launch, server, tmp_path)
    file = tmp_path / "x.json"
    assert record(file, "kubectl create configmap a").returncode == 0
    config = json.loads(
        subprocess.run([kubectl.built(), "config", "view", "--raw", "-o", "json", "--kubeconfig", server.kubeconfig], capture_output=True, check=True).stdout
    )
    cluster = config["clusters"][0]["cluster"]
    authority = cluster.pop("certificate-authority-data")
    trusted = {"certificate-authority-data": authority}
    for flags, why in (
        ({}, "certificate"),
        ({"insecure-skip-tls-verify": True}, None),
        ({**trusted, "tls-server-name": "other.example.com"}, "certificate"),
        ({**trusted, "tls-server-name": "localhost"}, None),
    ):
        config["clusters"][0]["cluster"] = {**cluster, **flags}
        (tmp_path / "config").write_text(json.dumps(config))
        server.request("DELETE", "/clusters/b/api/v1/namespaces/default/configmaps/a")
        result = run("replay", str(file), "--workspace", "b", "--kubeconfig", str(tmp_path / "config"))
        assert (result.returncode == 0) == (why is None) and (why or "") in result.stderr, (flags, result)


@pytest.mark.parametrize("name", ["corners", "built-in-lists", "custom-corners", "broken-lists", "definition-applies"])
def test_recorded_from_kube_apiserver(launch, name):
    """Transcripts of kube-apiserver are replayed as the harness does it."""
    with launch() as server:
        result = launch.run("replay", ROOT / "tests/transcripts" / f"{name}.json", timeout=170, server=server)
        assert result.returncode == 0, result.stdout


def test_errors_are_one_line(launch, server, tmp_path):
    (tmp_path / "no.json").write_text("no")
    (tmp_path / "other.json").write_text("{}")
    for arguments, why in (
        (("replay", tmp_path / "none.json"), "cannot read"),
        (("replay", tmp_path / "no.json"), "no.json: "),
        (("replay", tmp_path / "other.json"), "it has no steps"),
        (("record", "-o", tmp_path / "none" / "x.json", "--", "true"), "cannot write"),
        (("record", "-o", tmp_path / "x.json", "--workspace", "none", "--", "true"), 'workspaces.workspaces.pintle.dev "none" not found'),
        (("record", "-o", tmp_path / "x.json", "--", "no-such-program"), "cannot run no-such-program"),
    ):
        result = launch.run(*arguments, server=server)
        assert result.returncode == 1 and why in result.stderr and result.stderr.count("\n") == 1, (arguments, result)
