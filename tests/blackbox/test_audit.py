"""Audit: policy, log and webhook."""

import json
import re
import signal
import time

import pytest

from audited import Audited, policy
from connections import reading
from hooks import Hooks, kubeconfig, patch
from objects import ACCOUNTS, MAPS, SECRETS, account, register, rule, webhook
from objects import policy as admission_policy
from pintle import TOKEN, eventually

pytestmark = pytest.mark.audit


def test_levels_and_stages(launch):
    rules = [
        {"level": "None", "nonResourceURLs": ["/readyz"]},
        {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}]},
        {"level": "RequestResponse", "resources": [{"group": "", "resources": ["configmaps"]}], "omitManagedFields": True},
        {"level": "Request", "omitStages": ["RequestReceived"]},
    ]
    with Audited(launch, *rules) as server:
        server.request("GET", "/readyz")
        server.ok("POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "hidden"}})
        server.ok("POST", MAPS + "?fieldManager=me", {"metadata": {"name": "m"}, "data": {"a": "b"}})
        server.ok("PATCH", MAPS + "/m", {"data": {"a": "c"}})
        server.request("GET", MAPS + "/absent", token="plain-token", headers={"X-Forwarded-For": "10.1.2.3"})
        server.request("GET", "/version", token="wrong")
        server.ok("DELETE", "/api/v1/namespaces/default/configmaps/m", {"propagationPolicy": "Background"})
        created = server.last(MAPS + "?")
        user = {"username": "tester", "uid": "1", "groups": ["system:masters", "system:authenticated"]}
        wanted = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "verb": "create", "user": user, "sourceIPs": ["127.0.0.1"]}
        assert created.items() >= wanted.items(), created
        assert created["objectRef"] == {"resource": "configmaps", "namespace": "default", "name": "m", "apiVersion": "v1"}, created
        assert created["responseStatus"] == {"metadata": {}, "code": 201}, created
        assert created["requestObject"] == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}, "data": {"a": "b"}}, created
        assert created["responseObject"]["metadata"]["name"] == "m" and "managedFields" not in created["responseObject"]["metadata"], created
        assert created["annotations"] == {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}, created
        stages = [event["stage"] for event in server.events(MAPS + "?")]
        assert stages == ["RequestReceived", "ResponseComplete"], stages
        patched, deleted = [event for event in server.events(MAPS + "/m") if event["stage"] == "ResponseComplete"]
        assert (patched["verb"], patched["requestObject"]) == ("patch", {"data": {"a": "c"}}), patched
        assert deleted["requestObject"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal", "propagationPolicy": "Background"}, deleted
        assert (deleted["responseStatus"]["status"], deleted["responseStatus"]["details"]["name"]) == ("Success", "m"), deleted
        assert server.last(SECRETS)["objectRef"]["name"] == "s", "the name in a body is recorded at the level Metadata"
        forbidden = server.last(MAPS + "/absent")
        assert forbidden["annotations"]["authorization.k8s.io/decision"] == "forbid", forbidden
        assert (forbidden["responseStatus"]["code"], forbidden["responseStatus"]["reason"]) == (403, "Forbidden"), forbidden
        assert forbidden["sourceIPs"] == ["10.1.2.3", "127.0.0.1"], forbidden
        unknown = server.last("/version", "ResponseStarted")
        assert unknown["responseStatus"]["message"] == "Authentication failed, attempted: bearer", unknown
        assert (unknown["responseStatus"]["code"], unknown["user"]) == (401, {}), unknown
        assert not [event for event in server.events("/version") if event["stage"] == "ResponseComplete"], "as in kube-apiserver"
        assert not server.events("/readyz")
        text = server.log.read_text()
        assert "hidden" not in text and TOKEN not in text, "the content of Secrets is not recorded"


def test_bodies_are_recorded(launch):
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    with Audited(launch, {"level": "RequestResponse", "omitManagedFields": True, "omitStages": ["RequestReceived"]}) as server:

        def event(method, path, body=None, **more):
            server.request(method, path, body, **more)
            return server.last(path)

        named = event("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}, "odd": 1})
        metadata = {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}}
        assert named["requestObject"] == {"kind": "Namespace", "apiVersion": "v1", "spec": {}, "status": {"phase": "Active"}, "metadata": metadata}, named
        wrong = event("POST", MAPS + "?wrong", {"metadata": {"name": "m"}, "data": 5})
        assert "requestObject" not in wrong and "name" not in wrong["objectRef"], wrong
        invalid = event("PATCH", MAPS + "/m?dryRun=x", {"data": {}})
        assert "requestObject" not in invalid and invalid["responseStatus"]["code"] == 422, invalid
        review = event("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert (review["requestObject"]["metadata"], review["requestObject"]["status"]) == ({}, {"userInfo": {}}), review
        account(server, "runner")
        token = event("POST", ACCOUNTS + "/runner/token", {})
        assert token["annotations"]["authentication.kubernetes.io/issued-credential-id"].startswith("JTI="), token
        server.ok("POST", MAPS, {"metadata": {"name": "m"}})
        listed = event("GET", MAPS + "?fieldSelector=metadata.name%3Dm", headers={"Accept": table})
        assert (listed["objectRef"]["name"], listed["responseObject"]["kind"]) == ("m", "Table"), listed
        row = listed["responseObject"]["rows"][0]["object"]["metadata"]
        assert row["name"] == "m" and "managedFields" not in row, row
        groups = event("GET", "/apis")
        assert groups["responseObject"]["kind"] == "APIGroupList" and "objectRef" not in groups, groups
        not_acceptable = event("GET", MAPS + "/absent", headers={"Accept": "text/csv"})
        assert not_acceptable["responseStatus"] == {"metadata": {}, "code": 406} and "responseObject" not in not_acceptable, not_acceptable
        assert event("OPTIONS", MAPS)["verb"] == ""


def test_long_requests_have_three_stages(launch):
    with Audited(launch) as server:
        server.request("GET", "/api/v1/namespaces/default/pods/none/log")
        server.last("/log")
        assert [event["stage"] for event in server.events("/log")] == ["RequestReceived", "ResponseStarted", "ResponseComplete"]
        with reading(server, MAPS + "?watch=1&timeoutSeconds=1") as response:
            assert [event["stage"] for event in server.events("watch=1")] == ["RequestReceived", "ResponseStarted"]
            response.read()
        server.last("watch=1")


def test_impersonated_users_are_recorded(launch):
    as_ann = {"Impersonate-User": "ann", "Impersonate-Group": "system:masters"}
    with Audited(launch, flags=["--feature-gates=ConstrainedImpersonation=true"]) as server:
        server.request("GET", MAPS, headers={"Impersonate-User": "system:node:n1"})
        event = server.last(MAPS)
        assert event["impersonatedUser"] == {"username": "system:node:n1", "groups": ["system:nodes", "system:authenticated"]}, event
        assert event["authenticationMetadata"] == {"impersonationConstraint": "impersonate:arbitrary-node"}, event
        assert "impersonatedUser" not in server.last(MAPS, "RequestReceived")
        server.ok("GET", SECRETS, headers=as_ann)
        event = server.last(SECRETS)
        assert event["user"]["username"] == "tester", event
        assert event["impersonatedUser"] == {"username": "ann", "groups": ["system:masters", "system:authenticated"]}, event
        assert "authenticationMetadata" not in event, "legacy impersonation has no constraint"


def test_policies_and_webhooks_add_annotations(launch):
    levels = [{"level": "Metadata", "verbs": ["create"]}, {"level": "Request"}]
    with Audited(launch, *levels) as server, Hooks(server) as hooks:
        sizes = [{"key": "size", "valueExpression": "string(size(object.data))"}, {"key": "nothing", "valueExpression": "null"}]
        validations = [{"expression": "true"}, {"expression": "size(object.data) < 2"}]
        admission_policy(server, "validating", "small", ["Audit"], rule("CREATE"), validations=validations, auditAnnotations=sizes)
        note = hooks.on("/note", lambda _: {"allowed": True, "auditAnnotations": {"seen": "yes"}})
        change = hooks.on("/change", lambda _: patch({"value": "1", "path": "/data/more", "op": "add"}))
        more = {"failurePolicy": "Ignore", "timeoutSeconds": 2}
        clients = {"note": note, "gone": {"url": "https://127.0.0.1:1/none"}, "more": change}
        register(server, "mutating", *(webhook(name, client, "CREATE", **more) for name, client in clients.items()), name="notes")
        server.ok("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "1", "b": "2"}})
        annotations = server.last(MAPS)["annotations"]
        assert annotations.pop("validation.policy.admission.k8s.io/validation_failure") == (
            '[{"message":"failed expression: size(object.data) \\u003c 2","policy":"small","binding":"small","expressionIndex":1,"validationActions":["Audit"]}]'
        ), annotations
        assert annotations["small/size"] == "3" and "small/nothing" not in annotations, annotations
        assert annotations["note.hooks.example.com/seen"] == "yes", annotations
        round_0 = "mutation.webhook.admission.k8s.io/round_0_index_"
        assert [annotations[f"{round_0}{i}"] for i in range(3)] == [
            f'{{"configuration":"notes","webhook":"{name}.hooks.example.com","mutated":{mutated}}}'
            for name, mutated in (("note", "false"), ("gone", "false"), ("more", "true"))
        ], annotations
        assert annotations[f"failed-open.{round_0}1"] == "gone.hooks.example.com", annotations
        patches = "patch.webhook.admission.k8s.io/round_0_index_"
        assert f"{patches}2" not in annotations, "patches are recorded at the levels that record bodies"
        register(server, "mutating", webhook("more", change, "UPDATE"), name="notes")
        server.ok("PATCH", MAPS + "/m", {"data": {"more": None}})
        assert server.last(MAPS + "/m")["annotations"][f"{patches}0"] == (
            '{"configuration":"notes","webhook":"more.hooks.example.com","patch":[{"op":"add","path":"/data/more","value":"1"}],"patchType":"JSONPatch"}'
        )
        register(server, "mutating", webhook("gone", clients["gone"], "UPDATE"), name="notes")
        assert server.request("PATCH", MAPS + "/m", {"data": {"more": None}})[0] == 500
        annotations = server.last(MAPS + "/m")["annotations"]
        assert json.loads(annotations[f"{round_0}0"])["mutated"] is False, annotations


def test_slow_requests_have_latency_annotations(launch):
    def late(_):
        time.sleep(0.6)  # latencies above 500 ms are recorded
        return {"allowed": True}

    with Audited(launch, {"level": "Metadata", "resources": [{"group": "", "resources": ["configmaps"]}]}) as server, Hooks(server) as hooks:
        register(server, "validating", webhook("late", hooks.on("/late", late), "CREATE"))
        server.ok("POST", MAPS, {"metadata": {"name": "m"}})
        annotations = server.last(MAPS)["annotations"]
        latency = {key.split("/")[1]: text for key, text in annotations.items() if key.startswith("apiserver.latency.k8s.io/")}
        assert {"validating-webhook", "total"} <= set(latency) and "mutating-webhook" not in latency, annotations
        assert all(re.fullmatch(r"[0-9.]+(s|ms|µs|ns)", text) for text in latency.values()), latency
        server.ok("GET", MAPS + "/m")
        quick = server.last(MAPS + "/m")["annotations"]
        assert not any(key.startswith("apiserver.latency") for key in quick), quick


def test_events_are_sent_in_batches(launch, hooks):
    lists = []
    hooks.receive = lists.append
    server = launch()
    webhook_flags = ("--audit-webhook-config-file", str(kubeconfig(hooks, "/events")), "--audit-webhook-batch-max-size=3", "--audit-webhook-batch-max-wait=1h")
    server.flags = (*policy(server, {"level": "Metadata"}, omitStages=["RequestReceived"]), *webhook_flags)
    with server:
        for _ in range(4):
            server.ok("GET", MAPS)
        first = eventually(lambda: lists)[0]
        assert (first["kind"], first["apiVersion"], len(first["items"])) == ("EventList", "audit.k8s.io/v1", 3), first
        assert server.stop() == 0
        assert len(lists[1]["items"]) == 1, "remaining events are sent before the server stops"


def test_log_files_are_rotated(launch):
    with Audited(launch, flags=["--audit-log-maxsize=1", "--audit-log-maxbackup=1", "--audit-log-mode=batch"]) as server:
        long = "x" * 6000
        for i in range(100):
            server.request("GET", f"{MAPS}/{i}?q={long}")
        rotated = eventually(lambda: list(server.dir.glob("audit-*.log")))
        assert len(rotated) == 1 and rotated[0].stat().st_size <= 1 << 20, rotated
        assert server.stop() == 0
        log = rotated[0].read_text() + server.log.read_text()
        stages = [json.loads(line)["stage"] for line in log.splitlines()]
        assert stages.count("ResponseComplete") == 100, len(stages)


def test_log_is_opened_again_on_a_hangup(launch):
    with Audited(launch, {"level": "Metadata", "boat": 1}) as server:
        assert 'falling back to lenient decoding: strict decoding error: unknown field "rules[0].boat"' in server.stderr()
        server.ok("GET", MAPS)
        server.log.rename(server.dir / "moved")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: server.request("GET", MAPS)[0] == 200 and server.log.exists())
        server.ok("POST", MAPS, {"metadata": {"name": "later"}})
        assert server.last(MAPS)["verb"] == "create"
