"""Traces: sampling, the content of spans, and their export."""

import json

import pytest

from collector import Collector
from hooks import Hooks

pytestmark = pytest.mark.traces

MAPS = "/api/v1/namespaces/default/configmaps"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def trace_headers(sampled):
    """The headers of a request within a trace that the client samples, or does not."""
    return {"traceparent": f"00-{TRACE}-{PARENT}-0{sampled}"}


class Traced:
    """A server that exports traces to a collector; `spans()` stops it and returns the spans."""

    def __init__(self, launch, per_million):
        self.collector = Collector().__enter__()
        self.server = launch()
        self.server.dir.mkdir(parents=True, exist_ok=True)
        file = self.server.dir / "tracing.json"
        file.write_text(
            json.dumps(
                {
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "kind": "TracingConfiguration",
                    "endpoint": f"127.0.0.1:{self.collector.port}",
                    "samplingRatePerMillion": per_million,
                }
            )
        )
        self.server.flags = ("--tracing-config-file", str(file))

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *_):
        self.server.__exit__()
        self.collector.__exit__()

    def spans(self):
        assert self.server.stop() == 0
        return self.collector.spans


def test_spans_of_a_write(launch):
    with launch() as certificates, Hooks(certificates) as hooks, Traced(launch, 0) as traced:
        server, seen = traced.server, []
        client = hooks.on("/hook", lambda request: {"allowed": True})
        hooks.headers = seen.append
        webhook = {
            "name": "hook.acme.io",
            "clientConfig": client,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        }
        server.ok("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {"metadata": {"name": "hooks"}, "webhooks": [webhook]})
        server.ok("POST", MAPS, {"metadata": {"name": "m"}}, headers={**trace_headers(1), "Audit-Id": "an-id"})
        server.ok("GET", MAPS + "/m", headers=trace_headers(0))
        server.ok("GET", MAPS)
        spans = {span.name: span for span in traced.spans()}
        names = ["POST /api/v1/namespaces/{:namespace}/configmaps", "Create", "Call validating webhook", "Create etcd3"]
        assert sorted(spans) == sorted(names), "unsampled requests are not exported: " + repr(spans)
        request, create, call, store = (spans[name] for name in names)
        assert {span.trace for span in spans.values()} == {TRACE}
        parents = [PARENT, request.id, create.id, create.id]
        assert [span.parent for span in (request, create, call, store)] == parents, spans
        assert [span.kind for span in (request, create, call, store)] == [2, 1, 3, 1], spans
        assert all(0 < span.start <= span.end for span in spans.values())
        assert request.start <= create.start <= call.start <= store.start and store.end <= create.end <= request.end
        assert request.attributes["http.request.method"] == "POST" and request.attributes["http.response.status_code"] == 201
        assert (request.attributes["http.target"], request.attributes["audit-id"]) == (MAPS, "an-id"), request
        assert request.service["service.name"] == "apiserver", request.service
        assert (create.attributes["resource"], create.attributes["verb"]) == ("configmaps", "create"), create
        assert (call.attributes["webhook"], call.attributes["operation"]) == ("hook.acme.io", "CREATE"), call
        assert store.attributes["key"] == "default/m", store
        assert [headers["traceparent"] for headers in seen] == [f"00-{TRACE}-{call.id}-01"], seen


def test_sampling_and_untrusted_parents(launch):
    with Traced(launch, 1_000_000) as traced:
        server = traced.server
        assert server.request("GET", MAPS + "/x", token="plain-token", headers=trace_headers(1))[0] == 403
        server.ok("GET", "/version", token="plain-token", headers=trace_headers(0))
        server.ok("GET", "/version", headers=trace_headers(0))
        spans = traced.spans()
        assert [span.name for span in spans] == ["GET /api/v1/namespaces/{:namespace}/configmaps/{:name}", "GET"], spans
        forbidden = spans[0]
        assert forbidden.attributes["http.response.status_code"] == 403, forbidden
        assert all(span.trace != TRACE and span.parent == "" and span.links == [TRACE] for span in spans), spans


def test_an_unreachable_collector_is_harmless(launch):
    with Traced(launch, 1_000_000) as traced:
        traced.collector.__exit__()
        for _ in range(10):
            traced.server.ok("GET", MAPS)
        assert traced.server.stop() == 0
        assert "traces are lost" in (traced.server.dir / "stderr.log").read_text()


def test_invalid_configurations_are_reported(launch):
    for field, message in (
        ({"samplingRatePerMillion": -1}, "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"),
        ({"endpoint": "ftp://x"}, "unsupported scheme: ftp"),
    ):
        server = launch()
        file = server.dir / "tracing.json"
        file.write_text(json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration", **field}))
        server.flags = ("--tracing-config-file", str(file))
        try:
            with server:
                raise RuntimeError("it started")
        except AssertionError as error:
            assert "--tracing-config-file: " in str(error) and message in str(error), error
