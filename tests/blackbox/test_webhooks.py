"""Admission and conversion webhooks, including ones that fail, hang or return invalid responses."""

import base64
import concurrent.futures
import socket
import threading

import pytest

from boats import BOATS, DEFINITIONS, boat, boats, convert_boats
from hooks import patch
from metrics import metrics_of, value
from pintle import Pintle, eventually
from watch import Watch

pytestmark = pytest.mark.webhooks

CORE = "/api/v1/namespaces/default/configmaps"
ADMISSION = "/apis/admissionregistration.k8s.io/v1/"


def hook(name, client, **more):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    return {
        "name": f"{name}.hooks.example.com",
        "clientConfig": client,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
        **more,
    }


def configure(server, kind, *hooks):
    plural = kind.lower() + "webhookconfigurations"
    server.request("DELETE", ADMISSION + plural + "/all")
    server.ok("POST", ADMISSION + plural, {"metadata": {"name": "all"}, "webhooks": list(hooks)})


def create(server, name, query="", **more):
    return server.request("POST", CORE + query, {"metadata": {"name": name}, **more})


def check_rejected(server, name, code, message, query=""):
    status, response, _ = create(server, name, query)
    assert (status, response["message"]) == (code, message), (status, response)
    assert server.request("GET", f"{CORE}/{name}")[0] == 404, "the object has been written"
    return response


def call_error(name, cause):
    return f'Internal error occurred: failed calling webhook "{name}.hooks.example.com": {cause}'


def test_validating(server, hooks):
    deny = hooks.on("/deny", lambda _: {"allowed": False, "status": {"code": 418, "reason": "Teapot", "message": "short"}})
    configure(server, "Validating", hook("deny", deny))
    response = check_rejected(server, "denied", 418, 'admission webhook "deny.hooks.example.com" denied the request: short')
    assert response["reason"] == "Teapot"
    configure(server, "Validating", hook("deny", hooks.on("/no", lambda _: {"allowed": False})))
    check_rejected(server, "denied", 400, 'admission webhook "deny.hooks.example.com" denied the request without explanation')
    warn = hooks.on("/warn", lambda _: {"allowed": True, "warnings": ["mind the gap"]})
    configure(server, "Validating", hook("warn", warn))
    status, _, headers = create(server, "warned")
    assert (status, headers["warning"]) == (201, '299 - "mind the gap"'), headers
    server.ok("PATCH", CORE + "/warned", {"data": {"a": "b"}})
    server.ok("DELETE", CORE + "/warned")
    created, updated, deleted = hooks.requests("/warn")
    assert (created["operation"], created["oldObject"], created["object"]["metadata"]["name"]) == ("CREATE", None, "warned")
    assert created["userInfo"]["username"] == "tester" and created["resource"]["resource"] == "configmaps", created
    assert (updated["operation"], updated["oldObject"].get("data"), updated["object"]["data"]) == ("UPDATE", None, {"a": "b"})
    assert (deleted["operation"], deleted["object"], deleted["oldObject"]["data"]) == ("DELETE", None, {"a": "b"})
    assert deleted["options"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}, deleted


def test_mutating(server, hooks):
    def first(request):
        labels = request["object"]["metadata"].get("labels", {})
        return patch({"op": "add", "path": "/metadata/labels", "value": {**labels, "seen": str(len(hooks.requests("/first")))}})

    second = lambda request: patch({"op": "add", "path": "/data", "value": {"by": "second"}})
    hooks.on("/first", first)
    configure(server, "Mutating", hook("first", hooks.on("/first", first), reinvocationPolicy="IfNeeded"), hook("second", hooks.on("/second", second)))
    status, created, _ = create(server, "mutated")
    assert (status, created["data"], created["metadata"]["labels"]) == (201, {"by": "second"}, {"seen": "2"}), created
    assert [len(hooks.requests(path)) for path in ("/first", "/second")] == [2, 1]
    bad = hooks.on("/bad", lambda _: patch({"op": "remove", "path": "/nowhere"}))
    configure(server, "Mutating", hook("bad", bad))
    assert create(server, "broken")[0] == 500
    name = hooks.on("/rename", lambda _: patch({"op": "replace", "path": "/metadata/uid", "value": "other"}))
    configure(server, "Mutating", hook("rename", name))
    status, response, _ = server.request("PATCH", CORE + "/mutated", {"data": {"c": "d"}})
    assert status in (409, 422), response
    server.ok("DELETE", ADMISSION + "mutatingwebhookconfigurations/all")
    assert server.ok("GET", CORE + "/mutated")["data"] == {"by": "second"}


