"""Hostile input for the control plane: unusual owner references, namespaces that cannot be deleted, slow clients,
concurrent evictions. Their effects are bounded, and other requests are served."""

import concurrent.futures
import socket

import pytest

from connections import address
from objects import CORE, MAPS, RBAC
from pintle import TOKEN, eventually, insecure
from unfinished import UnfinishedRequest
from watch import Watch

pytestmark = pytest.mark.control

NAMESPACES = "/api/v1/namespaces"
PODS = f"{CORE}/pods"


def owner(of):
    metadata = of["metadata"]
    return {"apiVersion": of["apiVersion"], "kind": of["kind"], "name": metadata["name"], "uid": metadata["uid"], "blockOwnerDeletion": True}


def test_unusual_owner_references(server):
    exists = lambda name, namespace="default": server.request("GET", f"{NAMESPACES}/{namespace}/configmaps/{name}")[0] == 200
    owned_by = lambda name, *owners: server.ok("PATCH", f"{MAPS}/{name}", {"metadata": {"ownerReferences": list(owners)}})
    delete = lambda name, way: server.ok("DELETE", f"{MAPS}/{name}", {"propagationPolicy": way})

    def create(name, *owners, namespace="default"):
        return server.ok("POST", f"{NAMESPACES}/{namespace}/configmaps", {"metadata": {"name": name, "ownerReferences": [owner(of) for of in owners]}})

    # an object that owns itself exists until it is deleted, by any policy
    for way in ("Background", "Foreground", "Orphan"):
        owned_by("own", owner(create("own")))
        assert exists("own")
        delete("own", way)
        eventually(lambda: not exists("own"))
    # a cycle does not block a deletion, and is deleted as a whole
    for way in ("Background", "Foreground"):
        a = create("a")
        owned_by("a", owner(create("c", create("b", a))))
        delete("a", way)
        eventually(lambda: not any(exists(name) for name in "abc"))
    # an owner in another namespace counts as absent: dependents without other owners are deleted, the owner is not
    server.ok("POST", NAMESPACES, {"metadata": {"name": "far"}})
    far = create("owner", namespace="far")
    create("lost", far)
    create("kept", far, create("near"))
    # a cluster-scoped object cannot have a namespaced owner: it is not deleted
    server.ok("POST", RBAC + "/clusterroles", {"metadata": {"name": "wide", "ownerReferences": [owner(far)]}, "rules": []})
    create("last", far)
    eventually(lambda: not exists("lost") and not exists("last"), seconds=40)
    eventually(lambda: len(server.ok("GET", MAPS + "/kept")["metadata"]["ownerReferences"]) == 1, seconds=40)
    assert exists("owner", "far") and exists("kept")
    server.ok("GET", RBAC + "/clusterroles/wide")


