"""`pintle plan`: what a change would do, with a controller that has two versions."""

import json
import re
import socketserver
import subprocess
import sys
import threading

import pytest

from documentation import COMMANDS, command_tests
from programs import ROOT

pytestmark = [pytest.mark.cli, pytest.mark.timeout(300)]

OLD = [sys.executable, ROOT / "tests" / "harness" / "app_controller.py", "1"]
test_commands = command_tests("plan")


@pytest.fixture
def plan(launch, tmp_path):
    """Runs plans of the source of the commands."""
    source = tmp_path / "source.yaml"
    source.write_text(re.search(r"source.yaml <<EOF\n(.*?)EOF\n", (COMMANDS / "plan.txt").read_text(), re.S)[1])
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(*words, status):
        output = launch.run("plan", "--from", source, *words, status=status, lines=None, timeout=120, env={"TMPDIR": str(scratch)})
        assert not list(scratch.iterdir()), "its files are gone"
        return output

    return run


CALLER = """
import os, socket, subprocess, sys, urllib.request
subprocess.run(["kubectl", "create", "-n", "shop", "configmap", "called"], check=True)
for url in ("http://127.0.0.2:%d/a", "https://cloud.invalid/b"):
    try:
        proxies = {kind: os.environ[kind.upper() + "_PROXY"] for kind in ("http", "https")}
        opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
        text = opener.open(url.replace("%d", sys.argv[1])).read().decode()
        subprocess.run(["kubectl", "create", "-n", "shop", "configmap", text], check=True)
    except OSError as error:
        print(error)
try:
    socket.create_connection(("127.0.0.2", int(sys.argv[1])), 1)
    subprocess.run(["kubectl", "create", "-n", "shop", "configmap", "connected"], check=True)
except OSError as error:
    print(error)
"""


def test_hosts_and_no_network(plan, kubectl_binary, tmp_path):
    """A proxy notes the hosts that the command asks for. Without a network, it reaches nothing but the API."""
    (tmp_path / "caller.py").write_text(CALLER)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfound"

    class Server(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(9999)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.2", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        command = ("--quiet=1s", "-o", "json", "--", sys.executable, tmp_path / "caller.py", port)
        hosts = [f"127.0.0.2:{port}", "cloud.invalid:443"]
        for flags, created in (((), ["called", "found", "connected"]), (("--no-network",), ["called"])):
            if flags and subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
                assert "no network without hosts can be made here: " in plan(*flags, *command, status=2)
                continue
            done = json.loads(plan(*flags, *command, status=1).stdout)
            assert [change["name"] for change in done["changes"]] == created and done["hosts"] == hosts, (flags, done)
        server.shutdown()


@pytest.mark.parametrize("_", range(4))
def test_an_unchanged_controller_has_no_lines(plan, _):
    """Times, generated names, uids and Leases differ in each run, and are no changes. Four parts, which can run at once."""
    for _ in range(5):
        assert plan("--before", " ".join(map(str, OLD)), "--quiet=300ms", "--", *OLD, status=0).stdout == "No changes.\n"
