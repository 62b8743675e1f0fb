"""The Clock of a workspace: the command line, tokens, certificates and kubectl."""

import contextlib
import functools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kubectl.client as kubectl
from pintle import eventually

pytestmark = [pytest.mark.testing, pytest.mark.timeout(180)]

API = "/apis/testing.pintle.dev/v1alpha1"
WORKSPACES = "/apis/workspaces.pintle.dev/v1alpha1/workspaces"
MAPS = "/api/v1/namespaces/default/configmaps"
START = "2090-01-01T00:00:00Z"


@contextlib.contextmanager
def started(launch, *flags):
    with launch("--testing", "--workspaces", *flags) as server:
        for name in ("a", "b"):
            server.ok("POST", WORKSPACES, {"apiVersion": "workspaces.pintle.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": name}})
        yield server


@pytest.fixture
def server(launch):
    with started(launch) as server:
        yield server


def command(launch, server):
    def done(*arguments, fails=False):
        result = launch.run(*arguments, server=server)
        assert (result.returncode != 0) == fails, result
        return result.stderr if fails else result.stdout

    return done


def test_command_line(launch, server):
    done = command(launch, server)
    assert done("clock", "show") == "that of the machine\n"
    assert done("clock", "stop", "--time", START, "--workspace", "a") == "stopped at 2090-01-01T00:00:00.000000Z\n"
    assert done("clock", "advance", "90s", "--workspace", "a") == "stopped at 2090-01-01T00:01:30.000000Z\n"
    assert done("clock", "advance", "1h", "--workspace", "a") == "stopped at 2090-01-01T01:01:30.000000Z\n"
    assert done("clock", "set", "2090-02-01T00:00:00Z", "--workspace", "a") == "stopped at 2090-02-01T00:00:00.000000Z\n"
    refused = done("clock", "set", START, "--workspace", "a", fails=True)
    assert refused.count("\n") == 1 and "the clock shows 2090-02-01T00:00:00.000000Z and never goes back" in refused
    assert server.ok("POST", "/clusters/a" + MAPS, {"metadata": {"name": "m"}})["metadata"]["creationTimestamp"] == "2090-02-01T00:00:00Z"
    assert server.ok("POST", "/clusters/b" + MAPS, {"metadata": {"name": "m"}})["metadata"]["creationTimestamp"] < START, "another workspace"
    assert server.ok("POST", MAPS, {"metadata": {"name": "m"}})["metadata"]["creationTimestamp"] < START
    assert done("clock", "resume", "--workspace", "a").startswith("running, ")
    server.ok(
        "POST",
        WORKSPACES,
        {"kind": "Workspace", "metadata": {"name": "c"}, "spec": {"from": {"workspace": "a"}}, "apiVersion": "workspaces.pintle.dev/v1alpha1"},
    )
    assert server.ok("POST", "/clusters/c" + MAPS, {"metadata": {"name": "n"}})["metadata"]["creationTimestamp"] > START, "a fork has the clock of its source"
    done("clock", "delete", "--workspace", "a")
    assert done("clock", "show", "--workspace", "a") == "that of the machine\n"
    for arguments, why in ((("advance", "0s"), "wanted a duration"), (("advance", "soon"), "wanted a duration"), (("set", "soon"), "wanted a time")):
        assert why in done("clock", *arguments, fails=True)