def conditions(namespace):
    """The conditions of a namespace that is being deleted, without those that say that nothing has failed."""
    all_is_well = {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        "NamespaceDeletionContentFailure": ("False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    }
    found = {c["type"]: (c["status"], c["reason"], c["message"]) for c in namespace["status"].get("conditions", [])}
    assert not found or all(found.pop(kind) == condition for kind, condition in all_is_well.items()), found
    return found


def test_namespace_that_cannot_terminate(server):
    stuck = NAMESPACES + "/stuck"
    server.ok("POST", NAMESPACES, {"metadata": {"name": "stuck"}})
    server.ok("POST", stuck + "/configmaps", {"metadata": {"name": "held", "finalizers": ["acme.io/never"]}})
    server.ok("POST", stuck + "/configmaps", {"metadata": {"name": "free"}})
    server.ok("DELETE", stuck)
    with_finalizers = "Some content in the namespace has finalizers remaining: acme.io/never in 1 resource instances"
    remaining = {
        "NamespaceContentRemaining": ("True", "SomeResourcesRemain", "Some resources are remaining: configmaps. has 1 resource instances"),
        "NamespaceFinalizersRemaining": ("True", "SomeFinalizersRemain", with_finalizers),
    }
    eventually(lambda: conditions(server.ok("GET", stuck)) == remaining)
    status, response, _ = server.request("POST", stuck + "/configmaps", {"metadata": {"name": "late"}})
    assert status == 403 and "because it is being terminated" in response["message"], response
    # other namespaces can be created and deleted
    server.ok("POST", NAMESPACES, {"metadata": {"name": "brief"}})
    server.ok("POST", NAMESPACES + "/brief/configmaps", {"metadata": {"name": "m"}})
    server.ok("DELETE", NAMESPACES + "/brief")
    eventually(lambda: server.request("GET", NAMESPACES + "/brief")[0] == 404)
    assert server.ok("GET", stuck)["status"]["phase"] == "Terminating"
    server.ok("PATCH", stuck + "/configmaps/held", {"metadata": {"finalizers": None}})
    eventually(lambda: server.request("GET", stuck)[0] == 404, seconds=60)


def test_conditions_of_a_terminating_namespace(launch):
    """A namespace with finalizers in its own metadata has the conditions of a namespace without content, whose field manager is
    that of upstream's controllers. Changes of the ConfigMap kube-root-ca.crt are reverted, with its description."""
    with launch("--controllers=*,root-ca-cert-publisher") as server:
        path = NAMESPACES + "/held"
        server.ok("POST", NAMESPACES, {"metadata": {"name": "held", "finalizers": ["acme.io/hold"]}})
        published = path + "/configmaps/kube-root-ca.crt"
        authority = server.wait_for(published)
        server.ok("PATCH", published, {"data": {"more": "x"}, "metadata": {"annotations": {"kubernetes.io/description": "x", "a": "b"}}})
        restored = eventually(lambda: [found for found in [server.ok("GET", published)] if found["data"] == authority["data"]])[0]["metadata"]
        assert restored["annotations"] == {**authority["metadata"]["annotations"], "a": "b"}, restored
        assert "kube-controller-manager" in [m["manager"] for m in restored["managedFields"]], restored
        server.ok("DELETE", path)
        namespace = eventually(lambda: [found for found in [server.ok("GET", path)] if found["spec"] == {}])[0]
        assert conditions(namespace) == {
            "NamespaceContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
            "NamespaceFinalizersRemaining": ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
        }
        managers = {(m["manager"], m.get("subresource")) for m in namespace["metadata"]["managedFields"]}
        assert managers == {("Python-urllib", None), ("kube-controller-manager", "status")}, managers


def test_slow_clients_do_not_slow_others(server):
    """Silent connections, unfinished requests, and watches and lists that clients do not read: other clients are served, and the
    memory for such a client is bounded by the buffers of its connection."""
    text = "x" * 50_000
    server.ok("POST", MAPS, {"metadata": {"name": "big"}, "data": {"text": text}})

    def send_get(path):
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect(address(server))
        secure = insecure().wrap_socket(plain)
        secure.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        return secure

    silent = [socket.create_connection(address(server)) for _ in range(50)]
    halves = [insecure().wrap_socket(socket.create_connection(address(server))) for _ in range(10)]
    for half in halves:
        half.sendall(b"GET /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nX-More: ")
    bodies = [UnfinishedRequest(server, TOKEN) for _ in range(5)]
    watchers = [send_get(MAPS + "?watch=1") for _ in range(20)] + [send_get(MAPS) for _ in range(5)]
    watch = Watch(server, MAPS + "?watch=1&resourceVersion=" + server.ok("GET", MAPS)["metadata"]["resourceVersion"])
    before = server.resident_mib()
    for turn in range(200):
        server.ok("PATCH", MAPS + "/big", {"data": {"text": f"{turn}{text}"}})
    eventually(lambda: len(watch.lines) == 200)
    grown = server.resident_mib() - before
    assert grown < 150, f"{grown} MiB for 10 MB of history, and 200 MB that twenty watchers do not read"
    for each in [*silent, *halves, *bodies, *watchers]:
        each.close()
    server.ok("DELETE", MAPS + "/big")


def test_concurrent_evictions_keep_to_the_budget(launch):
    budgets, names = "/apis/policy/v1/namespaces/default/poddisruptionbudgets", [f"p{i}" for i in range(24)]
    with launch(storage="embedded") as server:
        for name in names:
            server.ok("POST", PODS, {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
            server.ok("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
        server.ok("POST", budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 20, "selector": {"matchLabels": {"a": "b"}}}})
        server.ok("PATCH", f"{budgets}/b/status", {"status": {"observedGeneration": 1, "disruptionsAllowed": 4, "currentHealthy": 24, "desiredHealthy": 20}})
        evict = lambda name: server.request("POST", f"{PODS}/{name}/eviction", {"metadata": {"name": name}})[0]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            statuses = dict(zip(names, pool.map(evict, names)))
        assert sorted(statuses.values()) == [201] * 4 + [429] * 20
        status = server.ok("GET", f"{budgets}/b")["status"]
        assert status["disruptionsAllowed"] == 0
        assert sorted(status["disruptedPods"]) == sorted(name for name in names if statuses[name] == 201)
        assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [("DisruptionAllowed", "False", "InsufficientPods")]
        # a Pod whose eviction is rejected is unchanged
        pod = server.ok("GET", f"{PODS}/{next(name for name in names if statuses[name] == 429)}")
        assert "deletionTimestamp" not in pod["metadata"]
        assert [condition["type"] for condition in pod["status"]["conditions"]] == ["Ready"]
