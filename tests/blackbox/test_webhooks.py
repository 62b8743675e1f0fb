"""Admission and conversion webhooks, including ones that fail, hang or return invalid responses."""

import base64
import concurrent.futures
import socket
import threading

import pytest

from boats import BOATS, boat, boats, convert_boats
from hooks import patch
from metrics import metrics_of, value
from objects import ACCOUNTS, ADMISSION, APPLY, DEFINITIONS, MAPS, SECRETS, account, definition, register, rule, webhook
from pintle import eventually
from watch import Watch

pytestmark = pytest.mark.webhooks

V1, V2 = BOATS.format("v1"), BOATS.format("v2")
UNEXPLAINED = "denied the request without explanation"


def create(server, name, query="", **more):
    return server.request("POST", MAPS + query, {"metadata": {"name": name}, **more})


def check_rejected(server, name, code, message, query=""):
    status, response, _ = create(server, name, query)
    assert (status, response["message"]) == (code, message), (status, response)
    assert server.request("GET", f"{MAPS}/{name}")[0] == 404, "the object has been written"
    return response


def denied(name, why):
    return f'admission webhook "{name}.hooks.example.com" {why}'


def call_error(name, cause):
    return f'Internal error occurred: failed calling webhook "{name}.hooks.example.com": {cause}'


def test_validating(server, hooks):
    deny = hooks.on("/deny", lambda _: {"allowed": False, "status": {"code": 418, "reason": "Teapot", "message": "short"}})
    register(server, "validating", webhook("deny", deny))
    assert check_rejected(server, "denied", 418, denied("deny", "denied the request: short"))["reason"] == "Teapot"
    register(server, "validating", webhook("warn", hooks.on("/warn", lambda _: {"allowed": True, "warnings": ["mind the gap"]})))
    status, _, headers = create(server, "warned")
    assert (status, headers["warning"]) == (201, '299 - "mind the gap"'), headers
    server.ok("PATCH", MAPS + "/warned", {"data": {"a": "b"}})
    server.ok("DELETE", MAPS + "/warned")
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

    def revert(request):
        """Reverts the change of the other webhook."""
        value = "1" if request["object"].get("data", {}).get("turn") == "2" else "2"
        return patch({"op": "add", "path": "/data", "value": {"turn": value}})

    again = {"reinvocationPolicy": "IfNeeded"}
    second = hooks.on("/second", lambda _: patch({"op": "add", "path": "/data", "value": {"by": "second"}}))
    register(server, "mutating", webhook("first", hooks.on("/first", first), **again), webhook("second", second))
    status, created, _ = create(server, "mutated")
    assert (status, created["data"], created["metadata"]["labels"]) == (201, {"by": "second"}, {"seen": "2"}), created
    assert [len(hooks.requests(path)) for path in ("/first", "/second")] == [2, 1]
    register(server, "mutating", *(webhook(name, hooks.on("/" + name, revert), **again) for name in ("ping", "pong")))
    assert create(server, "looping")[1]["data"]["turn"] == "1"
    assert [path for path, _ in hooks.received[3:]] == ["/ping", "/pong", "/ping", "/pong"], "each is reinvoked once"
    rename = hooks.on("/rename", lambda _: patch({"op": "replace", "path": "/metadata/uid", "value": "other"}))
    register(server, "mutating", webhook("rename", rename))
    status, response, _ = server.request("PATCH", MAPS + "/mutated", {"data": {"c": "d"}})
    assert status in (409, 422), response
    server.ok("DELETE", ADMISSION + "/mutatingwebhookconfigurations/all")
    assert server.ok("GET", MAPS + "/mutated")["data"] == {"by": "second"}


def document(text):
    return {"patchType": "JSONPatch", "patch": base64.b64encode(text.encode()).decode()}


def review(kind, version):
    return ('{"kind":"%s","apiVersion":"admission.k8s.io/%s","response":{}}' % (kind, version)).encode()


