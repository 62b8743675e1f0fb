"""CRDs of a hostile or careless author: error messages are exact, accepted CRDs cost little, and the server
keeps serving. Limits: 3 MiB of body, 10,000 levels, 1,000 repetitions and 1,000 levels of a pattern, 8 selectable fields, the costs
of rules."""

import json
import pathlib
import re
import time

import pytest

from legacy import V1
from steps import hide_descriptions

pytestmark = pytest.mark.crds

BYTES_MAX = 3 * 1024 * 1024
ROOT = pathlib.Path(__file__).resolve().parents[2]
GROUP = "hostile.example.com"
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"}


def definition(plural, properties=None, **version):
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties or {}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": {"plural": plural, "kind": plural.capitalize()}, "versions": [version]},
    }


def nested(plural, levels, before, after, leaf):
    """The JSON text of a definition with a property of nested schemas, which are too deep for Python's encoder."""
    return json.dumps(definition(plural, {"a": "@"})).replace('"@"', before * levels + leaf + after * levels).encode()


def test_hostile_definitions(launch):
    with launch() as server:
        server.ok("POST", V1, definition("bystanders", {"a": {"type": "string"}}))
        bystanders = f"/apis/{GROUP}/v1/bystanders"

        def responds(body, code, *parts):
            started = time.monotonic()
            status, response, _ = server.request("POST", V1 + "?dryRun=All", body, timeout=60, headers=METADATA)
            message = response.get("message", "") if isinstance(response, dict) else str(response)
            assert status == code and all(part in message for part in parts), (status, message[:300], message[-300:])
            assert time.monotonic() - started < 30, "the request took too long"
            server.ok("GET", bystanders)

        def pattern(text, code, *parts):
            responds(definition("patterns", {"a": {"type": "string", "pattern": text}}), code, *parts)

        # enormous
        responds(b" " * BYTES_MAX + b"{}", 413, f"limit is {BYTES_MAX}")
        text = {"type": "string"}
        responds(definition("wide", {f"property{n}": text for n in range(30000)}), 201)
        responds(definition("enums", {"a": {"type": "string", "enum": [f"value-{n}" for n in range(100000)]}}), 201)
        # deep
        responds(nested("deep", 3000, '{"type":"array","items":', "}", '{"type":"string"}'), 201)
        responds(nested("deep", 11000, '{"type":"array","items":', "}", '{"type":"string"}'), 400, "exceeded max depth")
        # patterns that grow when repetitions are expanded
        pattern("(a+)+$", 201)
        pattern("a{1001}", 422, "error parsing regexp: invalid repeat count: `{1001}`")
        pattern("(a{1000}){1000}", 422, "error parsing regexp: invalid repeat count: `{1000}`")
        pattern("(" * 1100 + "a" + ")" * 1100, 422, "error parsing regexp: expression nests too deeply")
        pattern("(xx){1000}" * 2000, 422, "error parsing regexp: expression too large")
        responds(definition("letters", {f"p{n}": {**text, "pattern": "^\\pL{1,%d}$" % (n % 900 + 1)} for n in range(2000)}), 201)
        # nested value validations, which must not have types
        responds(
            nested("trees", 500, '{"type":"object","allOf":[', "]}", '{"minimum":1}'),
            422,
            "spec.validation.openAPIV3Schema.properties[a].allOf[0].type: Forbidden: must be empty to be structural",
        )
        wide = [{"properties": {"x": {"pattern": f"a{n}"}}} for n in range(5000)]
        responds(definition("junctors", {"a": {"type": "object", "properties": {"x": text}, "anyOf": wide}}), 201)
        # rules whose estimated cost is too high
        rule = {"rule": "self.all(x, self.all(y, self.all(z, x + y + z != '')))"}
        responds(
            definition("rules", {"a": {"type": "array", "items": text, "x-kubernetes-validations": [rule]}}),
            422,
            "estimated rule cost exceeds budget by factor of more than 100x",
        )
        responds(
            definition("rules", {"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "(" * 5000 + "self" + ")" * 5000 + " > 1"}]}}),
            422,
            "x-kubernetes-validations[0].rule: Invalid value",
        )
        # names of another CRD, and too many selectable fields
        conflicting = definition("takers", {"a": text})
        conflicting["spec"]["names"] |= {"kind": "Bystanders", "singular": "bystanders"}
        created = server.ok("POST", V1, conflicting)
        accepted = {c["type"]: (c["status"], c["message"]) for c in server.ok("GET", V1 + f"/takers.{GROUP}")["status"]["conditions"]}
        assert accepted["NamesAccepted"] == ("False", '"BystandersList" is already in use'), (accepted, created)
        assert server.request("GET", f"/apis/{GROUP}/v1/takers")[0] == 404
        fields = [{"jsonPath": f".p{n}"} for n in range(9)]
        responds(definition("fields", {f"p{n}": text for n in range(9)}, selectableFields=fields), 422, "Too many: 9: must have at most 8 items")
        assert server.resident_mib() < 1024, f"{server.resident_mib()} MB"


def test_hostile_objects(launch):
    """Objects matched against large patterns, and objects with as many values as possible."""
    with launch() as server:
        text = {"type": "string"}
        patterns = {f"p{n}": {**text, "pattern": "^\\pL{1,%d}$" % (n % 900 + 1)} for n in range(500)}
        server.ok("POST", V1, definition("letters", patterns))
        letters = {"apiVersion": GROUP + "/v1", "kind": "Letters", "metadata": {"name": "a"}, **dict.fromkeys(patterns, "é")}
        # some seconds of work, which take longer beside other work
        server.ok("POST", f"/apis/{GROUP}/v1/letters", letters, timeout=60)
        status, response, _ = server.request("POST", f"/apis/{GROUP}/v1/letters", {**letters, "p0": "éé"})
        assert status == 422 and "p0 in body should match '^\\pL{1,1}$'" in response["message"], response
        schema = {"a": {"type": "string", "pattern": "^(a+)+$"}, "s": {"type": "array", "x-kubernetes-list-type": "set", "items": text}}
        server.ok("POST", V1, definition("values", schema))

        def check_rejected(part, **values):
            status, response, _ = server.request(
                "POST", f"/apis/{GROUP}/v1/values", {"apiVersion": GROUP + "/v1", "kind": "Values", "metadata": {"name": "a"}, **values}
            )
            assert status == 422 and part in response["message"], response["message"][:300]

        check_rejected("a in body should match", a="a" * 100000 + "b")
        check_rejected('Duplicate value: "v-7"', s=[f"v-{n}" for n in range(50000)] + ["v-7"])
        assert server.resident_mib() < 1024, f"{server.resident_mib()} MB"


def test_scales(launch):
    """Bodies of the scale subresource are typed: unknown fields are reported, invalid ones rejected, names and uids compared."""
    with launch() as server:
        number = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        server.ok("POST", V1, definition("trains", {"spec": number, "status": number}, subresources={"status": {}, "scale": paths}))
        trains = f"/apis/{GROUP}/v1/trains"
        server.ok("POST", trains, {"apiVersion": GROUP + "/v1", "kind": "Trains", "metadata": {"name": "a"}, "spec": {"replicas": 3}})

        def responds(method, body, code, part="", query=""):
            status, response, headers = server.request(method, f"{trains}/a/scale{query}", body)
            text = response.get("message", "") + headers.get("warning", "")
            assert status == code and part in text, (status, response, headers)

        go = "Go struct field ScaleSpec.spec.replicas of type int32"
        responds("PATCH", {"spec": {"replicas": "x"}}, 422, "json: cannot unmarshal string into " + go)
        responds("PATCH", {"spec": {"replicas": 1 << 31}}, 422, "json: cannot unmarshal number 2147483648 into " + go)
        responds("PATCH", {"kind": "X"}, 422, 'no kind "X" is registered for version "autoscaling/v1" in scheme')
        responds("PATCH", {"metadata": {"name": "b"}}, 400, "the name of the object (b) does not match the name on the URL (a)")
        responds("PATCH", {"metadata": None}, 400, "the name of the object (a based on URL) was undeterminable")
        responds("PATCH", {"spec": {"zz": 1}}, 200, 'unknown field \\"spec.zz\\"')
        responds("PATCH", {"spec": {"zz": 1}}, 422, 'strict decoding error: unknown field "spec.zz"', "?fieldValidation=Strict")
        responds("PATCH", {"metadata": {"uid": "x"}}, 200)
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 5}}
        responds("PUT", {**scale, "metadata": {"name": "a", "uid": "x"}}, 409, f"Key: /registry/{GROUP}/trains/a, ResourceVersion: 0")
        responds("PUT", {**scale, "metadata": {"name": "a", "labels": {"a": 1}}}, 400, "no kind is registered for the type v1.Scale")
        assert server.ok("GET", trains + "/a")["spec"] == {"replicas": 3}
        responds("PUT", {**scale, "odd": 1}, 200, 'unknown field \\"odd\\"')
        assert server.ok("GET", trains + "/a")["spec"] == {"replicas": 5}
        # an encoding that custom resources do not support is rejected before the request has an effect
        for method, path in (("GET", "/a"), ("DELETE", "/a"), ("DELETE", "/nope"), ("DELETE", "")):
            accept = {"Accept": "application/vnd.kubernetes.protobuf"}
            assert server.request(method, trains + path, headers=accept)[0] == 406, (method, path)
        server.ok("PATCH", trains + "/a/status", {"status": {"replicas": 2}})
        for path, cells in (("/a/scale", ["a", 5, 2]), ("/a/status", ["a"]), ("", ["a"])):
            rows = server.ok("GET", trains + path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})["rows"]
            ((*columns, age),) = [row["cells"] for row in rows]
            assert columns == cells and re.fullmatch(r"\d+s", age), rows


