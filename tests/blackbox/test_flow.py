"""Priority and fairness: objects, headers, and which requests wait."""

import threading

import pytest

from metrics import metrics_of, value
from pintle import TOKEN, eventually
from unfinished import MAPS, UnfinishedRequest

pytestmark = pytest.mark.flow

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


def conditions(schema):
    return [(c["type"], c["status"]) for c in schema.get("status", {}).get("conditions", [])]


def test_default_objects_are_maintained(launch):
    with launch() as server:
        levels = {level["metadata"]["name"]: level for level in server.ok("GET", FLOW + "/prioritylevelconfigurations")["items"]}
        assert set(levels) == {"exempt", "catch-all", "system", "node-high", "leader-election", "workload-high", "workload-low", "global-default"}, (
            levels.keys()
        )
        assert levels["workload-low"]["spec"]["limited"] == {
            "nominalConcurrencyShares": 100,
            "lendablePercent": 90,
            "limitResponse": {"type": "Queue", "queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 50}},
        }
        schemas = server.ok("GET", FLOW + "/flowschemas")["items"]
        assert len(schemas) == 11 and {s["metadata"]["annotations"]["apf.kubernetes.io/autoupdate-spec"] for s in schemas} == {"true"}
        eventually(lambda: all(conditions(s) == [("Dangling", "False")] for s in server.ok("GET", FLOW + "/flowschemas")["items"]))
        server.ok("DELETE", FLOW + "/prioritylevelconfigurations/system")
        eventually(lambda: conditions(server.ok("GET", FLOW + "/flowschemas/system-nodes")) == [("Dangling", "True")])
        uid = server.ok("GET", FLOW + "/flowschemas/exempt")["metadata"]["uid"]
        server.ok("DELETE", FLOW + "/flowschemas/exempt")
        eventually(lambda: server.request("GET", FLOW + "/flowschemas/exempt")[1].get("metadata", {}).get("uid", uid) != uid)
        status, response, _ = server.request("PATCH", FLOW + "/flowschemas/catch-all", {"spec": {"matchingPrecedence": 9}})
        assert status == 422 and "spec of 'catch-all' must equal the fixed value" in response["message"], response


def test_responses_name_schema_and_level(launch):
    with launch() as server:
        uids = {
            name: server.ok("GET", f"{FLOW}/{name}")["metadata"]["uid"]
            for name in ("flowschemas/exempt", "flowschemas/global-default", "prioritylevelconfigurations/exempt", "prioritylevelconfigurations/global-default")
        }
        for token, name in ((TOKEN, "exempt"), ("plain-token", "global-default")):
            headers = server.request("GET", MAPS, token=token)[2]
            assert headers["x-kubernetes-pf-flowschema-uid"] == uids["flowschemas/" + name], headers
            assert headers["x-kubernetes-pf-prioritylevel-uid"] == uids["prioritylevelconfigurations/" + name], headers
        assert "x-kubernetes-pf-flowschema-uid" not in server.request("GET", MAPS, token="wrong")[2]
    with launch("--enable-priority-and-fairness=false") as server:
        assert server.ok("GET", FLOW + "/flowschemas")["items"] == []
        assert "x-kubernetes-pf-flowschema-uid" not in server.request("GET", MAPS)[2]


def test_a_noisy_client_does_not_delay_others(launch):
    with launch("--max-requests-inflight=6", "--max-mutating-requests-inflight=6") as server:
        account = "/api/v1/namespaces/default/serviceaccounts"
        for name in ("noisy", "quiet"):
            server.ok("POST", account, {"metadata": {"name": name}})
        noisy_token, quiet_token = (server.ok("POST", f"{account}/{name}/token", {"spec": {}})["status"]["token"] for name in ("noisy", "quiet"))
        binding = {
            "metadata": {"name": "all"},
            "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "Group", "name": "system:authenticated"}],
        }
        server.ok("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        level = {
            "metadata": {"name": "narrow"},
            "spec": {
                "type": "Limited",
                "limited": {
                    "nominalConcurrencyShares": 1,
                    "borrowingLimitPercent": 0,
                    "limitResponse": {"type": "Queue", "queuing": {"queues": 64, "handSize": 1, "queueLengthLimit": 3}},
                },
            },
        }
        server.ok("POST", FLOW + "/prioritylevelconfigurations", level)
        schema = {
            "metadata": {"name": "narrow"},
            "spec": {
                "matchingPrecedence": 10,
                "priorityLevelConfiguration": {"name": "narrow"},
                "distinguisherMethod": {"type": "ByUser"},
                "rules": [
                    {
                        "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "default", "name": "*"}}],
                        "resourceRules": [{"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"]}],
                    }
                ],
            },
        }
        server.ok("POST", FLOW + "/flowschemas", schema)
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
