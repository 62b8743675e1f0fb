"""Encryption at rest: encrypted files, rotation of keys, and wrong keys."""

import json

import pytest

from commands import refused, run
from encryption import ENCODED, PLAIN, configuration, read, secret, stored
from objects import MAPS, SECRETS, WORKSPACES
from pintle import eventually

pytestmark = pytest.mark.encryption

DATA = {"k": ENCODED.decode()}


@pytest.mark.parametrize("kind", ["aescbc", "aesgcm", "secretbox"])
def test_secrets_are_not_on_disk(launch, tmp_path, kind):
    flag = f"--encryption-provider-config={configuration(tmp_path, {kind: [('key1', 1)]}, 'identity')}"
    with launch(flag, storage="embedded") as server:
        created = server.ok("POST", SECRETS, secret("one"))
        server.ok("POST", MAPS, {"metadata": {"name": "open"}, "data": {"k": "an open text"}})
        patched = server.ok("PATCH", SECRETS + "/one", {"metadata": {"labels": {"a": "b"}}})
        assert patched["data"] == created["data"]
        assert server.request("GET", "/readyz")[0] == 200
        server.restart()
        assert server.ok("GET", SECRETS + "/one") == patched
        on_disk = stored(server)
        assert ENCODED not in on_disk and PLAIN.encode() not in on_disk
        assert on_disk.count(f"k8s:enc:{kind}:v1:key1:".encode()) >= 2
        assert b"an open text" in on_disk
        watched = server.request("GET", f"{SECRETS}?watch=1&resourceVersion={created['metadata']['resourceVersion']}&timeoutSeconds=1")[1]
        watched = watched if isinstance(watched, dict) else json.loads(watched.splitlines()[0])
        assert watched["object"] == patched, "events of the history are decrypted"


def test_keys_are_rotated_by_rewriting_objects(launch, tmp_path):
    flag = f"--encryption-provider-config={configuration(tmp_path, 'identity')}"
    with launch(flag, storage="embedded") as server:
        server.ok("POST", SECRETS, secret("one"))
        for providers, prefix in (
            ([{"aesgcm": [("old", 1)]}, "identity"], b"k8s:enc:aesgcm:v1:old:"),
            ([{"aesgcm": [("new", 2), ("old", 1)]}], b"k8s:enc:aesgcm:v1:new:"),
            ([{"secretbox": [("box", 3)]}, {"aesgcm": [("new", 2)]}], b"k8s:enc:secretbox:v1:box:"),
            (["identity", {"secretbox": [("box", 3)]}], b'"name":"one"'),
        ):
            configuration(tmp_path, *providers)
            server.restart()
            before = server.ok("GET", SECRETS + "/one")
            after = server.ok("PUT", SECRETS + "/one", before)
            version = before["metadata"].pop("resourceVersion")
            assert after["metadata"].pop("resourceVersion") != version and after == before, providers
            assert prefix in stored(server), providers
            again = server.ok("PUT", SECRETS + "/one", after)
            assert again == server.ok("PUT", SECRETS + "/one", again), "a current value is not written again"
        configuration(tmp_path, "identity")
        server.restart()
        assert read(server) == DATA


