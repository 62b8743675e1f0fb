"""CRDs of a hostile or careless author: rejections are exact, what is accepted costs little, and the server
goes on. Limits: 3 MiB of body, 10,000 levels, 1,000 repetitions and 1,000 levels of a pattern, 8 selectable fields, the costs
of rules."""
import json
import pathlib
import re
import time

import pytest

from legacy import V1
from replay import hide_descriptions

pytestmark = pytest.mark.crds

BYTES_MAX = 3 * 1024 * 1024
ROOT = pathlib.Path(__file__).resolve().parents[2]
GROUP = "hostile.example.com"
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"}


def definition(plural, properties=None, **version):
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties or {}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, **version}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Cluster", "names": {"plural": plural, "kind": plural.capitalize()}, "versions": [version]}}


def nested(plural, levels, before, after, leaf):
    """The definition of a property in which schemas nest, as text: such trees are too deep for Python."""
    return json.dumps(definition(plural, {"a": "@"})).replace('"@"', before * levels + leaf + after * levels).encode()


def test_hostile_definitions(launch):
    with launch() as server:
        server.ok("POST", V1, definition("bystanders", {"a": {"type": "string"}}))
        bystanders = f"/apis/{GROUP}/v1/bystanders"

        def answered(body, code, *parts):
            started = time.monotonic()
            status, answer, _ = server.request("POST", V1 + "?dryRun=All", body, timeout=60, headers=METADATA)
            told = answer.get("message", "") if isinstance(answer, dict) else str(answer)
            assert status == code and all(part in told for part in parts), (status, told[:300], told[-300:])
            assert time.monotonic() - started < 30, "a definition takes long"
            server.ok("GET", bystanders)

        def pattern(text, code, *parts):
            answered(definition("patterns", {"a": {"type": "string", "pattern": text}}), code, *parts)
        # enormous
        answered(b" " * BYTES_MAX + b"{}", 413, f"limit is {BYTES_MAX}")
        text = {"type": "string"}
        answered(definition("wide", {f"property{n}": text for n in range(30000)}), 201)
        answered(definition("enums", {"a": {"type": "string", "enum": [f"value-{n}" for n in range(100000)]}}), 201)
        # deep
        answered(nested("deep", 3000, '{"type":"array","items":', "}", '{"type":"string"}'), 201)
        answered(nested("deep", 11000, '{"type":"array","items":', "}", '{"type":"string"}'), 400, "exceeded max depth")
        # patterns that grow when they are written out
        pattern("(a+)+$", 201)
        pattern("a{1001}", 422, "error parsing regexp: invalid repeat count: `{1001}`")
        pattern("(a{1000}){1000}", 422, "error parsing regexp: invalid repeat count: `{1000}`")
        pattern("(" * 1100 + "a" + ")" * 1100, 422, "error parsing regexp: expression nests too deeply")
        pattern("(xx){1000}" * 2000, 422, "error parsing regexp: expression too large")
        answered(definition("letters", {f"p{n}": {**text, "pattern": "^\\pL{1,%d}$" % (n % 900 + 1)} for n in range(2000)}), 201)
        # trees of value validations, which may have no types of their own
        answered(nested("trees", 500, '{"type":"object","allOf":[', "]}", '{"minimum":1}'), 422,
                 "spec.validation.openAPIV3Schema.properties[a].allOf[0].type: Forbidden: must be empty to be structural")
        wide = [{"properties": {"x": {"pattern": f"a{n}"}}} for n in range(5000)]
        answered(definition("junctors", {"a": {"type": "object", "properties": {"x": text}, "anyOf": wide}}), 201)
        # rules that would run for ever
        rule = {"rule": "self.all(x, self.all(y, self.all(z, x + y + z != '')))"}
        answered(definition("rules", {"a": {"type": "array", "items": text, "x-kubernetes-validations": [rule]}}), 422,
                 "estimated rule cost exceeds budget by factor of more than 100x")
        answered(definition("rules", {"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "(" * 5000 + "self" + ")" * 5000 + " > 1"}]}}),
                 422, "x-kubernetes-validations[0].rule: Invalid value")
        # names of others, and too many fields
        taken = definition("takers", {"a": text})
        taken["spec"]["names"] |= {"kind": "Bystanders", "singular": "bystanders"}
        made = server.ok("POST", V1, taken)
        accepted = {c["type"]: (c["status"], c["message"]) for c in server.ok("GET", V1 + f"/takers.{GROUP}")["status"]["conditions"]}
        assert accepted["NamesAccepted"] == ("False", '"BystandersList" is already in use'), (accepted, made)
        assert server.request("GET", f"/apis/{GROUP}/v1/takers")[0] == 404
        fields = [{"jsonPath": f".p{n}"} for n in range(9)]
        answered(definition("fields", {f"p{n}": text for n in range(9)}, selectableFields=fields), 422, "Too many: 9: must have at most 8 items")
        assert server.resident_mib() < 1024, f"{server.resident_mib()} MB"


def test_hostile_objects(launch):
    """Objects matched against large patterns, and objects with as many values as possible."""
    with launch() as server:
        text = {"type": "string"}
        patterns = {f"p{n}": {**text, "pattern": "^\\pL{1,%d}$" % (n % 900 + 1)} for n in range(500)}
        server.ok("POST", V1, definition("letters", patterns))
        letters = {"apiVersion": GROUP + "/v1", "kind": "Letters", "metadata": {"name": "a"}, **{name: "é" for name in patterns}}
        started = time.monotonic()
        server.ok("POST", f"/apis/{GROUP}/v1/letters", letters)
        status, answer, _ = server.request("POST", f"/apis/{GROUP}/v1/letters", {**letters, "p0": "éé"})
        assert status == 422 and "p0 in body should match '^\\pL{1,1}$'" in answer["message"], answer
        assert time.monotonic() - started < 20
        schema = {"a": {"type": "string", "pattern": "^(a+)+$"}, "s": {"type": "array", "x-kubernetes-list-type": "set", "items": text}}
        server.ok("POST", V1, definition("values", schema))
        def refused(part, **values):
            status, answer, _ = server.request("POST", f"/apis/{GROUP}/v1/values", {
                "apiVersion": GROUP + "/v1", "kind": "Values", "metadata": {"name": "a"}, **values})
            assert status == 422 and part in answer["message"], answer["message"][:300]
        refused("a in body should match", a="a" * 100000 + "b")
        refused('Duplicate value: "v-7"', s=[f"v-{n}" for n in range(50000)] + ["v-7"])
        assert server.resident_mib() < 1024, f"{server.resident_mib()} MB"


def test_scales(launch):
    """Bodies of the scale subresource are typed: unknown fields are reported, wrong ones refused, names and uids compared."""
    with launch() as server:
        number = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        server.ok("POST", V1, definition("trains", {"spec": number, "status": number}, subresources={"status": {}, "scale": paths}))
        trains = f"/apis/{GROUP}/v1/trains"
        server.ok("POST", trains, {"apiVersion": GROUP + "/v1", "kind": "Trains", "metadata": {"name": "a"}, "spec": {"replicas": 3}})

        def answered(method, body, code, part="", query=""):
            status, answer, headers = server.request(method, f"{trains}/a/scale{query}", body)
            told = answer.get("message", "") + headers.get("warning", "")
            assert status == code and part in told, (status, answer, headers)
        go = "Go struct field ScaleSpec.spec.replicas of type int32"
        answered("PATCH", {"spec": {"replicas": "x"}}, 422, "json: cannot unmarshal string into " + go)
        answered("PATCH", {"spec": {"replicas": 1 << 31}}, 422, "json: cannot unmarshal number 2147483648 into " + go)
        answered("PATCH", {"kind": "X"}, 422, 'no kind "X" is registered for version "autoscaling/v1" in scheme')
        answered("PATCH", {"metadata": {"name": "b"}}, 400, "the name of the object (b) does not match the name on the URL (a)")
        answered("PATCH", {"metadata": None}, 400, "the name of the object (a based on URL) was undeterminable")
        answered("PATCH", {"spec": {"zz": 1}}, 200, 'unknown field \\"spec.zz\\"')
        answered("PATCH", {"spec": {"zz": 1}}, 422, 'strict decoding error: unknown field "spec.zz"', "?fieldValidation=Strict")
        answered("PATCH", {"metadata": {"uid": "x"}}, 200)
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 5}}
        answered("PUT", {**scale, "metadata": {"name": "a", "uid": "x"}}, 409, f"Key: /registry/{GROUP}/trains/a, ResourceVersion: 0")
        answered("PUT", {**scale, "metadata": {"name": "a", "labels": {"a": 1}}}, 400, "no kind is registered for the type v1.Scale")
        assert server.ok("GET", trains + "/a")["spec"] == {"replicas": 3}
        answered("PUT", {**scale, "odd": 1}, 200, 'unknown field \\"odd\\"')
        assert server.ok("GET", trains + "/a")["spec"] == {"replicas": 5}
        # an encoding that custom resources do not have is refused before anything else happens
        for method, path in (("GET", "/a"), ("DELETE", "/a"), ("DELETE", "/nope"), ("DELETE", "")):
            accept = {"Accept": "application/vnd.kubernetes.protobuf"}
            assert server.request(method, trains + path, headers=accept)[0] == 406, (method, path)
        server.ok("PATCH", trains + "/a/status", {"status": {"replicas": 2}})
        for path, cells in (("/a/scale", ["a", 5, 2]), ("/a/status", ["a"]), ("", ["a"])):
            rows = server.ok("GET", trains + path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})["rows"]
            (*found, age), = [row["cells"] for row in rows]
            assert found == cells and re.fullmatch(r"\d+s", age), rows