def test_defaults_of_status(launch):
    """A default of `status` itself is set when an object is read, although writes of the object drop its status."""
    with launch() as server:
        server.ok("POST", V1, definition("gauges", {"n": {"type": "integer"}, "status": {"type": "integer", "default": 7}}, subresources={"status": {}}))
        gauges = f"/apis/{GROUP}/v1/gauges"
        gauge = {"apiVersion": GROUP + "/v1", "kind": "Gauges", "metadata": {"name": "a"}, "status": 1}
        assert server.ok("POST", gauges + "?dryRun=All", gauge)["status"] == 7
        assert server.ok("POST", gauges, gauge)["status"] == 7
        assert server.ok("PATCH", gauges + "/a", {"n": 1})["status"] == 7
        assert server.ok("PATCH", gauges + "/a/status", {"status": 2})["status"] == 2
        # applied configurations are YAML, where 1.0 is 1
        headers = {"Content-Type": "application/apply-patch+yaml"}
        applied = json.dumps({**gauge, "n": 1.0, "status": None}).encode()
        created = server.ok("PATCH", gauges + "/b?fieldManager=x", applied.replace(b'"name": "a"', b'"name": "b"'), headers=headers)
        assert (created["n"], created["status"]) == (1, 7), created


def test_strict_order(launch):
    """Unknown and duplicate fields of typed bodies are reported in the order of the body; those of patches in the order of names."""
    with launch() as server:
        body = json.dumps(definition("orders", {"a": {"type": "string", "zz": 1}})).replace('"scope": ', '"odd": 1, "scope": "x", "scope": ')
        status, response, _ = server.request("POST", V1 + "?fieldValidation=Strict", body.encode())
        path = "spec.versions[0].schema.openAPIV3Schema.properties.a.zz"
        assert status == 400 and f'unknown field "spec.odd", duplicate field "spec.scope", unknown field "{path}"' in response["message"], response
        server.ok("POST", V1, body.encode())
        patch = {"zed": 1, "spec": {"odd": 1, "names": {"a": 1}}, "metadata": {"mm": 1}}
        status, response, _ = server.request("PATCH", f"{V1}/orders.{GROUP}?fieldValidation=Strict", patch)
        errors = ['unknown field "metadata.mm"', 'unknown field "spec.names.a"', 'unknown field "spec.odd"', 'unknown field "zed"']
        assert status == 422 and response["message"].endswith("strict decoding error: " + ", ".join(errors)), response


