"""Slow clients and concurrent evictions: their effects are bounded, and other requests are served."""

import concurrent.futures
import socket

import pytest

from connections import UnfinishedRequest, address
from objects import CORE, MAPS
from pintle import TOKEN, eventually, insecure
from watch import Watch

pytestmark = pytest.mark.control

PODS = f"{CORE}/pods"


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