def test_patched(server, hooks):
    """The result of a webhook's patch is decoded again; a new object has neither a uid nor a creation time."""
    struct = "json: cannot unmarshal number into Go struct field "
    cases = [
        ({"op": "remove", "path": "/kind"}, None),
        ({"op": "replace", "path": "/apiVersion", "value": ""}, None),
        ({"op": "add", "path": "/unknown", "value": "x"}, None),
        ({"op": "replace", "path": "/kind", "value": 5}, f"couldn't get version/kind; json parse error: {struct}.kind of type string"),
        ({"op": "add", "path": "/metadata", "value": 5}, f"{struct}ConfigMap.metadata of type v1.ObjectMeta"),
        ({"op": "remove", "path": "/none"}, "error in remove for path: '/none': Unable to remove nonexistent key: none: missing value"),
        ({"op": "add", "path": "/none/x", "value": 1}, 'add operation does not apply: doc is missing path: "/none/x": missing value'),
    ]
    current = []
    configure(server, "Mutating", hook("patched", hooks.on("/patched", lambda _: patch(*current))))
    for number, (operation, error) in enumerate(cases):
        current[:] = [operation]
        status, response, _ = create(server, f"patched-{number}")
        want = (201, None) if error is None else (500, "Internal error occurred: " + error)
        assert (status, response.get("message")) == want, response
    metadata = hooks.requests("/patched")[0]["object"]["metadata"]
    assert metadata["name"] == "patched-0" and not {"uid", "creationTimestamp"} & set(metadata), metadata


