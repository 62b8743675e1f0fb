"""Encryption at rest: encrypted files, rotation of keys, and wrong keys."""

import json
import pathlib
import subprocess
import tempfile

import pytest

from encryption import ENCODED, MAPS, PLAIN, SECRETS, configuration, secret
from pintle import eventually

pytestmark = pytest.mark.encryption


def stored(server):
    """The content of all files of the log."""
    return b"".join(file.read_bytes() for file in sorted((server.dir / "log").glob("0*")))


def test_secrets_are_not_on_disk(launch):
    with tempfile.TemporaryDirectory() as directory:
        for kind in ("aescbc", "aesgcm", "secretbox"):
            flag = f"--encryption-provider-config={configuration(directory, {kind: [('key1', 1)]}, 'identity')}"
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


def test_keys_are_rotated_by_rewriting_objects(launch):
    with tempfile.TemporaryDirectory() as directory:
        flag = f"--encryption-provider-config={directory}/encryption.json"
        steps = [
            (["identity"], b'"name":"one"', "identity"),
            ([{"aesgcm": [("old", 1)]}, "identity"], b"k8s:enc:aesgcm:v1:old:", "the first key"),
            ([{"aesgcm": [("new", 2), ("old", 1)]}], b"k8s:enc:aesgcm:v1:new:", "the next key"),
            ([{"secretbox": [("box", 3)]}, {"aesgcm": [("new", 2)]}], b"k8s:enc:secretbox:v1:box:", "another cipher"),
            (["identity", {"secretbox": [("box", 3)]}], None, "identity again"),
        ]
        configuration(directory, *steps[0][0])
        with launch(flag, storage="embedded") as server:
            server.ok("POST", SECRETS, secret("one"))
            for providers, prefix, name in steps[1:]:
                configuration(directory, *providers)
                server.restart()
                before = server.ok("GET", SECRETS + "/one")
                after = server.ok("PUT", SECRETS + "/one", before)
                version = before["metadata"].pop("resourceVersion")
                assert after["metadata"].pop("resourceVersion") != version and after == before, name
                assert prefix is None or prefix in stored(server), name
                again = server.ok("PUT", SECRETS + "/one", after)
                assert again == server.ok("PUT", SECRETS + "/one", again), "a current value is not written again"
            configuration(directory, "identity")
            server.restart()
            assert server.ok("GET", SECRETS + "/one")["data"] == {"k": ENCODED.decode()}


def test_keys_of_workspaces_are_rotated(launch):
    """Of a workspace in use, a template and a fork, and of what the fork returns to at a reset."""
    former, both, new = [{"aesgcm": [("old", 1)]}], [{"aesgcm": [("new", 2), ("old", 1)]}], [{"aesgcm": [("new", 2)]}]
    with tempfile.TemporaryDirectory() as directory:
        write = lambda providers: configuration(directory, *providers, "identity")
        flag = f"--encryption-provider-config={write(former)}"
        with launch(flag, "--workspaces", storage="embedded") as server:
            workspaces = "/apis/workspaces.pintle.dev/v1alpha1/workspaces"
            read = lambda name: server.request("GET", f"/clusters/{name}{SECRETS}/one")
            begin = lambda name, spec: server.ok("POST", f"/clusters/{name}", spec)
            begin("used", {})
            begin("template", {})
            for name in ("used", "template"):
                server.ok("POST", f"/clusters/{name}{SECRETS}", secret("one"))
            server.ok("PATCH", f"{workspaces}/template", {"spec": {"template": True}})
            begin("fork", {"from": {"workspace": "template"}})
            assert read("fork")[0] == 200
            write(both)
            server.restart()
            command = [server.binary, "storage", "rewrite", "--kubeconfig", server.kubeconfig]
            rewrite = lambda: subprocess.run(command, capture_output=True, text=True, timeout=60)
            done = rewrite()
            assert done.returncode == 0, done
            for name in ("used", "template", "fork"):
                assert f"workspace {name}: " in done.stdout + done.stderr, (name, done)
            write(new)
            server.restart()
            server.ok("PATCH", f"{workspaces}/fork", {"spec": {"reset": "1"}})
            assert read("fork")[1]["data"] == {"k": ENCODED.decode()}
            # a workspace that is not rewritten
            server.stop()
            write([{"aesgcm": [("old", 1), ("new", 2)]}])
            server.start()
            begin("late", {})
            server.ok("POST", f"/clusters/late{SECRETS}", secret("one"))
            write(new)
            server.stop()
            serve = [server.binary, "serve", "--workspaces", "--secure-port", "0", "--data-dir", str(server.dir), flag]
            check_fails(serve, 'workspace "late": the value of /registry/core/secrets/default/one cannot be read')
            # the way out if the key is lost
            with launch(flag, storage="embedded", data_dir=server.dir) as without:
                without.ok("DELETE", f"{workspaces}/late")
            server.start()
            done = rewrite()
            assert done.returncode == 0 and "up to date" in done.stdout and "workspace " not in done.stdout, done
            for name in ("used", "template"):
                assert read(name)[1]["data"] == {"k": ENCODED.decode()}, name
            begin("later", {"from": {"workspace": "template"}})
            assert read("later")[0] == 200