INTERNAL, CALL, JSON = "Internal error occurred: ", "failed to call webhook: ", "json: cannot unmarshal {} into Go "
NO_REVIEW = CALL + "couldn't get version/kind; json parse error: " + JSON + "value of type "
NO_REVIEW += 'struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
UNKNOWN = 'no kind "{}" is registered for version "{}" in scheme "pkg/runtime/scheme.go:111"'
UNDECODABLE = "received undecodable patch in webhook response: "
# what a mutating webhook returns, and why its call fails, as in kube-apiserver 1.35.3
FAILED_CALLS = [
    ({"patchType": "JSONPatch", "patch": "%%%"}, CALL + "illegal base64 data at input byte 0"),
    (document("{}"), UNDECODABLE + JSON.format("object") + "value of type jsonpatch.Patch"),
    (document("hello"), UNDECODABLE + "invalid character 'h' looking for beginning of value"),
    # a response that is not JSON is parsed as YAML
    (b"<html>", NO_REVIEW.format("string")),
    (review("Foo", "v1"), CALL + UNKNOWN.format("Foo", "admission.k8s.io/v1")),
    (review("AdmissionReview", "v1beta1"), CALL + "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"),
    ({"allowed": "yes"}, CALL + JSON.format("string") + "struct field AdmissionResponse.response.allowed of type bool"),
    (None, CALL + 'Post "URL?timeout=30s": EOF'),
]
# operations of a patch, and the code and the message of the response; the result of a patch is decoded again
PATCHES = [
    (("remove", "/kind"), 201, None),
    (("replace", "/apiVersion", ""), 201, None),
    (("add", "/unknown", "x"), 201, None),
    (("replace", "/kind", 5), 500, f"{INTERNAL}couldn't get version/kind; json parse error: {JSON.format('number')}struct field .kind of type string"),
    (("add", "/metadata", 5), 500, f"{INTERNAL}{JSON.format('number')}struct field ConfigMap.metadata of type v1.ObjectMeta"),
    (("add", "/data", "x"), 500, f"{INTERNAL}{JSON.format('string')}struct field ConfigMap.data of type map[string]string"),
    (("add", "/none/x", 1), 500, INTERNAL + 'add operation does not apply: doc is missing path: "/none/x": missing value'),
    (("replace", "/kind", "Secret"), 500, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
    (("replace", "/apiVersion", "v2"), 500, INTERNAL + UNKNOWN.format("ConfigMap", "v2")),
    (("replace", "/metadata/namespace", "x"), 400, "the namespace of the provided object does not match the namespace sent on the request"),
]


def test_responses(server, hooks):
    """Invalid responses and patches change nothing; a new object has neither a uid nor a creation time."""
    current = []
    client = hooks.on("/respond", lambda _: current[0])
    register(server, "mutating", webhook("respond", client, timeoutSeconds=30))
    for response, cause in FAILED_CALLS:
        current[:] = [{"allowed": True, **response} if isinstance(response, dict) else response]
        check_rejected(server, "failed", 500, call_error("respond", cause.replace("URL", client["url"])))
    current[:] = [{"allowed": True, "uid": "x"}]
    status, body, _ = create(server, "failed")
    assert status == 500 and 'received invalid webhook response: expected response.uid="' in body["message"], body
    for number, (operation, code, message) in enumerate(PATCHES):
        current[:] = [patch(dict(zip(("op", "path", "value"), operation)))]
        status, response, _ = create(server, f"patched-{number}")
        assert (status, response.get("message")) == (code, message), response
        assert server.request("GET", f"{MAPS}/patched-{number}")[0] == (200 if code == 201 else 404), response
    metadata = hooks.requests("/respond")[-1]["object"]["metadata"]
    assert not {"uid", "creationTimestamp"} & set(metadata), metadata


def test_failing(server, hooks):
    missing = {"service": {"namespace": "default", "name": "none", "path": "/x"}}
    trust, release = hooks.on("/trust", lambda _: {"allowed": True}), threading.Event()
    slow = hooks.on("/slow", lambda _: release.wait(20) and {"allowed": True})
    post = lambda url, seconds=5: f'failed to call webhook: Post "{url}?timeout={seconds}s": '
    for name, client, seconds, cause in (
        ("gone", missing, 5, post("https://none.default.svc:443/x") + 'service "none" not found'),
        ("closed", {"url": "https://127.0.0.1:1/x"}, 5, post("https://127.0.0.1:1/x") + "dial tcp 127.0.0.1:1: connect: connection refused"),
        ("trust", {"url": trust["url"]}, 5, post(trust["url"]) + "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        ("slow", slow, 1, post(slow["url"], 1) + "context deadline exceeded"),
    ):
        register(server, "validating", webhook(name, client, timeoutSeconds=seconds))
        check_rejected(server, "failed", 500, call_error(name, cause))
    release.set()
    register(server, "validating", webhook("gone", missing, failurePolicy="Ignore"))
    assert create(server, "open")[0] == 201


def test_hanging_webhooks_do_not_block_others(server, hooks):
    release, twenty = threading.Event(), range(20)
    register(server, "validating", webhook("hangs", hooks.on("/hangs", lambda _: release.wait(60) and {"allowed": False}), timeoutSeconds=30))
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        writes = [pool.submit(create, server, f"m{i}") for i in twenty]
        eventually(lambda: len(hooks.requests("/hangs")) == 20)
        # meanwhile other clients can write
        for i in twenty:
            server.ok("POST", SECRETS, {"metadata": {"name": f"s{i}"}})
        assert not any(write.done() for write in writes), "the writers still wait for the webhook"
        release.set()
        assert [write.result()[0] for write in writes] == [400] * 20
    assert not [item for item in server.ok("GET", MAPS)["items"] if item["metadata"]["name"].startswith("m")]


def test_called_once(server, hooks):
    """A webhook that receives a request and closes the connection is not called again, even if there are idle connections."""
    together, sixteen = threading.Barrier(16, timeout=30), range(16)
    client = hooks.on("/once", lambda _: together.wait() is not None and {"allowed": True})
    register(server, "validating", webhook("once", client, timeoutSeconds=5))
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        responses = list(pool.map(lambda number: create(server, f"together-{number}"), sixteen))
    assert {status for status, _, _ in responses} == {201}, responses
    assert len(hooks.requests("/once")) == 16
    hooks.on("/once", lambda _: None)
    for number in sixteen:
        check_rejected(server, f"closed-{number}", 500, call_error("once", f'failed to call webhook: Post "{client["url"]}?timeout=5s": EOF'))
        assert len(hooks.requests("/once")) == 17 + number


def test_counting(server, hooks):
    """Metrics count calls, rejections, ignored failures and durations of each webhook."""
    closed = {"url": "https://127.0.0.1:1/x"}
    register(
        server,
        "validating",
        webhook("fair", hooks.on("/fair", lambda _: {"allowed": True})),
        webhook("strict", hooks.on("/strict", lambda review: {"allowed": review["object"]["metadata"]["name"] != "not-this"})),
        webhook("deaf", closed, failurePolicy="Ignore"),
    )
    assert create(server, "this")[0] == 201
    check_rejected(server, "not-this", 400, denied("strict", UNEXPLAINED))
    register(server, "validating", webhook("lost", closed))
    assert create(server, "lost")[0] == 500
    samples, validating = metrics_of(server)[0], {"type": "validating", "operation": "CREATE"}
    for metric, name, count, labels in (
        ("request_total", "fair", 2, {"rejected": "false", **validating}),
        ("request_total", "strict", 1, {"rejected": "false", **validating}),
        ("request_total", "strict", 1, {"rejected": "true", **validating}),
        ("rejection_count", "strict", 1, {"error_type": "no_error", "rejection_code": "400", **validating}),
        ("fail_open_count", "deaf", 2, {"type": "validating"}),
        ("admission_duration_seconds_count", "fair", 2, validating),
        ("rejection_count", "lost", 1, {"error_type": "calling_webhook_error", "rejection_code": "503", **validating}),
    ):
        assert value(samples, "apiserver_admission_webhook_" + metric, name=f"{name}.hooks.example.com", **labels) == count, (metric, name)


def test_matching(server, hooks):
    client, message = hooks.on("/pick", lambda _: {"allowed": False}), denied("pick", UNEXPLAINED)
    pick = lambda **more: register(server, "validating", webhook("pick", client, **more))
    condition = lambda name, expression: {"matchConditions": [{"name": name, "expression": expression}]}
    pick(sideEffects="NoneOnDryRun", **condition("not-mine", "!object.metadata.name.startsWith('mine')"))
    assert create(server, "mine")[0] == 201
    for query in ("", "?dryRun=All"):
        check_rejected(server, "yours", 400, message, query)
    assert [request["dryRun"] for request in hooks.requests("/pick")] == [False, True]
    pick(objectSelector={"matchLabels": {"watch": "yes"}})
    assert create(server, "unlabelled")[0] == 201
    assert server.request("PATCH", MAPS + "/unlabelled", {"metadata": {"labels": {"watch": "yes"}}})[0] == 400
    pick(namespaceSelector={"matchLabels": {"guarded": "yes"}})
    assert create(server, "unguarded")[0] == 201
    server.ok("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"guarded": "yes"}}})
    check_rejected(server, "guarded", 400, message)
    pick(**condition("odd", "object.data.x == 'y'"))
    cause = "expression 'object.data.x == 'y'' resulted in error: no such key: data"
    check_rejected(server, "odd", 403, f'configmaps "odd" is forbidden: {cause}')


def test_admission_requests(server, hooks):
    """The AdmissionReviews that webhooks receive: for TokenRequests but not for other reviews, with the name if it is known."""
    mine = [{"name": "mine", "expression": "request.userInfo.username == 'tester'"}]
    for kind, path in (("mutating", "/m"), ("validating", "/v")):
        client = hooks.on(path, lambda _: {"allowed": True})
        register(server, kind, webhook(kind, client, rules=[rule(resources=["*/*"], groups=["*"])], matchConditions=mine))

    def send(method, path, body=None, code=None):
        """Returns the response, and the requests that the webhooks have received."""
        before = len(hooks.received)
        status, response, _ = server.request(method, path, body)
        assert code is None or status == code, response
        return response, hooks.received[before:]

    def summaries(calls):
        plural = lambda request: "/".join(filter(None, [request["resource"]["resource"], request.get("subResource")]))
        return [(path, request["operation"], plural(request), request.get("namespace"), request.get("name")) for path, request in calls]

    both = lambda *summary: [("/m", *summary), ("/v", *summary)]
    created, calls = send("POST", MAPS, {"metadata": {"generateName": "created-"}})
    name = created["metadata"]["name"]
    assert summaries(calls) == [("/m", "CREATE", "configmaps", "default", None), ("/v", "CREATE", "configmaps", "default", name)], calls
    _, calls = send("POST", "/api/v1/namespaces", {"metadata": {"name": "called"}})
    assert summaries(calls) == both("CREATE", "namespaces", "called", "called"), calls
    access = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    assert not send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access)[1]
    account(server, "called")
    _, calls = send("POST", ACCOUNTS + "/called/token", {})
    assert summaries(calls) == both("CREATE", "serviceaccounts/token", "default", "called"), calls
    assert calls[1][1]["kind"] == {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}, calls
    assert [request["object"]["metadata"].get("uid") is None for _, request in calls] == [True, False], calls
    _, calls = send("POST", ACCOUNTS.replace("default", "absent") + "/called/token", {}, 404)
    assert not calls, "a missing namespace is reported before webhooks are called"
    lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/new"
    response, calls = send("PUT", lease, {"metadata": {"name": "new", "uid": "u"}}, 409)
    assert "Key: /registry/leases/default/new, ResourceVersion: 0" in response["message"] and not calls, response
    _, calls = send("PUT", f"{MAPS}/{name}", {"metadata": {"name": name, "uid": "another"}, "data": {"a": "b"}}, 409)
    assert not calls, "the conflict is reported before webhooks are called"
    _, calls = send("PATCH", f"{MAPS}/{name}", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}] * 2}})
    assert [len(request["object"]["metadata"]["ownerReferences"]) for _, request in calls] == [2, 1], calls
    uid = server.ok("GET", "/api/v1/namespaces/called")["metadata"]["uid"]
    for request, option, sent in (
        (("DELETE", f"{MAPS}/{name}?dryRun=All", {"gracePeriodSeconds": -5}), "gracePeriodSeconds", 1),
        (("POST", MAPS + "?fieldValidation=Warn", {"metadata": {"name": "warned"}}), "fieldValidation", "Warn"),
        (("DELETE", "/api/v1/namespaces/called"), "preconditions", {"uid": uid}),
    ):
        assert [call["options"][option] for _, call in send(*request)[1]] == [sent] * 2, option


