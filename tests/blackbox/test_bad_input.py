"""Invalid input: bodies over HTTP that are too large; commands print one line and exit with a non-zero status."""

import json
import pathlib
import subprocess

import pytest

from commands import refused
from objects import APPLY, DEFINITIONS, MAPS

pytestmark = pytest.mark.bad_input

CONFIGURATIONS = [
    "--authentication-config",
    "--authorization-config",
    "--admission-control-config-file",
    "--encryption-provider-config",
    "--audit-policy-file",
    "--tracing-config-file",
]
BYTES_MAX = 3 * 1024 * 1024


def test_large_requests(server):
    """The limits of bodies; transcripts have other requests that are malformed."""
    too_large, namespace = f"Request entity too large: limit is {BYTES_MAX}", "/api/v1/namespaces/default"
    operations = json.dumps([{"op": "test", "path": "/kind", "value": "Namespace"}] * 10_001).encode()
    too_many = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    before = server.ok("GET", MAPS)["items"]
    for method, path, media, body, message in (
        ("POST", MAPS, "application/json", b"x" * (BYTES_MAX + 1), too_large),
        # of unknown length
        ("POST", MAPS, "application/json", iter([b"x" * 65536] * 80), too_large),
        ("PATCH", namespace, "application/json-patch+json", operations, too_many),
    ):
        status, response, _ = server.request(method, path, body, headers={"Content-Type": media})
        assert (status, response["status"], response["reason"]) == (413, "Failure", "RequestEntityTooLarge"), response
        assert response["message"] == message, response
    assert server.ok("GET", MAPS)["items"] == before, "a rejected request has changed an object"


def test_malformed_command_lines(launch, tmp_path):
    """Each command fails with one line that names the problem."""
    text, file, missing = (str(tmp_path / name) for name in ("text", "file", "missing"))
    pathlib.Path(text).write_text("no certificate, no token\n")
    pathlib.Path(file).write_text("")
    for flags, part in (
        (("--token-auth-file", missing), f"cannot read {missing}"),
        (("--token-auth-file", text), "--token-auth-file: line 1: expected at least token,user,uid"),
        (("--client-ca-file", missing), f"cannot read {missing}"),
        (("--client-ca-file", text), f"{text} contains no certificate"),
        (("--tls-cert-file", text, "--tls-private-key-file", text), f"{text} contains no certificate"),
        (("--cert-dir", "/proc/pintle"), "/proc/pintle"),
        (("--storage", "embedded", "--data-dir", "/proc/pintle"), "/proc/pintle"),
        (("--storage", "embedded", "--data-dir", file), file),
        (("--storage", "embedded", "--data-dir", text), f"{text}: it is not a directory"),
        (("--bind-address", "192.0.2.1"), "cannot listen on 192.0.2.1:0"),
        *(((flag, text), f"{flag}: {text}: ") for flag in CONFIGURATIONS),
        *(((flag, missing), f"{flag}: ") for flag in CONFIGURATIONS),
    ):
        assert part in refused(launch, *flags), flags


@pytest.mark.parametrize(
    "arguments, part",
    [
        (["export", "--data-dir", "missing", "out"], "data directory missing: there is no store"),
        (["export", "--data-dir", "text", "out"], "data directory text: Not a directory"),
        (["import", "--data-dir", "new", "text"], "text: the file does not begin as one of"),
        (["import", "--data-dir", "new", "missing"], "cannot read missing: No such file"),
        (["store", "check", "--data-dir", "missing"], "data directory missing: there is no store"),
        (["store", "restore", "--data-dir", "new", "text"], "backup text: it is not a backup"),
        (["kubeconfig", "create", "--data-dir", "missing", "jane"], "missing has no certificate authority"),
        (["certificates", "list", "--data-dir", "missing"], "missing has no certificates"),
        (["certificates", "renew", "--data-dir", "missing"], "missing has no certificates"),
        (["certificates", "rotate-ca", "--data-dir", "missing"], "missing has no certificates"),
        (["storage", "rewrite", "--kubeconfig", "text"], "text: the kubeconfig has no current-context"),
        (["storage", "rewrite", "--kubeconfig", "missing"], "cannot read missing: No such file"),
        (["assets", "/proc/new"], "cannot create /proc/new: No such file"),
        (["man", "/proc/new"], "cannot write man pages to /proc/new: No such file"),
        (["cel", "cost", "-f", "text"], "text: there is no CustomResourceDefinition"),
        (["config", "view", "--config", "text"], "--config: text: wanted fields"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_malformed_input_of_commands(launch, tmp_path, arguments, part):
    """Each command fails with one line that names the problem, and changes nothing."""
    (tmp_path / "text").write_text("some text\n")
    error = launch.run(*arguments, status=1, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert part in error and len(error.splitlines()) == 1 and [path.name for path in tmp_path.iterdir()] == ["text"], error


def test_early_responses_are_readable(server):
    """A client that sends a large body can read the response of a request that is rejected before its body is read."""
    body = b"a: " + b"x" * 2_000_000
    for path, headers, want in (
        (f"{DEFINITIONS}/x?fieldManager=m", {"Accept": "text/plain"}, 406),
        (f"{DEFINITIONS}/x", {"Content-Type": "text/plain"}, 415),
        ("/apis/none.example.com/v1/things/x", {}, 404),
        (f"{MAPS}/x", {"Authorization": "Bearer wrong"}, 401),
    ) * 5:
        assert server.request("PATCH", path, body, headers={**APPLY, **headers})[0] == want, path