def test_a_workspace_that_no_key_opens_is_in_the_log(launch):
    """Its phase is still Ready."""
    with tempfile.TemporaryDirectory() as directory:
        flag = f"--encryption-provider-config={configuration(directory, {'aesgcm': [('old', 1)]}, 'identity')}"
        flags = [flag, "--encryption-provider-config-automatic-reload", "--workspaces"]
        with launch(*flags, storage="embedded") as server:
            server.ok("POST", "/clusters/a")
            server.ok("POST", f"/clusters/a{SECRETS}", secret("one"))
            server.restart()
            configuration(directory, {"aesgcm": [("new", 2)]}, "identity")
            reloads = 'apiserver_encryption_config_controller_automatic_reloads_total{status="success"} 1'
            eventually(lambda: reloads in server.ok("GET", "/metrics"))
            for _ in range(3):
                status, body, _ = server.request("GET", f"/clusters/a{SECRETS}/one")
                assert status == 403 and "cannot be used" in body["message"], body
            lines = [line for line in server.stderr().splitlines() if "a workspace cannot be used" in line]
            assert len(lines) == 1 and "workspace=" in lines[0] and "k8s:enc:aesgcm:v1:old" in lines[0], lines


def test_wrong_keys_are_reported_and_change_nothing(launch):
    with tempfile.TemporaryDirectory() as directory:
        path = configuration(directory, {"aesgcm": [("k", 1)]}, "identity")
        flag = f"--encryption-provider-config={path}"
        with launch(flag, storage="embedded") as server:
            server.ok("POST", SECRETS, secret("one"))
            server.stop()
            before = stored(server)
            key = "/registry/core/secrets/default/one"
            cases = [
                ([{"aesgcm": [("k", 2)]}, "identity"], "k8s:enc:aesgcm:v1:k: cipher: message authentication failed"),
                ([{"aesgcm": [("l", 1)]}, "identity"], "no matching key was found for the provided AES transformer (k8s:enc:aesgcm:v1:k)"),
                (["identity"], "it is encrypted, and no provider reads it (k8s:enc:aesgcm:v1:k)"),
            ]
            command = [launch.binary, "serve", "--secure-port", "0", "--data-dir", str(server.dir)]
            for providers, want in cases:
                configuration(directory, *providers)
                check_fails(command + [flag], f"the value of {key} cannot be read, and is left as it is: {want}")
                assert stored(server).startswith(before)
            check_fails(command, "it is encrypted, and no provider reads it")
            configuration(directory, {"aesgcm": [("k", 1)]}, "identity")
            check_fails([launch.binary, "export", str(pathlib.Path(directory) / "out"), "--data-dir", str(server.dir)], key)
            done = subprocess.run([launch.binary, "export", "-", flag, "--data-dir", str(server.dir)], capture_output=True, timeout=30)
            assert done.returncode == 0 and ENCODED in done.stdout, done
            path.write_text(
                "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n"
                "  providers: [{kms: {name: k, endpoint: unix:///x}}]\n"
            )
            check_fails(
                command + [flag], f'--encryption-provider-config: {path}: resources[0].providers[0].kms.apiVersion: Invalid value: "": KMS v1 is not supported'
            )
            configuration(directory, {"aesgcm": [("k", 1)]}, "identity")
            server.start()
            assert server.ok("GET", SECRETS + "/one")["data"] == {"k": ENCODED.decode()}


def check_fails(command, want):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    output = done.stdout + done.stderr
    assert done.returncode == 1 and want in output and len(output.splitlines()) == 1, (want, output)