def test_admission_requests_of_scales(server, hooks):
    """Mutating webhooks receive the Scale of the request, validating webhooks the resulting Scale."""
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    crews, preserved = "/apis/harbor.example.com/v1/namespaces/default/crews", {"x-kubernetes-preserve-unknown-fields": True}
    server.ok("POST", DEFINITIONS, definition("crews", "harbor.example.com", preserved, subresources={"scale": scale}))
    server.ok("POST", crews, {"apiVersion": "harbor.example.com/v1", "kind": "Crew", "metadata": {"name": "c"}, "spec": {"replicas": 1}})
    rules = [rule(resources=["crews/scale"], groups=["harbor.example.com"])]
    for kind, path in (("mutating", "/m"), ("validating", "/v")):
        register(server, kind, webhook(kind, hooks.on(path, lambda _: {"allowed": True}), rules=rules))
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
    status, response, _ = server.request("PATCH", crews + "/c/scale?fieldManager=f", wanted, headers=APPLY)
    assert status == 500 and response["message"].startswith("failed to create manager for existing fields"), response


def test_converting(server, hooks):
    server.ok("POST", DEFINITIONS, boats(hooks.on("/convert", convert_boats)))
    watch = Watch(server, V2 + "?watch=1&resourceVersion=0")
    created = server.ok("POST", V1, boat("v1", "gig", sails=1))
    assert created["spec"] == {"sails": 1} and "annotations" not in created["metadata"]
    converted = server.ok("GET", V2 + "/gig")
    assert converted["spec"] == {"rig": {"sails": 1}} and converted["metadata"]["annotations"] == {"converted": "yes"}, converted
    assert converted["metadata"]["generation"] == 1 and converted["metadata"]["uid"] == created["metadata"]["uid"]
    created = server.ok("POST", V2, boat("v2", "yawl", rig={"sails": 2}))
    assert created["spec"] == {"rig": {"sails": 2}}, created
    assert server.ok("GET", V1 + "/yawl")["spec"] == {"sails": 2}
    eventually(lambda: sum('"rig":{"sails"' in line for line in watch.lines) == 2)
    changed = server.ok("PATCH", V2 + "/yawl", {"spec": {"rig": {"sails": 3}}})
    assert (changed["spec"], changed["metadata"]["generation"]) == ({"rig": {"sails": 3}}, 2), changed
    server.ok("PATCH", V2 + "/yawl?fieldManager=a&force=true", boat("v2", "yawl", rig={"sails": 4}), headers=APPLY)
    assert server.ok("GET", V1 + "/yawl")["spec"] == {"sails": 4}
    server.ok("PATCH", V1 + "/yawl?fieldManager=b&force=true", boat("v1", "yawl", sails=5), headers=APPLY)
    assert server.ok("GET", V2 + "/yawl")["spec"] == {"rig": {"sails": 5}}
    server.ok("DELETE", V2 + "/yawl")
    assert len(server.ok("GET", V2)["items"]) == 1


