"""HTTP: health, metrics, limits, timeouts, shutdown, and encodings behind feature gates."""

import gzip
import http.client
import json
import re
import signal
import socket
from urllib.parse import urlparse

import pytest

from metrics import metrics_of, value
from pintle import TOKEN, eventually, insecure
from unfinished import UnfinishedRequest

pytestmark = pytest.mark.http

MAPS = "/api/v1/namespaces/default/configmaps"
BOATS = {
    "metadata": {"name": "boats.discovered.example.com"},
    "spec": {
        "group": "discovered.example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "kind": "Boat"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    },
}
UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def text(server, path, **options):
    status, response, headers = server.request("GET", path, **options)
    return status, response, headers["content-type"]


def test_health(launch):
    plain = "text/plain; charset=utf-8"
    with launch() as server:
        for endpoint, more in (("healthz", []), ("livez", []), ("readyz", ["informer-sync", "shutdown"])):
            assert text(server, "/" + endpoint, token=None) == (200, "ok", plain), endpoint
            checks = ["ping", "log", "storage", *more]
            lines = "".join(f"[+]{check} ok\n" for check in checks)
            assert text(server, f"/{endpoint}?verbose") == (200, f"{lines}{endpoint} check passed\n", plain), endpoint
            lines = lines.replace("[+]ping ok", "[+]ping excluded: ok")
            lines += 'warn: some health checks cannot be excluded: no matches for "boat"\n'
            excluded = text(server, f"/{endpoint}?verbose&exclude=ping&exclude=boat")
            assert excluded == (200, f"{lines}{endpoint} check passed\n", plain), excluded
            assert text(server, f"/{endpoint}/ping") == (200, "ok", plain), endpoint
            assert text(server, f"/{endpoint}/etcd") == (200, "ok", plain), endpoint
            assert "[+]storage excluded: ok\n" in text(server, f"/{endpoint}?verbose&exclude=etcd")[1], endpoint
            assert text(server, f"/{endpoint}/boat")[0] == 404


def test_index(launch):
    """Every listed path exists, or is the prefix of existing ones: `kubectl get --raw /`."""
    with launch() as server:
        status, response, headers = server.request("GET", "/")
        assert (status, headers["content-type"]) == (200, "application/json"), (status, headers)
        paths = response["paths"]
        assert paths == sorted(paths) and {"/api/v1", "/apis/apiextensions.k8s.io/v1", "/readyz/shutdown"} <= set(paths), paths
        for path in paths:
            assert path.endswith("/") or server.request("GET", path, headers={"Accept": "*/*"})[0] == 200, path
        assert server.request("GET", "/", token="plain-token")[0] == 403


def structured(media, kind, version="v1beta1"):
    return f"{media};g=config.k8s.io;v={version};as={kind}"


def test_statusz_and_flagz(launch):
    with launch("--event-ttl", "2h") as server:

        def page(path, accept, method="GET", **more):
            return server.request(method, path, headers={"Accept": accept}, **more)

        for accept in ("", "*/*", "text/*", "application/json, text/plain;q=0.5"):
            status, response, headers = page("/statusz", accept)
            assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8"), accept
            lines = response.split("\n")
            assert lines[:2] == ["", "apiserver statusz"] and lines[2].startswith("Warning: This endpoint is not meant"), lines
            names = ["Started", "Up", "Go version", "Binary version", "Emulation version", "Paths"]
            assert all(line.startswith(name) for line, name in zip(lines[4:], names, strict=False)), lines
            assert lines[9].endswith(" /flagz /healthz /livez /metrics /readyz /statusz /version"), lines
        document = page("/statusz", structured("application/json", "Statusz"))
        assert document[0] == 200 and document[2]["content-type"] == structured("application/json", "Statusz")
        response = document[1]
        assert set(response) == {"kind", "apiVersion", "metadata", "startTime", "uptimeSeconds", "goVersion", "binaryVersion", "emulationVersion", "paths"}
        assert response["kind"] == "Statusz" and response["apiVersion"] == "config.k8s.io/v1beta1", response
        assert response["metadata"] == {"name": "apiserver"} and response["emulationVersion"] == "1.37", response

        flags = page("/flagz", structured("application/yaml", "Flagz", "v1alpha1"))
        assert flags[2]["content-type"] == structured("application/yaml", "Flagz", "v1alpha1")
        assert flags[2]["warning"] == '299 - "This version of the flagz endpoint is deprecated. Please use a newer version."'
        assert "\n  event-ttl: 2h\n" in flags[1] and "\n  feature-gates: '[]'\n" in flags[1], flags[1]
        assert re.search("\nevent-ttl(:|: |=| )2h\n", page("/flagz", "text/plain", "POST")[1])

        not_acceptable = "only the following media types are accepted: application/json, application/yaml, text/plain"
        for accept in (
            "application/json",
            "text/html",
            structured("text/plain", "Statusz"),
            structured("application/json", "Flagz"),
            structured("application/cbor", "Statusz"),
            structured("application/json", "Statusz", "v1"),
        ):
            status, response, headers = page("/statusz", accept)
            assert (status, response["message"], headers["content-type"]) == (406, not_acceptable, "application/json"), (accept, response)
        assert page("/statusz", "application/yaml")[2]["content-type"] == "application/yaml"
        for path in ("/statusz", "/flagz"):
            assert page(path + "/", "*/*")[:2] == (404, "404 page not found\n")
            forbidden = page(path, "*/*", token="plain-token")
            assert forbidden[0] == 403 and f'cannot get path "{path}"' in forbidden[1]["message"], forbidden


def test_feature_gates_of_statusz_and_flagz(launch):
    for flags, served in (
        (("--emulated-version", "1.35"), set()),
        (("--emulated-version", "1.36"), {"/statusz", "/flagz"}),
        (("--feature-gates", "ComponentFlagz=false"), {"/statusz"}),
        (("--emulated-version", "1.35", "--feature-gates", "ComponentStatusz=true"), {"/statusz"}),
    ):
        with launch(*flags) as server:
            pages = {"/statusz", "/flagz"}
            assert pages & set(server.request("GET", "/")[1]["paths"]) == served, flags
            for page in pages:
                status = server.request("GET", page, headers={"Accept": "*/*"})[0]
                assert status == (200 if page in served else 404), (flags, page)


def test_audit_ids(launch):
    with launch() as server:
        for path in (MAPS, "/readyz", "/nowhere", "/api/v1/boats"):
            headers = server.request("GET", path)[2]
            assert UUID.fullmatch(headers["audit-id"]), (path, headers)
            assert headers["cache-control"] == "no-cache, private", headers
            assert server.request("GET", path, headers={"Audit-ID": "mine"})[2]["audit-id"] == "mine"
        assert server.request("GET", MAPS, token="wrong", headers={"Audit-ID": "mine"})[2]["audit-id"] == "mine"


def test_metrics(launch):
    with launch() as server:
        for number in range(3):
            server.ok("POST", MAPS, {"metadata": {"name": f"map-{number}"}})
        server.ok("POST", MAPS + "?dryRun=All", {"metadata": {"name": "dry"}})
        assert server.request("POST", MAPS + "?dryRun=some", {"metadata": {"name": "dry"}})[0] == 422
        assert server.request("GET", MAPS, token="plain-token")[0] == 403
        server.ok("DELETE", MAPS + "?labelSelector=none")
        server.ok("POST", MAPS.replace("configmaps", "secrets"), {"metadata": {"name": "secret"}})
        assert server.request("POST", MAPS, {"metadata": {"name": "map-0"}})[0] == 409
        server.ok("PATCH", MAPS + "/map-0?fieldManager=me", {"apiVersion": "v1", "kind": "ConfigMap"}, headers={"Content-Type": "application/apply-patch+yaml"})
        server.ok("GET", MAPS + "?fieldSelector=metadata.name%3Dmap-0")
        for unknown in ("/apis/a.example.com/v1/boats", "/api/v1/boats", "/somewhere", MAPS + "/map-0/boat"):
            assert server.request("GET", unknown)[0] == 404, unknown
        assert server.request("GET", MAPS, token="wrong")[0] == 401
        watch = UnfinishedRequest.__new__(UnfinishedRequest)
        url = urlparse(server.url)
        watch.connection = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=30)
        watch.connection.request(
            "GET", MAPS + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", headers={"Authorization": "Bearer " + TOKEN}
        )
        events = watch.connection.getresponse()
        for _ in range(3):
            events.readline()
        samples, types, headers = metrics_of(server)
        assert headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8", headers
        maps = {"group": "", "version": "v1", "resource": "configmaps"}
        requests = {"component": "apiserver", "subresource": "", **maps}
        total = "apiserver_request_total"
        assert types[total] == "counter" and types["apiserver_request_duration_seconds"] == "histogram", types
        assert value(samples, total, verb="POST", code="201", dry_run="", scope="resource", **requests) == 3
        assert value(samples, total, verb="POST", code="201", dry_run="All", **requests) == 1
        assert value(samples, total, verb="POST", code="422", dry_run="invalid", **requests) == 1
        assert value(samples, total, verb="POST", code="409", **requests) == 1
        assert value(samples, total, verb="DELETE", code="200", scope="namespace", **requests) == 1
        assert value(samples, "authorization_attempts_total", result="no-opinion") >= 1
        assert types["authentication_attempts"] == "counter", types
        assert value(samples, "apiserver_cache_list_total", index="", group="", resource="configmaps") >= 1
        assert value(samples, total, verb="APPLY", code="200", **requests) == 1
        assert value(samples, total, verb="LIST", code="200", scope="resource", **requests) == 1
        assert value(samples, total, verb="LIST", code="401", scope="namespace", **requests) == 1
        duration = "apiserver_request_duration_seconds"
        assert value(samples, duration + "_count", verb="POST", dry_run="", **requests) == 4
        assert value(samples, duration + "_bucket", verb="POST", dry_run="", le="60", **requests) == 4
        assert value(samples, "apiserver_request_sli_duration_seconds_count", verb="APPLY", **requests) == 1
        sized = {have["verb"] for name, have, _ in samples if name == "apiserver_response_sizes_count" and have["resource"] == "configmaps"}
        assert sized == {"LIST"}, "sizes are recorded for reads only"
        assert value(samples, "apiserver_longrunning_requests", verb="WATCH", scope="namespace", **requests) == 1
        assert value(samples, "apiserver_watch_events_total", **maps) == 3
        assert value(samples, "apiserver_current_inflight_requests", request_kind="readOnly") == 1
        assert value(samples, "apiserver_current_inqueue_requests", request_kind="mutating") == 0
        assert value(samples, "apiserver_watch_events_sizes_count", **maps) == 3
        listed = {"group": "", "resource": "configmaps"}
        # two events are those of ConfigMaps of the server
        for name, want in {
            "cache_list": 1,
            "cache_list_fetched_objects": 1,
            "cache_list_returned_objects": 1,
            "watch_cache_events_received": 5,
            "watch_cache_events_dispatched": 3,
        }.items():
            assert value(samples, f"apiserver_{name}_total", **listed) == want, name
        assert value(samples, "apiserver_watch_cache_resource_version", **listed) > 0
        admitted = {"type": "admit", "operation": "CREATE", "rejected": "false", "name": "NamespaceLifecycle"}
        assert value(samples, "apiserver_admission_controller_admission_duration_seconds_count", **admitted) >= 6
        assert value(samples, "field_validation_request_duration_seconds_count", field_validation="Warn") == 8
        assert value(samples, "authenticated_user_requests", username="other") > 8
        assert value(samples, "kubernetes_feature_enabled", name="CBORServingAndStorage") == 0
        for name in ("tls_handshake_errors", "audit_event", "audit_requests_rejected"):
            assert value(samples, f"apiserver_{name}_total") == 0, name
        assert value(samples, "apiserver_storage_objects", resource="secrets") == 1
        assert value(samples, "apiserver_resource_objects", group="rbac.authorization.k8s.io", resource="roles") == 7
        assert value(samples, "etcd_requests_total", operation="create", group="", resource="configmaps") >= 3
        assert value(samples, "etcd_request_duration_seconds_count", operation="create", resource="configmaps") >= 3
        assert value(samples, "authentication_attempts", result="failure") == 1
        for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds", "kubernetes_build_info"):
            assert [v for n, _, v in samples if n == name and v > 0], name
        assert value(samples, "version_info", component="kube", binary="1.37.2", emulation="1.37", min_compat="1.36") == 1
        named = {have["resource"] for _, have, _ in samples if "resource" in have}
        assert "boats" not in named and not any("boat" in have.get("subresource", "") for _, have, _ in samples), named
        watch.close()
        closed = {"verb": "WATCH", "scope": "namespace", **requests}
        eventually(lambda: value(metrics_of(server)[0], "apiserver_longrunning_requests", **closed) == 0)
        _, _, headers = metrics_of(server, headers={"Accept": "application/openmetrics-text;version=1.0.0"})
        assert headers["content-type"].startswith("application/openmetrics-text"), headers
        assert server.request("GET", "/metrics", token="plain-token")[0] == 403


