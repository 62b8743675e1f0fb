"""MutatingAdmissionPolicies with webhooks, and recorded ones."""

import pytest

import transcripts
from hooks import Hooks, patch

pytestmark = pytest.mark.mutations

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
GATE = "--feature-gates=MutatingAdmissionPolicy=true"
RULES = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps", "boats"]}]


def apply(expression):
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def policy(server, name, *mutations, **spec):
    body = {
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": RULES}, "mutations": list(mutations), "reinvocationPolicy": "Never", **spec},
    }
    server.ok("POST", ADMISSION + "/mutatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": {"policyName": name}})
    return server.request("POST", ADMISSION + "/mutatingadmissionpolicies", body)


def test_feature_gate_of_policies(launch):
    """In 1.35, `v1beta1` is served by --runtime-config, and policies have an effect if the feature gate is on."""
    beta = ADMISSION.replace("/v1", "/v1beta1")
    former = ("--emulated-version", "1.35")
    with launch(*former, GATE) as server:
        for version in (ADMISSION, beta):
            assert server.request("GET", version + "/mutatingadmissionpolicies")[0] == 404
    for flags, want in (((), None), ((GATE,), "yes")):
        with launch(*former, "--runtime-config=admissionregistration.k8s.io/v1beta1=true", *flags) as server:
            assert server.request("GET", ADMISSION + "/mutatingadmissionpolicies")[0] == 404
            mutation = apply("Object{metadata: Object.metadata{labels: {'seen': 'yes'}}}")
            spec = {"matchConstraints": {"resourceRules": RULES}, "mutations": [mutation], "reinvocationPolicy": "Never"}
            server.ok("POST", beta + "/mutatingadmissionpolicies", {"metadata": {"name": "a"}, "spec": spec})
            binding = {"metadata": {"name": "a"}, "spec": {"policyName": "a"}}
            server.ok("POST", beta + "/mutatingadmissionpolicybindings", binding)
            created = server.ok("POST", MAPS, {"metadata": {"name": "a"}})
            assert created["metadata"].get("labels", {}).get("seen") == want, created


def test_webhooks_reinvoke_policies(launch):
    with launch(GATE) as server, Hooks(server) as hooks:
        config = hooks.on(
            "/add", lambda request: patch({"op": "add", "path": "/data", "value": {"hook": "here"}}) if not request["object"].get("data") else {"allowed": True}
        )
        server.ok(
            "POST",
            ADMISSION + "/mutatingwebhookconfigurations",
            {
                "metadata": {"name": "h"},
                "webhooks": [{"name": "h.acme.io", "clientConfig": config, "rules": RULES, "sideEffects": "None", "admissionReviewVersions": ["v1"]}],
            },
        )
        count = "string(has(object.data) ? size(object.data) : 0)"
        for name, reinvocation in (("once", "Never"), ("again", "IfNeeded")):
            mutation = apply(f"Object{{metadata: Object.metadata{{labels: {{'{name}': {count}}}}}}}")
            assert policy(server, name, mutation, reinvocationPolicy=reinvocation)[0] == 201
        created = server.ok("POST", MAPS, {"metadata": {"name": "m"}})
        assert created["metadata"]["labels"] == {"once": "0", "again": "1"}, created


def test_recorded_mutations(launch):
    """Valid and invalid mutations, compared with responses recorded from kube-apiserver 1.37."""
    with launch() as server:
        for file in ("mutated-custom", "mutated-typed"):
            transcripts.check(server, transcripts.OWN / "switched" / f"{file}.json")