def test_converting_many(server, hooks):
    """Lists and collections are converted in calls of some hundred objects, those that are stored in the version not at all."""
    client, path = hooks.on("/convert", convert_boats), DEFINITIONS + "/boats.harbor.example.com"
    server.ok("POST", DEFINITIONS, boats(client))
    for i in range(600):
        server.ok("POST", V1, boat("v1", f"dinghy-{i:03}", sails=i))
    assert not hooks.requests("/convert"), "the storage version is not converted"
    sails = lambda items: [item["spec"]["rig"]["sails"] for item in items]
    assert sails(server.ok("GET", V2 + "?limit=10")["items"]) == list(range(10))
    assert sails(server.ok("GET", V2)["items"]) == list(range(600))
    sizes = [len(request["objects"]) for request in hooks.requests("/convert")]
    assert sizes[0] == 10 and sum(sizes) == 600 and max(sizes) <= 512, sizes
    assert sails(server.ok("DELETE", V2 + "?fieldSelector=metadata.name!%3Ddinghy-000")["items"]) == list(range(1, 600))
    # migration: store v2, rewrite the object that is left, remove v1
    versions = boats(client, storage="v2")["spec"]["versions"]
    server.ok("PATCH", path, {"spec": {"versions": versions}})
    (left,) = server.ok("GET", V2)["items"]
    server.ok("PUT", V2 + "/dinghy-000", left)
    server.ok("PATCH", path + "/status", {"status": {"storedVersions": ["v2"]}})
    calls = len(hooks.requests("/convert"))
    server.ok("GET", V2)
    assert len(hooks.requests("/convert")) == calls, "objects stored in v2 are not converted to v2"
    server.ok("PATCH", path, {"spec": {"versions": [version for version in versions if version["name"] == "v2"]}})
    assert sails(server.ok("GET", V2)["items"]) == [0]


