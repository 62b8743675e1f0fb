"""HTTP: health, metrics, limits, timeouts, shutdown, and encodings behind feature gates."""

import gzip
import json
import re
import signal

import pytest

from connections import UnfinishedRequest, Upgraded, reading
from metrics import metrics_of, value
from objects import APPLY, DEFINITIONS, MAPS, SECRETS, definition, grant
from pintle import TOKEN, eventually

pytestmark = pytest.mark.http

UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def text(server, path, **options):
    status, response, headers = server.request("GET", path, **options)
    return status, response, headers["content-type"]


def test_health(server):
    plain = "text/plain; charset=utf-8"
    for endpoint, more in (("healthz", []), ("livez", []), ("readyz", ["informer-sync", "shutdown"])):
        assert text(server, "/" + endpoint, token=None) == (200, "ok", plain), endpoint
        lines = "".join(f"[+]{check} ok\n" for check in ["ping", "log", "storage", *more])
        assert text(server, f"/{endpoint}?verbose") == (200, f"{lines}{endpoint} check passed\n", plain), endpoint
        lines = lines.replace("[+]ping ok", "[+]ping excluded: ok")
        lines += 'warn: some health checks cannot be excluded: no matches for "boat"\n'
        excluded = text(server, f"/{endpoint}?verbose&exclude=ping&exclude=boat")
        assert excluded == (200, f"{lines}{endpoint} check passed\n", plain), excluded
        assert [text(server, f"/{endpoint}/{check}") for check in ("ping", "etcd")] == [(200, "ok", plain)] * 2, endpoint
        assert "[+]storage excluded: ok\n" in text(server, f"/{endpoint}?verbose&exclude=etcd")[1], endpoint
        assert text(server, f"/{endpoint}/boat")[0] == 404


def test_index(server):
    """Every listed path exists, or is the prefix of existing ones: `kubectl get --raw /`."""
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
            status, response, headers = server.request(method, path, headers={"Accept": accept}, **more)
            return status, response, headers["content-type"], headers.get("warning")

        status, response, media, _ = page("/statusz", "*/*")
        assert (status, media) == (200, "text/plain; charset=utf-8")
        lines = response.split("\n")
        assert lines[:2] == ["", "apiserver statusz"] and lines[2].startswith("Warning: This endpoint is not meant"), lines
        names = ["Started", "Up", "Go version", "Binary version", "Emulation version", "Paths"]
        assert all(line.startswith(name) for line, name in zip(lines[4:], names, strict=False)), lines
        assert lines[9].endswith(" /flagz /healthz /livez /metrics /readyz /statusz /version"), lines
        status, response, media, _ = page("/statusz", structured("application/json", "Statusz"))
        assert (status, media) == (200, structured("application/json", "Statusz"))
        fixed = {"kind": "Statusz", "apiVersion": "config.k8s.io/v1beta1", "metadata": {"name": "apiserver"}, "emulationVersion": "1.37"}
        assert response.items() >= fixed.items() and set(response) - set(fixed) == {"startTime", "uptimeSeconds", "goVersion", "binaryVersion", "paths"}
        former = structured("application/yaml", "Flagz", "v1alpha1")
        _, response, media, warning = page("/flagz", former)
        assert (media, warning) == (former, '299 - "This version of the flagz endpoint is deprecated. Please use a newer version."')
        assert "\n  event-ttl: 2h\n" in response and "\n  feature-gates: '[]'\n" in response, response
        assert re.search("\nevent-ttl(:|: |=| )2h\n", page("/flagz", "text/plain", "POST")[1])
        not_acceptable = "only the following media types are accepted: application/json, application/yaml, text/plain"
        status, response, media, _ = page("/statusz", structured("application/json", "Flagz"))
        assert (status, response["message"], media) == (406, not_acceptable, "application/json"), response
        assert page("/statusz", "application/yaml")[2] == "application/yaml"
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


def test_audit_ids(server):
    for path in (MAPS, "/readyz", "/nowhere", "/api/v1/boats"):
        headers = server.request("GET", path)[2]
        assert UUID.fullmatch(headers["audit-id"]), (path, headers)
        assert headers["cache-control"] == "no-cache, private", headers
        assert server.request("GET", path, headers={"Audit-ID": "mine"})[2]["audit-id"] == "mine"
    assert server.request("GET", MAPS, token="wrong", headers={"Audit-ID": "mine"})[2]["audit-id"] == "mine"