def test_keys_of_workspaces_are_rotated(launch, tmp_path):
    """Of a workspace in use, a template and a fork, and of what the fork returns to at a reset."""
    former, both, new = [{"aesgcm": [("old", 1)]}], [{"aesgcm": [("new", 2), ("old", 1)]}], [{"aesgcm": [("new", 2)]}]
    write = lambda providers: configuration(tmp_path, *providers, "identity")
    flag = f"--encryption-provider-config={write(former)}"
    with launch(flag, "--workspaces", storage="embedded") as server:
        begin = lambda name, spec: server.ok("POST", f"/clusters/{name}", spec)
        rewrite = lambda: run(server.binary, "storage", "rewrite", "--kubeconfig", server.kubeconfig)
        for name in ("used", "template"):
            begin(name, {})
            server.ok("POST", f"/clusters/{name}{SECRETS}", secret("one"))
        server.ok("PATCH", f"{WORKSPACES}/template", {"spec": {"template": True}})
        begin("fork", {"from": {"workspace": "template"}})
        assert read(server, prefix="/clusters/fork") == DATA
        write(both)
        server.restart()
        done = rewrite()
        assert all(f"workspace {name}: " in done for name in ("used", "template", "fork")), done
        write(new)
        server.restart()
        server.ok("PATCH", f"{WORKSPACES}/fork", {"spec": {"reset": "1"}})
        assert read(server, prefix="/clusters/fork") == DATA
        # a workspace that is not rewritten
        write([{"aesgcm": [("old", 1), ("new", 2)]}])
        server.restart()
        begin("late", {})
        server.ok("POST", f"/clusters/late{SECRETS}", secret("one"))
        write(new)
        server.stop()
        error = refused(launch, "--workspaces", "--storage=embedded", "--data-dir", server.dir, flag)
        assert 'workspace "late": the value of /registry/core/secrets/default/one cannot be read' in error, error
        # the way out if the key is lost
        with launch(flag, storage="embedded", data_dir=server.dir) as without:
            without.ok("DELETE", f"{WORKSPACES}/late")
        server.start()
        done = rewrite()
        assert "up to date" in done and "workspace " not in done, done
        begin("later", {"from": {"workspace": "template"}})
        assert [read(server, prefix=f"/clusters/{name}") for name in ("used", "template", "later")] == [DATA] * 3


def test_a_workspace_that_no_key_opens_is_in_the_log(launch, tmp_path):
    """Its phase is still Ready."""
    flag = f"--encryption-provider-config={configuration(tmp_path, {'aesgcm': [('old', 1)]}, 'identity')}"
    with launch(flag, "--encryption-provider-config-automatic-reload", "--workspaces", storage="embedded") as server:
        server.ok("POST", "/clusters/a")
        server.ok("POST", f"/clusters/a{SECRETS}", secret("one"))
        server.restart()
        configuration(tmp_path, {"aesgcm": [("new", 2)]}, "identity")
        reloads = 'apiserver_encryption_config_controller_automatic_reloads_total{status="success"} 1'
        eventually(lambda: reloads in server.ok("GET", "/metrics"))
        for _ in range(3):
            status, body, _ = server.request("GET", f"/clusters/a{SECRETS}/one")
            assert status == 403 and "cannot be used" in body["message"], body
        lines = [line for line in server.stderr().splitlines() if "a workspace cannot be used" in line]
        assert len(lines) == 1 and "workspace=" in lines[0] and "k8s:enc:aesgcm:v1:old" in lines[0], lines


def test_wrong_keys_are_reported_and_change_nothing(launch, tmp_path):
    write = lambda *providers: configuration(tmp_path, *providers)
    flag = f"--encryption-provider-config={write({'aesgcm': [('k', 1)]}, 'identity')}"
    with launch(flag, storage="embedded") as server:
        server.ok("POST", SECRETS, secret("one"))
        server.stop()
        before = stored(server)
        data = ("--data-dir", server.dir)
        key, unread = "/registry/core/secrets/default/one", "it is encrypted, and no provider reads it"
        for providers, want in (
            ([{"aesgcm": [("k", 2)]}, "identity"], "k8s:enc:aesgcm:v1:k: cipher: message authentication failed"),
            ([{"aesgcm": [("l", 1)]}, "identity"], "no matching key was found for the provided AES transformer (k8s:enc:aesgcm:v1:k)"),
            (["identity"], f"{unread} (k8s:enc:aesgcm:v1:k)"),
        ):
            write(*providers)
            assert f"the value of {key} cannot be read, and is left as it is: {want}" in refused(launch, "--storage=embedded", *data, flag)
            assert stored(server).startswith(before)
        assert unread in refused(launch, "--storage=embedded", *data)
        path = write({"kms": {"name": "k", "endpoint": "unix:///x"}})
        error = f'--encryption-provider-config: {path}: resources[0].providers[0].kms.apiVersion: Invalid value: "": KMS v1 is not supported'
        assert error in refused(launch, "--storage=embedded", *data, flag)
        write({"aesgcm": [("k", 1)]}, "identity")
        assert key in launch.run("export", tmp_path / "out", *data, status=1)
        assert ENCODED.decode() in launch.run("export", "-", flag, *data)
        server.start()
        assert read(server) == DATA
