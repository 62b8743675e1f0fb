"""Traces: sampling, the content of spans, and their export."""

import contextlib
import json

import pytest

from collector import Collector
from objects import MAPS, register, webhook

pytestmark = pytest.mark.traces

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def trace_headers(sampled):
    """The headers of a request within a trace that the client samples, or does not."""
    return {"traceparent": f"00-{TRACE}-{PARENT}-0{sampled}"}


@contextlib.contextmanager
def traced(launch, per_million):
    """A server that exports traces, and their collector."""
    server = launch()
    with Collector() as collector:
        server.dir.mkdir(parents=True, exist_ok=True)
        file, head = server.dir / "tracing.json", {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
        file.write_text(json.dumps({**head, "endpoint": f"127.0.0.1:{collector.port}", "samplingRatePerMillion": per_million}))
        server.flags = ("--tracing-config-file", str(file))
        with server:
            yield server, collector


def test_spans_of_a_write(launch, hooks):
    with traced(launch, 0) as (server, collector):
        seen = []
        client = hooks.on("/hook", lambda request: {"allowed": True})
        hooks.headers = seen.append
        register(server, "validating", webhook("hook", client))
        server.ok("POST", MAPS, {"metadata": {"name": "m"}}, headers={**trace_headers(1), "Audit-Id": "an-id"})
        server.ok("GET", MAPS + "/m", headers=trace_headers(0))
        server.ok("GET", MAPS)
        assert server.stop() == 0
        spans = {span.name: span for span in collector.spans}
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
        assert (call.attributes["webhook"], call.attributes["operation"]) == ("hook.hooks.example.com", "CREATE"), call
        assert store.attributes["key"] == "default/m", store
        assert [headers["traceparent"] for headers in seen] == [f"00-{TRACE}-{call.id}-01"], seen


def test_sampling_and_untrusted_parents(launch):
    with traced(launch, 1_000_000) as (server, collector):
        assert server.request("GET", MAPS + "/x", token="plain-token", headers=trace_headers(1))[0] == 403
        server.ok("GET", "/version", token="plain-token", headers=trace_headers(0))
        server.ok("GET", "/version", headers=trace_headers(0))
        assert server.stop() == 0
        spans = collector.spans
        assert [span.name for span in spans] == ["GET /api/v1/namespaces/{:namespace}/configmaps/{:name}", "GET"], spans
        assert spans[0].attributes["http.response.status_code"] == 403, spans
        assert all(span.trace != TRACE and span.parent == "" and span.links == [TRACE] for span in spans), spans


def test_an_unreachable_collector_is_harmless(launch):
    with traced(launch, 1_000_000) as (server, collector):
        collector.server_close()
        for _ in range(10):
            server.ok("GET", MAPS)
        assert server.stop() == 0
        assert "traces are lost" in server.last_log
