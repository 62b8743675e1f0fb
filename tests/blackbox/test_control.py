"""Hostile input for the control plane: hanging webhooks, costly policies, unusual owner references, namespaces that cannot be
deleted, slow clients. Their effects are bounded, and other requests are served."""

import base64
import concurrent.futures
import socket
import threading
from urllib.parse import urlparse

import pytest

from hooks import Hooks, patch
from pintle import TOKEN, eventually, insecure
from unfinished import UnfinishedRequest
from watch import Watch

pytestmark = pytest.mark.control

CORE = "/api/v1/namespaces"
MAPS = CORE + "/default/configmaps"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RULES = [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]


def register(server, kind, *hooks, **more):
    webhooks = [
        {"name": f"{name}.acme.io", "clientConfig": client, "rules": RULES, "sideEffects": "None", "admissionReviewVersions": ["v1"], **more}
        for name, client in hooks
    ]
    server.ok("POST", f"{ADMISSION}/{kind}webhookconfigurations", {"metadata": {"name": hooks[0][0]}, "webhooks": webhooks})


def test_hanging_webhooks_do_not_block_others(launch):
    with launch() as certificates, Hooks(certificates) as hooks, launch() as server:
        release = threading.Event()
        register(server, "validating", ("hangs", hooks.on("/hangs", lambda _: release.wait(60) and {"allowed": False})), timeoutSeconds=30)
        responses = []

        def write(i):
            responses.append(server.request("POST", MAPS, {"metadata": {"name": f"m{i}"}}, timeout=60))

        writers = [threading.Thread(target=write, args=(i,)) for i in range(20)]
        for writer in writers:
            writer.start()
        eventually(lambda: len(hooks.requests("/hangs")) == 20)
        # meanwhile other clients can write
        for i in range(20):
            server.ok("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": f"s{i}"}})
        assert responses == [], "the writers still wait for the webhook"
        release.set()
        for writer in writers:
            writer.join()
        assert [status for status, _, _ in responses] == [400] * 20, responses
        assert not [item for item in server.ok("GET", MAPS)["items"] if item["metadata"]["name"].startswith("m")]


def test_looping_webhooks_are_reinvoked_once(launch):
    with launch() as certificates, Hooks(certificates) as hooks, launch() as server:

        def revert(request):
            """Reverts the change of the other webhook."""
            value = "1" if request["object"].get("data", {}).get("turn") == "2" else "2"
            return patch({"op": "add", "path": "/data", "value": {"turn": value}})

        both = [(name, hooks.on("/" + name, revert)) for name in ("ping", "pong")]
        register(server, "mutating", *both, reinvocationPolicy="IfNeeded")
        created = server.ok("POST", MAPS, {"metadata": {"name": "m"}})
        paths = [path for path, _ in hooks.received]
        assert paths == ["/ping", "/pong", "/ping", "/pong"], paths
        assert created["data"]["turn"] == "1", created


