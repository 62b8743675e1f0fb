"""The Clock of a workspace: the command line, tokens, certificates and kubectl."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import commands
import kubectl.client as kubectl
from objects import ACCOUNTS, CORE, REVIEWS, WORKSPACES, account, workspace
from pintle import eventually

pytestmark = [pytest.mark.testing, pytest.mark.timeout(180)]

START = "2090-01-01T00:00:00Z"


@contextlib.contextmanager
def started(launch, *flags):
    with launch("--testing", "--workspaces", *flags) as server:
        for name in ("a", "b"):
            workspace(server, name)
        yield server


@pytest.fixture
def server(launch):
    with started(launch) as server:
        yield server


def test_tokens_expire_by_the_clock(launch, server):
    for prefix, flags in (("", []), ("/clusters/a", ["--workspace", "a"])):
        account(server, "robo", prefix)
        clock = lambda *words: launch.run("clock", *words, *flags, server=server)  # noqa: B023
        clock("stop", "--time", START)
        issued = server.ok("POST", f"{prefix}{ACCOUNTS}/robo/token", {"spec": {"expirationSeconds": 3600}})["status"]
        assert issued["expirationTimestamp"] == "2090-01-01T01:00:00Z"
        # a minute is tolerated
        for advance, status in (("0s", 201), ("59m", 201), ("3m", 401)):
            if advance != "0s":
                clock("advance", advance)
            assert server.request("POST", f"{prefix}{REVIEWS}/selfsubjectreviews", {}, token=issued["token"])[0] == status
        assert server.request("GET", prefix + ACCOUNTS)[0] == 200, "the administrator's credentials are the server's"


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


SHOP = """
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
---
{apiVersion: v1, kind: Service, metadata: {name: front}, spec: {type: NodePort, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: worker}, spec: {containers: [{name: c, image: i}]}}
"""


def golden(launch, server, tmp_path):
    """What kubectl prints in two workspaces after the same commands."""
    manifest = tmp_path / "all.yaml"
    manifest.write_text(SHOP)

    def printed(workspace):
        pintle = lambda *words: launch.run(*words, "--workspace", workspace, server=server)
        (tmp_path / workspace).write_text(launch.run("workspace", "kubeconfig", workspace, server=server))
        pintle("clock", "stop", "--time", START, "--seed", "7")

        def run(*arguments):
            output = commands.run(kubectl.built(), *arguments, "-n", "shop", env={"KUBECONFIG": str(tmp_path / workspace)})
            pintle("settle")
            return output

        run("create", "namespace", "shop")
        run("apply", "-f", manifest)
        pintle("clock", "advance", "72h")
        run("delete", "configmap", "settings")
        run("apply", "-f", manifest)
        return "".join(run("get", "configmaps,services,pods,serviceaccounts", "-o", form) for form in ("yaml", "wide"))

    return printed("a"), printed("b")


def test_advance_lets_events_and_workspaces_expire(launch, server):
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Namespace", "name": "default", "namespace": "default"}, "type": "Normal"}
    path = f"/clusters/a{CORE}/events"
    server.ok("POST", path, event)
    launch.run("clock", "advance", "59m", "--workspace", "a", server=server)
    launch.run("settle", "--workspace", "a", server=server)
    assert server.request("GET", path + "/e")[0] == 200
    launch.run("clock", "advance", "2m", "--workspace", "a", server=server)
    launch.run("settle", "--quiet", "1ms", "--workspace", "a", server=server)
    assert server.request("GET", path + "/e")[0] == 404
    workspace(server, "short", ttl="24h")
    launch.run("clock", "advance", "25h", server=server)
    launch.run("settle", "--quiet", "1ms", server=server)
    assert server.request("GET", WORKSPACES + "/short")[0] == 404
    server.ok("GET", WORKSPACES + "/a")


FAKETIME = list(Path("/usr").glob("lib*/**/faketime/libfaketimeMT.so.1"))


@pytest.mark.skipif(not FAKETIME, reason="libfaketime is not installed")
def test_a_command_has_the_clock_of_its_workspace(launch):
    """And follows it while it runs."""
    script = "import datetime, sys\nfor line in sys.stdin: print(datetime.datetime.now(datetime.timezone.utc).isoformat()[:16], flush=True)"
    with launch("--testing") as server:
        env = {**os.environ, "KUBECONFIG": server.kubeconfig}
        pintle = lambda *words: launch.run("clock", *words, server=server)
        pintle("stop", "--time", START)
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
        launch.run("clock", "exec", "--", "sh", "-c", "exit 7", server=server, status=7)
