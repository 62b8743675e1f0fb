"""Workspaces of servers that share an etcd: each is a copy below a prefix of its own."""

import json
import signal

import pytest

from etcd import Etcd
from objects import MAPS, WORKSPACES, config_map, named
from objects import workspace as declare
from pintle import eventually

pytestmark = [pytest.mark.etcd, pytest.mark.workspaces, pytest.mark.timeout(180)]

COPIES = "/registry.workspaces/"


def server_on(launch, etcd, **options):
    return launch("--etcd-servers", etcd.urls, "--workspaces", storage="etcd", **options)


def reported(server, name):
    """The status of a workspace, once it has a phase."""

    def status():
        found = server.ok("GET", f"{WORKSPACES}/{name}").get("status", {})
        return found if found.get("phase") else None

    return eventually(status, seconds=60)


def create(server, name, **spec):
    path = declare(server, name, **spec)
    assert reported(server, name)["phase"] == "Ready", reported(server, name)
    return path


def put(server, prefix, name, **more):
    return server.ok("POST", prefix + MAPS, {"metadata": {"name": name}, **more})["metadata"]


def names(server, prefix):
    return named(server.ok("GET", prefix + MAPS)["items"])


def watched(server, prefix, revision):
    """The types of the events of ConfigMaps after a revision."""
    path = f"{prefix}{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={revision}"
    status, body, _ = server.request("GET", path)
    if status != 200:
        return [status]
    lines = [body] if isinstance(body, dict) else [json.loads(line) for line in body.splitlines()]
    return [line["object"].get("code") if line["type"] == "ERROR" else line["type"] for line in lines]


def test_forks_resets_and_deletions(launch):
    """A fork is isolated from its source, a reset returns to it, and a deletion leaves no key."""
    with Etcd() as etcd, server_on(launch, etcd) as server:
        put(server, "", "outer")
        a = create(server, "a")
        assert names(server, a) == []
        put(server, a, "one")
        b = create(server, "b", **{"from": {"workspace": "a"}})
        put(server, a, "two")
        first = put(server, b, "three")["resourceVersion"]
        assert (names(server, ""), names(server, a), names(server, b)) == (["outer"], ["one", "two"], ["one", "three"])
        put(server, b, "four")
        assert watched(server, b, first) == ["ADDED"]
        # values and keys are those of kube-apiserver, beside what one of it would read
        assert not [key for key in etcd.keys("/registry/") if "three" in key]
        found = [key for key in etcd.keys(COPIES) if key.endswith("/configmaps/default/three")]
        assert len(found) == 1 and etcd.get(found[0]).startswith(b"k8s\0"), found
        of_home = create(server, "c", **{"from": {"workspace": "default"}})
        assert names(server, of_home) == ["outer"]
        assert server.request("GET", f"{of_home}{WORKSPACES}")[0] == 404
        server.ok("PATCH", f"{WORKSPACES}/b", {"spec": {"reset": "1"}})
        eventually(lambda: server.ok("GET", f"{WORKSPACES}/b")["status"].get("reset") == "1")
        assert names(server, b) == ["one"]
        assert watched(server, b, first) == [410]
        put(server, b, "five")
        difference = launch.run("workspace", "diff", "b", server=server, status=None)
        assert difference.stdout == "created ConfigMap default/five\n1 difference: 1 created, 0 changed, 0 deleted\n", difference
        server.restart(signal.SIGKILL)
        assert (names(server, a), names(server, b), names(server, of_home)) == (["one", "two"], ["five", "one"], ["outer"])
        for name in named(server.ok("GET", WORKSPACES)["items"]):
            server.ok("DELETE", f"{WORKSPACES}/{name}")
        eventually(lambda: not etcd.keys(COPIES), seconds=60)
        assert server.request("GET", f"{a}/api")[0] == 404
        # a workspace with the name of a former one shares nothing with it
        assert names(server, create(server, "a")) == []