def test_broken_patches_change_nothing(launch):
    """The responses are those of kube-apiserver 1.35.3."""
    failed_call, internal = 'Internal error occurred: failed calling webhook "patch.acme.io": ', "Internal error occurred: "

    def document(text):
        return {"patchType": "JSONPatch", "patch": base64.b64encode(text.encode()).decode()}

    go = "json: cannot unmarshal {} into Go value of type {}"
    cases = {
        "no-base64": ({"patchType": "JSONPatch", "patch": "%%%"}, 500, failed_call + "failed to call webhook: illegal base64 data at input byte 0"),
        "no-type": ({"patch": "W10="}, 500, failed_call + "received invalid webhook response: webhook returned response.patch but not response.patchType"),
        "no-list": (document("{}"), 500, failed_call + "received undecodable patch in webhook response: " + go.format("object", "jsonpatch.Patch")),
        "no-json": (
            document("hello"),
            500,
            failed_call + "received undecodable patch in webhook response: invalid character 'h' looking for beginning of value",
        ),
        "absent": (
            patch({"op": "remove", "path": "/data/x"}),
            500,
            internal + 'remove operation does not apply: doc is missing path: "/data/x": missing value',
        ),
        "unknown": (patch({"op": "frob", "path": "/data"}), 500, internal + "Unexpected kind: frob"),
        "tested": (patch({"op": "test", "path": "/kind", "value": "x"}), 500, internal + "testing value /kind failed: test failed"),
        "null": (patch({"op": "replace", "path": "", "value": None}), 500, internal + "replace operation value must be object or array: %!w(<nil>)"),
        "other-kind": (patch({"op": "replace", "path": "/kind", "value": "Secret"}), 500, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        "other-version": (
            patch({"op": "replace", "path": "/apiVersion", "value": "v2"}),
            500,
            internal + 'no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"',
        ),
        "elsewhere": (
            patch({"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        "other-type": (
            patch({"op": "add", "path": "/data", "value": "x"}),
            500,
            internal + "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string",
        ),
    }
    with launch() as certificates, Hooks(certificates) as hooks, launch() as server:
        client = hooks.on("/patch", lambda request: {"allowed": True, **cases[request["name"]][0]})
        register(server, "mutating", ("patch", client))
        for name, (_, code, message) in cases.items():
            status, response, _ = server.request("POST", MAPS, {"metadata": {"name": name}})
            assert (status, response["message"]) == (code, message), (name, status, response["message"])
        assert [item["metadata"]["name"] for item in server.ok("GET", "/api/v1/configmaps")["items"] if item["metadata"]["name"] in cases] == []


def test_invalid_webhook_responses(launch):
    """Malformed responses, handled as kube-apiserver 1.35.3 does."""
    shape = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'

    def typed(kind):
        return f"couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value of type {shape}"

    scheme = 'is registered for version "admission.k8s.io/{}" in scheme "pkg/runtime/scheme.go:111"'

    def review(kind, version):
        return ('{"kind":"%s","apiVersion":"admission.k8s.io/%s","response":{}}' % (kind, version)).encode()

    cases = {
        "text": (b"hello", typed("string")),
        "list": (b"[]", typed("array")),
        "kind": (review("Foo", "v1"), 'no kind "Foo" ' + scheme.format("v1")),
        "version": (review("AdmissionReview", "v2"), 'no kind "AdmissionReview" ' + scheme.format("v2")),
        "older": (review("AdmissionReview", "v1beta1"), "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"),
        "boolean": ({"allowed": "yes"}, "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool"),
    }
    with launch() as certificates, Hooks(certificates) as hooks, launch() as server:
        register(server, "validating", ("lies", hooks.on("/lies", lambda request: cases[request["name"]][0])))
        for name, (_, error) in cases.items():
            status, response, _ = server.request("POST", MAPS, {"metadata": {"name": name}})
            message = f'Internal error occurred: failed calling webhook "lies.acme.io": failed to call webhook: {error}'
            assert (status, response["message"]) == (500, message), response["message"]
            assert server.request("GET", f"{MAPS}/{name}")[0] == 404, name


def test_costly_policies_are_cut_short(launch):
    many = {"metadata": {"name": "m"}, "data": {f"k{i}": "v" for i in range(400)}}
    with launch() as server:
        expression = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != '')))"
        server.ok(
            "POST",
            ADMISSION + "/validatingadmissionpolicies",
            {"metadata": {"name": "costly"}, "spec": {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": expression}]}},
        )
        server.ok(
            "POST",
            ADMISSION + "/validatingadmissionpolicybindings",
            {"metadata": {"name": "costly"}, "spec": {"policyName": "costly", "validationActions": ["Deny"]}},
        )
        status, response, _ = server.request("POST", MAPS, many)
        message = (
            f"configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'costly' with binding 'costly' denied request: expression "
            f"'{expression}' resulted in error: operation cancelled: actual cost limit exceeded"
        )
        assert (status, response["message"]) == (422, message), response
        server.ok("POST", MAPS, {"metadata": {"name": "small"}, "data": {"k": "v"}})
        server.ok("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "other"}})


def owner(of, **more):
    metadata = of["metadata"]
    return {"apiVersion": of["apiVersion"], "kind": of["kind"], "name": metadata["name"], "uid": metadata["uid"], **more}


def create(server, namespace, name, *owners):
    metadata = {"name": name, "ownerReferences": list(owners)}
    return server.ok("POST", f"{CORE}/{namespace}/configmaps", {"metadata": metadata})


def exists(server, namespace, name):
    return server.request("GET", f"{CORE}/{namespace}/configmaps/{name}")[0] == 200


def test_unusual_owner_references(launch):
    with launch() as server:

        def owned_by(name, *owners):
            server.ok("PATCH", f"{MAPS}/{name}", {"metadata": {"ownerReferences": list(owners)}})

        # an object that owns itself exists until it is deleted, by any policy
        for policy in ("Background", "Foreground", "Orphan"):
            own = create(server, "default", "own")
            owned_by("own", owner(own, blockOwnerDeletion=True))
            assert exists(server, "default", "own")
            server.ok("DELETE", MAPS + "/own", {"propagationPolicy": policy})
            eventually(lambda: not exists(server, "default", "own"))
        # a cycle does not block a deletion, and is deleted as a whole
        for policy in ("Background", "Foreground"):
            a = create(server, "default", "a")
            b = create(server, "default", "b", owner(a, blockOwnerDeletion=True))
            c = create(server, "default", "c", owner(b, blockOwnerDeletion=True))
            owned_by("a", owner(c, blockOwnerDeletion=True))
            server.ok("DELETE", MAPS + "/a", {"propagationPolicy": policy})
            eventually(lambda: not any(exists(server, "default", name) for name in "abc"))
        # an owner in another namespace counts as absent: dependents without other owners are deleted, the owner is not
        server.ok("POST", CORE, {"metadata": {"name": "far"}})
        far = create(server, "far", "owner")
        create(server, "default", "lost", owner(far))
        create(server, "default", "kept", owner(far), owner(create(server, "default", "near")))
        eventually(lambda: not exists(server, "default", "lost"), seconds=40)
        eventually(lambda: len(server.ok("GET", MAPS + "/kept")["metadata"]["ownerReferences"]) == 1, seconds=40)
        assert exists(server, "far", "owner") and exists(server, "default", "kept")
        # a cluster-scoped object cannot have a namespaced owner: it is not deleted, and an Event is recorded
        role = {"metadata": {"name": "wide", "ownerReferences": [owner(far)]}, "rules": []}
        server.ok("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
        create(server, "default", "last", owner(far))
        eventually(lambda: not exists(server, "default", "last"), seconds=40)
        assert server.request("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/wide")[0] == 200


def test_namespace_that_cannot_terminate(launch):
    with launch() as server:
        server.ok("POST", CORE, {"metadata": {"name": "stuck"}})
        stuck = CORE + "/stuck"
        server.ok("POST", stuck + "/configmaps", {"metadata": {"name": "held", "finalizers": ["acme.io/never"]}})
        server.ok("POST", stuck + "/configmaps", {"metadata": {"name": "free"}})
        server.ok("DELETE", stuck)

        def conditions():
            return {
                condition["type"]: (condition["status"], condition["reason"], condition["message"])
                for condition in server.ok("GET", stuck)["status"].get("conditions", [])
            }

        eventually(lambda: conditions().get("NamespaceFinalizersRemaining", ("",))[0] == "True")
        assert conditions() == {
            "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
            "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
            "NamespaceDeletionContentFailure": ("False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
            "NamespaceContentRemaining": ("True", "SomeResourcesRemain", "Some resources are remaining: configmaps. has 1 resource instances"),
            "NamespaceFinalizersRemaining": (
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: acme.io/never in 1 resource instances",
            ),
        }, conditions()
        status, response, _ = server.request("POST", stuck + "/configmaps", {"metadata": {"name": "late"}})
        assert status == 403 and "because it is being terminated" in response["message"], response
        # other namespaces can be created and deleted
        server.ok("POST", CORE, {"metadata": {"name": "brief"}})
        server.ok("POST", CORE + "/brief/configmaps", {"metadata": {"name": "m"}})
        server.ok("DELETE", CORE + "/brief")
        eventually(lambda: server.request("GET", CORE + "/brief")[0] == 404)
        assert server.ok("GET", stuck)["status"]["phase"] == "Terminating"
        server.ok("PATCH", stuck + "/configmaps/held", {"metadata": {"finalizers": None}})
        eventually(lambda: server.request("GET", stuck)[0] == 404, seconds=60)


def test_conditions_of_a_terminating_namespace(launch):
    """A namespace with finalizers in its own metadata has the conditions of a namespace without content, whose field manager is
    that of upstream's controllers. Changes of the ConfigMap kube-root-ca.crt are reverted, with its description."""
    with launch("--controllers=*,root-ca-cert-publisher") as server:
        path, description = CORE + "/held", "kubernetes.io/description"
        server.ok("POST", CORE, {"metadata": {"name": "held", "finalizers": ["acme.io/hold"]}})
        authority = server.wait_for(path + "/configmaps/kube-root-ca.crt")
        server.request(
            "PATCH",
            path + "/configmaps/kube-root-ca.crt",
            {"data": {"more": "x"}, "metadata": {"annotations": {description: "x", "a": "b"}}},
            headers={"Content-Type": "application/merge-patch+json"},
        )
        restored = eventually(lambda: [found for found in [server.ok("GET", path + "/configmaps/kube-root-ca.crt")] if found["data"] == authority["data"]])[0][
            "metadata"
        ]
        assert restored["annotations"] == {**authority["metadata"]["annotations"], "a": "b"}, restored
        assert "kube-controller-manager" in [m["manager"] for m in restored["managedFields"]], restored
        server.ok("DELETE", path)
        namespace = eventually(lambda: [found for found in [server.ok("GET", path)] if found["spec"] == {}])[0]
        conditions = {c["type"]: (c["status"], c["reason"], c["message"]) for c in namespace["status"]["conditions"]}
        assert conditions == {
            "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
            "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
            "NamespaceDeletionContentFailure": ("False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
            "NamespaceContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
            "NamespaceFinalizersRemaining": ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
        }, conditions
        managers = [(m["manager"], m.get("subresource")) for m in namespace["metadata"]["managedFields"]]
        assert sorted(managers, key=str) == [("Python-urllib", None), ("kube-controller-manager", "status")], managers


def test_slow_clients_do_not_slow_others(launch):
    """Silent connections, unfinished requests, and watches and lists that clients do not read: other clients are served, and the
    memory for such a client is bounded by the buffers of its connection."""
    with launch() as server:
        url, text = urlparse(server.url), "x" * 50_000
        address = (url.hostname, url.port)
        server.ok("POST", MAPS, {"metadata": {"name": "big"}, "data": {"text": text}})

        def send_get(path):
            plain = socket.socket()
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plain.connect(address)
            secure = insecure().wrap_socket(plain)
            secure.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            return secure

        silent = [socket.create_connection(address) for _ in range(50)]
        halves = [insecure().wrap_socket(socket.create_connection(address)) for _ in range(10)]
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
    pods, budgets = "/api/v1/namespaces/default/pods", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    names = [f"p{i}" for i in range(24)]
    with launch(storage="embedded") as server:
        for name in names:
            server.ok("POST", pods, {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
            server.ok("PATCH", f"{pods}/{name}/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
        server.ok("POST", budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 20, "selector": {"matchLabels": {"a": "b"}}}})
        server.ok("PATCH", f"{budgets}/b/status", {"status": {"observedGeneration": 1, "disruptionsAllowed": 4, "currentHealthy": 24, "desiredHealthy": 20}})

        def evict(name):
            return server.request("POST", f"{pods}/{name}/eviction", {"metadata": {"name": name}})[0]

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            statuses = dict(zip(names, pool.map(evict, names)))
        assert sorted(statuses.values()) == [201] * 4 + [429] * 20
        status = server.ok("GET", f"{budgets}/b")["status"]
        assert status["disruptionsAllowed"] == 0
        assert sorted(status["disruptedPods"]) == sorted(name for name in names if statuses[name] == 201)
        assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [("DisruptionAllowed", "False", "InsufficientPods")]
        # a Pod whose eviction is rejected is unchanged
        refused = next(name for name in names if statuses[name] == 429)
        pod = server.ok("GET", f"{pods}/{refused}")
        assert "deletionTimestamp" not in pod["metadata"]
        assert [condition["type"] for condition in pod["status"]["conditions"]] == ["Ready"]


def test_preconditions_of_an_eviction_apply_to_the_pod_before_it(launch):
    """The condition that an eviction writes changes the resourceVersion, which the deletion then requires."""
    pods = "/api/v1/namespaces/default/pods"
    with launch() as server:
        for finalizers in ([], ["acme.io/hold"]):
            meta = {"name": "p", "finalizers": finalizers}
            pod = server.ok("POST", pods, {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}})["metadata"]
            for field, wrong, what in (("resourceVersion", "1", "ResourceVersion"), ("uid", "other", "UID")):
                options = {"preconditions": {field: wrong}}
                status, refused, _ = server.request("POST", f"{pods}/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": options})
                assert status == 409 and refused["message"].startswith(
                    f'Operation cannot be fulfilled on Pod "p": the {what} in the precondition ({wrong}) does not match'
                ), refused
            assert server.ok("GET", f"{pods}/p")["metadata"]["resourceVersion"] == pod["resourceVersion"], "the Pod is unchanged"
            options = {"preconditions": {field: pod[field] for field in ("resourceVersion", "uid")}}
            server.ok("POST", f"{pods}/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": options})
            status, left, _ = server.request("GET", f"{pods}/p")
            if finalizers:
                assert status == 200 and left["metadata"]["deletionTimestamp"], left
                assert [condition["type"] for condition in left["status"]["conditions"]] == ["DisruptionTarget"]
            else:
                assert status == 404, left