def test_metrics(server):
    for number in range(3):
        server.ok("POST", MAPS, {"metadata": {"name": f"map-{number}"}})
    for method, path, name, code in (
        ("POST", MAPS + "?dryRun=All", "dry", 201),
        ("POST", MAPS + "?dryRun=some", "dry", 422),
        ("DELETE", MAPS + "?labelSelector=none", None, 200),
        ("POST", SECRETS, "secret", 201),
        ("POST", MAPS, "map-0", 409),
        ("GET", MAPS + "?fieldSelector=metadata.name%3Dmap-0", None, 200),
        *(("GET", unknown, None, 404) for unknown in ("/apis/a.example.com/v1/boats", "/api/v1/boats", "/somewhere", MAPS + "/map-0/boat")),
    ):
        assert server.request(method, path, {"metadata": {"name": name}} if name else None)[0] == code, path
    assert [server.request("GET", MAPS, token=token)[0] for token in ("plain-token", "wrong")] == [403, 401]
    server.ok("PATCH", MAPS + "/map-0?fieldManager=me", {"apiVersion": "v1", "kind": "ConfigMap"}, headers=APPLY)
    with reading(server, MAPS + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan") as events:
        for _ in range(3):
            events.readline()
        samples, types, headers = metrics_of(server)
    assert headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8", headers
    for name, kind in (("apiserver_request_total", "counter"), ("apiserver_request_duration_seconds", "histogram"), ("authentication_attempts", "counter")):
        assert types[name] == kind, name
    of_kind = {"group": "", "resource": "configmaps"}
    maps = {"version": "v1", **of_kind}
    requests = {"component": "apiserver", "subresource": "", **maps}
    total, duration = "apiserver_request_total", "apiserver_request_duration_seconds"
    closed = {"verb": "WATCH", "scope": "namespace", **requests}
    admitted = {"type": "admit", "operation": "CREATE", "rejected": "false", "name": "NamespaceLifecycle"}
    for name, count, labels in (
        (total, 3, {"verb": "POST", "code": "201", "dry_run": "", "scope": "resource", **requests}),
        (total, 1, {"verb": "POST", "code": "201", "dry_run": "All", **requests}),
        (total, 1, {"verb": "POST", "code": "422", "dry_run": "invalid", **requests}),
        (total, 1, {"verb": "POST", "code": "409", **requests}),
        (total, 1, {"verb": "DELETE", "code": "200", "scope": "namespace", **requests}),
        (total, 1, {"verb": "APPLY", "code": "200", **requests}),
        (total, 1, {"verb": "LIST", "code": "200", "scope": "resource", **requests}),
        (total, 1, {"verb": "LIST", "code": "401", "scope": "namespace", **requests}),
        (duration + "_count", 4, {"verb": "POST", "dry_run": "", **requests}),
        (duration + "_bucket", 4, {"verb": "POST", "dry_run": "", "le": "60", **requests}),
        ("apiserver_request_sli_duration_seconds_count", 1, {"verb": "APPLY", **requests}),
        ("apiserver_longrunning_requests", 1, closed),
        ("apiserver_watch_events_total", 3, maps),
        ("apiserver_watch_events_sizes_count", 3, maps),
        ("apiserver_current_inflight_requests", 1, {"request_kind": "readOnly"}),
        ("apiserver_current_inqueue_requests", 0, {"request_kind": "mutating"}),
        ("apiserver_cache_list_total", 1, {"index": "", **of_kind}),
        ("apiserver_cache_list_fetched_objects_total", 1, of_kind),
        ("apiserver_cache_list_returned_objects_total", 1, of_kind),
        # two events are those of ConfigMaps of the server
        ("apiserver_watch_cache_events_received_total", 5, of_kind),
        ("apiserver_watch_cache_events_dispatched_total", 3, of_kind),
        ("field_validation_request_duration_seconds_count", 8, {"field_validation": "Warn"}),
        ("kubernetes_feature_enabled", 0, {"name": "CBORServingAndStorage"}),
        ("apiserver_tls_handshake_errors_total", 0, {}),
        ("apiserver_audit_event_total", 0, {}),
        ("apiserver_audit_requests_rejected_total", 0, {}),
        ("apiserver_storage_objects", 1, {"resource": "secrets"}),
        ("apiserver_resource_objects", 7, {"group": "rbac.authorization.k8s.io", "resource": "roles"}),
        ("authentication_attempts", 1, {"result": "failure"}),
        ("version_info", 1, {"component": "kube", "binary": "1.37.2", "emulation": "1.37", "min_compat": "1.36"}),
    ):
        assert value(samples, name, **labels) == count, (name, labels)
    for name, least, labels in (
        ("authorization_attempts_total", 1, {"result": "no-opinion"}),
        ("apiserver_watch_cache_resource_version", 1, of_kind),
        ("apiserver_admission_controller_admission_duration_seconds_count", 6, admitted),
        ("authenticated_user_requests", 9, {"username": "other"}),
        ("etcd_requests_total", 3, {"operation": "create", **of_kind}),
        ("etcd_request_duration_seconds_count", 3, {"operation": "create", "resource": "configmaps"}),
    ):
        assert value(samples, name, **labels) >= least, (name, labels)
    sized = {have["verb"] for name, have, _ in samples if name == "apiserver_response_sizes_count" and have["resource"] == "configmaps"}
    assert sized == {"LIST"}, "sizes are recorded for reads only"
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds", "kubernetes_build_info"):
        assert [v for n, _, v in samples if n == name and v > 0], name
    named = {have["resource"] for _, have, _ in samples if "resource" in have}
    assert "boats" not in named and not any("boat" in have.get("subresource", "") for _, have, _ in samples), named
    eventually(lambda: value(metrics_of(server)[0], "apiserver_longrunning_requests", **closed) == 0)
    _, _, headers = metrics_of(server, headers={"Accept": "application/openmetrics-text;version=1.0.0"})
    assert headers["content-type"].startswith("application/openmetrics-text"), headers
    assert server.request("GET", "/metrics", token="plain-token")[0] == 403


def test_in_flight(launch):
    one, plain = {"metadata": {"name": "one"}}, {"token": "plain-token"}
    limits = ("--max-requests-inflight=9", "--max-mutating-requests-inflight=1")
    with launch("--enable-priority-and-fairness=false", *limits) as server:
        grant(server, "all", role="cluster-admin")
        half = UnfinishedRequest(server, "plain-token")
        eventually(lambda: value(metrics_of(server)[0], "apiserver_current_inflight_requests", request_kind="mutating") == 1)
        status, response, headers = server.request("POST", MAPS, one, **plain)
        assert (status, response) == (429, "Too many requests, please try again later.\n"), (status, response)
        assert (headers["retry-after"], headers["content-type"]) == ("1", "text/plain; charset=utf-8"), headers
        assert headers["x-content-type-options"] == "nosniff", headers
        assert server.request("GET", MAPS, **plain)[0] == 200, "reads are counted separately"
        assert server.request("POST", MAPS, one, token="wrong")[0] == 401, "authentication comes first"
        server.ok("POST", MAPS, one)  # administrators are exempt
        status, _, _ = server.request("DELETE", MAPS + "/one", headers={"Impersonate-User": "plain"})
        assert status == 429, "the limit applies to an impersonated user"
        samples = metrics_of(server)[0]
        assert value(samples, "apiserver_request_terminations_total", code="429", verb="POST") == 1
        assert value(samples, "apiserver_dropped_requests_total", request_kind="mutating") == 2
        half.close()
        eventually(lambda: server.request("DELETE", MAPS + "/one", **plain)[0] == 200)


def test_compression(server):
    """Responses from 128 KiB on are compressed if Accept-Encoding has gzip without parameters, as in kube-apiserver. A list that is
    streamed in pieces is one gzip stream."""
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
    for number in range(40):
        server.ok("POST", MAPS, {"metadata": {"name": f"large-{number}"}, "data": {"key": f"{number} " * 20_000}})
    plain = server.ok("GET", MAPS)
    with reading(server, MAPS, **{"Accept-Encoding": "gzip"}) as response:
        compressed = response.read()
        assert response.headers["content-encoding"] == "gzip" and len(compressed) < 200_000
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


def stopped(server):
    """Waits for the end of a server that a signal stops. Returns its exit status."""
    status = server.process.wait(timeout=30)
    server.process.stdout.close()
    server.process = None
    return status


def test_graceful_shutdown(launch):
    with launch("--shutdown-delay-duration=4s") as server, reading(server, MAPS + "?watch=1") as events:
        server.process.send_signal(signal.SIGINT)
        eventually(lambda: server.request("GET", "/readyz")[0] == 500)
        unready = server.request("GET", "/readyz")[1]
        assert unready.endswith("[-]shutdown failed: reason withheld\nreadyz check failed\n"), unready
        assert server.request("GET", "/livez")[:2] == (200, "ok")
        server.ok("POST", MAPS, {"metadata": {"name": "last"}})
        assert b'"name":"last"' in list(events)[-1], "the watch ends cleanly, after the last event"
        assert stopped(server) == 0


def test_websockets_are_closed_at_the_end(launch):
    with launch() as server, Upgraded(server, MAPS + "?watch=1") as watch:
        assert watch.status == 101, watch.head
        server.ok("POST", MAPS, {"metadata": {"name": "last"}})
        kind, event = watch.frame()
        assert kind == 1 and b'"ADDED"' in event, event
        server.process.send_signal(signal.SIGTERM)
        assert watch.frame() == (8, b"\x03\xe8"), "a close frame with the code 1000"
        # an empty close frame, masked with zeros
        watch.socket.sendall(b"\x88\x80\0\0\0\0")
        assert watch.frame() is None
        assert stopped(server) == 0


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
            server.ok("POST", DEFINITIONS, definition("boats", "discovered.example.com"))
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
