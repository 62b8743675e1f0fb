"""Workspaces: tokens, clients, the command line, and servers that keep their data on a disk."""

import base64
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import urllib.parse
import urllib.request

import pytest

from hooks import Hooks
from metrics import metrics_of, value
from pintle import TOKEN, eventually, insecure
from unfinished import UnfinishedRequest

pytestmark = [pytest.mark.workspaces, pytest.mark.timeout(120)]

WORKSPACES = "/apis/workspaces.pintle.dev/v1alpha1/workspaces"
ROLES = "/apis/rbac.authorization.k8s.io/v1"


def create(server, name, **spec):
    server.ok("POST", WORKSPACES, {"metadata": {"name": name}, "spec": spec, "kind": "Workspace", "apiVersion": "workspaces.pintle.dev/v1alpha1"})
    return f"/clusters/{name}"


def token_of(server, prefix, name):
    """A token of a new ServiceAccount that may do everything in its workspace."""
    account = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    server.ok("POST", f"{prefix}/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    binding = {"metadata": {"name": name}, "subjects": [account], "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}}
    server.ok("POST", f"{prefix}{ROLES}/clusterrolebindings", binding)
    path = f"{prefix}/api/v1/namespaces/default/serviceaccounts/{name}/token"
    return server.ok("POST", path, {"spec": {}})["status"]["token"]


@pytest.fixture
def spaces(launch):
    with launch("--workspaces") as server:
        yield server


