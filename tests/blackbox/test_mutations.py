"""MutatingAdmissionPolicies, and type checks of ValidatingAdmissionPolicies."""

import pytest

import transcripts
from hooks import Hooks, patch
from pintle import eventually

pytestmark = pytest.mark.mutations

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
GATE = "--feature-gates=MutatingAdmissionPolicy=true"
RULES = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps", "boats"]}]
BOATS = {
    "metadata": {"name": "boats.acme.io"},
    "spec": {
        "group": "acme.io",
        "scope": "Namespaced",
        "names": {"plural": "boats", "kind": "Boat"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "crew": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {"name": {"type": "string"}, "role": {"type": "string"}},
                                        },
                                    },
                                    "sails": {"type": "integer", "maximum": 5},
                                    "flags": {"type": "array", "items": {"type": "string"}},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


def apply(expression):
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def json_patch(expression):
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(server, name, *mutations, bind=True, **spec):
    body = {
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": RULES}, "mutations": list(mutations), "reinvocationPolicy": "Never", **spec},
    }
    if bind:
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


def test_one_object_in_both_versions(launch):
    """An object is served and can be changed in both versions, in whichever it was written."""
    with launch("--runtime-config=admissionregistration.k8s.io/v1beta1=true") as server:
        for written in ("v1", "v1beta1"):
            at = lambda version: f"{ADMISSION.replace('/v1', '/' + version)}/mutatingadmissionpolicies"
            body = {
                "metadata": {"name": written},
                "spec": {
                    "matchConstraints": {"resourceRules": RULES},
                    "reinvocationPolicy": "Never",
                    "mutations": [json_patch("[JSONPatch{op: 'test', path: '/a', value: 1}]")],
                },
            }
            server.ok("POST", at(written), body)
            for requested in ("v1", "v1beta1"):
                got = server.ok("PATCH", f"{at(requested)}/{written}", {"metadata": {"labels": {requested: "seen"}}})
                assert got["apiVersion"] == f"admissionregistration.k8s.io/{requested}", got
                assert server.ok("GET", f"{at(requested)}/{written}") == got and server.ok("GET", at(requested))["apiVersion"] == got["apiVersion"]
            assert got["metadata"]["labels"] == {"v1": "seen", "v1beta1": "seen"} and got["metadata"]["generation"] == 1, got


def test_configurations_and_patches(launch):
    with launch(GATE) as server:
        server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", BOATS)
        created = policy(
            server,
            "crew",
            apply(
                "Object{metadata: Object.metadata{labels: {'seen': 'yes'}}, spec: Object.spec{crew: [Object.spec.crew{name: 'cook', role: variables.role}]}}"
            ),
            json_patch(
                "[JSONPatch{op: 'test', path: '/metadata/labels/seen', value: 'yes'},"
                " JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('acme.io/x'), value: request.operation},"
                " JSONPatch{op: 'add', path: '/spec/sails', value: size(object.spec.crew)}]"
            ),
            variables=[{"name": "role", "expression": "'of ' + object.metadata.name"}],
            matchConditions=[{"name": "boats", "expression": "request.resource.resource == 'boats'"}],
        )
        assert created[0] == 201, created
        boats = "/apis/acme.io/v1/namespaces/default/boats"
        boat = server.ok("POST", boats, {"apiVersion": "acme.io/v1", "kind": "Boat", "metadata": {"name": "a"}, "spec": {"crew": [{"name": "ann"}]}})
        assert boat["spec"] == {"crew": [{"name": "ann"}, {"name": "cook", "role": "of a"}], "sails": 2}, boat
        assert boat["metadata"]["labels"] == {"seen": "yes", "acme.io/x": "CREATE"}, boat
        boat = server.ok("PATCH", boats + "/a", {"spec": {"crew": []}})
        assert boat["metadata"]["labels"]["acme.io/x"] == "UPDATE" and boat["spec"]["sails"] == 1, boat
        assert server.ok("POST", MAPS, {"metadata": {"name": "m"}})["metadata"].get("labels") is None
        before = server.ok("GET", boats + "/a")
        dry_run = server.ok("PATCH", boats + "/a?dryRun=All", {"spec": {"crew": [{"name": "bob"}]}})
        assert dry_run["spec"]["sails"] == 2 and server.ok("GET", boats + "/a") == before


def test_failing_policies(launch):
    with launch(GATE) as server:
        server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", BOATS)
        boats = "/apis/acme.io/v1/namespaces/default/boats"
        body = {"apiVersion": "acme.io/v1", "kind": "Boat", "metadata": {"name": "a"}, "spec": {}}
        cases = {
            "atomic": (
                apply("Object{spec: Object.spec{flags: ['x']}}"),
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.flags",
            ),
            "misnamed": (apply("Object{spec: Object.status{sails: 1}}"), 'unexpected type name "Object.status", expected "Object.spec"'),
            "undeclared": (apply("Object{spec: Object.spec{masts: 1}}"), ".spec.masts: field not declared in schema"),
            "absent": (json_patch("[JSONPatch{op: 'remove', path: '/spec/sails'}]"), "JSON Patch: "),
            "failing": (json_patch("[JSONPatch{op: 'add', path: '/spec/sails', value: object.spec.none}]"), "no such key: none"),
            "costly": (
                json_patch(
                    "[JSONPatch{op: 'add', path: '/spec/sails', value: [1,2,3,4,5,6,7,8,9,0].map(a,"
                    " [1,2,3,4,5,6,7,8,9,0].map(b, [1,2,3,4,5,6,7,8,9,0].map(c, [1,2,3,4,5,6,7,8,9,0].map(d,"
                    " [1,2,3,4,5,6,7,8,9,0].map(e, [1,2,3,4,5,6,7,8,9,0].map(f, 1))))))}]"
                ),
                "actual cost limit exceeded",
            ),
        }
        for name, (mutation, error) in cases.items():
            assert policy(server, name, mutation)[0] == 201
            status, response, _ = server.request("POST", boats, body)
            start = f"policy '{name}' with binding '{name}' denied request: "
            assert (status, response["reason"]) == (403, "Invalid") and response["message"].startswith(start) and error in response["message"], response
            ignoring = server.ok("PATCH", f"{ADMISSION}/mutatingadmissionpolicies/{name}", {"spec": {"failurePolicy": "Ignore"}})
            assert ignoring["metadata"]["generation"] == 2
            server.ok("POST", boats + "?dryRun=All", body)
            server.ok("DELETE", f"{ADMISSION}/mutatingadmissionpolicies/{name}")
        # the result of a policy is validated like a request
        assert policy(server, "sails", apply("Object{spec: Object.spec{sails: 9}}"))[0] == 201
        status, response, _ = server.request("POST", boats, body)
        assert status == 422 and "should be less than or equal to 5" in response["message"], response


def test_invalid_policies(launch):
    with launch(GATE) as server:
        cases = [
            ({"mutations": []}, "spec.mutations: Required value: mutations must contain at least one item"),
            ({"mutations": [{"patchType": "Merge"}]}, 'spec.mutations[0].patchType: Unsupported value: "Merge"'),
            ({"mutations": [apply("1")]}, 'spec.mutations[0].applyConfiguration.expression: Invalid value: "1": must evaluate to Object but got int'),
            ({"mutations": [json_patch("Object{}")]}, "must evaluate to list(JSONPatch) but got Object"),
            ({"mutations": [json_patch("[JSONPatch{verb: 'add'}]")]}, "expected type of field 'verb' is '' but provided type is 'string'"),
            ({"mutations": [json_patch("[JSONPatch{op: 1}]")]}, "expected type of field 'op' is 'string' but provided type is 'int'"),
            ({"mutations": [{"patchType": "JSONPatch"}]}, "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch"),
            ({"mutations": [apply("Object{}")], "reinvocationPolicy": "Always"}, 'spec.reinvocationPolicy: Unsupported value: "Always"'),
            (
                {"mutations": [apply("Object{}")], "matchConstraints": {"resourceRules": [{**RULES[0], "operations": ["DELETE"]}]}},
                'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE"',
            ),
        ]
        for spec, error in cases:
            mutations = spec.pop("mutations")
            status, response, _ = policy(server, "p", *mutations, bind=False, **spec)
            assert status == 422 and error in response["message"], response
        status, response, _ = server.request(
            "POST",
            ADMISSION + "/validatingadmissionpolicies",
            {"metadata": {"name": "v"}, "spec": {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": "Object{} == Object{}"}]}},
        )
        assert status == 422 and "undeclared reference to 'Object'" in response["message"], response


def test_parameters(launch):
    with launch(GATE) as server:
        body = {
            "metadata": {"name": "p"},
            "spec": {
                "matchConstraints": {"resourceRules": RULES},
                "reinvocationPolicy": "Never",
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "mutations": [apply("Object{metadata: Object.metadata{annotations: {'from': params.data.text}}}")],
            },
        }
        server.ok("POST", ADMISSION + "/mutatingadmissionpolicies", body)
        server.ok("POST", "/api/v1/namespaces/kube-system/configmaps", {"metadata": {"name": "texts"}, "data": {"text": "hello"}})
        reference = {"name": "texts", "namespace": "kube-system", "parameterNotFoundAction": "Deny"}
        server.ok("POST", ADMISSION + "/mutatingadmissionpolicybindings", {"metadata": {"name": "p"}, "spec": {"policyName": "p", "paramRef": reference}})
        assert server.ok("POST", MAPS, {"metadata": {"name": "m"}})["metadata"]["annotations"] == {"from": "hello"}
        server.ok("DELETE", "/api/v1/namespaces/kube-system/configmaps/texts")
        status, response, _ = server.request("POST", MAPS, {"metadata": {"name": "n"}})
        assert (status, response["reason"]) == (403, "Forbidden") and "no params found for policy binding with `Deny` parameterNotFoundAction" in response[
            "message"
        ], response


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


def test_types_are_checked(launch):
    """The status of ValidatingAdmissionPolicies has the type errors of their expressions."""
    with launch("--controllers=*,validatingadmissionpolicy-status-controller") as server:
        server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", BOATS)
        rule = {"apiGroups": ["acme.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["boats"]}
        policies = ADMISSION + "/validatingadmissionpolicies"
        created = server.ok(
            "POST",
            policies,
            {
                "metadata": {"name": "p"},
                "spec": {
                    "matchConstraints": {"resourceRules": [rule]},
                    "variables": [{"name": "v", "expression": "object.spec.masts"}],
                    "validations": [
                        {"expression": "object.spec.sails < 3"},
                        {"expression": "object.spec.masts < 3 && variables.v > 1", "messageExpression": "'of ' + string(object.name)"},
                    ],
                },
            },
        )
        assert created["status"] == {}, created
        status = eventually(lambda: server.ok("GET", policies + "/p").get("status"))
        assert status["observedGeneration"] == 1, status
        first, second = status["typeChecking"]["expressionWarnings"]
        assert first["fieldRef"] == "spec.validations[1].expression", first
        assert first["warning"].startswith("acme.io/v1, Kind=Boat: ERROR: <input>:1:12: undefined field 'masts'"), first
        assert second["fieldRef"] == "spec.validations[1].messageExpression" and "undefined field 'name'" in second["warning"], second
        server.ok("PATCH", policies + "/p", {"spec": {"validations": [{"expression": "object.spec.sails < 2"}]}})
        eventually(lambda: server.ok("GET", policies + "/p")["status"] == {"observedGeneration": 2, "typeChecking": {}})
        rule = {"apiGroups": ["", "acme.io"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets", "boats", "boats/status"]}
        expressions = [
            "object.metadata.labels.a == 1",
            "object.data.x == 1",
            "variables.name == 1",
            "variables.all == 1",
            "params.spec.sails == 'x'",
            "params.metadata.name == 'x'",
            "object.metadata.creationTimestamp == 1",
        ]
        server.ok(
            "POST",
            policies,
            {
                "metadata": {"name": "typed"},
                "spec": {
                    "matchConstraints": {"resourceRules": [rule]},
                    "paramKind": {"apiVersion": "acme.io/v1", "kind": "Boat"},
                    "variables": [{"name": "name", "expression": "object.metadata.name"}, {"name": "all", "expression": "object.metadata"}],
                    "validations": [{"expression": text} for text in expressions],
                },
            },
        )
        status = eventually(lambda: server.ok("GET", policies + "/typed").get("status"))
        warnings = {w["fieldRef"][17]: w["warning"] for w in status["typeChecking"]["expressionWarnings"]}
        texts = {at: [line for line in text.split("\n") if "Kind=" in line] for at, text in warnings.items()}
        secret, boat = "/v1, Kind=Secret: ERROR: <input>:1:", "acme.io/v1, Kind=Boat: ERROR: <input>:1:"
        no_match = "found no matching overload for '_==_' applied to "
        assert texts == {
            "0": [f"{secret}26: {no_match}'(string, int)'", f"{boat}26: {no_match}'(string, int)'"],
            "1": [f"{secret}15: {no_match}'(bytes, int)'", f"{boat}7: undefined field 'data'"],
            "2": [f"{secret}16: {no_match}'(string, int)'", f"{boat}16: {no_match}'(string, int)'"],
            "4": [f"{secret}19: {no_match}'(int, string)'", f"{boat}19: {no_match}'(int, string)'"],
            "6": [f"{secret}35: {no_match}'(timestamp, int)'", f"{boat}35: {no_match}'(timestamp, int)'"],
        }, texts
        managers = [m for m in server.ok("GET", policies + "/typed")["metadata"]["managedFields"] if m.get("subresource") == "status"]
        assert [(m["manager"], m["operation"]) for m in managers] == [("validatingadmissionpolicy-status", "Apply")], managers


def test_recorded_mutations(launch):
    """Valid and invalid mutations, compared with responses recorded from kube-apiserver 1.37."""
    with launch() as server:
        for file in ("mutated-custom", "mutated-typed"):
            transcripts.check(server, transcripts.OWN / "switched" / f"{file}.json")
