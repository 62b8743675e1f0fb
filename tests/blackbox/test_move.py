"""Moves between Pintle and kube-apiserver: each serves and changes the objects that the other has written to etcd. Only with
--slow, since kube-apiserver has to be built.
"""

import pytest

from etcd import Etcd
from pintle import eventually
from upstream import Upstream

pytestmark = pytest.mark.move

RULE = {"apiGroups": ["none"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nones"]}
HOOK = {"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [RULE]}
TIME = "2026-01-01T00:00:00"
RBAC = "rbac.authorization.k8s.io"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"n": {"type": "integer", "default": 3}, "t": {"type": "string"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


# kinds that both servers serve only if they are enabled
GATE, BETA = "--feature-gates=MutatingAdmissionPolicy=true,StorageVersionMigrator=true", "admissionregistration.k8s.io/v1beta1"
MIGRATIONS = "storagemigration.k8s.io/v1beta1"


def definition(group):
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": SCHEMA}}
    names = {"plural": "widgets", "kind": "Widget"}
    return {"spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}}


def objects(tag):
    """One object of each built-in kind, by collection path and name."""
    core, roles = "/api/v1/namespaces/default", f"/apis/{RBAC}/v1"
    admission, flow = "/apis/admissionregistration.k8s.io/v1", "/apis/flowcontrol.apiserver.k8s.io/v1"
    beta, group = f"/apis/{BETA}", f"{tag}.example.com"
    reference = {"apiGroup": RBAC, "name": tag}
    return [
        ("/api/v1/namespaces", tag, {"metadata": {"labels": {"a": "b"}}}),
        (f"{core}/configmaps", tag, {"data": {"a": "é"}, "binaryData": {"b": "AAEC"}}),
        (f"{core}/secrets", tag, {"stringData": {"a": "b"}}),
        (f"{core}/serviceaccounts", tag, {}),
        (f"{core}/resourcequotas", tag, {"spec": {"hard": {"count/configmaps": "100"}}}),
        (
            f"{core}/events",
            tag,
            {
                "involvedObject": {"kind": "ConfigMap", "name": "x", "namespace": "default"},
                "reason": "R",
                "message": "m",
                "type": "Normal",
                "firstTimestamp": TIME + "Z",
                "count": 1,
            },
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            tag,
            {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": TIME + ".123456Z"}},
        ),
        (f"{roles}/clusterroles", tag, {"rules": [{"nonResourceURLs": ["/z"], "verbs": ["get"]}]}),
        (f"{roles}/clusterrolebindings", tag, {"roleRef": {**reference, "kind": "ClusterRole"}, "subjects": [{"kind": "User", "name": "u", "apiGroup": RBAC}]}),
        (f"{roles}/namespaces/default/roles", tag, {"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]}),
        (
            f"{roles}/namespaces/default/rolebindings",
            tag,
            {"roleRef": {**reference, "kind": "Role"}, "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "default"}]},
        ),
        (f"{admission}/validatingwebhookconfigurations", tag, {"webhooks": [{**HOOK, "clientConfig": {"url": "https://x.example"}}]}),
        (
            f"{admission}/mutatingwebhookconfigurations",
            tag,
            {"webhooks": [{**HOOK, "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/p"}}}]},
        ),
        (
            f"{admission}/validatingadmissionpolicies",
            tag,
            {
                "spec": {
                    "matchConstraints": {"resourceRules": [RULE]},
                    "validations": [{"expression": "object.x > 1", "message": "m"}],
                    "variables": [{"name": "v", "expression": "1"}],
                }
            },
        ),
        (f"{admission}/validatingadmissionpolicybindings", tag, {"spec": {"policyName": tag, "validationActions": ["Deny"]}}),
        (
            f"{beta}/mutatingadmissionpolicies",
            tag,
            {
                "spec": {
                    "matchConstraints": {"resourceRules": [RULE]},
                    "reinvocationPolicy": "Never",
                    "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/a', value: 1}]"}}],
                }
            },
        ),
        (f"{beta}/mutatingadmissionpolicybindings", tag, {"spec": {"policyName": tag}}),
        (f"/apis/{MIGRATIONS}/storageversionmigrations", tag, {"spec": {"resource": {"group": "", "resource": "configmaps"}}}),
        (
            f"{flow}/prioritylevelconfigurations",
            tag,
            {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}},
        ),
        (
            f"{flow}/flowschemas",
            tag,
            {
                "spec": {
                    "priorityLevelConfiguration": {"name": tag},
                    "matchingPrecedence": 9000,
                    "rules": [{"subjects": [{"kind": "Group", "group": {"name": "g"}}], "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/q"]}]}],
                }
            },
        ),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", f"widgets.{group}", definition(group)),
    ]


def write(server, tag):
    """Writes an object of each kind, and a custom resource by create, patch of its status, and apply. Returns the objects by path."""
    paths = []
    for collection, name, content in objects(tag):
        server.ok("POST", collection, {**content, "metadata": {"name": name, **content.get("metadata", {})}})
        paths.append(f"{collection}/{name}")
    version = f"{tag}.example.com/v1"
    widgets = f"/apis/{version}/namespaces/default/widgets"
    widget = {"apiVersion": version, "kind": "Widget", "metadata": {"name": "w"}, "spec": {"t": "x"}}
    eventually(lambda: server.request("POST", widgets, widget)[0] == 201)
    server.ok("PATCH", f"{widgets}/w/status", {"status": {"a": [1, 2.5, None, {"b": "c"}]}})
    labelled = {"apiVersion": version, "kind": "Widget", "metadata": {"name": "w", "labels": {"l": "1"}}}
    server.ok("PATCH", f"{widgets}/w?fieldManager=m", labelled, headers={"Content-Type": "application/apply-patch+yaml"})
    paths.append(f"{widgets}/w")
    return eventually(lambda: all_settled(server, paths))


def all_settled(server, paths):
    """The objects, or False until the controller of priority and fairness has written its condition."""
    current = {path: server.ok("GET", path) for path in paths}
    schemas = [current[path] for path in paths if "flowschemas" in path]
    return all(schema.get("status", {}).get("conditions") for schema in schemas) and current


def check_served(server, objects):
    for path, want in objects.items():
        eventually(lambda: server.request("GET", path)[0] == 200)
        got = server.ok("GET", path)
        assert got == want, (path, got, want)


def change(server, objects):
    """Changes all objects, and returns them."""
    return {path: server.ok("PATCH", path, {"metadata": {"labels": {"moved": "1"}}}) for path in objects}


def pintle(launch, etcd):
    """A Pintle without the controllers that kube-apiserver lacks, so that written objects stay unchanged."""
    return launch("--etcd-servers", etcd.urls, "--controllers=clusterrole-aggregation-controller", GATE, f"--runtime-config={MIGRATIONS}=true", storage="etcd")


def upstream(etcd):
    return Upstream(etcd, GATE, f"--runtime-config={BETA}=true,{MIGRATIONS}=true")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_moves_both_ways(launch):
    with Etcd() as etcd:
        with pintle(launch, etcd) as server:
            ours = write(server, "ours")
        with upstream(etcd) as server:
            check_served(server, ours)
            theirs, ours = write(server, "theirs"), change(server, ours)
        with pintle(launch, etcd) as server:
            check_served(server, {**ours, **theirs})
            theirs = change(server, theirs)
        with upstream(etcd) as server:
            check_served(server, theirs)