def test_tokens_are_of_one_workspace(spaces):
    """Even a fork, which has the same account with the same uid, does not accept them."""
    a = create(spaces, "a")
    inner, outer = token_of(spaces, a, "robo"), token_of(spaces, "", "robo")
    b = create(spaces, "b", **{"from": {"workspace": "a"}})
    c = create(spaces, "c", **{"from": {"workspace": "default"}})
    pods = "/api/v1/namespaces/default/pods"
    for token, prefix, expected in (
        (inner, a, 200),
        (inner, b, 401),
        (inner, c, 401),
        (inner, "", 401),
        (inner, "/clusters/none", 401),
        (outer, "", 200),
        (outer, a, 401),
        (outer, c, 401),
        (outer, "/clusters/none", 404),
    ):
        status, body, _ = spaces.request("GET", prefix + pods, token=token)
        assert status == expected, (prefix, body)
    claims = spaces.ok("GET", f"{a}/.well-known/openid-configuration")
    assert claims["issuer"] == "https://kubernetes.default.svc.cluster.local/clusters/a"
    review = {"spec": {"token": inner}}
    for prefix, known in ((a, True), (b, False), ("", False)):
        status = spaces.ok("POST", f"{prefix}/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
        assert status.get("authenticated", False) == known, (prefix, status)


def test_full_rights_in_one_workspace_reach_no_other(spaces):
    """Paths, continue tokens and impersonation, tried with the rights of a cluster administrator of one workspace."""
    a, b = create(spaces, "a"), create(spaces, "b")
    spaces.ok("POST", f"{b}/api/v1/namespaces/default/secrets", {"metadata": {"name": "hidden"}})
    token = token_of(spaces, a, "robo")
    secrets = "/api/v1/namespaces/default/secrets"
    for path in (
        f"{a}/../b{secrets}",
        f"{a}/%2e%2e/b{secrets}",
        f"{a}//clusters/b{secrets}",
        f"{a}/clusters/b{secrets}",
        f"/clusters/a%2f..%2fb{secrets}",
        f"//clusters/b{secrets}",
        f"{b}{secrets}",
        f"{a}{WORKSPACES}",
        f"{a}{secrets}/hidden",
    ):
        for headers in ({}, {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}):
            status, body, _ = spaces.request("GET", path, token=token, headers=headers)
            assert status in (401, 403, 404) and "uid" not in json.dumps(body), (path, body)
    for i in range(3):
        spaces.ok("POST", f"{b}/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"m{i}"}})
    page = spaces.ok("GET", f"{b}/api/v1/configmaps?limit=1")["metadata"]["continue"]
    path = f"{a}/api/v1/configmaps?limit=5&continue={urllib.parse.quote(page)}"
    status, body, _ = spaces.request("GET", path, token=token)
    assert "m1" not in [item["metadata"]["name"] for item in body.get("items", [])], body


def test_audit_events_and_logs_name_the_workspace(launch, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    log = tmp_path / "audit.log"
    with launch("--workspaces", "--audit-policy-file", str(policy), "--audit-log-path", str(log), "-v=3") as server:
        server.ok("GET", create(server, "a") + "/api/v1/pods")
        eventually(lambda: "/clusters/a/api/v1/pods" in log.read_text() and "/clusters/a/api/v1/pods" in server.log_tail())
        server.ok("PATCH", f"{WORKSPACES}/a", {"spec": {"template": True}})
        maps = "/clusters/a/api/v1/namespaces/default/configmaps"
        # decided at the gate: a user who may not enter, a workspace that does not exist, and a write to a template
        decided = [
            ("GET", "/clusters/a/api/v1/secrets", "plain-token", 403, "plain"),
            ("GET", "/clusters/none/api/v1/secrets", None, 403, "system:anonymous"),
            ("GET", "/clusters/a/api/v1/nodes", "wrong", 401, None),
            ("POST", maps, TOKEN, 405, "tester"),
            # what an operator asks of the gate itself
            ("POST", "/clusters/a/storage/rewrite", "plain-token", 403, "plain"),
            ("POST", "/clusters/a/storage/rewrite", TOKEN, 200, "tester"),
        ]
        for method, path, token, code, _ in decided:
            assert server.request(method, path, {} if method == "POST" else None, token=token)[0] == code, path
        events = lambda: [json.loads(line) for line in log.read_text().splitlines()]
        for _, path, _, code, user in decided:
            seen = lambda path=path, code=code: [
                event["user"].get("username") for event in events() if event["requestURI"] == path and event.get("responseStatus", {}).get("code") == code
            ]
            assert eventually(seen) == [user], path
            assert path in server.log_tail(), path


def test_lines_about_background_work_name_the_workspace(launch):
    with launch("--workspaces", "-v=6") as server:
        for name in ("a", "b"):
            server.ok("GET", create(server, name) + "/version")
        lines = lambda name: [line for line in server.stderr().splitlines() if f"workspace{{name={name}}}" in line]
        assert eventually(lambda: lines("a") and lines("b"))
        assert not set(lines("a")) & set(lines("b")), "the task of one workspace has no part in another"


def test_the_number_of_series_does_not_grow(spaces):
    """The metrics of the server do not depend on the number of its workspaces."""

    def series():
        status, text, _ = spaces.request("GET", "/metrics")
        return len([line for line in str(text).splitlines() if not line.startswith("#")])

    def use(name):
        spaces.ok("GET", create(spaces, name) + "/api/v1/pods")

    for i in range(3):
        use(f"a{i}")
    # the first request for the metrics has series of its own
    series()
    before = series()
    for i in range(20):
        use(f"b{i}")
    # background work of the server may add a few
    assert series() < before + 20


@pytest.mark.serial
def test_memory_of_deleted_workspaces_is_given_back(spaces):
    """While the server idles: the allocator would keep it for the next requests of its threads."""

    def use(count):
        for number in range(count):
            prefix = create(spaces, f"w{number}")
            spaces.ok("POST", f"{prefix}/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}, "data": {"a": "x" * 100_000}})

    def delete(count):
        [spaces.ok("DELETE", f"{WORKSPACES}/w{number}") for number in range(count)]

    # what is made at the first use stays
    use(3)
    delete(3)
    before = spaces.resident_mib()
    use(150)
    grown = spaces.resident_mib() - before
    assert grown > 15, grown
    delete(150)
    eventually(lambda: spaces.resident_mib() - before < grown / 3, seconds=90)


def test_series_do_not_depend_on_the_kinds_of_workspaces(spaces):
    """Series of kinds in `default` end with their kind, also those of a watch that runs meanwhile."""
    a = create(spaces, "a")
    definition = {
        "metadata": {"name": "boats.hidden.example.com"},
        "spec": {
            "group": "hidden.example.com",
            "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    boats = "/apis/hidden.example.com/v1/namespaces/default/boats"
    shown = lambda: "hidden.example.com" in spaces.ok("GET", "/metrics")
    for prefix, visible in ((a, False), ("", True)):
        spaces.ok("POST", prefix + definitions, definition)
        boat = {"apiVersion": "hidden.example.com/v1", "kind": "Boat", "metadata": {"name": "x"}}
        spaces.ok("POST", prefix + boats, boat)
        spaces.ok("PATCH", f"{prefix}{boats}/x", {"metadata": {"labels": {"a": "b"}}})
        spaces.ok("GET", prefix + boats)
        with watching(spaces, prefix + boats):
            assert shown() == visible, prefix
            spaces.ok("DELETE", f"{prefix}{definitions}/boats.hidden.example.com")
            eventually(lambda prefix=prefix: spaces.request("GET", f"{prefix}{definitions}/boats.hidden.example.com")[0] == 404)
    eventually(lambda: not shown())


@contextlib.contextmanager
def watching(server, path):
    """A watch that has begun."""
    url = urllib.parse.urlparse(server.url)
    connection = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=30)
    connection.request("GET", path + "?watch=1", headers={"Authorization": "Bearer " + TOKEN})
    response = connection.getresponse()
    assert response.status == 200
    yield response
    connection.close()


def test_watches_over_websockets_count(spaces):
    upgrade = {
        "Authorization": "Bearer " + TOKEN,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Origin": "https://localhost",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    path = create(spaces, "a", limits={"watches": 1}) + "/api/v1/configmaps?watch=1"
    url = urllib.parse.urlparse(spaces.url)

    def watch():
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=30)
        connection.request("GET", path, headers=upgrade)
        return connection, connection.getresponse().status

    first, status = watch()
    assert (status, watch()[1], spaces.request("GET", path)[0]) == (101, 429, 429)
    first.sock.shutdown(socket.SHUT_RDWR)
    eventually(lambda: watch()[1] == 101)


def test_bodies_that_never_end_hold_no_connection(launch):
    """Without rights the response comes before the body, with rights at the deadline."""
    with launch("--workspaces", "--request-timeout=300ms") as server:
        for token, path, expected in (
            (None, "/clusters/x", 403),
            ("plain-token", "/clusters/x", 403),
            (TOKEN, "/clusters/x", 504),
            (None, "/clusters/x/api/v1/namespaces/default/configmaps", 403),
            (None, WORKSPACES, 403),
        ):
            half = UnfinishedRequest(server, token, path=path)
            status, response, _ = half.read_response()
            assert status == expected, (token, path, response)
            half.close()


def pintle(launch, *arguments, **options):
    return subprocess.run([launch.binary, "workspace", *arguments], capture_output=True, text=True, timeout=60, **options)


def test_command_line(launch, spaces, tmp_path, kubectl_binary):
    env = {**os.environ, "KUBECONFIG": spaces.kubeconfig}

    def done(*arguments):
        result = pintle(launch, *arguments, env=env)
        assert result.returncode == 0, result
        return result.stdout

    inner = tmp_path / "t.kubeconfig"
    inner.write_text(done("create", "t", "-o", "kubeconfig"))
    apply = [kubectl_binary, "--kubeconfig", str(inner), "create", "configmap", "one"]
    assert subprocess.run(apply, capture_output=True, timeout=60).returncode == 0
    assert done("fork", "t", "u") == f"{spaces.url}/clusters/u\n"
    inner.write_text(done("kubeconfig", "u"))
    apply[-1] = "two"
    assert subprocess.run(apply, capture_output=True, timeout=60).returncode == 0
    assert done("diff", "t", "u") == "created ConfigMap default/two\n1 difference: 1 created, 0 changed, 0 deleted\n"
    done("reset", "u")
    assert done("diff", "u") == "0 differences: 0 created, 0 changed, 0 deleted\n"
    assert [line.split()[0] for line in done("list").splitlines()] == ["NAME", "t", "u"]
    done("delete", "t", "u")
    for arguments, why in (
        (("create", "x", "--from", "none"), 'workspace "x" has failed: there is no workspace "none" to fork'),
        (("create", "default"), 'the workspace "default" is the API at / and always exists'),
        (("reset", "gone"), '"gone" not found'),
        (("diff", "x"), "workspace"),
        (("create", "y", "--ttl", "soon"), "ttl"),
    ):
        result = pintle(launch, *arguments, env=env)
        assert result.returncode == 1 and why in result.stderr and len(result.stderr.splitlines()) == 1, result


def test_host_names(launch, tmp_path, kubectl_binary):
    """A client that drops the path of the kubeconfig, as kubectl proxy does, stays in the workspace if that names its host."""
    with launch("--workspaces", "--workspace-domain", "spaces.example.com") as server:
        create(server, "a")
        uid = server.ok("GET", f"{WORKSPACES}/a")["metadata"]["uid"]
        assert server.ok("GET", "/api/v1/namespaces/kube-system", headers={"host": "a.spaces.example.com"})["metadata"]["uid"] == uid
        assert server.request("GET", "/clusters/b/api", headers={"host": "a.spaces.example.com"})[0] == 404
        kubeconfig = tmp_path / "a.kubeconfig"
        kubeconfig.write_text(pintle(launch, "kubeconfig", "a", "--kubeconfig", server.kubeconfig).stdout)
        listed = pintle(launch, "list", "--kubeconfig", kubeconfig)
        assert "/clusters/a" in listed.stdout, listed
        proxy = subprocess.Popen([kubectl_binary, "--kubeconfig", kubeconfig, "proxy", "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            port = int(proxy.stdout.readline().rsplit(":", 1)[1])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/namespaces/kube-system", timeout=30) as response:
                assert json.load(response)["metadata"]["uid"] == uid
        finally:
            proxy.kill()
            proxy.communicate()


def names(server, prefix):
    return [item["metadata"]["name"] for item in server.ok("GET", f"{prefix}/api/v1/namespaces/default/configmaps")["items"]]


def put(server, prefix, name):
    return server.ok("POST", f"{prefix}/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})


def test_on_a_disk_workspaces_stay(launch, tmp_path):
    """They are as they were when the process was killed; those that are ephemeral are gone."""
    with launch("--workspaces", storage="embedded", data_dir=tmp_path / "data") as server:
        a, e = create(server, "a"), create(server, "e", ephemeral=True)
        put(server, a, "one")
        b, of_home = create(server, "b", **{"from": {"workspace": "a"}}), create(server, "c", **{"from": {"workspace": "default"}})
        revision = put(server, b, "two")["metadata"]["resourceVersion"]
        put(server, of_home, "three")
        put(server, e, "four")
        server.ok("PATCH", f"{WORKSPACES}/b", {"spec": {"reset": "1"}})
        put(server, b, "five")
        token = token_of(server, a, "robo")
        server.restart(signal.SIGKILL)
        assert (names(server, a), names(server, b), names(server, of_home)) == (["one"], ["five", "one"], ["three"])
        eventually(lambda: sorted(item["metadata"]["name"] for item in server.ok("GET", WORKSPACES)["items"]) == ["a", "b", "c"])
        # of before the reset
        status, body, _ = server.request("GET", f"{b}/api/v1/configmaps?watch=1&resourceVersion={revision}&timeoutSeconds=5")
        assert "410" in json.dumps(body), (status, body)
        assert server.request("GET", f"{a}/api/v1/pods", token=token)[0] == 200
        assert server.request("GET", f"{b}/api/v1/pods", token=token)[0] == 401
        server.ok("DELETE", f"{WORKSPACES}/a")
        server.restart(signal.SIGKILL)
        assert server.request("GET", f"{a}/api")[0] == 404
        assert names(server, b) == ["five", "one"]
        put(server, create(server, "a"), "new")
        assert names(server, a) == ["new"]


def test_killed_while_workspaces_are_written_to(launch, tmp_path):
    """Whatever was acknowledged is there, and each workspace is whole: its objects are the first ones of its writer."""
    with launch("--workspaces", storage="embedded", data_dir=tmp_path / "data") as server:
        template = create(server, "t")
        put(server, template, "base")
        server.ok("PATCH", f"{WORKSPACES}/t", {"spec": {"template": True}})
        done, stop = {}, threading.Event()

        def work(worker):
            for round in range(1000):
                name = f"w{worker}-{round}"
                try:
                    prefix = create(server, name, **{"from": {"workspace": "t"}})
                    done[name] = 0
                    for i in range(5):
                        put(server, prefix, f"m{i}")
                        done[name] = i + 1
                except Exception:
                    # the server has been killed; the request may have been served or not
                    return
                if stop.is_set():
                    return

        workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        eventually(lambda: len(done) > 40)
        port = int(server.url.rsplit(":", 1)[1])
        server.stop(signal.SIGKILL)
        stop.set()
        for worker in workers:
            worker.join()
        server.port = port
        server.start()
        found = {item["metadata"]["name"] for item in server.ok("GET", WORKSPACES)["items"]}
        assert found >= {"t", *done}
        for name in sorted(found - {"t"}):
            there = names(server, f"/clusters/{name}")
            count = len(there) - 1
            assert there == ["base", *(f"m{i}" for i in range(count))], (name, there)
            # one more may have been written than was acknowledged
            assert done.get(name, 0) <= count <= done.get(name, 0) + 1, (name, there)


def test_values_of_workspaces_are_encrypted(launch, tmp_path):
    """Those of a workspace that begins empty too, and those that it shares with the empty API."""
    key = {"name": "key1", "secret": base64.b64encode(b"0" * 32).decode()}
    providers = [{"aescbc": {"keys": [key]}}, {"identity": {}}]
    configuration = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration"}
    file = tmp_path / "encryption.json"
    file.write_text(json.dumps({**configuration, "resources": [{"resources": ["secrets"], "providers": providers}]}))
    flags = ("--workspaces", f"--encryption-provider-config={file}")
    with launch(*flags, storage="embedded", data_dir=tmp_path / "data") as server:
        secret = {"metadata": {"name": "s"}, "stringData": {"a": "a hidden text"}}
        path = create(server, "a") + "/api/v1/namespaces/default/secrets"
        created = server.ok("POST", path, secret)
        server.restart(signal.SIGKILL)
        assert server.ok("GET", path + "/s") == created
        on_disk = b"".join(log.read_bytes() for log in (tmp_path / "data" / "log").iterdir())
        assert base64.b64encode(b"a hidden text") not in on_disk and b"a hidden text" not in on_disk
        assert b"k8s:enc:aescbc:v1:key1:" in on_disk


def test_without_workspaces_a_server_keeps_them(launch, tmp_path):
    with launch("--workspaces", storage="embedded", data_dir=tmp_path / "data") as server:
        put(server, create(server, "a"), "one")
        backup = tmp_path / "backup"
        command = [launch.binary, "store", "backup", "--data-dir", str(tmp_path / "data"), str(backup)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        for name, found in (("a", True), ("none", False)):
            export = [launch.binary, "export", "-", "--workspace", name, "--data-dir", str(tmp_path / "data")]
            exported = subprocess.run(export, capture_output=True, text=True, timeout=60)
            assert ('"name":"one"' in exported.stdout, exported.returncode == 0) == (found, found), exported.stderr
    with launch(storage="embedded", data_dir=tmp_path / "data") as server:
        put(server, "", "outer")
        assert server.request("GET", "/clusters/a/api")[0] == 404
    restored = tmp_path / "restored"
    command = [launch.binary, "store", "restore", "--data-dir", str(restored), str(backup)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    for directory, outer in ((tmp_path / "data", ["outer"]), (restored, [])):
        with launch("--workspaces", storage="embedded", data_dir=directory) as server:
            assert names(server, "/clusters/a") == ["one"]
            assert names(server, "") == outer


def test_without_the_flag_there_are_none(server):
    for path in ("/clusters/a/api", WORKSPACES):
        assert server.request("GET", path)[0] == 404


def template(server, name, script):
    """Starts `pintle workspace template`, with a shell script as the builder."""
    command = [server.binary, "workspace", "template", name, "--kubeconfig", server.kubeconfig, "--", "sh", "-c", script]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_template_is_built_once(spaces, tmp_path, kubectl_binary):
    """By one of several processes. A failed build leaves nothing, and a builder that dies frees the name."""
    failed = template(spaces, "t", "exit 3")
    assert (failed.wait(timeout=30), failed.stdout.read()) == (3, "")
    begun = tmp_path / "begun"
    dying = template(spaces, "t", f"echo $$ > {begun}; sleep 60")
    eventually(lambda: begun.exists() and begun.read_text())
    dying.kill()
    os.kill(int(begun.read_text()), 9)
    # one that was only stopped cannot write to the next template of that name
    begun.unlink()
    script = f"trap '' TERM; cp $KUBECONFIG {tmp_path}/stopped; echo $$ > {begun}; sleep 60"
    stopped = template(spaces, "t", script)
    eventually(lambda: begun.exists() and begun.read_text())
    stopped.send_signal(signal.SIGSTOP)
    log = tmp_path / "log"
    builders = [template(spaces, "t", f"echo $KUBECONFIG >> {log}") for _ in range(3)]
    results = [(builder.communicate(timeout=60), builder.returncode) for builder in builders]
    assert [(out, code) for (out, _), code in results] == [(f"{spaces.url}/clusters/t\n", 0)] * 3, results
    assert len(log.read_text().splitlines()) == 1
    late = subprocess.run(
        [kubectl_binary, "--kubeconfig", tmp_path / "stopped", "get", "--raw", "/api/v1/namespaces"], capture_output=True, text=True, timeout=60
    )
    assert late.returncode == 1 and "another one has its name" in late.stderr, late
    stopped.kill()
    os.kill(int(begun.read_text()), 9)
    spec = spaces.ok("GET", f"{WORKSPACES}/t")["spec"]
    assert spec.get("template") and "ttl" not in spec
    other = create(spaces, "other")
    refused = template(spaces, other.rsplit("/", 1)[1], "true")
    assert refused.wait(timeout=30) == 1
    assert "is no template" in refused.stderr.read()


def test_what_is_registered_in_one_workspace_concerns_no_other(spaces):
    """A webhook that fails closed, and an aggregated API that nothing serves."""
    a, b = create(spaces, "a"), create(spaces, "b")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = {"name": "closed.example.com", "clientConfig": {"url": "https://127.0.0.1:1"}, "rules": [rule], "sideEffects": "None"}
    configuration = {"metadata": {"name": "closed"}, "webhooks": [{**hook, "admissionReviewVersions": ["v1"]}]}
    spaces.ok("POST", f"{a}/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", configuration)
    service = {"service": {"name": "none", "namespace": "default"}, "insecureSkipTLSVerify": True}
    spec = {**service, "group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
    spaces.ok("POST", f"{a}/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "v1.example.com"}, "spec": spec})
    for prefix, created, relayed in ((a, 500, 503), (b, 201, 404), ("", 201, 404)):
        path = f"{prefix}/api/v1/namespaces/default/configmaps"
        status, body, _ = spaces.request("POST", path, {"metadata": {"name": "m"}})
        assert status == created, (prefix, body)
        status, body, _ = spaces.request("GET", f"{prefix}/apis/example.com/v1/things")
        assert status == relayed, (prefix, body)


@pytest.mark.parametrize(("networks", "called"), [("192.0.2.0/24,fd00::/8", False), ("10.0.0.0/8,127.0.0.0/8", True)])
def test_workspaces_call_only_the_networks_that_are_named(launch, networks, called):
    """By URL and by a Service with an external name. `default` is not concerned, nor are addresses that the operator maps."""
    with launch() as certificates, Hooks(certificates) as hooks:
        client = hooks.on("/hook", lambda request: {"allowed": True})
        port = urllib.parse.urlparse(client["url"]).port
        mapped = f"--service-address=default/mapped=127.0.0.1:{port}"
        with launch("--workspaces", f"--workspace-egress={networks}", mapped) as server:
            a = create(server, "a")
            rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            hook = {"name": "all.example.com", "clientConfig": client, "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"]}
            for prefix, reached in ((a, called), ("", True)):
                path = f"{prefix}/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
                server.ok("POST", path, {"metadata": {"name": "all"}, "webhooks": [hook]})
                maps = f"{prefix}/api/v1/namespaces/default/configmaps"
                status, body, _ = eventually(lambda maps=maps, prefix=prefix: refused_or_called(server, maps, hooks))
                assert (status == 201) == reached, (prefix, body)
                assert reached or "workspaces may not call this network" in body["message"], body
            for name, spec in (("host", {"type": "ExternalName", "externalName": "localhost"}), ("mapped", {"ports": [{"port": 443}]})):
                server.ok("POST", f"{a}/api/v1/namespaces/default/services", {"metadata": {"name": name}, "spec": spec})
            condition = lambda name: next(
                (c for c in server.ok("GET", f"{a}/apis/apiregistration.k8s.io/v1/apiservices/v1.{name}")["status"].get("conditions", [])), None
            )
            for name, reached in (("host", called), ("mapped", True)):
                service = {"service": {"name": name, "namespace": "default", "port": port if name == "host" else 443}, "insecureSkipTLSVerify": True}
                spec = {**service, "group": name, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
                server.ok("POST", f"{a}/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": f"v1.{name}"}, "spec": spec})
                message = eventually(lambda name=name: condition(name))["message"]
                assert ("workspaces may not call this network" in message) == (not reached), message


def refused_or_called(server, maps, hooks):
    """The response to a write once the webhook configuration is in use."""
    before = len(hooks.requests("/hook"))
    response = server.request("POST", maps, {"metadata": {"generateName": "m-"}})
    return response if response[0] != 201 or len(hooks.requests("/hook")) > before else None


def test_one_workspace_does_not_take_the_seats_of_another(spaces):
    """500 lists at a time in one workspace, with every right there, and gets in another one."""
    a, b = create(spaces, "a"), create(spaces, "b")
    attacker, victim = token_of(spaces, a, "robo"), token_of(spaces, b, "robo")
    maps = "/api/v1/namespaces/default/configmaps"
    for i in range(100):
        spaces.ok("POST", f"{a}{maps}", {"metadata": {"name": f"m{i}"}, "data": {"a": "x" * 100_000}})
    spaces.ok("POST", f"{b}{maps}", {"metadata": {"name": "m"}})
    flows = "/apis/flowcontrol.apiserver.k8s.io/v1"
    rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}]
    everyone = [{"kind": "Group", "group": {"name": "system:authenticated"}}]
    spec = {"matchingPrecedence": 2, "priorityLevelConfiguration": {"name": "exempt"}, "rules": [{"subjects": everyone, "resourceRules": rules}]}
    assert spaces.request("POST", f"{a}{flows}/flowschemas", {"metadata": {"name": "all"}, "spec": spec}, token=attacker)[0] == 201
    # they are not read, so each list that is being sent keeps its seat
    lists = [UnreadList(spaces, attacker, a + maps) for _ in range(500)]
    counts = ["apiserver_flowcontrol_current_executing_requests", "apiserver_flowcontrol_current_inqueue_requests"]
    eventually(lambda: all(value(metrics_of(spaces)[0], name, priority_level="workspaces") > 30 for name in counts))
    for _ in range(100):
        status, body, _ = spaces.request("GET", f"{b}{maps}/m", token=victim)
        assert status == 200, body
    spaces.ok("GET", f"{a}{maps}/m1")
    executing = value(metrics_of(spaces)[0], counts[0], priority_level="workspaces")
    assert 30 < executing <= 600 / 8, executing
    for unread in lists:
        unread.close()
    eventually(lambda: spaces.request("GET", f"{a}{maps}/m1", token=attacker)[0] == 200)


def test_workspaces_of_a_damaged_store_are_salvaged(launch, tmp_path):
    """What is intact is exported, and the workspace of which something is lost is named."""
    maps = "/api/v1/namespaces/default/configmaps"
    with launch("--workspaces", storage="embedded", data_dir=tmp_path / "data") as server:
        for name in ("a", "b"):
            create(server, name)
            for i in range(20):
                server.ok("POST", f"/clusters/{name}{maps}", {"metadata": {"name": f"{name}-map-{i}"}})
    (segment,) = (tmp_path / "data" / "log").glob("*.log")
    content = segment.read_bytes()
    at = content.index(b'"a-map-7"')
    segment.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])

    def salvage(file, *flags):
        command = [launch.binary, "store", "check", "--data-dir", tmp_path / "data", "--salvage", tmp_path / file, *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stderr

    status, output = salvage("default.json")
    assert status == 1 and "lost: workspace a: some changes are lost; " in output and "workspace b" not in output, output
    for name, missing in (("a", {"a-map-7"}), ("b", set())):
        status, output = salvage(f"{name}.json", "--workspace", name)
        text = (tmp_path / f"{name}.json").read_text()
        assert {f"{name}-map-{i}" for i in range(20) if f'"{name}-map-{i}"' not in text} == missing, output
        imported = subprocess.run([launch.binary, "import", tmp_path / f"{name}.json", "--data-dir", tmp_path / name], capture_output=True, text=True)
        assert imported.returncode == 0, imported.stderr
    status, output = salvage("none.json", "--workspace", "none")
    assert status == 1 and 'no workspace "none" is found' in output, output


class UnreadList:
    """Sends a request for a list and reads nothing."""

    def __init__(self, server, token, path):
        url = urllib.parse.urlparse(server.url)
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=60)
        self.connection.request("GET", path, headers={"Authorization": "Bearer " + token})

    def close(self):
        self.connection.close()
