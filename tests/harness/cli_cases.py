"""The command line and the life of the process: start, restart, refusal, drain."""
import http.client
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
from urllib.parse import urlparse

import bad_input
import store_cases
from pintle import TOKEN, Pintle, eventually, insecure

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.harbor.example.com"},
    "spec": {
        "group": "harbor.example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"sails": {"type": "integer"}}}}}},
        }],
    },
}
BOATS = "/apis/harbor.example.com/v1/namespaces/default/boats"


def boat(name, sails=1):
    return {"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": name}, "spec": {"sails": sails}}


class Watch:
    """A watch whose events are collected in the background."""

    def __init__(self, server, path):
        url = urlparse(server.url)
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=60)
        self.connection.request("GET", path, headers={"Authorization": "Bearer " + TOKEN})
        self.response = self.connection.getresponse()
        self.lines, self.ended = [], threading.Event()
        threading.Thread(target=self.pump, daemon=True).start()

    def pump(self):
        try:
            for line in self.response:
                self.lines.append(line.decode())
        except (OSError, http.client.HTTPException):
            self.lines.append("broken")
        self.ended.set()


def serve(args, *flags):
    """Runs a server that is expected to refuse; answers its exit status and its words."""
    done = subprocess.run([args.binary, "serve", *flags], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr


def survives_a_restart(args):
    with Pintle(args.binary, storage="embedded") as server:
        server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        for i in range(20):
            server.ok("POST", BOATS, boat(f"boat-{i:02}", i))
        before = server.ok("GET", BOATS)
        server.ok("PATCH", BOATS + "/boat-07", {"spec": {"sails": 70}})
        assert server.stop() == 0
        server.start()
        after = server.ok("GET", BOATS)
        assert len(after["items"]) == 20
        assert after["items"][7]["spec"]["sails"] == 70
        assert after["items"][3] == before["items"][3]
        version = before["metadata"]["resourceVersion"]
        watch = Watch(server, f"{BOATS}?watch=1&resourceVersion={version}&timeoutSeconds=1")
        watch.ended.wait(10)
        assert any('"MODIFIED"' in line and '"sails":70' in line for line in watch.lines), watch.lines


def one_process_per_directory(args):
    with Pintle(args.binary, storage="embedded") as server:
        status, words = serve(args, "--data-dir", str(server.dir), "--secure-port", "0")
        assert status != 0 and f"process id {server.process.pid}" in words, words
        assert len(words.strip().splitlines()) == 1, words


def refuses_newer_formats(args):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="pintle-test-"))
    (directory / "FORMAT").write_text("pintle 99\n")
    status, words = serve(args, "--data-dir", str(directory), "--secure-port", "0")
    assert status != 0 and "format 99" in words, words
    shutil.rmtree(directory)


def names_damage(args):
    with Pintle(args.binary, storage="embedded") as server:
        server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        server.stop()
        (server.dir / "FORMAT").write_text("something else\n")
        status, words = serve(args, "--data-dir", str(server.dir), "--secure-port", "0")
        assert status != 0 and "is damaged" in words, words


def port_in_use(args):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        directory = tempfile.mkdtemp(prefix="pintle-test-")
        status, words = serve(args, "--data-dir", directory, "--secure-port", port, "--storage", "memory")
        shutil.rmtree(directory)
    assert status != 0 and f"cannot listen on 127.0.0.1:{port}" in words, words


def unwritable_directory(args):
    status, words = serve(args, "--data-dir", "/proc/pintle", "--secure-port", "0")
    assert status != 0 and "/proc/pintle" in words and len(words.strip().splitlines()) == 1, words


def wrong_flags(args):
    status, words = serve(args, "--data-dri", "x")
    assert status == 2 and "--data-dir" in words, words
    status, words = serve(args, "--disable-admission-plugins", "Nope", "--storage", "memory", "--secure-port", "0")
    assert status == 1 and "NamespaceLifecycle" in words, words


def help_is_grouped(args):
    done = subprocess.run([args.binary, "serve", "--help"], capture_output=True, text=True, timeout=30)
    for heading in ("Storage:", "Serving:", "Certificates:", "Authentication:", "Logs:"):
        assert heading in done.stdout, done.stdout
    for flag in ("--data-dir", "--bind-address", "--secure-port", "--tls-cert-file", "--tls-private-key-file",
                 "--client-ca-file", "--token-auth-file", "--cert-dir", "--etcd-servers", "--etcd-prefix", "--storage",
                 "--request-timeout", "--max-requests-inflight", "--disable-admission-plugins", "-v"):
        assert flag in done.stdout, flag


def kubeconfig_is_private(args):
    with Pintle(args.binary) as server:
        mode = stat.S_IMODE(os.stat(server.kubeconfig).st_mode)
        assert mode == 0o600, oct(mode)


def drains(args):
    with Pintle(args.binary) as server:
        server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        watch = Watch(server, BOATS + "?watch=1")
        server.ok("POST", BOATS, boat("last"))
        eventually(lambda: watch.lines)
        assert server.stop(signal.SIGINT) == 0
        assert watch.ended.wait(10), "the watch was not closed"
        assert "broken" not in watch.lines, watch.lines


def who_may(args):
    with Pintle(args.binary) as server:
        path = "/api/v1/namespaces/default/configmaps"
        status, answer, _ = server.request("GET", path, token="wrong")
        assert (status, answer["reason"], answer["message"]) == (401, "Unauthorized", "Unauthorized"), answer
        status, answer, _ = server.request("GET", path, token=None)
        want = ('configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" '
                'in the namespace "default"')
        assert (status, answer["message"]) == (403, want), answer
        status, answer, _ = server.request("GET", path + "/x", token="plain-token")
        assert status == 403 and 'User "plain" cannot get' in answer["message"], answer
        assert server.request("GET", "/readyz", token=None)[0] == 200
        status, answer, _ = server.request("POST", path, b"x" * (3 * 1024 * 1024 + 1))
        assert (status, answer["reason"]) == (413, "RequestEntityTooLarge"), answer


def bench_against_another(args):
    """The benchmark measures two servers, prints how they compare, and leaves the other one as it was."""
    root = pathlib.Path(__file__).resolve().parents[2]
    with Pintle(args.binary) as server:
        command = ["cargo", "run", "--quiet", "--package", "xtask", "--", "bench", "--quick", "--only", "create,watch,first",
                   "--binary", args.binary, "--against", server.url, "--kubeconfig", server.kubeconfig]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=root)
        assert done.returncode == 0, done.stderr
        head, _, *rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
        assert "other" in head and "ratio" in head and len(rows) == 3, done.stdout
        assert all(row.rstrip("| ").endswith("×") for row in rows), done.stdout
        assert "left behind" not in done.stderr, done.stderr
        assert not server.ok("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]


def run(args, report):
    cases = [survives_a_restart, one_process_per_directory, refuses_newer_formats, names_damage,
             port_in_use, unwritable_directory, wrong_flags, help_is_grouped, kubeconfig_is_private, drains, who_may,
             bench_against_another, *bad_input.CASES, *store_cases.CASES]
    for case in cases:
        if args.filter in case.__name__:
            report.case(case.__name__, lambda: case(args))
