"""Priority and fairness: objects, headers, and which requests wait."""

import threading

import pytest

from connections import UnfinishedRequest
from metrics import metrics_of, value
from objects import MAPS, account, grant, token_of
from pintle import TOKEN, eventually

pytestmark = pytest.mark.flow

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


def conditions(schema):
    return [(c["type"], c["status"]) for c in schema.get("status", {}).get("conditions", [])]


def test_default_objects_are_maintained(server):
    levels = {level["metadata"]["name"]: level["spec"] for level in server.ok("GET", FLOW + "/prioritylevelconfigurations")["items"]}
    assert set(levels) == {"exempt", "catch-all", "system", "node-high", "leader-election", "workload-high", "workload-low", "global-default"}
    queues = {"type": "Queue", "queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 50}}
    assert levels["workload-low"]["limited"] == {"nominalConcurrencyShares": 100, "lendablePercent": 90, "limitResponse": queues}
    schemas = lambda: server.ok("GET", FLOW + "/flowschemas")["items"]
    assert [s["metadata"]["annotations"]["apf.kubernetes.io/autoupdate-spec"] for s in schemas()] == ["true"] * 11
    eventually(lambda: all(conditions(s) == [("Dangling", "False")] for s in schemas()))
    server.ok("DELETE", FLOW + "/prioritylevelconfigurations/system")
    eventually(lambda: conditions(server.ok("GET", FLOW + "/flowschemas/system-nodes")) == [("Dangling", "True")])
    uid = server.ok("GET", FLOW + "/flowschemas/exempt")["metadata"]["uid"]
    server.ok("DELETE", FLOW + "/flowschemas/exempt")
    eventually(lambda: server.request("GET", FLOW + "/flowschemas/exempt")[1].get("metadata", {}).get("uid", uid) != uid)
    status, response, _ = server.request("PATCH", FLOW + "/flowschemas/catch-all", {"spec": {"matchingPrecedence": 9}})
    assert status == 422 and "spec of 'catch-all' must equal the fixed value" in response["message"], response


def test_responses_name_schema_and_level(launch):
    of_schema, of_level = "x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"
    with launch() as server:
        uid = lambda kind, name: server.ok("GET", f"{FLOW}/{kind}/{name}")["metadata"]["uid"]
        for token, name in ((TOKEN, "exempt"), ("plain-token", "global-default")):
            headers = server.request("GET", MAPS, token=token)[2]
            assert headers[of_schema] == uid("flowschemas", name), headers
            assert headers[of_level] == uid("prioritylevelconfigurations", name), headers
        assert of_schema not in server.request("GET", MAPS, token="wrong")[2]
    with launch("--enable-priority-and-fairness=false") as server:
        assert server.ok("GET", FLOW + "/flowschemas")["items"] == []
        assert of_schema not in server.request("GET", MAPS)[2]


def test_a_noisy_client_does_not_delay_others(launch):
    with launch("--max-requests-inflight=6", "--max-mutating-requests-inflight=6") as server:
        for name in ("noisy", "quiet"):
            account(server, name)
        noisy_token, quiet_token = (token_of(server, name) for name in ("noisy", "quiet"))
        grant(server, "all", subject=("Group", "system:authenticated"), role="cluster-admin")
        queues = {"type": "Queue", "queuing": {"queues": 64, "handSize": 1, "queueLengthLimit": 3}}
        limited = {"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0, "limitResponse": queues}
        server.ok("POST", FLOW + "/prioritylevelconfigurations", {"metadata": {"name": "narrow"}, "spec": {"type": "Limited", "limited": limited}})
        accounts = [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "default", "name": "*"}}]
        maps = [{"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"]}]
        spec = {"matchingPrecedence": 10, "priorityLevelConfiguration": {"name": "narrow"}, "distinguisherMethod": {"type": "ByUser"}}
        spec["rules"] = [{"subjects": accounts, "resourceRules": maps}]
        server.ok("POST", FLOW + "/flowschemas", {"metadata": {"name": "narrow"}, "spec": spec})
        # there is one seat: an unfinished request occupies it, three more wait, and the next one is rejected
        halves = [UnfinishedRequest(server, noisy_token) for _ in range(4)]
        waiting = "apiserver_flowcontrol_current_inqueue_requests"
        eventually(lambda: value(metrics_of(server)[0], waiting, priority_level="narrow") == 3)
        fifth = UnfinishedRequest(server, noisy_token)
        status, response, headers = fifth.read_response()
        assert (status, headers["retry-after"]) == (429, "1") and "Too many requests" in response, (status, response)
        statuses = []
        quiet = threading.Thread(target=lambda: statuses.append(server.request("GET", MAPS, token=quiet_token)[0]))
        quiet.start()
        eventually(lambda: value(metrics_of(server)[0], waiting, priority_level="narrow") == 4)
        server.ok("GET", MAPS)
        # queues take turns: the request of the quiet client is the second one that is executed
        for half in halves[:2]:
            half.close()
        quiet.join(timeout=20)
        assert statuses == [200], statuses
        for half in halves[2:]:
            half.close()
        eventually(lambda: server.request("GET", MAPS, token=noisy_token)[0] == 200)