def conversion_error(status):
    """The message of a Status without its prefix about a stored object that cannot be decoded."""
    message, separator, error = status["message"].partition("object not decodable revision=")
    return error.partition(": ")[2] if separator else message


def test_invalid_conversions(server, hooks):
    """Other invalid objects are in a table of resource/conversion.rs."""
    prefix = "conversion webhook for harbor.example.com/v1, Kind=Boat"
    v1 = "invalid groupVersion (expected harbor.example.com/v2, received harbor.example.com/v1)"
    cases = [
        (lambda r: r.update(uid="x"), ""),
        (lambda r: r["convertedObjects"].pop(), " returned 0 objects, expected 1"),
        (lambda r: r.update(result={"status": "Failure", "message": "sunk"}), " failed: sunk"),
        (lambda r: r["convertedObjects"][0]["metadata"].update(labels={"a b": "c"}), ""),
        # it converts correctly to the storage version: the object is written, but cannot be returned
        (lambda r: r["convertedObjects"][0].update(apiVersion="harbor.example.com/v1"), f" returned invalid object at index 0: {v1}"),
    ]
    server.ok("POST", DEFINITIONS, boats(hooks.on("/bad", convert_boats)))
    server.ok("POST", V1, boat("v1", "gig", sails=1))
    for alter, want in cases:
        hooks.on("/bad", lambda request, alter=alter: (response := convert_boats(request), alter(response))[0])
        for path in (V2 + "/gig", V2):
            status, found, _ = server.request("GET", path)
            error = conversion_error(found)
            assert status == 500 and error.startswith(prefix) and (not want or error == prefix + want), found
        status, found, _ = server.request("POST", V2, boat("v2", "new", rig={"sails": 1}))
        assert status == 500, found
        assert server.ok("GET", V1 + "/gig")["spec"] == {"sails": 1}, "the storage version is still served"
        assert (server.request("GET", V1 + "/new")[0] == 200) == (alter is cases[-1][0])
    watch = Watch(server, V2 + "?watch=1&resourceVersion=0")
    assert watch.ended.wait(10) and '"type":"ERROR"' in watch.lines[0], watch.lines
    hooks.on("/bad", convert_boats)
    assert server.ok("GET", V2 + "/gig")["spec"] == {"rig": {"sails": 1}}