def test_in_flight(launch):
    rbac = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    everything = {
        "metadata": {"name": "all"},
        "subjects": [{"kind": "User", "name": "plain"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    }
    one = {"metadata": {"name": "one"}}
    without_queues = "--enable-priority-and-fairness=false"
    with launch(without_queues, "--max-requests-inflight=9", "--max-mutating-requests-inflight=1") as server:
        server.ok("POST", rbac, everything)
        half = UnfinishedRequest(server, "plain-token")
        busy = {"request_kind": "mutating"}
        eventually(lambda: value(metrics_of(server)[0], "apiserver_current_inflight_requests", **busy) == 1)
        status, response, headers = server.request("POST", MAPS, one, token="plain-token")
        assert (status, response) == (429, "Too many requests, please try again later.\n"), (status, response)
        assert (headers["retry-after"], headers["content-type"]) == ("1", "text/plain; charset=utf-8"), headers
        assert headers["x-content-type-options"] == "nosniff", headers
        assert server.request("GET", MAPS, token="plain-token")[0] == 200, "reads are counted separately"
        assert server.request("POST", MAPS, one, token="wrong")[0] == 401, "authentication comes first"
        server.ok("POST", MAPS, one)  # administrators are exempt
        status, _, _ = server.request("DELETE", MAPS + "/one", headers={"Impersonate-User": "plain"})
        assert status == 429, "the limit applies to an impersonated user"
        samples = metrics_of(server)[0]
        assert value(samples, "apiserver_request_terminations_total", code="429", verb="POST") == 1
        assert value(samples, "apiserver_dropped_requests_total", request_kind="mutating") == 2
        half.close()
        eventually(lambda: server.request("DELETE", MAPS + "/one", token="plain-token")[0] == 200)
    with launch("--max-requests-inflight=0", "--max-mutating-requests-inflight=0") as server:
        server.ok("POST", rbac, everything)
        halves = [UnfinishedRequest(server, "plain-token") for _ in range(3)]
        assert server.request("POST", MAPS, one, token="plain-token")[0] == 201, "0 means no limit"
        for half in halves:
            half.close()


def test_compression(launch):
    """Responses from 128 KiB on are compressed if Accept-Encoding has gzip without parameters, as in kube-apiserver."""
    with launch() as server:
        for name, size in (("small", 120_000), ("large", 140_000)):
            server.ok("POST", MAPS, {"metadata": {"name": name}, "data": {"key": "x" * size}})
        for name, accepted, wanted in (
            ("small", "gzip", None),
            ("large", "gzip", "gzip"),
            ("large", "br, gzip", "gzip"),
            ("large", "gzip;q=0", None),
            ("large", "identity", None),
        ):
            headers = server.request("GET", f"{MAPS}/{name}", headers={"Accept-Encoding": accepted})[2]
            assert headers.get("content-encoding") == wanted, (name, accepted, headers)
            assert headers.get("vary") == (wanted and "Accept-Encoding"), (name, accepted, headers)


def test_lists_are_compressed(launch):
    """A list that is streamed in pieces is one gzip stream."""
    with launch() as server:
        for number in range(40):
            server.ok("POST", MAPS, {"metadata": {"name": f"large-{number}"}, "data": {"key": f"{number} " * 20_000}})
        plain = server.ok("GET", MAPS)
        url = urlparse(server.url)
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=30)
        connection.request("GET", MAPS, headers={"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "gzip"})
        response = connection.getresponse()
        compressed = response.read()
        connection.close()
    assert response.headers["content-encoding"] == "gzip"
    assert len(compressed) < 200_000
    assert json.loads(gzip.decompress(compressed)) == plain


def test_timeouts(launch):
    timeout = "Timeout: request did not complete within the allotted timeout"
    with launch("--request-timeout=300ms") as server:
        for query in ("", "?timeout=0", "?timeout=1h", "?timeout=20ms"):
            half = UnfinishedRequest(server, TOKEN, query)
            status, response, headers = half.read_response()
            assert status == 504 and timeout in response and '"reason":"Timeout"' in response, (query, status, response)
            assert headers["content-type"] == "text/plain; charset=utf-8", "as kube-apiserver responds"
            half.close()
        status, response, _ = server.request("GET", MAPS + "?timeout=soon", token="wrong")
        message = 'invalid timeout specified in the request URL - time: invalid duration "soon"'
        assert (status, response["message"]) == (400, message), response
        assert server.ok("GET", MAPS)["items"] == []


def test_graceful_shutdown(launch):
    with launch("--shutdown-delay-duration=4s") as server:
        url = urlparse(server.url)
        watch = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=30)
        watch.request("GET", MAPS + "?watch=1", headers={"Authorization": "Bearer " + TOKEN})
        events = watch.getresponse()
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: server.request("GET", "/readyz")[0] == 500)
        unready = server.request("GET", "/readyz")[1]
        assert unready.endswith("[-]shutdown failed: reason withheld\nreadyz check failed\n"), unready
        assert server.request("GET", "/livez")[:2] == (200, "ok")
        server.ok("POST", MAPS, {"metadata": {"name": "last"}})
        lines = list(events)
        assert b'"name":"last"' in lines[-1], "the watch ends cleanly, after the last event"
        assert server.process.wait(timeout=30) == 0
        server.process.stdout.close()
        server.process = None


class WebSocket:
    """A minimal WebSocket client for a watch."""

    def __init__(self, server, path):
        url = urlparse(server.url)
        self.socket = insecure().wrap_socket(socket.create_connection((url.hostname, url.port), timeout=30))
        self.socket.sendall(
            (
                f"GET {path} HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {TOKEN}\r\n"
                "Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: https://localhost\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            ).encode()
        )
        self.file = self.socket.makefile("rb")
        self.head = b"".join(iter(self.file.readline, b"\r\n"))

    def frame(self):
        """The opcode and the payload of the next frame, or None at the end of the connection."""
        first = self.file.read(2)
        if not first:
            return None
        length = first[1] & 0x7F
        if length > 125:
            length = int.from_bytes(self.file.read(2 if length == 126 else 8), "big")
        return first[0] & 0x0F, self.file.read(length)

    def close(self):
        """Sends an empty close frame, masked with zeros."""
        self.socket.sendall(b"\x88\x80\0\0\0\0")


def test_websockets_are_closed_at_the_end(launch):
    with launch() as server:
        watch = WebSocket(server, MAPS + "?watch=1")
        assert watch.head.startswith(b"HTTP/1.1 101 "), watch.head
        server.ok("POST", MAPS, {"metadata": {"name": "last"}})
        text = watch.frame()
        assert text[0] == 1 and b'"ADDED"' in text[1], text
        server.process.send_signal(signal.SIGTERM)
        assert watch.frame() == (8, b"\x03\xe8"), "a close frame with the code 1000"
        watch.close()
        assert watch.frame() is None
        assert server.process.wait(timeout=30) == 0
        server.process.stdout.close()
        server.process = None


def test_discovery_in_other_encodings(launch):
    protobuf, cbor = "application/vnd.kubernetes.protobuf", "application/cbor"
    form = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    paths = ("/api", "/apis", "/apis/coordination.k8s.io", "/api/v1", "/apis/coordination.k8s.io/v1")

    def get(server, path, accept):
        status, response, headers = server.request("GET", path, headers={"Accept": accept})
        return status, headers.get("content-type"), response

    for gate in ("false", "true"):
        with launch(f"--feature-gates=CBORServingAndStorage={gate}") as server:
            for path in paths:
                status, kind, response = get(server, path, protobuf)
                assert (status, kind) == (200, protobuf) and response.startswith("k8s\0"), (path, status, kind)
                served = (200, cbor) if gate == "true" else (406, "application/json")
                assert get(server, path, cbor)[:2] == served, (gate, path)
            server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", BOATS)
            custom = "/apis/discovered.example.com/v1"
            assert get(server, custom, cbor)[:2] == (406, "application/json"), "custom resources have no CBOR discovery, as in kube-apiserver"
            assert get(server, custom, cbor + ",application/json")[:2] == (200, "application/json")
            for path in ("/api", "/apis"):
                for media in (protobuf, "application/yaml", "application/json", *([cbor] if gate == "true" else [])):
                    assert get(server, path, f"{media}{form},{media}")[:2] == (200, media + form), (path, media)
                if gate == "false":
                    assert get(server, path, cbor + form + ",application/json")[:2] == (200, "application/json"), path
            for path in ("/openapi/v2", "/openapi/v3/api/v1"):
                assert get(server, path, cbor)[0] == 406, "OpenAPI documents are served in two other media types"


def test_feature_gate_of_cbor(launch):
    # {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, "metadata": {"name": "c"}}
    body = bytes.fromhex("d9d9f7a4") + b"".join(
        (b"\x44kind\x49ConfigMap", b"\x44data\xa1\x41a\x41b", b"\x48metadata\xa1\x44name\x41c", b"\x4aapiVersion\x42v1")
    )
    cbor, listed = {"Content-Type": "application/cbor", "Accept": "application/cbor"}, "application/yaml, application/vnd."
    applied = {"Content-Type": "application/apply-patch+cbor"}
    with launch() as server:
        status, response, _ = server.request("POST", MAPS, body, headers={"Content-Type": "application/cbor"})
        assert status == 415 and listed in response["message"] and "cbor" not in response["message"], response
        assert server.request("GET", MAPS, headers={"Accept": "application/cbor"})[0] == 406
        assert server.request("PATCH", MAPS + "/c?fieldManager=me", body, headers=applied)[0] == 415
    with launch("--feature-gates=CBORServingAndStorage=true") as server:
        status, response, headers = server.request("POST", MAPS, body, headers=cbor)
        assert (status, headers["content-type"]) == (201, "application/cbor"), (status, response)
        assert server.ok("GET", MAPS + "/c")["data"] == {"a": "b"}
        assert server.ok("PATCH", MAPS + "/d?fieldManager=me", body.replace(b"\x41c", b"\x41d"), headers=applied)["data"] == {"a": "b"}
        status, response, headers = server.request("GET", MAPS + "/nobody", headers=cbor)
        assert (status, headers["content-type"]) == (404, "application/cbor") and "NotFound" in response, response
        status, response, _ = server.request("POST", MAPS, body[:-1], headers={"Content-Type": "application/cbor"})
        assert (status, response["reason"]) == (400, "BadRequest"), response
        status, _, headers = server.request("GET", MAPS + "?watch=1&timeoutSeconds=1", headers=cbor)
        assert (status, headers["content-type"]) == (200, "application/cbor-seq"), headers
        response = server.request("POST", MAPS, b"", headers={"Content-Type": "text/csv"})[1]
        assert response["message"].endswith("application/vnd.kubernetes.protobuf, application/cbor"), response