def test_defaults_of_status(launch):
    """A default of `status` itself is set when an object is read, although writes of the object drop its status."""
    with launch() as server:
        server.ok("POST", V1, definition("gauges", {"n": {"type": "integer"}, "status": {"type": "integer", "default": 7}},
                                         subresources={"status": {}}))
        gauges = f"/apis/{GROUP}/v1/gauges"
        gauge = {"apiVersion": GROUP + "/v1", "kind": "Gauges", "metadata": {"name": "a"}, "status": 1}
        assert server.ok("POST", gauges + "?dryRun=All", gauge)["status"] == 7
        assert server.ok("POST", gauges, gauge)["status"] == 7
        assert server.ok("PATCH", gauges + "/a", {"n": 1})["status"] == 7
        assert server.ok("PATCH", gauges + "/a/status", {"status": 2})["status"] == 2
        # applied configurations are YAML, where 1.0 is 1
        headers = {"Content-Type": "application/apply-patch+yaml"}
        applied = json.dumps({**gauge, "n": 1.0, "status": None}).encode()
        made = server.ok("PATCH", gauges + "/b?fieldManager=x", applied.replace(b'"name": "a"', b'"name": "b"'), headers=headers)
        assert (made["n"], made["status"]) == (1, 7), made


def test_strict_order(launch):
    """Unknown and duplicate fields of typed bodies are reported in the order of the body; those of patches in the order of names."""
    with launch() as server:
        body = json.dumps(definition("orders", {"a": {"type": "string", "zz": 1}})).replace('"scope": ', '"odd": 1, "scope": "x", "scope": ')
        status, answer, _ = server.request("POST", V1 + "?fieldValidation=Strict", body.encode())
        path = "spec.versions[0].schema.openAPIV3Schema.properties.a.zz"
        assert status == 400 and f'unknown field "spec.odd", duplicate field "spec.scope", unknown field "{path}"' in answer["message"], answer
        server.ok("POST", V1, body.encode())
        patch = {"zed": 1, "spec": {"odd": 1, "names": {"a": 1}}, "metadata": {"mm": 1}}
        status, answer, _ = server.request("PATCH", f"{V1}/orders.{GROUP}?fieldValidation=Strict", patch)
        told = ['unknown field "metadata.mm"', 'unknown field "spec.names.a"', 'unknown field "spec.odd"', 'unknown field "zed"']
        assert status == 422 and answer["message"].endswith("strict decoding error: " + ", ".join(told)), answer