def test_conversions_without_a_response(server, hooks):
    """If a webhook does not respond, only the requests that need it time out."""
    release, path = threading.Event(), DEFINITIONS + "/boats.harbor.example.com"
    client = hooks.on("/late", convert_boats)
    server.ok("POST", DEFINITIONS, boats(client))
    server.ok("POST", V1, boat("v1", "gig", sails=1))
    hooks.on("/late", lambda request: (release.wait(60), convert_boats(request))[1])
    for late in (V2 + "/gig?timeout=300ms", V2 + "?timeout=300ms"):
        status, found, _ = server.request("GET", late)
        assert (status, found["reason"]) == (504, "Timeout"), found
        assert server.ok("GET", V1 + "/gig")["spec"] == {"sails": 1}, "the storage version is still served"
        assert server.ok("PATCH", V1 + "/gig", {"spec": {"sails": 1}})["spec"] == {"sails": 1}
        server.ok("GET", MAPS)
    release.set()
    assert server.ok("GET", V2 + "/gig")["spec"] == {"rig": {"sails": 1}}
    use = lambda client: server.ok("PATCH", path, {"spec": {"conversion": boats(client)["spec"]["conversion"]}})
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # it does not listen
        dead = f"https://127.0.0.1:{bound.getsockname()[1]}/dead"
        use({**client, "url": dead})
        for method, body in (("GET", None), ("POST", boat("v2", "new", rig={"sails": 1}))):
            status, found, _ = server.request(method, V2, body)
            cause = f'Kind=Boat failed: Post "{dead}?timeout=30s": dial tcp {dead[8:-5]}: connect: connection refused'
            assert status == 500 and conversion_error(found).endswith(cause), found
        assert [item["metadata"]["name"] for item in server.ok("GET", V1)["items"]] == ["gig"]
    use(client)
    assert server.ok("GET", V2 + "/gig")["spec"] == {"rig": {"sails": 1}}


