"""CRDs of a hostile or careless author: error messages are exact, accepted CRDs cost little, and the server
keeps serving. Limits: 3 MiB of body, 10,000 levels, 1,000 repetitions and 1,000 levels of a pattern, 8 selectable fields, the costs
of rules."""

import json
import time

import pytest

import objects
from objects import DEFINITIONS
from programs import ROOT
from steps import hide_descriptions

pytestmark = pytest.mark.crds

BYTES_MAX = 3 * 1024 * 1024
GROUP = "hostile.example.com"
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"}


def definition(plural, properties=None, **version):
    return objects.definition(plural, GROUP, {"properties": properties or {}}, "Cluster", **version)


def nested(plural, levels, before, after, leaf):
    """The JSON text of a definition with a property of nested schemas, which are too deep for Python's encoder."""
    return json.dumps(definition(plural, {"a": "@"})).replace('"@"', before * levels + leaf + after * levels).encode()


def test_hostile_definitions(server):
    """Those that are too large for the transcript hostile-definitions."""
    text = {"type": "string"}
    server.ok("POST", DEFINITIONS, definition("bystanders", {"a": text}))
    letters = {f"p{n}": {**text, "pattern": "^\\pL{1,%d}$" % (n % 900 + 1)} for n in range(2000)}
    wide = [{"properties": {"x": {"pattern": f"a{n}"}}} for n in range(5000)]
    not_structural = "spec.validation.openAPIV3Schema.properties[a].allOf[0].type: Forbidden: must be empty to be structural"
    for body, code, part in (
        (b" " * BYTES_MAX + b"{}", 413, f"limit is {BYTES_MAX}"),
        (definition("wide", {f"property{n}": text for n in range(30000)}), 201, ""),
        (definition("enums", {"a": {**text, "enum": [f"value-{n}" for n in range(100000)]}}), 201, ""),
        (nested("deep", 3000, '{"type":"array","items":', "}", '{"type":"string"}'), 201, ""),
        (nested("deep", 11000, '{"type":"array","items":', "}", '{"type":"string"}'), 400, "exceeded max depth"),
        (definition("patterns", {"a": {**text, "pattern": "(xx){1000}" * 2000}}), 422, "error parsing regexp: expression too large"),
        (definition("letters", letters), 201, ""),
        # nested value validations, which must not have types
        (nested("trees", 500, '{"type":"object","allOf":[', "]}", '{"minimum":1}'), 422, not_structural),
        (definition("junctors", {"a": {"type": "object", "properties": {"x": text}, "anyOf": wide}}), 201, ""),
    ):
        started = time.monotonic()
        status, response, _ = server.request("POST", DEFINITIONS + "?dryRun=All", body, timeout=60, headers=METADATA)
        message = response.get("message", "") if isinstance(response, dict) else str(response)
        assert status == code and part in message, (status, message[:300], message[-300:])
        assert time.monotonic() - started < 30, "the request took too long"
        server.ok("GET", f"/apis/{GROUP}/v1/bystanders")
    assert server.resident_mib() < 1024, f"{server.resident_mib()} MB"


def test_hostile_objects(launch):
    """Objects matched against large patterns, and objects with as many values as possible."""
    with launch() as server:
        text = {"type": "string"}
        patterns = {f"p{n}": {**text, "pattern": "^\\pL{1,%d}$" % (n % 900 + 1)} for n in range(500)}
        server.ok("POST", DEFINITIONS, definition("letters", patterns))
        letters = {"apiVersion": GROUP + "/v1", "kind": "Letter", "metadata": {"name": "a"}, **dict.fromkeys(patterns, "é")}
        # some seconds of work, which take longer beside other work
        server.ok("POST", f"/apis/{GROUP}/v1/letters", letters, timeout=60)
        status, response, _ = server.request("POST", f"/apis/{GROUP}/v1/letters", {**letters, "p0": "éé"})
        assert status == 422 and "p0 in body should match '^\\pL{1,1}$'" in response["message"], response
        schema = {"a": {"type": "string", "pattern": "^(a+)+$"}, "s": {"type": "array", "x-kubernetes-list-type": "set", "items": text}}
        server.ok("POST", DEFINITIONS, definition("values", schema))

        def check_rejected(part, **values):
            status, response, _ = server.request(
                "POST", f"/apis/{GROUP}/v1/values", {"apiVersion": GROUP + "/v1", "kind": "Value", "metadata": {"name": "a"}, **values}
            )
            assert status == 422 and part in response["message"], response["message"][:300]

        check_rejected("a in body should match", a="a" * 100000 + "b")
        check_rejected('Duplicate value: "v-7"', s=[f"v-{n}" for n in range(50000)] + ["v-7"])
        assert server.resident_mib() < 1024, f"{server.resident_mib()} MB"


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
            server.ok("POST", DEFINITIONS, crd)
        found = differences("v2", recorded["v2"], document("/openapi/v2"), 2)
        for version, want in recorded["v3"].items():
            found += differences(f"v3/{version}", want, document(f"/openapi/v3/apis/oapi.example.com/{version}"), 3)
        assert not found, "\n".join(found[:20])