def test_two_servers_serve_all_workspaces(launch):
    """What one server has acknowledged is seen at the other, and controllers of a workspace work for both."""
    with Etcd() as etcd, server_on(launch, etcd) as one, server_on(launch, etcd) as two:
        for number in range(6):
            first, second = (one, two) if number % 2 else (two, one)
            # a request waits until the workspace is whole
            prefix = declare(first, f"w{number}")
            assert second.request("GET", f"{prefix}/api/v1/namespaces")[0] == 200
            for name in ("a", "b"):
                put(first, prefix, name)
                assert name in names(second, prefix)
                first, second = second, first
        put(one, "/clusters/w0", "base")
        one.ok("PATCH", f"{WORKSPACES}/w0", {"spec": {"template": True}})
        # the other server may not know it yet, and would create the object
        eventually(lambda: two.request("POST", f"/clusters/w0{MAPS}?dryRun=All", {"metadata": {"name": "late"}})[0] == 405)
        assert names(two, create(two, "fork", **{"from": {"workspace": "w0"}})) == ["a", "b", "base"]
        assert names(one, "/clusters/fork") == ["a", "b", "base"]
        w1 = "/clusters/w1"
        two.ok("POST", f"{w1}/api/v1/namespaces", {"metadata": {"name": "team"}})
        one.ok("POST", f"{w1}/api/v1/namespaces/team/configmaps", {"metadata": {"name": "x"}})
        owner = put(one, w1, "owner")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
        two.ok("POST", w1 + MAPS, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
        one.ok("DELETE", f"{w1}/api/v1/namespaces/team")
        two.ok("DELETE", f"{w1}{MAPS}/owner")
        eventually(lambda: two.request("GET", f"{w1}/api/v1/namespaces/team")[0] == 404, seconds=40)
        eventually(lambda: "owned" not in names(one, w1), seconds=40)
        # the other server takes over what the first one did
        one.stop(signal.SIGKILL)
        assert names(two, create(two, "last", **{"from": {"workspace": "w2"}})) == ["a", "b"]
        two.ok("DELETE", f"{WORKSPACES}/w2")
        uid = two.ok("GET", f"{WORKSPACES}/last")["metadata"]["uid"]
        assert [key for key in etcd.keys(COPIES) if uid in key]


def test_a_fork_is_never_seen_half(launch):
    """Not even if the server that copies it is killed: the other one starts over, and what it leaves is removed."""
    with Etcd() as etcd, server_on(launch, etcd) as one, server_on(launch, etcd) as two:
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/pintle-controllers"
        eventually(lambda: one.request("GET", lease)[1].get("spec", {}).get("holderIdentity"))
        source = create(one, "source")
        count, name = 3000, "m{:05}".format
        put(two, source, name(0), data={"text": "x" * 2000})
        [(key, value)] = [pair for pair in etcd.keys(COPIES).items() if pair[0].endswith(name(0))]
        # the others are written as by another server, which takes a tenth of the time
        for start in range(1, count, 100):
            etcd.put_all({key.replace(name(0), name(i)): value.replace(name(0).encode(), name(i).encode()) for i in range(start, min(start + 100, count))})
        eventually(lambda: len(names(two, source)) == count)
        declare(two, "fork", **{"from": {"workspace": "source"}})
        uid = two.ok("GET", f"{WORKSPACES}/fork")["metadata"]["uid"]

        def copied():
            return len([key for key in etcd.keys(f"{COPIES}{uid}/") if "/configmaps/default/m" in key])

        eventually(lambda: copied() > 200)
        one.stop(signal.SIGKILL)
        begun = [key for key in etcd.keys(f"{COPIES}{uid}/") if key.endswith("/pintle/begun") and "-origin/" not in key]
        left = copied()
        assert not begun and 0 < left < 2 * count, "the copy was whole before the server was killed"
        seen, status = [], ""
        while not status:
            # a request waits, and then there is everything or nothing
            code, body, _ = two.request("GET", "/clusters/fork" + MAPS)
            seen.append((code, len(body.get("items", []))))
            status = two.ok("GET", f"{WORKSPACES}/fork").get("status", {}).get("phase", "")
        assert status == "Ready" and {*seen} <= {(503, 0), (200, count)}, seen
        assert len(names(two, "/clusters/fork")) == count
        # what holds the objects, and what it was forked with
        eventually(lambda: len(etcd.keys(f"{COPIES}copies/{uid}/")) == 2, seconds=60)
        assert copied() == 2 * count


def test_earlier_revisions_and_failures(launch):
    """An earlier revision can be forked until etcd has compacted it; what cannot be copied says why."""
    with Etcd() as etcd, server_on(launch, etcd) as server:
        a = create(server, "a")
        first = put(server, a, "one")["resourceVersion"]
        outer = put(server, "", "outer")["resourceVersion"]
        put(server, a, "two")
        put(server, "", "later")
        assert names(server, create(server, "b", **{"from": {"workspace": "a", "resourceVersion": first}})) == ["one"]
        assert names(server, create(server, "c", **{"from": {"workspace": "default", "resourceVersion": outer}})) == ["outer"]
        head = put(server, "", "last")["resourceVersion"]
        etcd.call("/v3/kv/compaction", {"revision": head})
        for name, source, why in (
            ("d", {"workspace": "a", "resourceVersion": first}, f'workspace "a" does not keep what it held at resourceVersion {first}'),
            ("e", {"workspace": "none"}, 'there is no workspace "none" to fork'),
            ("f", {"workspace": "a", "resourceVersion": "999999999"}, 'workspace "a" is at resourceVersion '),
            ("g", {"workspace": "default", "origin": True}, 'the workspace "default" began empty'),
        ):
            declare(server, name, **{"from": source})
            status = reported(server, name)
            assert status["phase"] == "Failed" and status["message"].startswith(why), status
            code, body, _ = server.request("GET", f"/clusters/{name}/api")
            assert code == 403 and why in body["message"], body
        assert names(server, a) == ["one", "two"]


def test_limits_and_lifetimes(launch):
    with Etcd() as etcd, server_on(launch, etcd) as server:
        a = create(server, "a", limits={"objects": 10000, "bytes": 400_000})
        assert server.ok("GET", f"{a}/version")["major"] == "1"
        codes = [server.request("POST", a + MAPS, config_map(f"m{i}", t="x" * 100_000))[0] for i in range(6)]
        assert codes[0] == 201 and codes[-1] == 403, codes
        # The workspace may be gone before its status can be read.
        declare(server, "t", ttl="1s")
        eventually(lambda: server.request("GET", f"{WORKSPACES}/t")[0] == 404)
        e = create(server, "e", ephemeral=True)
        put(server, e, "one")
        declare(server, "f", **{"from": {"workspace": "e"}})
        assert reported(server, "f")["message"].startswith('workspace "e" is ephemeral')
        old = create(server, "old", kubernetesVersion="1.35")
        assert server.ok("GET", f"{old}/version")["emulationMinor"] == "35"
        fork = create(server, "young", **{"from": {"workspace": "old"}})
        assert server.ok("GET", f"{fork}/version")["emulationMinor"] == "35"
        uid = server.ok("GET", f"{WORKSPACES}/e")["metadata"]["uid"]
        assert [key for key in etcd.keys(COPIES) if uid in key]
        server.restart()
        eventually(lambda: server.request("GET", f"{WORKSPACES}/e")[0] == 404)
        eventually(lambda: not [key for key in etcd.keys(COPIES) if uid in key])
        assert server.ok("GET", f"{fork}/version")["emulationMinor"] == "35"


def test_one_request_waits_for_the_copy(launch):
    with Etcd() as etcd, server_on(launch, etcd) as server:
        put(server, "", "outer")
        kubeconfig = server.ok("POST", "/clusters/quick", {"from": {"workspace": "default"}})
        assert kubeconfig["clusters"][0]["cluster"]["server"] == f"{server.url}/clusters/quick"
        assert names(server, "/clusters/quick") == ["outer"]
        assert reported(server, "quick")["phase"] == "Ready"
