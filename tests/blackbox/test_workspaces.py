"""Workspaces: tokens, clients, the command line, and servers that keep their data on a disk."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import threading
import urllib.parse
import urllib.request

import pytest

import objects
from audited import Audited
from commands import run
from connections import UnfinishedRequest, Upgraded, reading
from encryption import PLAIN, configuration, secret
from objects import DEFINITIONS, MAPS, SECRETS, SERVICES, WORKSPACES, account, definition, grant, register, token_review, webhook
from pintle import TOKEN, eventually

pytestmark = [pytest.mark.workspaces, pytest.mark.timeout(120)]


def create(server, name, **spec):
    server.ok("POST", WORKSPACES, {"metadata": {"name": name}, "spec": spec, "kind": "Workspace", "apiVersion": "workspaces.pintle.dev/v1alpha1"})
    return f"/clusters/{name}"


def token_of(server, prefix, name):
    """A token of a new ServiceAccount that may do everything in its workspace."""
    account(server, name, prefix)
    grant(server, name, subject=("ServiceAccount", name), role="cluster-admin", prefix=prefix)
    return objects.token_of(server, name, prefix)


def names(server, prefix):
    return [item["metadata"]["name"] for item in server.ok("GET", prefix + MAPS)["items"]]


def put(server, prefix, name, **fields):
    return server.ok("POST", prefix + MAPS, {"metadata": {"name": name}, **fields})


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
    none = "/clusters/none"
    for token, codes in ((inner, {a: 200, b: 401, c: 401, "": 401, none: 401}), (outer, {"": 200, a: 401, c: 401, none: 404})):
        assert {prefix: spaces.request("GET", f"{prefix}/api/v1/pods", token=token)[0] for prefix in codes} == codes
    claims = spaces.ok("GET", f"{a}/.well-known/openid-configuration")
    assert claims["issuer"] == "https://kubernetes.default.svc.cluster.local/clusters/a"
    for prefix, known in ((a, True), (b, False), ("", False)):
        assert token_review(spaces, inner, prefix).get("authenticated", False) == known, prefix


def test_full_rights_in_one_workspace_reach_no_other(spaces):
    """Paths, continue tokens and impersonation, tried with the rights of a cluster administrator of one workspace."""
    a, b = create(spaces, "a"), create(spaces, "b")
    spaces.ok("POST", b + SECRETS, {"metadata": {"name": "hidden"}})
    token = token_of(spaces, a, "robo")
    for path in (
        f"{a}/../b{SECRETS}",
        f"{a}/%2e%2e/b{SECRETS}",
        f"{a}//clusters/b{SECRETS}",
        f"{a}/clusters/b{SECRETS}",
        f"/clusters/a%2f..%2fb{SECRETS}",
        f"//clusters/b{SECRETS}",
        f"{b}{SECRETS}",
        f"{a}{WORKSPACES}",
        f"{a}{SECRETS}/hidden",
    ):
        for headers in ({}, {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}):
            status, body, _ = spaces.request("GET", path, token=token, headers=headers)
            assert status in (401, 403, 404) and "uid" not in json.dumps(body), (path, body)
    for i in range(3):
        put(spaces, b, f"m{i}")
    page = spaces.ok("GET", f"{b}/api/v1/configmaps?limit=1")["metadata"]["continue"]
    body = spaces.request("GET", f"{a}/api/v1/configmaps?limit=5&continue={urllib.parse.quote(page)}", token=token)[1]
    assert "m1" not in [item["metadata"]["name"] for item in body.get("items", [])], body


def test_audit_events_and_logs_name_the_workspace(launch):
    with Audited(launch, flags=["--workspaces", "-v=6"]) as server:
        pods = create(server, "a") + "/api/v1/pods"
        for path in (pods, create(server, "b") + "/version"):
            server.ok("GET", path)
        lines = lambda name: {line for line in server.stderr().splitlines() if f"workspace{{name={name}}}" in line}
        eventually(lambda: lines("a") and lines("b"))
        assert not lines("a") & lines("b"), "background work of one workspace has no part in another"
        eventually(lambda: server.events(pods) and pods in server.stderr())
        server.ok("PATCH", f"{WORKSPACES}/a", {"spec": {"template": True}})
        # decided at the gate: a user who may not enter, a workspace that does not exist, and a write to a template
        for method, path, token, code, user in (
            ("GET", "/clusters/a/api/v1/secrets", "plain-token", 403, "plain"),
            ("GET", "/clusters/none/api/v1/secrets", None, 403, "system:anonymous"),
            ("GET", "/clusters/a/api/v1/nodes", "wrong", 401, None),
            ("POST", "/clusters/a" + MAPS, TOKEN, 405, "tester"),
            # what an operator asks of the gate itself
            ("POST", "/clusters/a/storage/rewrite", "plain-token", 403, "plain"),
            ("POST", "/clusters/a/storage/rewrite", TOKEN, 200, "tester"),
        ):
            assert server.request(method, path, {} if method == "POST" else None, token=token)[0] == code, path
            of_code = lambda path=path, code=code: [event for event in server.events(path) if event.get("responseStatus", {}).get("code") == code]
            assert [event["user"].get("username") for event in eventually(of_code)] == [user], path
            assert path in server.stderr(), path


def test_the_number_of_series_does_not_grow(spaces):
    """The metrics of the server do not depend on the number of its workspaces."""

    def series_after(names):
        for name in names:
            spaces.ok("GET", create(spaces, name) + "/api/v1/pods")
        return len([line for line in spaces.ok("GET", "/metrics").splitlines() if not line.startswith("#")])

    series_after(f"a{i}" for i in range(3))
    # the first request for the metrics has series of its own
    before = series_after([])
    # background work of the server may add a few
    assert series_after(f"b{i}" for i in range(20)) < before + 20


@pytest.mark.serial
def test_memory_of_deleted_workspaces_is_given_back(spaces):
    """While the server idles: the allocator would keep it for the next requests of its threads."""

    def use(count):
        for number in range(count):
            put(spaces, create(spaces, f"w{number}"), "a", data={"a": "x" * 100_000})

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


def test_series_of_kinds_end_with_their_kind(spaces):
    """Also those of a watch that runs meanwhile. Kinds of other workspaces than `default` have no series."""
    create(spaces, "a")
    boats, path = "/apis/hidden.example.com/v1/namespaces/default/boats", f"{DEFINITIONS}/boats.hidden.example.com"
    shown = lambda: "hidden.example.com" in spaces.ok("GET", "/metrics")
    for prefix, visible in (("/clusters/a", False), ("", True)):
        spaces.ok("POST", prefix + DEFINITIONS, definition("boats", "hidden.example.com"))
        spaces.ok("POST", prefix + boats, {"apiVersion": "hidden.example.com/v1", "kind": "Boat", "metadata": {"name": "x"}})
        spaces.ok("PATCH", f"{prefix}{boats}/x", {"metadata": {"labels": {"a": "b"}}})
        spaces.ok("GET", prefix + boats)
        with reading(spaces, f"{prefix}{boats}?watch=1"):
            assert shown() == visible, prefix
            spaces.ok("DELETE", prefix + path)
            eventually(lambda prefix=prefix: spaces.request("GET", prefix + path)[0] == 404)
    eventually(lambda: not shown())


def test_watches_over_websockets_count(spaces):
    path = create(spaces, "a", limits={"watches": 1}) + "/api/v1/configmaps?watch=1"
    status = lambda: Upgraded(spaces, path).status
    with Upgraded(spaces, path) as first:
        assert (first.status, status(), spaces.request("GET", path)[0]) == (101, 429, 429)
    eventually(lambda: status() == 101)


def test_bodies_that_never_end_hold_no_connection(launch):
    """Without rights the response comes before the body, with rights at the deadline."""
    with launch("--workspaces", "--request-timeout=300ms") as server:
        for token, path, expected in (
            (None, "/clusters/x", 403),
            ("plain-token", "/clusters/x", 403),
            (TOKEN, "/clusters/x", 504),
            (None, "/clusters/x" + MAPS, 403),
            (None, WORKSPACES, 403),
        ):
            half = UnfinishedRequest(server, token, path=path)
            status, response, _ = half.read_response()
            assert status == expected, (token, path, response)
            half.close()


def test_command_line(launch, spaces, tmp_path, kubectl_binary):
    pintle = lambda *arguments, **options: launch.run("workspace", *arguments, env={"KUBECONFIG": spaces.kubeconfig}, **options)
    inner = tmp_path / "t.kubeconfig"
    create_map = lambda name: run(kubectl_binary, "--kubeconfig", inner, "create", "configmap", name)
    inner.write_text(pintle("create", "t", "-o", "kubeconfig"))
    create_map("one")
    assert pintle("fork", "t", "u") == f"{spaces.url}/clusters/u\n"
    inner.write_text(pintle("kubeconfig", "u"))
    create_map("two")
    assert pintle("diff", "t", "u") == "created ConfigMap default/two\n1 difference: 1 created, 0 changed, 0 deleted\n"
    pintle("reset", "u")
    assert pintle("diff", "u") == "0 differences: 0 created, 0 changed, 0 deleted\n"
    assert [line.split()[0] for line in pintle("list").splitlines()] == ["NAME", "t", "u"]
    pintle("delete", "t", "u")
    for arguments, why in (
        (("create", "x", "--from", "none"), 'workspace "x" has failed: there is no workspace "none" to fork'),
        (("create", "default"), 'the workspace "default" is the API at / and always exists'),
        (("reset", "gone"), '"gone" not found'),
        (("diff", "x"), "workspace"),
        (("create", "y", "--ttl", "soon"), "ttl"),
    ):
        assert why in pintle(*arguments, status=1), arguments


def test_host_names(launch, tmp_path, kubectl_binary):
    """A client that drops the path of the kubeconfig, as kubectl proxy does, stays in the workspace if that names its host."""
    with launch("--workspaces", "--workspace-domain", "spaces.example.com") as server:
        create(server, "a")
        uid, named = server.ok("GET", f"{WORKSPACES}/a")["metadata"]["uid"], {"host": "a.spaces.example.com"}
        assert server.ok("GET", "/api/v1/namespaces/kube-system", headers=named)["metadata"]["uid"] == uid
        assert server.request("GET", "/clusters/b/api", headers=named)[0] == 404
        kubeconfig = tmp_path / "a.kubeconfig"
        kubeconfig.write_text(launch.run("workspace", "kubeconfig", "a", "--kubeconfig", server.kubeconfig))
        assert "/clusters/a" in launch.run("workspace", "list", "--kubeconfig", kubeconfig)
        proxy = subprocess.Popen([kubectl_binary, "--kubeconfig", kubeconfig, "proxy", "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            port = int(proxy.stdout.readline().rsplit(":", 1)[1])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/namespaces/kube-system", timeout=30) as response:
                assert json.load(response)["metadata"]["uid"] == uid
        finally:
            proxy.kill()
            proxy.communicate()


def test_killed_while_workspaces_are_written_to(launch, tmp_path):
    """Whatever was acknowledged is there, and each workspace is whole: its objects are the first ones of its writer."""
    with launch("--workspaces", storage="embedded", data_dir=tmp_path / "data") as server:
        put(server, create(server, "t"), "base")
        server.ok("PATCH", f"{WORKSPACES}/t", {"spec": {"template": True}})
        done, stop = {}, threading.Event()

        def work(worker):
            # the server has been killed; the request may have been served or not
            with contextlib.suppress(Exception):
                for round in range(1000):
                    name = f"w{worker}-{round}"
                    prefix = create(server, name, **{"from": {"workspace": "t"}})
                    done[name] = 0
                    for i in range(5):
                        put(server, prefix, f"m{i}")
                        done[name] = i + 1
                    if stop.is_set():
                        return

        workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        eventually(lambda: len(done) > 40)
        server.stop(signal.SIGKILL)
        stop.set()
        for worker in workers:
            worker.join()
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
    """Those of a workspace that begins empty too, and those that it shares with the empty API. Its tokens outlive the process."""
    file = configuration(tmp_path, {"aescbc": [("key1", 1)]}, "identity")
    with launch("--workspaces", f"--encryption-provider-config={file}", storage="embedded", data_dir=tmp_path / "data") as server:
        a = create(server, "a")
        created, token = server.ok("POST", a + SECRETS, secret("s")), token_of(server, a, "robo")
        server.restart(signal.SIGKILL)
        assert server.ok("GET", f"{a}{SECRETS}/s", token=token) == created
        on_disk = b"".join(log.read_bytes() for log in (tmp_path / "data" / "log").iterdir())
        assert base64.b64encode(PLAIN.encode()) not in on_disk and PLAIN.encode() not in on_disk
        assert b"k8s:enc:aescbc:v1:key1:" in on_disk


def test_without_workspaces_a_server_keeps_them(launch, tmp_path):
    data, backup, restored = (tmp_path / name for name in ("data", "backup", "restored"))
    with launch("--workspaces", storage="embedded", data_dir=data) as server:
        put(server, create(server, "a"), "one")
        launch.run("store", "backup", "--data-dir", data, backup)
        for name, status in (("a", 0), ("none", 1)):
            exported = launch.run("export", "-", "--workspace", name, "--data-dir", data, status=status)
            assert ('"name":"one"' in exported) == (status == 0), exported
    with launch(storage="embedded", data_dir=data) as server:
        put(server, "", "outer")
        assert server.request("GET", "/clusters/a/api")[0] == 404
    launch.run("store", "restore", "--data-dir", restored, backup)
    for directory, outer in ((data, ["outer"]), (restored, [])):
        with launch("--workspaces", storage="embedded", data_dir=directory) as server:
            assert (names(server, "/clusters/a"), names(server, "")) == (["one"], outer)


def test_without_the_flag_there_are_none(server):
    assert [server.request("GET", path)[0] for path in ("/clusters/a/api", WORKSPACES)] == [404, 404]


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
    late = run(kubectl_binary, "--kubeconfig", tmp_path / "stopped", "get", "--raw", "/api/v1/namespaces", status=1)
    assert "another one has its name" in late, late
    stopped.kill()
    os.kill(int(begun.read_text()), 9)
    spec = spaces.ok("GET", f"{WORKSPACES}/t")["spec"]
    assert spec.get("template") and "ttl" not in spec
    create(spaces, "other")
    refused = template(spaces, "other", "true")
    assert refused.wait(timeout=30) == 1
    assert "is no template" in refused.stderr.read()


def api_service(server, prefix, group, service, **port):
    service = {"service": {"name": service, "namespace": "default", **port}, "insecureSkipTLSVerify": True}
    spec = {**service, "group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
    server.ok("POST", prefix + SERVICES, {"metadata": {"name": f"v1.{group}"}, "spec": spec})


def test_what_is_registered_in_one_workspace_concerns_no_other(spaces):
    """A webhook that fails closed, and an aggregated API that nothing serves."""
    a, b = create(spaces, "a"), create(spaces, "b")
    register(spaces, "validating", webhook("closed", {"url": "https://127.0.0.1:1"}, "CREATE"), prefix=a)
    api_service(spaces, a, "example.com", "none")
    for prefix, created, relayed in ((a, 500, 503), (b, 201, 404), ("", 201, 404)):
        status, body, _ = spaces.request("POST", prefix + MAPS, {"metadata": {"name": "m"}})
        assert status == created, (prefix, body)
        status, body, _ = spaces.request("GET", f"{prefix}/apis/example.com/v1/things")
        assert status == relayed, (prefix, body)


@pytest.mark.parametrize(("networks", "called"), [("192.0.2.0/24,fd00::/8", False), ("10.0.0.0/8,127.0.0.0/8", True)])
def test_workspaces_call_only_the_networks_that_are_named(launch, hooks, networks, called):
    """By URL and by a Service with an external name. `default` is not concerned, nor are addresses that the operator maps."""
    client, why = hooks.on("/hook", lambda request: {"allowed": True}), "workspaces may not call this network"
    with launch("--workspaces", f"--workspace-egress={networks}", f"--service-address=default/mapped=127.0.0.1:{hooks.port}") as server:
        a = create(server, "a")

        def refused_or_called(maps):
            """The response to a write once the webhook configuration is in use."""
            before = len(hooks.requests("/hook"))
            response = server.request("POST", maps, {"metadata": {"generateName": "m-"}})
            return response if response[0] != 201 or len(hooks.requests("/hook")) > before else None

        for prefix, reached in ((a, called), ("", True)):
            register(server, "validating", webhook("all", client, "CREATE"), prefix=prefix)
            status, body, _ = eventually(lambda prefix=prefix: refused_or_called(prefix + MAPS))
            assert (status == 201) == reached and (reached or why in body["message"]), (prefix, body)
        for name, spec, port, reached in (
            ("host", {"type": "ExternalName", "externalName": "localhost"}, hooks.port, called),
            ("mapped", {"ports": [{"port": 443}]}, 443, True),
        ):
            server.ok("POST", f"{a}/api/v1/namespaces/default/services", {"metadata": {"name": name}, "spec": spec})
            api_service(server, a, name, name, port=port)
            conditions = lambda name=name: server.ok("GET", f"{a}{SERVICES}/v1.{name}")["status"].get("conditions")
            message = eventually(conditions)[0]["message"]
            assert (why in message) == (not reached), message


def test_workspaces_of_a_damaged_store_are_salvaged(launch, tmp_path):
    """What is intact is exported, and the workspace of which something is lost is named."""
    data = tmp_path / "data"
    with launch("--workspaces", storage="embedded", data_dir=data) as server:
        for name in ("a", "b"):
            create(server, name)
            for i in range(20):
                put(server, f"/clusters/{name}", f"{name}-map-{i}")
    (segment,) = (data / "log").glob("*.log")
    content = segment.read_bytes()
    at = content.index(b'"a-map-7"')
    segment.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])

    def salvage(file, *flags):
        return launch.run("store", "check", "--data-dir", data, "--salvage", tmp_path / file, *flags, status=1, lines=None).stderr

    output = salvage("default.json")
    assert "lost: workspace a: some changes are lost; " in output and "workspace b" not in output, output
    for name, missing in (("a", {"a-map-7"}), ("b", set())):
        output = salvage(f"{name}.json", "--workspace", name)
        text = (tmp_path / f"{name}.json").read_text()
        assert {f"{name}-map-{i}" for i in range(20) if f'"{name}-map-{i}"' not in text} == missing, output
        launch.run("import", tmp_path / f"{name}.json", "--data-dir", tmp_path / name)
    assert 'no workspace "none" is found' in salvage("none.json", "--workspace", "none")