def test_recorded_documents(launch):
    """OpenAPI of CRDs with everything that v2 cannot express, as kube-apiserver 1.37.2 publishes it but for descriptions."""
    recorded = json.loads((ROOT / "tests" / "openapi" / "trees.json").read_text())
    sent = json.dumps(recorded["definitions"], ensure_ascii=False)

    def differences(place, want, found, above):
        """The paths of differing values; documents may have more keys on the first `above` levels."""
        if not isinstance(want, dict) or not isinstance(found, dict):
            return [] if want == found else [f"{place}: {found} is not {want}"]
        more = [] if above else [f"{place}/{key} is not recorded" for key in found if key not in want]
        return more + [difference for key, value in want.items()
                       for difference in differences(f"{place}/{key}", value, found.get(key), max(above - 1, 0))]

    with launch() as server:
        def document(path):
            return hide_descriptions(server.ok("GET", path), sent)

        for one in recorded["definitions"]:
            server.ok("POST", V1, one)
        found = differences("v2", recorded["v2"], document("/openapi/v2"), 2)
        for version, want in recorded["v3"].items():
            found += differences(f"v3/{version}", want, document(f"/openapi/v3/apis/oapi.example.com/{version}"), 3)
        assert not found, "\n".join(found[:20])


def test_definitions_in_groups_of_built_in_kinds(launch):
    """kube-apiserver stores and establishes them, but its routes for the group are those of its own kinds."""
    with launch() as server:
        for group, versions in (("rbac.authorization.k8s.io", ["v1", "v9"]), ("coordination.k8s.io", ["v1"])):
            made = definition("kites", {"a": {"type": "string"}})
            made["metadata"] = {"name": f"kites.{group}", "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}}
            made["spec"]["group"] = group
            first = made["spec"]["versions"][0]
            made["spec"]["versions"] = [{**first, "name": name, "storage": name == versions[0]} for name in versions]
            server.ok("POST", V1, made)
            path = f"/apis/{group}/{versions[0]}/kites"
            for method, more in (("GET", ""), ("GET", "/a"), ("POST", ""), ("DELETE", "/a")):
                status, answer, _ = server.request(method, path + more, {} if method == "POST" else None)
                assert status == 404 and answer["message"] == "the server could not find the requested resource", (method, path + more, answer)
            listed = server.ok("GET", f"/apis/{group}/{versions[0]}")["resources"]
            assert "kites" not in {resource["name"] for resource in listed}