def test_tokens_expire_by_the_clock(launch, server):
    done = command(launch, server)
    for prefix, flags in (("", []), ("/clusters/a", ["--workspace", "a"])):
        account = f"{prefix}/api/v1/namespaces/default/serviceaccounts"
        server.ok("POST", account, {"metadata": {"name": "robo"}})
        done("clock", "stop", "--time", START, *flags)
        token = server.ok(
            "POST", account + "/robo/token", {"spec": {"expirationSeconds": 3600}, "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        )["status"]
        assert token["expirationTimestamp"] == "2090-01-01T01:00:00Z"
        review = prefix + "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        assert server.request("POST", review, body, token=token["token"])[0] == 201
        done("clock", "advance", "59m", *flags)
        assert server.request("POST", review, body, token=token["token"])[0] == 201
        # a minute is tolerated
        done("clock", "advance", "3m", *flags)
        assert server.request("POST", review, body, token=token["token"])[0] == 401
        assert server.request("GET", account)[0] == 200, "the administrator's credentials are the server's"


def test_golden_files_with_kubectl(launch, tmp_path):
    """Two workspaces of one seed print the same bytes."""
    with started(launch) as server:
        first, second = golden(launch, server, tmp_path)
        assert first == second
        assert "nodePort: 3" in first and "3d" in first and "2090-01-04T00:00:00Z" in first, first
    controllers = "--controllers=*,serviceaccount,root-ca-certificate-publisher-controller"
    with started(launch, controllers) as server:
        # two controllers write at the same time
        first, second = ([line for line in text.splitlines() if "resourceVersion" not in line] for text in golden(launch, server, tmp_path))
        assert first == second
        assert any("kube-root-ca.crt" in line for line in first)


def golden(launch, server, tmp_path):
    """What kubectl prints in two workspaces after the same commands."""
    binary = kubectl.built()
    done = command(launch, server)
    manifest = tmp_path / "all.yaml"
    manifest.write_text(
        """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec: {type: NodePort, ports: [{port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: worker, namespace: shop}
spec: {containers: [{name: c, image: i}]}
"""
    )

    def printed(workspace):
        env = {**os.environ, "KUBECONFIG": str(tmp_path / workspace)}
        (tmp_path / workspace).write_text(done("workspace", "kubeconfig", workspace))
        done("clock", "stop", "--time", START, "--seed", "7", "--workspace", workspace)

        def run(*arguments):
            subprocess.run([binary, *arguments], env=env, check=True, capture_output=True, text=True, timeout=60)
            done("settle", "--workspace", workspace)

        run("create", "namespace", "shop")
        run("apply", "-f", str(manifest))
        done("clock", "advance", "72h", "--workspace", workspace)
        run("delete", "configmap", "settings", "-n", "shop")
        run("apply", "-f", str(manifest))
        kinds = "configmaps,services,pods,serviceaccounts"
        texts = [
            subprocess.run([binary, "get", kinds, "-n", "shop", "-o", form], env=env, check=True, capture_output=True, text=True, timeout=60).stdout
            for form in ("yaml", "wide")
        ]
        return "".join(texts)

    return printed("a"), printed("b")


def test_advance_lets_events_and_workspaces_expire(launch, server):
    done = command(launch, server)
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Namespace", "name": "default", "namespace": "default"}, "type": "Normal"}
    path = "/clusters/a/api/v1/namespaces/default/events"
    server.ok("POST", path, event)
    done("clock", "advance", "59m", "--workspace", "a")
    done("settle", "--workspace", "a")
    assert server.request("GET", path + "/e")[0] == 200
    done("clock", "advance", "2m", "--workspace", "a")
    done("settle", "--quiet", "1ms", "--workspace", "a")
    assert server.request("GET", path + "/e")[0] == 404
    short = {"apiVersion": "workspaces.pintle.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": "short"}, "spec": {"ttl": "24h"}}
    server.ok("POST", WORKSPACES, short)
    done("clock", "advance", "25h")
    done("settle", "--quiet", "1ms")
    assert server.request("GET", WORKSPACES + "/short")[0] == 404
    server.ok("GET", WORKSPACES + "/a")


FAKETIME = list(Path("/usr").glob("lib*/**/faketime/libfaketimeMT.so.1"))


@pytest.mark.skipif(not FAKETIME, reason="libfaketime is not installed")
def test_a_command_has_the_clock_of_its_workspace(launch):
    """And follows it while it runs."""
    script = "import datetime, sys\nfor line in sys.stdin: print(datetime.datetime.now(datetime.timezone.utc).isoformat()[:16], flush=True)"
    with launch("--testing") as server:
        env = {**os.environ, "KUBECONFIG": server.kubeconfig}
        pintle = functools.partial(launch.run, "clock", server=server, check=True)
        pintle("stop", "--time", "2090-01-01T00:00:00Z")
        command = [launch.binary, "clock", "exec", "--", sys.executable, "-c", script]
        with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

            def now():
                process.stdin.write("\n")
                process.stdin.flush()
                return process.stdout.readline().strip()

            assert now() == "2090-01-01T00:00"
            pintle("advance", "36h")
            eventually(lambda: now() == "2090-01-02T12:00")
            pintle("delete")
            eventually(lambda: now().startswith(time.strftime("%Y-%m-%dT", time.gmtime())))
            process.stdin.close()
            assert process.wait(60) == 0
        assert launch.run("clock", "exec", "--", "sh", "-c", "exit 7", server=server).returncode == 7


def test_commands_that_cannot_have_it_are_refused(launch, tmp_path):
    go = tmp_path / "controller"
    go.write_bytes(b"\x7fELF\x02\x01" + bytes(80) + b"\xff Go buildinf:")
    go.chmod(0o755)
    with launch("--testing") as server:
        for command, why in (
            (("--", str(go)), "is a Go program, which asks the kernel for the time"),
            (("--library", str(tmp_path / "none.so"), "--", "true"), "none.so does not exist"),
        ):
            result = launch.run("clock", "exec", *command, server=server)
            assert result.returncode == 1 and why in result.stderr and result.stderr.count("\n") == 1, result
