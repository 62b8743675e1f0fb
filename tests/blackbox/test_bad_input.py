"""Invalid input: responses over HTTP are those of kube-apiserver, commands print one line and exit with a non-zero status."""

import json
import pathlib
import shutil
import subprocess
import tempfile

import pytest

pytestmark = pytest.mark.bad_input

MAPS = "/api/v1/namespaces/default/configmaps"
UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
MEDIA = (
    "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
)
CONFIGURATIONS = ["--authentication-config", "--authorization-config", "--admission-control-config-file", "--encryption-provider-config", "--audit-policy-file"]
BYTES_MAX = 3 * 1024 * 1024
# (description, method, path, content type, body) and (code, reason, message)
REQUESTS = [
    (
        ("broken JSON", "POST", MAPS, "application/json", "{metadata"),
        (
            400,
            "BadRequest",
            UNRECOGNIZED + "couldn't get version/kind; json parse error: invalid character 'm' looking for beginning of object key string ({metadata)",
        ),
    ),
    (
        ("half of a JSON document", "POST", MAPS, "application/json", '{"kind":'),
        (400, "BadRequest", UNRECOGNIZED + 'couldn\'t get version/kind; json parse error: unexpected end of JSON input ({"kind":)'),
    ),
    (
        ("broken YAML", "POST", MAPS, "application/yaml", "data:\n\t- x"),
        (400, "BadRequest", UNRECOGNIZED + "yaml: line 2: found character that cannot start any token (646174613a0a092d2078)"),
    ),
    (
        ("a wrong type", "POST", MAPS, "application/json", '{"apiVersion":"v1","kind":"ConfigMap","data":[1]}'),
        (
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array into '
            "Go struct field ConfigMap.data of type map[string]string",
        ),
    ),
    (("an unknown media type", "POST", MAPS, "text/csv", "a,b"), (415, "UnsupportedMediaType", MEDIA)),
    (
        ("an oversized body", "POST", MAPS, "application/json", b"x" * (BYTES_MAX + 1)),
        (413, "RequestEntityTooLarge", f"Request entity too large: limit is {BYTES_MAX}"),
    ),
    (
        ("an oversized body of unknown length", "POST", MAPS, "application/json", [b"x" * 65536] * 80),
        (413, "RequestEntityTooLarge", f"Request entity too large: limit is {BYTES_MAX}"),
    ),
    (("a malformed parameter of a media type", "POST", MAPS, "application/json; charset", "{}"), (415, "UnsupportedMediaType", MEDIA)),
    (
        ("a version with a sign", "GET", MAPS + "?resourceVersion=%2B5", None, None),
        (400, "BadRequest", 'invalid resource version: resourceVersion: Invalid value: "+5": strconv.ParseUint: parsing "+5": invalid syntax'),
    ),
    (
        ("an unsupported field label", "GET", "/api/v1/namespaces?fieldSelector=name%3Ddefault", None, None),
        (400, "BadRequest", "field label not supported: name"),
    ),
    (
        (
            "too many operations",
            "PATCH",
            "/api/v1/namespaces/default",
            "application/json-patch+json",
            json.dumps([{"op": "test", "path": "/kind", "value": "Namespace"}] * 10_001),
        ),
        (413, "RequestEntityTooLarge", "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"),
    ),
    (
        ("a precondition of a wrong type", "DELETE", "/api/v1/namespaces/default", "application/json", '{"preconditions":{"uid":5}}'),
        (400, "BadRequest", "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID"),
    ),
    (("an unknown resource", "GET", "/api/v1/boats", None, None), (404, "NotFound", "the server could not find the requested resource")),
    (
        ("a wrong method", "DELETE", "/api/v1/namespaces", None, None),
        (405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
    ),
]


def test_malformed_requests(launch):
    with launch() as server:
        before = server.ok("GET", MAPS)["items"]
        for (what, method, path, media, body), want in REQUESTS:
            data = body.encode() if isinstance(body, str) else iter(body) if isinstance(body, list) else body
            status, response, _ = server.request(method, path, data, headers={"Content-Type": media} if media else None)
            assert isinstance(response, dict) and response["status"] == "Failure", (what, response)
            assert (status, response["reason"], response["message"]) == want, (what, status, json.dumps(response))
        status, response, headers = server.request("GET", "/apis/nowhere.example.com/v1/boats")
        assert (status, response, headers["content-type"]) == (404, "404 page not found\n", "text/plain; charset=utf-8"), response
        assert server.ok("GET", MAPS)["items"] == before, "a rejected request has changed an object"


def test_malformed_command_lines(launch):
    """Each command fails with one line that names the problem."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="pintle-test-"))
    text = directory / "text"
    text.write_text("no certificate, no token\n")
    (directory / "file").write_text("")
    missing = str(directory / "missing")
    for flags, part in (
        (("--token-auth-file", missing), f"cannot read {missing}"),
        (("--token-auth-file", str(text)), "--token-auth-file: line 1: expected at least token,user,uid"),
        (("--client-ca-file", missing), f"cannot read {missing}"),
        (("--client-ca-file", str(text)), f"{text} contains no certificate"),
        (("--tls-cert-file", str(text), "--tls-private-key-file", str(text)), f"{text} contains no certificate"),
        (("--cert-dir", "/proc/pintle"), "/proc/pintle"),
        (("--storage", "embedded", "--data-dir", str(directory / "file")), str(directory / "file")),
        (("--storage", "embedded", "--data-dir", str(text)), f"{text}: it is not a directory"),
        (("--bind-address", "192.0.2.1"), "cannot listen on 192.0.2.1:0"),
        *(((flag, str(text)), f"{flag}: {text}: ") for flag in CONFIGURATIONS),
        *(((flag, missing), f"{flag}: ") for flag in CONFIGURATIONS),
    ):
        base = [] if "--data-dir" in flags else ["--data-dir", str(directory / "data"), "--storage", "memory"]
        done = subprocess.run([launch.binary, "serve", "--secure-port", "0", *base, *flags], capture_output=True, text=True, timeout=30)
        output = done.stdout + done.stderr
        assert done.returncode == 1 and part in output and len(output.strip().splitlines()) == 1, (flags, output)
    shutil.rmtree(directory)


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
    done = subprocess.run([launch.binary, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and not done.stdout and part in done.stderr, done
    assert len(done.stderr.splitlines()) == 1 and [path.name for path in tmp_path.iterdir()] == ["text"], done


def test_early_responses_are_readable(launch):
    """A client that sends a large body can read the response of a request that is rejected before its body is read."""
    body = b"a: " + b"x" * 2_000_000
    cases = [
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x?fieldManager=m", {"Accept": "text/plain"}, 406),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x", {"Content-Type": "text/plain"}, 415),
        ("/apis/none.example.com/v1/things/x", {}, 404),
        ("/api/v1/namespaces/default/configmaps/x", {"Authorization": "Bearer wrong"}, 401),
    ]
    with launch() as server:
        for path, headers, want in cases * 5:
            headers = {"Content-Type": "application/apply-patch+yaml", **headers}
            assert server.request("PATCH", path, body, headers=headers)[0] == want, path