def test_recorded_documents(launch):
    """OpenAPI of CRDs with all that v2 cannot express, as kube-apiserver 1.37.2 publishes it, except for descriptions."""
    recorded = json.loads((ROOT / "tests" / "openapi" / "trees.json").read_text())
    sent = json.dumps(recorded["definitions"], ensure_ascii=False)

    def differences(place, want, found, above):
        """The paths of differing values; documents may have more keys on the first `above` levels."""
        if not isinstance(want, dict) or not isinstance(found, dict):
            return [] if want == found else [f"{place}: {found} is not {want}"]
        more = [] if above else [f"{place}/{key} is not recorded" for key in found if key not in want]
        return more + [difference for key, value in want.items() for difference in differences(f"{place}/{key}", value, found.get(key), max(above - 1, 0))]

    with launch() as server:

        def document(path):
            return hide_descriptions(server.ok("GET", path), sent)

        for crd in recorded["definitions"]:
            server.ok("POST", V1, crd)
        found = differences("v2", recorded["v2"], document("/openapi/v2"), 2)
        for version, want in recorded["v3"].items():
            found += differences(f"v3/{version}", want, document(f"/openapi/v3/apis/oapi.example.com/{version}"), 3)
        assert not found, "\n".join(found[:20])


def test_definitions_in_groups_of_built_in_kinds(launch):
    """kube-apiserver stores and establishes them, but its routes for the group are those of its own kinds."""
    with launch() as server:
        for group, versions in (("rbac.authorization.k8s.io", ["v1", "v9"]), ("coordination.k8s.io", ["v1"])):
            crd = definition("kites", {"a": {"type": "string"}})
            crd["metadata"] = {"name": f"kites.{group}", "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}}
            crd["spec"]["group"] = group
            first = crd["spec"]["versions"][0]
            crd["spec"]["versions"] = [{**first, "name": name, "storage": name == versions[0]} for name in versions]
            server.ok("POST", V1, crd)
            path = f"/apis/{group}/{versions[0]}/kites"
            for method, more in (("GET", ""), ("GET", "/a"), ("POST", ""), ("DELETE", "/a")):
                status, response, _ = server.request(method, path + more, {} if method == "POST" else None)
                assert status == 404 and response["message"] == "the server could not find the requested resource", (method, path + more, response)
            listed = server.ok("GET", f"/apis/{group}/{versions[0]}")["resources"]
            assert "kites" not in {resource["name"] for resource in listed}