def test_failing(server, hooks):
    missing = {"service": {"namespace": "default", "name": "none", "path": "/x"}}
    url = "https://none.default.svc:443/x?timeout=5s"
    configure(server, "Validating", hook("gone", missing))
    check_rejected(server, "failed", 500, call_error("gone", f'failed to call webhook: Post "{url}": service "none" not found'))
    configure(server, "Validating", hook("gone", missing, failurePolicy="Ignore"))
    assert create(server, "open")[0] == 201
    configure(server, "Validating", hook("closed", {"url": "https://127.0.0.1:1/x"}))
    cause = 'failed to call webhook: Post "https://127.0.0.1:1/x?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused'
    check_rejected(server, "failed", 500, call_error("closed", cause))
    client = hooks.on("/trust", lambda _: {"allowed": True})
    configure(server, "Validating", hook("trust", {"url": client["url"]}))
    cause = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    check_rejected(server, "failed", 500, call_error("trust", f'failed to call webhook: Post "{client["url"]}?timeout=5s": {cause}'))
    release = threading.Event()
    slow = hooks.on("/slow", lambda _: release.wait(20) and {"allowed": True})
    configure(server, "Validating", hook("slow", slow, timeoutSeconds=1))
    cause = f'failed to call webhook: Post "{slow["url"]}?timeout=1s": context deadline exceeded'
    check_rejected(server, "failed", 500, call_error("slow", cause))
    release.set()
    configure(server, "Validating", hook("lie", hooks.on("/lie", lambda _: {"allowed": True, "uid": "x"})))
    status, body, _ = create(server, "failed")
    assert status == 500 and 'received invalid webhook response: expected response.uid="' in body["message"], body
    configure(server, "Validating", hook("text", hooks.on("/text", lambda _: b"<html>")))
    # a response that is not JSON is parsed as YAML: a string
    cause = (
        "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type "
        'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    )
    check_rejected(server, "failed", 500, call_error("text", cause))
    configure(server, "Validating", hook("absent", {**client, "url": client["url"].replace("/trust", "/absent")}))
    check_rejected(server, "failed", 500, call_error("absent", "failed to call webhook: the server could not find the requested resource"))


def test_called_once(server, hooks):
    """A webhook that receives a request and closes the connection is not called again, even if there are idle connections."""
    together, sixteen = threading.Barrier(16, timeout=30), range(16)
    client = hooks.on("/once", lambda _: together.wait() is not None and {"allowed": True})
    configure(server, "Validating", hook("once", client))
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        responses = list(pool.map(lambda number: create(server, f"together-{number}"), sixteen))
    assert {status for status, _, _ in responses} == {201}, responses
    assert len(hooks.requests("/once")) == 16
    hooks.on("/once", lambda _: None)
    cause = f'failed to call webhook: Post "{client["url"]}?timeout=5s": EOF'
    for number in sixteen:
        check_rejected(server, f"closed-{number}", 500, call_error("once", cause))
        assert len(hooks.requests("/once")) == 17 + number


def test_counting(server, hooks):
    """Metrics count calls, rejections, ignored failures and durations of each webhook."""

    def count(metric, name, **labels):
        samples, _, _ = metrics_of(server)
        return value(samples, "apiserver_admission_webhook_" + metric, name=name + ".hooks.example.com", **labels)

    configure(
        server,
        "Validating",
        hook("fair", hooks.on("/fair", lambda _: {"allowed": True})),
        hook("strict", hooks.on("/strict", lambda review: {"allowed": review["object"]["metadata"]["name"] != "not-this"})),
        hook("deaf", {"url": "https://127.0.0.1:1/x"}, failurePolicy="Ignore"),
    )
    assert create(server, "this")[0] == 201
    check_rejected(server, "not-this", 400, 'admission webhook "strict.hooks.example.com" denied the request without explanation')
    validating = {"type": "validating", "operation": "CREATE"}
    assert count("request_total", "fair", rejected="false", **validating) == 2
    assert count("request_total", "strict", rejected="false", **validating) == 1
    assert count("request_total", "strict", rejected="true", **validating) == 1
    assert count("rejection_count", "strict", error_type="no_error", rejection_code="400", **validating) == 1
    assert count("fail_open_count", "deaf", type="validating") == 2
    assert count("admission_duration_seconds_count", "fair", **validating) == 2
    configure(server, "Validating", hook("lost", {"url": "https://127.0.0.1:1/x"}))
    assert create(server, "lost")[0] == 500
    assert count("rejection_count", "lost", error_type="calling_webhook_error", rejection_code="503", **validating) == 1


def test_matching(server, hooks):
    client = hooks.on("/pick", lambda _: {"allowed": False})
    message = 'admission webhook "pick.hooks.example.com" denied the request without explanation'
    configure(
        server,
        "Validating",
        hook("pick", client, sideEffects="NoneOnDryRun", matchConditions=[{"name": "not-mine", "expression": "!object.metadata.name.startsWith('mine')"}]),
    )
    assert create(server, "mine")[0] == 201
    check_rejected(server, "yours", 400, message)
    check_rejected(server, "yours", 400, message, query="?dryRun=All")
    assert [request["dryRun"] for request in hooks.requests("/pick")] == [False, True]
    configure(server, "Validating", hook("pick", client, objectSelector={"matchLabels": {"watch": "yes"}}))
    assert create(server, "unlabelled")[0] == 201
    status, _, _ = server.request("PATCH", CORE + "/unlabelled", {"metadata": {"labels": {"watch": "yes"}}})
    assert status == 400
    configure(server, "Validating", hook("pick", client, namespaceSelector={"matchLabels": {"guarded": "yes"}}))
    assert create(server, "unguarded")[0] == 201
    server.ok("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"guarded": "yes"}}})
    check_rejected(server, "guarded", 400, message)
    configure(server, "Validating", hook("pick", client, matchConditions=[{"name": "odd", "expression": "object.data.x == 'y'"}]))
    cause = "expression 'object.data.x == 'y'' resulted in error: no such key: data"
    check_rejected(server, "odd", 403, f'configmaps "odd" is forbidden: {cause}')


def test_admission_requests(server, hooks):
    """The AdmissionReviews that webhooks receive: for TokenRequests but not for other reviews, with the name if it is known."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    mine = [{"name": "mine", "expression": "request.userInfo.username == 'tester'"}]
    for kind, path in (("Mutating", "/m"), ("Validating", "/v")):
        client = hooks.on(path, lambda _: {"allowed": True})
        configure(server, kind, hook(kind.lower(), client, rules=[rule], matchConditions=mine))

    def send(method, path, body=None, code=None, **options):
        """Returns the response, and the requests that the webhooks have received."""
        before = len(hooks.received)
        status, response, _ = server.request(method, path, body, **options)
        assert code is None or status == code, response
        return response, hooks.received[before:]

    def summaries(calls):
        plural = lambda request: "/".join(filter(None, [request["resource"]["resource"], request.get("subResource")]))
        return [(path, request["operation"], plural(request), request.get("namespace"), request.get("name")) for path, request in calls]

    both = lambda *summary: [("/m", *summary), ("/v", *summary)]
    created, calls = send("POST", CORE, {"metadata": {"generateName": "created-"}})
    name = created["metadata"]["name"]
    assert summaries(calls) == [("/m", "CREATE", "configmaps", "default", None), ("/v", "CREATE", "configmaps", "default", name)], calls
    _, calls = send("POST", "/api/v1/namespaces", {"metadata": {"name": "called"}})
    assert summaries(calls) == both("CREATE", "namespaces", "called", "called"), calls
    access = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    _, calls = send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access)
    assert not calls
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    send("POST", accounts, {"metadata": {"name": "called"}})
    _, calls = send("POST", accounts + "/called/token", {})
    assert summaries(calls) == both("CREATE", "serviceaccounts/token", "default", "called"), calls
    assert calls[1][1]["kind"] == {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}, calls
    assert [request["object"]["metadata"].get("uid") is None for _, request in calls] == [True, False], calls
    _, calls = send("POST", "/api/v1/namespaces/absent/serviceaccounts/called/token", {}, 404)
    assert not calls, "a missing namespace is reported before webhooks are called"
    lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/new"
    response, calls = send("PUT", lease, {"metadata": {"name": "new", "uid": "u"}}, 409)
    assert "Key: /registry/leases/default/new, ResourceVersion: 0" in response["message"] and not calls, response
    changed = {"metadata": {"name": name, "uid": "another"}, "data": {"a": "b"}}
    _, calls = send("PUT", f"{CORE}/{name}", changed, 409)
    assert not calls, "the conflict is reported before webhooks are called"
    _, calls = send("PATCH", f"{CORE}/{name}", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}] * 2}})
    assert [len(request["object"]["metadata"]["ownerReferences"]) for _, request in calls] == [2, 1], calls
    _, calls = send("DELETE", f"{CORE}/{name}?dryRun=All", {"gracePeriodSeconds": -5})
    assert [request["options"]["gracePeriodSeconds"] for _, request in calls] == [1, 1], calls
    _, calls = send("POST", CORE + "?fieldValidation=Warn", {"metadata": {"name": "warned"}})
    assert [request["options"]["fieldValidation"] for _, request in calls] == ["Warn", "Warn"], calls
    uid = server.ok("GET", "/api/v1/namespaces/called")["metadata"]["uid"]
    _, calls = send("DELETE", "/api/v1/namespaces/called")
    assert [request["options"]["preconditions"] for _, request in calls] == [{"uid": uid}] * 2, calls


def test_admission_requests_of_scales(server, hooks):
    """Mutating webhooks receive the Scale of the request, validating webhooks the resulting Scale."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"scale": scale}}
    server.ok(
        "POST",
        DEFINITIONS,
        {
            "metadata": {"name": "crews.harbor.example.com"},
            "spec": {"group": "harbor.example.com", "scope": "Namespaced", "names": {"plural": "crews", "kind": "Crew"}, "versions": [version]},
        },
    )
    crews = "/apis/harbor.example.com/v1/namespaces/default/crews"
    server.ok("POST", crews, {"apiVersion": "harbor.example.com/v1", "kind": "Crew", "metadata": {"name": "c"}, "spec": {"replicas": 1}})
    rule = {"apiGroups": ["harbor.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["crews/scale"]}
    for kind, path in (("Mutating", "/m"), ("Validating", "/v")):
        configure(server, kind, hook(kind.lower(), hooks.on(path, lambda _: {"allowed": True}), rules=[rule]))
    server.ok("PUT", crews + "/c/scale", {"metadata": {"name": "c", "namespace": "default"}, "spec": {"replicas": 2}})
    (_, sent), (_, result) = hooks.received
    assert sent["object"]["status"] == {"replicas": 0} and "uid" not in sent["object"]["metadata"], sent
    assert sent["object"]["metadata"]["managedFields"][0]["subresource"] == "scale", sent
    assert result["object"]["spec"] == {"replicas": 2} and "managedFields" not in result["object"]["metadata"], result
    assert result["object"]["metadata"]["uid"] and result["oldObject"]["spec"] == {"replicas": 1}, result
    stale = {"metadata": {"name": "c", "namespace": "default", "resourceVersion": "1"}, "spec": {"replicas": 3}}
    assert server.request("PUT", crews + "/c/scale", stale)[0] == 409
    assert [path for path, _ in hooks.received] == ["/m", "/v", "/m"], "mutating webhooks are called before the resourceVersion is compared"
    server.ok("PATCH", crews + "/c", {"metadata": {"managedFields": [{}]}})
    wanted = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "c"}, "spec": {"replicas": 2}}
    status, response, _ = server.request("PATCH", crews + "/c/scale?fieldManager=f", wanted, headers={"Content-Type": "application/apply-patch+yaml"})
    assert status == 500 and response["message"].startswith("failed to create manager for existing fields"), response


def test_services(server, hooks):
    hooks.on("/service", lambda _: {"allowed": False})
    client = {"service": {"namespace": "default", "name": "kubernetes", "path": "/service"}, "caBundle": hooks.bundle}
    with Pintle(server.binary, "--service-address", f"default/kubernetes=127.0.0.1:{hooks.port}") as other:
        configure(other, "Validating", hook("service", client))
        check_rejected(other, "x", 400, 'admission webhook "service.hooks.example.com" denied the request without explanation')


def test_converting(server, hooks):
    v1, v2 = BOATS.format("v1"), BOATS.format("v2")
    server.ok("POST", DEFINITIONS, boats(hooks.on("/convert", convert_boats)))
    watch = Watch(server, v2 + "?watch=1&resourceVersion=0")
    created = server.ok("POST", v1, boat("v1", "gig", sails=1))
    assert created["spec"] == {"sails": 1} and "annotations" not in created["metadata"]
    converted = server.ok("GET", v2 + "/gig")
    assert converted["spec"] == {"rig": {"sails": 1}} and converted["metadata"]["annotations"] == {"converted": "yes"}, converted
    assert converted["metadata"]["generation"] == 1 and converted["metadata"]["uid"] == created["metadata"]["uid"]
    created = server.ok("POST", v2, boat("v2", "yawl", rig={"sails": 2}))
    assert created["spec"] == {"rig": {"sails": 2}}, created
    assert server.ok("GET", v1 + "/yawl")["spec"] == {"sails": 2}
    eventually(lambda: sum('"rig":{"sails"' in line for line in watch.lines) == 2)
    for i in range(5):
        server.ok("POST", v1, boat("v1", f"dinghy-{i}", sails=i))
    eventually(lambda: len(watch.lines) == 7)
    changed = server.ok("PATCH", v2 + "/yawl", {"spec": {"rig": {"sails": 3}}})
    assert (changed["spec"], changed["metadata"]["generation"]) == ({"rig": {"sails": 3}}, 2), changed
    apply = {"Content-Type": "application/apply-patch+yaml"}
    server.ok("PATCH", v2 + "/yawl?fieldManager=a&force=true", boat("v2", "yawl", rig={"sails": 4}), headers=apply)
    assert server.ok("GET", v1 + "/yawl")["spec"] == {"sails": 4}
    server.ok("PATCH", v1 + "/yawl?fieldManager=b&force=true", boat("v1", "yawl", sails=5), headers=apply)
    assert server.ok("GET", v2 + "/yawl")["spec"] == {"rig": {"sails": 5}}
    server.ok("DELETE", v2 + "/yawl")
    assert len(server.ok("GET", v2)["items"]) == 6


def test_converting_lists(server, hooks):
    client = hooks.on("/convert", convert_boats)
    server.ok("POST", DEFINITIONS, boats(client))
    for i in range(20):
        server.ok("POST", BOATS.format("v1"), boat("v1", f"dinghy-{i}", sails=i))
    assert not hooks.requests("/convert"), "the storage version is not converted"
    listed = server.ok("GET", BOATS.format("v2"))["items"]
    assert len(listed) == 20 and all("rig" in item["spec"] for item in listed)
    assert [len(request["objects"]) for request in hooks.requests("/convert")] == [20], "one call for a list"
    # migration: store v2, rewrite all objects, remove v1
    definition = boats(client, storage="v2")["spec"]["versions"]
    server.ok("PATCH", DEFINITIONS + "/boats.harbor.example.com", {"spec": {"versions": definition}})
    for item in server.ok("GET", BOATS.format("v2"))["items"]:
        server.ok("PUT", BOATS.format("v2") + "/" + item["metadata"]["name"], item)
    server.ok("PATCH", DEFINITIONS + "/boats.harbor.example.com/status", {"status": {"storedVersions": ["v2"]}})
    calls = len(hooks.requests("/convert"))
    server.ok("GET", BOATS.format("v2"))
    assert len(hooks.requests("/convert")) == calls, "objects stored in v2 are not converted to v2"
    definition = [version for version in definition if version["name"] == "v2"]
    server.ok("PATCH", DEFINITIONS + "/boats.harbor.example.com", {"spec": {"versions": definition}})
    assert len(server.ok("GET", BOATS.format("v2"))["items"]) == 20


def test_converting_many(server, hooks):
    """Large lists and collections are converted in several calls, each of some hundred objects."""
    server.ok("POST", DEFINITIONS, boats(hooks.on("/convert", convert_boats)))
    for i in range(600):
        server.ok("POST", BOATS.format("v1"), boat("v1", f"dinghy-{i:03}", sails=i))
    page = server.ok("GET", BOATS.format("v2") + "?limit=10")
    assert len(page["items"]) == 10 and all("rig" in item["spec"] for item in page["items"])
    listed = server.ok("GET", BOATS.format("v2"))["items"]
    assert [item["spec"]["rig"]["sails"] for item in listed] == list(range(600))
    sizes = [len(request["objects"]) for request in hooks.requests("/convert")]
    assert sizes[0] == 10 and sum(sizes) == 600 and max(sizes) <= 512, sizes
    deleted = server.ok("DELETE", BOATS.format("v2"))["items"]
    assert [item["spec"]["rig"]["sails"] for item in deleted] == list(range(600))
    assert server.ok("GET", BOATS.format("v1"))["items"] == []


def conversion_error(status):
    """The message of a Status without its prefix about a stored object that cannot be decoded."""
    message, separator, error = status["message"].partition("object not decodable revision=")
    return error.partition(": ")[2] if separator else message


def test_invalid_conversions(server, hooks):
    def change(alter):
        def convert(request):
            response = convert_boats(request)
            alter(response)
            return response

        return convert

    def metadata(key, value):
        return change(lambda response: response["convertedObjects"][0]["metadata"].update({key: value}))

    prefix = "conversion webhook for harbor.example.com/v1, Kind=Boat"
    cases = [
        (change(lambda r: r.update(uid="x")), None),
        (change(lambda r: r["convertedObjects"].pop()), prefix + " returned 0 objects, expected 1"),
        (change(lambda r: r.update(result={"status": "Failure", "message": "sunk"})), prefix + " failed: sunk"),
        (metadata("name", "other"), prefix + " returned invalid object: must have the same name: gig != other"),
        (metadata("labels", {"a b": "c"}), None),
        (metadata("uid", "x"), None),
        (
            change(lambda r: r.update(result="x")),
            prefix + " failed: json: cannot unmarshal string into Go struct field ConversionResponse.response.result of type v1.Status",
        ),
        (
            change(lambda r: r["convertedObjects"][0].update(kind="Ship")),
            prefix + " returned invalid object at index 0: invalid kind (expected Boat, received Ship)",
        ),
        (
            change(lambda r: r["convertedObjects"][0].update(apiVersion="harbor.example.com/v1")),
            prefix + " returned invalid object at index 0: invalid groupVersion (expected harbor.example.com/v2, received harbor.example.com/v1)",
        ),
    ]
    # the last one converts correctly to the storage version: the object is written, but cannot be returned
    written = [False] * (len(cases) - 1) + [True]
    server.ok("POST", DEFINITIONS, boats(hooks.on("/bad", convert_boats)))
    server.ok("POST", BOATS.format("v1"), boat("v1", "gig", sails=1))
    server.ok("POST", CORE, {"metadata": {"name": "bystander"}})
    for (convert, want), is_written in zip(cases, written):
        hooks.on("/bad", convert)
        for path in (BOATS.format("v2") + "/gig", BOATS.format("v2")):
            status, found, _ = server.request("GET", path)
            assert status == 500 and conversion_error(found).startswith(prefix), found
            assert want is None or conversion_error(found) == want, found
        status, found, _ = server.request("POST", BOATS.format("v2"), boat("v2", "new", rig={"sails": 1}))
        assert status == 500, found
        assert server.ok("GET", BOATS.format("v1") + "/gig")["spec"] == {"sails": 1}, "the storage version is still served"
        assert (server.request("GET", BOATS.format("v1") + "/new")[0] == 200) == is_written
    watch = Watch(server, BOATS.format("v2") + "?watch=1&resourceVersion=0")
    assert watch.ended.wait(10) and '"type":"ERROR"' in watch.lines[0], watch.lines
    hooks.on("/bad", convert_boats)
    assert server.ok("GET", BOATS.format("v2") + "/gig")["spec"] == {"rig": {"sails": 1}}


def test_conversions_without_a_response(server, hooks):
    """If a webhook does not respond, only the requests that need it time out."""
    prefix = "conversion webhook for harbor.example.com/v1, Kind=Boat failed: Post "
    release = threading.Event()

    def late(request):
        release.wait(60)
        return convert_boats(request)

    server.ok("POST", DEFINITIONS, boats(hooks.on("/late", convert_boats)))
    server.ok("POST", BOATS.format("v1"), boat("v1", "gig", sails=1))
    hooks.on("/late", late)
    for path in (BOATS.format("v2") + "/gig?timeout=300ms", BOATS.format("v2") + "?timeout=300ms"):
        status, found, _ = server.request("GET", path)
        assert (status, found["reason"]) == (504, "Timeout"), found
        assert server.ok("GET", BOATS.format("v1") + "/gig")["spec"] == {"sails": 1}, "the storage version is still served"
        assert server.ok("PATCH", BOATS.format("v1") + "/gig", {"spec": {"sails": 1}})["spec"] == {"sails": 1}
        server.ok("GET", CORE)
    release.set()
    assert server.ok("GET", BOATS.format("v2") + "/gig")["spec"] == {"rig": {"sails": 1}}
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # it does not listen
        dead = f"https://127.0.0.1:{bound.getsockname()[1]}/dead"
        definition = server.ok("GET", DEFINITIONS + "/boats.harbor.example.com")
        definition["spec"]["conversion"]["webhook"]["clientConfig"]["url"] = dead
        server.ok("PUT", DEFINITIONS + "/boats.harbor.example.com", definition)
        for method, path, body in (("GET", BOATS.format("v2"), None), ("POST", BOATS.format("v2"), boat("v2", "new", rig={"sails": 1}))):
            status, found, _ = server.request(method, path, body)
            wanted = f'{prefix}"{dead}?timeout=30s": dial tcp {dead[8:-5]}: connect: connection refused'
            assert (status, conversion_error(found).replace("v2, Kind", "v1, Kind")) == (500, wanted), found
        assert [item["metadata"]["name"] for item in server.ok("GET", BOATS.format("v1"))["items"]] == ["gig"]
    definition["spec"]["conversion"]["webhook"]["clientConfig"] = hooks.on("/late", convert_boats)
    definition["metadata"].pop("resourceVersion")
    server.ok("PATCH", DEFINITIONS + "/boats.harbor.example.com", {"spec": definition["spec"]})
    assert server.ok("GET", BOATS.format("v2") + "/gig")["spec"] == {"rig": {"sails": 1}}


def test_many_requests_wait_for_a_conversion(server, hooks):
    """Hundreds of applies wait for a conversion webhook while their managedFields are computed; other requests are served."""
    v1, v2 = BOATS.format("v1"), BOATS.format("v2")
    server.ok("POST", DEFINITIONS, boats(hooks.on("/convert", convert_boats)))
    server.ok("POST", v2, boat("v2", "gig", rig={"sails": 1}))
    # more than the 512 threads that might wait; all calls arrive within the timeout of 30 seconds
    release, many, to_v2 = threading.Event(), 530, "harbor.example.com/v2"

    def late(request):
        if request["desiredAPIVersion"] == to_v2:
            release.wait(60)
        return convert_boats(request)

    def calls():
        return sum(request["desiredAPIVersion"] == to_v2 for request in hooks.requests("/convert"))

    def apply(_):
        return server.request(
            "PATCH",
            v1 + "/gig?fieldManager=a&force=true&dryRun=All",
            boat("v1", "gig", sails=1),
            headers={"Content-Type": "application/apply-patch+yaml"},
            timeout=90,
        )

    hooks.on("/convert", late)
    before = calls()
    with concurrent.futures.ThreadPoolExecutor(many) as pool:
        applies = [pool.submit(apply, i) for i in range(many)]
        try:
            eventually(lambda: calls() - before >= many, seconds=60)
            assert server.ok("GET", v1 + "/gig")["spec"] == {"sails": 1}
            server.ok("PATCH", DEFINITIONS + "/boats.harbor.example.com", {"metadata": {"labels": {"a": "b"}}})
        finally:
            release.set()
        assert {done.result()[0] for done in applies} == {200}


def test_converting_by_service(server, hooks):
    """A Service is found by --service-address; a server whose certificate is not trusted gets no request."""
    hooks.on("/convert", convert_boats)
    service = {"namespace": "default", "name": "kubernetes", "path": "/convert"}
    with Pintle(server.binary, "--service-address", f"default/kubernetes=127.0.0.1:{hooks.port}") as other:

        def use(client):
            conversion = boats(client)["spec"]["conversion"]
            other.ok("PATCH", DEFINITIONS + "/boats.harbor.example.com", {"spec": {"conversion": conversion}})

        other.ok("POST", DEFINITIONS, boats({"service": service, "caBundle": hooks.bundle}))
        other.ok("POST", BOATS.format("v1"), boat("v1", "gig", sails=1))
        assert other.ok("GET", BOATS.format("v2") + "/gig")["spec"] == {"rig": {"sails": 1}}
        calls = len(hooks.requests("/convert"))
        # the certificate authority of the other server has not signed the certificate of the webhook
        wrong_bundle = base64.b64encode((other.dir / "ca.crt").read_bytes()).decode()
        for client, error in (
            ({"service": {**service, "name": "nobody"}, "caBundle": hooks.bundle}, "nobody"),
            ({"service": service, "caBundle": wrong_bundle}, "x509: certificate signed by unknown authority"),
        ):
            use(client)
            other.ok("PATCH", BOATS.format("v1") + "/gig", {"metadata": {"labels": {"for": str(len(error))}}})
            status, found, _ = other.request("GET", BOATS.format("v2") + "/gig")
            assert status == 500 and error in found["message"], found
            assert other.ok("GET", BOATS.format("v1") + "/gig")["spec"] == {"sails": 1}, "the storage version is still served"
        assert len(hooks.requests("/convert")) == calls