def test_services(launch, hooks):
    """A Service is found by --service-address; a server whose certificate is not trusted gets no request."""
    hooks.on("/service", lambda _: {"allowed": False})
    hooks.on("/convert", convert_boats)
    client = lambda path, **more: {"service": {"namespace": "default", "name": "kubernetes", "path": path, **more}, "caBundle": hooks.bundle}
    with launch(f"--service-address=default/kubernetes=127.0.0.1:{hooks.port}") as other:
        register(other, "validating", webhook("service", client("/service")))
        check_rejected(other, "x", 400, denied("service", UNEXPLAINED))
        other.ok("POST", DEFINITIONS, boats(client("/convert")))
        other.ok("POST", V1, boat("v1", "gig", sails=1))
        assert other.ok("GET", V2 + "/gig")["spec"] == {"rig": {"sails": 1}}
        calls = len(hooks.requests("/convert"))
        # the certificate authority of the other server has not signed the certificate of the webhook
        wrong_bundle = base64.b64encode((other.dir / "ca.crt").read_bytes()).decode()
        for wrong, error in (
            (client("/convert", name="nobody"), "nobody"),
            ({**client("/convert"), "caBundle": wrong_bundle}, "x509: certificate signed by unknown authority"),
        ):
            other.ok("PATCH", DEFINITIONS + "/boats.harbor.example.com", {"spec": {"conversion": boats(wrong)["spec"]["conversion"]}})
            other.ok("PATCH", V1 + "/gig", {"metadata": {"labels": {"for": str(len(error))}}})
            status, found, _ = other.request("GET", V2 + "/gig")
            assert status == 500 and error in found["message"], found
            assert other.ok("GET", V1 + "/gig")["spec"] == {"sails": 1}, "the storage version is still served"
        assert len(hooks.requests("/convert")) == calls
