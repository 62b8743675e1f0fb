#!/usr/bin/env python3
"""Creates random CustomResourceDefinitions and custom resources on two servers, and reports what differs.

  random_schemas.py --reference URL --server URL --token TOKEN [--seed N] [--seconds N] [--report FILE]

kube-apiserver is the reference. Each CRD has one or two versions with random structural schemas: types, bounds, formats, defaults,
list types, embedded resources, extensions and CEL rules, most of them valid. Each is sent as a dry run with some of its keywords
spoiled. The valid one is created, and then random objects of it are created, replaced, patched and applied, some of them as dry
runs. The objects, the errors, the warnings and the OpenAPI documents of both servers are compared. What a CRD needs after a
response that differs is not done, since the two servers have different objects from there on.
"""

import concurrent.futures
import copy
import json
import random
import sys
import time

from classes import KNOWN, Known, signature
from odd import comparison, servers_of
from pair import Pair

WORKERS = 4
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JSON = {"Content-Type": "application/json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
OPERATIONS = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
NAMES = ["a", "b", "c", "d", "e-f", "g.h", "_i"]
WORDS = ["", "a", "b", "ab", "abc", "x-y", "10", "ä", "a b", "true"]
NUMBERS = [-1, 0, 1, 2, 3, 5, 10, 100]
FORMATS = {
    "date": ["2026-01-02", "2026-13-02", "x"],
    "date-time": ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+01:00", "2026-01-02"],
    "duration": ["1h", "5m30s", "P1D", "x"],
    "email": ["a@b.example", "a"],
    "ipv4": ["10.0.0.1", "010.0.0.1", "::1"],
    "ipv6": ["::1", "10.0.0.1"],
    "cidr": ["10.0.0.0/8", "10.0.0.1/33"],
    "uri": ["http://a.b/c", "a b", "/a"],
    "byte": ["YQ==", "YQ", "!"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "x"],
    "hostname": ["a.b", "-a", "A_b"],
    "mac": ["00:00:5e:00:53:01", "0"],
    "bsonobjectid": ["507f1f77bcf86cd799439011", "x"],
    "isbn": ["0321751043", "1"],
    "creditcard": ["4111111111111111", "1"],
    "ssn": ["123-45-6789", "1"],
    "hexcolor": ["#fff", "fff"],
    "rgbcolor": ["rgb(1,2,3)", "x"],
    "password": ["a"],
    "k8s-short-name": ["a", "A", "a" * 64],
    "k8s-long-name": ["a.b", "A", "a" * 254],
    "unknown-format": ["a"],
}
PATTERNS = ["^a", "b$", "^[a-z]*$", "^.{1,3}$", "a|b", "\\d+", "(?i)AB", "^\\p{L}+$"]


class Maker:
    """Random schemas, and random values that fit them, or nearly so."""

    def __init__(self, chance):
        self.chance = chance

    def maybe(self, share):
        return self.chance.random() < share

    # schemas

    def schema(self, depth):
        kinds = ["string", "string", "integer", "number", "boolean", "intstr", "free"]
        if depth:
            kinds += ["object", "object", "object", "map", "list", "list", "set", "maplist", "maplist", "embedded"]
        kind = self.chance.choice(kinds)
        schema = getattr(self, "of_" + kind)(depth)
        if self.maybe(0.1):
            schema["nullable"] = True
        if kind not in ("free", "embedded") and self.maybe(0.25):
            schema["default"] = self.value(schema, 0)
            if schema["default"] is None and not schema.get("nullable"):
                del schema["default"]
        if self.maybe(0.15) and kind in RULES:
            self.add_rules(schema, kind)
        return schema

    def of_string(self, _):
        schema = {"type": "string"}
        pick = self.chance.randrange(8)
        if pick == 0:
            schema["enum"] = self.chance.sample(WORDS, 3)
        elif pick == 1:
            schema["format"] = self.chance.choice(list(FORMATS))
        elif pick == 2:
            schema["pattern"] = self.chance.choice(PATTERNS)
        if self.maybe(0.4):
            schema["maxLength"] = self.chance.choice([0, 1, 2, 3, 10, 40])
        if self.maybe(0.15):
            schema["minLength"] = self.chance.choice([0, 1, 2])
        return schema

    def of_number(self, _, kind="number"):
        schema = {"type": kind}
        if self.maybe(0.3):
            schema["minimum"] = self.chance.choice(NUMBERS)
            if self.maybe(0.3):
                schema["exclusiveMinimum"] = self.chance.choice([True, False])
        if self.maybe(0.3):
            schema["maximum"] = self.chance.choice(NUMBERS)
            if self.maybe(0.3):
                schema["exclusiveMaximum"] = True
        if self.maybe(0.15):
            schema["multipleOf"] = self.chance.choice([1, 2, 3, 5])
        if self.maybe(0.2):
            schema["format"] = self.chance.choice(["int32", "int64"] if kind == "integer" else ["float", "double"])
        if self.maybe(0.1):
            schema["enum"] = [1, 2, 5]
        return schema

    def of_integer(self, depth):
        return self.of_number(depth, "integer")

    def of_boolean(self, _):
        return {"type": "boolean"}

    def of_intstr(self, _):
        schema = {"x-kubernetes-int-or-string": True}
        if self.maybe(0.5):
            schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        if self.maybe(0.3):
            schema["pattern"] = "^\\d+%?$"
        if self.maybe(0.3):
            schema["maximum"] = 10
        return schema

    def of_free(self, _):
        schema = {"x-kubernetes-preserve-unknown-fields": True}
        if self.maybe(0.5):
            schema["type"] = "object"
        return schema

    def of_object(self, depth):
        names = self.chance.sample(NAMES, self.chance.choice([1, 2, 2, 3, 4]))
        schema = {"type": "object", "properties": {name: self.schema(depth - 1) for name in names}}
        if self.maybe(0.3):
            schema["required"] = self.chance.sample(names, 1)
        if self.maybe(0.1):
            schema["x-kubernetes-map-type"] = self.chance.choice(["atomic", "granular"])
        if self.maybe(0.1):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        if self.maybe(0.08):
            schema["maxProperties"] = self.chance.choice([1, 2, 3])
        if self.maybe(0.05):
            schema["minProperties"] = self.chance.choice([1, 2])
        if self.maybe(0.12):
            alternatives = [{"required": [name]} for name in names]
            schema[self.chance.choice(["oneOf", "anyOf", "allOf"])] = alternatives
        if self.maybe(0.06):
            schema["not"] = {"required": [self.chance.choice(names)]}
        if self.maybe(0.06):
            name = self.chance.choice(names)
            kind = schema["properties"][name].get("type")
            bound = {"string": {"minLength": 1}, "integer": {"minimum": 1}, "number": {"maximum": 3}}.get(kind, {})
            schema[self.chance.choice(["anyOf", "allOf", "oneOf"])] = [{"properties": {name: bound}}, {"required": [name]}]
        return schema

    def of_map(self, depth):
        schema = {"type": "object", "additionalProperties": self.schema(depth - 1)}
        if self.maybe(0.4):
            schema["maxProperties"] = self.chance.choice([0, 1, 2, 5])
        if self.maybe(0.1):
            schema["x-kubernetes-map-type"] = "atomic"
        return schema

    def of_list(self, depth):
        schema = {"type": "array", "items": self.schema(depth - 1)}
        if self.maybe(0.5):
            schema["maxItems"] = self.chance.choice([0, 1, 2, 5])
        if self.maybe(0.1):
            schema["minItems"] = 1
        if self.maybe(0.2):
            schema["x-kubernetes-list-type"] = "atomic"
        return schema

    def of_set(self, depth):
        items = self.chance.choice([self.of_string, self.of_integer, self.of_boolean, self.of_number])(depth)
        if self.maybe(0.1):
            items = {**self.of_object(1), "x-kubernetes-map-type": "atomic"}
        schema = {"type": "array", "items": items, "x-kubernetes-list-type": "set"}
        if self.maybe(0.6):
            schema["maxItems"] = self.chance.choice([1, 2, 5])
        return schema

    def of_maplist(self, depth):
        names = self.chance.sample(NAMES, self.chance.choice([1, 1, 2]))
        keys = {name: self.chance.choice([self.of_string, self.of_integer, self.of_boolean])(0) for name in names}
        for schema in keys.values():
            if self.maybe(0.3):
                schema["default"] = self.value(schema, 0)
        more = self.of_object(max(depth, 1))
        items = {**more, "properties": {**more["properties"], **keys}}
        needed = [name for name, schema in keys.items() if "default" not in schema]
        items["required"] = sorted({*items.get("required", []), *needed})
        if not items["required"]:
            del items["required"]
        schema = {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": names}
        if self.maybe(0.6):
            schema["maxItems"] = self.chance.choice([1, 2, 5])
        return schema

    def of_embedded(self, depth):
        schema = {"type": "object", "x-kubernetes-embedded-resource": True}
        if self.maybe(0.6):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        else:
            schema["properties"] = {"spec": self.of_object(depth)}
        return schema

    # rules

    def add_rules(self, schema, kind):
        rules = []
        for _ in range(self.chance.choice([1, 1, 2])):
            text = self.chance.choice(RULES[kind])
            fields = sorted(schema.get("properties", {})) or ["a"]
            field, other = self.chance.choice(fields), self.chance.choice(fields)
            escaped = [name.replace(".", "__dot__").replace("-", "__dash__") for name in (field, other)]
            rule = {"rule": text.replace("FIELD", escaped[0]).replace("OTHER", escaped[1])}
            if self.maybe(0.4):
                rule["message"] = self.chance.choice(["no", "it must not", "a\nb"])
            if self.maybe(0.2):
                rule["messageExpression"] = self.chance.choice(['"is " + string(self)', '"fixed"', "self", '"a" + "b"'])
            if self.maybe(0.2):
                rule["reason"] = self.chance.choice(["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"])
            if self.maybe(0.15):
                rule["fieldPath"] = self.chance.choice([f".{field}", f"['{field}']", ".zz"])
            if "oldSelf" in rule["rule"] and self.maybe(0.3):
                rule["optionalOldSelf"] = self.chance.choice([True, False])
            rules.append(rule)
        schema["x-kubernetes-validations"] = rules

    # values

    def value(self, schema, odd):
        """A value of a schema; `odd` is the share of values that may not fit."""
        if self.maybe(odd):
            return self.chance.choice([None, "", "a", 0, 1.5, -1, True, [], {}, ["a"], {"a": 1}, [None], 2**53, "a" * 50])
        if schema.get("nullable") and self.maybe(0.2):
            return None
        if "enum" in schema:
            return self.chance.choice(schema["enum"])
        if "x-kubernetes-int-or-string" in schema:
            return self.chance.choice([1, 5, "5%", "10", "a"])
        kind = schema.get("type")
        if schema.get("x-kubernetes-embedded-resource"):
            value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.chance.choice(["a", "A", "b"])}}
            return {**value, **self.fields(schema, odd), **({"more": 1} if self.maybe(0.2) else {})}
        if kind == "string":
            return self.text(schema)
        if kind in ("integer", "number"):
            low, high = schema.get("minimum", -2), schema.get("maximum", 12)
            number = self.chance.randint(low, high) if low <= high else low
            return number if kind == "integer" or self.maybe(0.5) else number + 0.5
        if kind == "boolean":
            return self.maybe(0.5)
        if kind == "array":
            return [self.value(schema["items"], odd) for _ in range(self.chance.choice([0, 1, 2, 2, 3]))]
        if kind == "object":
            return self.fields(schema, odd)
        return self.chance.choice([{"x": 1}, {"x": {"y": [1]}}, {}])

    def text(self, schema):
        if "format" in schema:
            return self.chance.choice(FORMATS[schema["format"]])
        words = WORDS
        if not self.maybe(0.1):
            words = [word for word in WORDS if schema.get("minLength", 0) <= len(word) <= schema.get("maxLength", 100)]
        return self.chance.choice(words or WORDS)

    def fields(self, schema, odd):
        value = {}
        for name, inner in schema.get("properties", {}).items():
            if name in schema.get("required", []) and not self.maybe(odd) or self.maybe(0.65):
                value[name] = self.value(inner, odd)
        if "additionalProperties" in schema:
            for name in self.chance.sample(["k1", "k2", "a.b/c", "ä"], self.chance.choice([0, 1, 2])):
                value[name] = self.value(schema["additionalProperties"], odd)
        if self.maybe(odd) or schema.get("x-kubernetes-preserve-unknown-fields") and self.maybe(0.3):
            value["zz"] = self.chance.choice([1, "a", {"y": 1}, None])
        return value

    # changes of schemas

    def spoiled(self, schema):
        """The schema with one of its nodes changed in a way that may be invalid."""
        schema = copy.deepcopy(schema)
        nodes = list(nodes_of(schema))
        for _ in range(self.chance.choice([1, 1, 2])):
            node = self.chance.choice(nodes)
            key, values = self.chance.choice(list(SPOILED.items()))
            if key in ("DROP",) and node:
                node.pop(self.chance.choice(sorted(node)))
            else:
                node[key] = copy.deepcopy(self.chance.choice(values))
        return schema


def nodes_of(schema):
    if not isinstance(schema, dict):
        return
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from nodes_of(inner)
    for key in ("items", "additionalProperties", "not"):
        yield from nodes_of(schema.get(key))
    for key in ("anyOf", "allOf", "oneOf"):
        for inner in schema.get(key, []):
            yield from nodes_of(inner)


RULES = {
    "string": [
        "self.size() < 3",
        "self.startsWith('a')",
        "self == oldSelf",
        "self.matches('^[a-z]+$')",
        "self in ['a', 'b', 'abc']",
        "self.upperAscii() != 'AB'",
        "self.split('-').size() == 1",
        "!self.contains('x')",
        "self.indexOf('b') < 1",
        "!format.dns1123Label().validate(self).hasValue()",
        "self.find('[0-9]+') == ''",
        "size(self.replace('a', 'bb')) < 4",
        "self",
        "self > 1",
        "self.unknown()",
        "oldSelf == '' || self != ''",
        "self.charAt(0) == 'a'",
        "int(self) > 3",
        "quantity(self).isGreaterThan(quantity('1'))",
        "isURL(self)",
        "self.lowerAscii() == self",
        "oldSelf.orValue('a') == self",
    ],
    "integer": [
        "self > 1",
        "self % 2 == 0",
        "self >= oldSelf",
        "self / 0 == 1",
        "self * 9223372036854775807 > 0",
        "self < 10.0",
        "string(self) != '5'",
        "self in [1, 2, 3]",
        "math.abs(self) < 3",
        "self",
        "-self < 0",
        "self == 1 || self == 2",
    ],
    "number": ["self > 1.0", "self >= double(oldSelf)", "self < 10.0", "self == 1", "int(self) % 2 == 0", "math.ceil(self) < 3.0"],
    "boolean": ["self", "!self", "self == oldSelf", "self ? true : false"],
    "object": [
        "has(self.FIELD)",
        "!has(self.OTHER) || has(self.FIELD)",
        "has(self.FIELD) == has(self.OTHER)",
        "self.FIELD == self.OTHER",
        "self == oldSelf",
        "has(oldSelf.FIELD) ? has(self.FIELD) : true",
        "self.?FIELD.hasValue()",
        "self.zz == 1",
        "has(self.zz)",
        "size(self.FIELD) < 3",
        "self.FIELD.size() > 0",
        "self.FIELD > 1",
        "!has(self.FIELD) || self.FIELD != oldSelf.FIELD",
        "dyn(self.FIELD) == 1",
        "type(self.FIELD) == string",
        "self.?FIELD.orValue(self.OTHER) == self.OTHER",
        "[self.?FIELD, self.?OTHER].filter(x, x.hasValue()).size() == 1",
    ],
    "map": [
        "self.size() < 2",
        "self.all(k, k != 'k1')",
        "self.exists(k, k.startsWith('k'))",
        "self == oldSelf",
        "'k1' in self",
        "self.all(k, v, k != 'k2')",
        "has(self.k1)",
        "self['k1'] == self['k2']",
        "self.map(k, k).join(',') == 'k1'",
    ],
    "list": [
        "self.size() < 2",
        "self.all(x, x == self[0])",
        "self.exists_one(x, x == self[0])",
        "self == oldSelf",
        "self.isSorted()",
        "self[0] == self[1]",
        "self.filter(x, x == self[0]).size() == 1",
        "self.all(i, x, i < 2)",
        "self.distinct().size() == self.size()",
        "self.sum() < 3",
        "self.max() < 3",
        "self.slice(0, 1).size() == 1",
        "self + self == self",
        "self.all(x, has(x.a))",
    ],
    "set": [
        "self.size() < 2",
        "self == oldSelf",
        "self.all(x, x in oldSelf)",
        "oldSelf.all(x, x in self)",
        "self + oldSelf == self",
        "sets.contains(self, [self[0]])",
        "self.isSorted()",
        "self.exists(x, x == self[1])",
    ],
    "maplist": [
        "self.size() < 2",
        "self == oldSelf",
        "self.all(x, x in oldSelf)",
        "self.exists(x, has(x.a))",
        "self.all(x, has(x.b))",
        "self.all(x, oldSelf.exists(y, y == x))",
        "oldSelf + self == self",
        "self.map(x, x.a).size() == 2",
        "self[0] == self[1]",
    ],
    "intstr": ["type(self) == int", "self == 5", "type(self) == int ? self > 3 : self != 'a'", "self == oldSelf"],
}

SPOILED = {
    "DROP": [None],
    "type": ["string", "object", "array", "", "null", "integer", "x"],
    "format": ["int32", "date", "x", ""],
    "nullable": [True, False],
    "default": [None, 1, "a", {}, [], {"a": 1}, ["a", "a"], True, 1.5, {"zz": 1}],
    "minimum": [1, 1.5, -1],
    "maximum": [0, 5],
    "exclusiveMinimum": [True],
    "multipleOf": [0, -1, 2, 1.5],
    "maxLength": [-1, 0, 5],
    "minLength": [1, -1],
    "pattern": ["(", "^a$", "(?=a)"],
    "maxItems": [-1, 0, 3],
    "minItems": [1],
    "uniqueItems": [True, False],
    "maxProperties": [-1, 1],
    "minProperties": [1],
    "required": [[], ["a"], ["zz"], ["a", "a"], [""]],
    "enum": [[], ["a"], [1], ["a", "a"], [None], [{"a": 1}], ["a", 1]],
    "properties": [{}, {"a": {}}, {"a": {"type": "string"}}, {"": {"type": "object"}}],
    "additionalProperties": [True, False, {"type": "string"}, {}],
    "items": [{}, {"type": "string"}, [{"type": "string"}], {"type": "object"}],
    "anyOf": [[], [{}], [{"required": ["a"]}], [{"type": "string"}], [{"properties": {"zz": {}}}], [{"default": 1}], [{"nullable": True}]],
    "allOf": [
        [{"minimum": 1}],
        [{"properties": {"a": {"type": "string"}}}],
        [{"items": {"minLength": 1}}],
        [{"additionalProperties": {}}],
        [{"anyOf": [{"required": ["a"]}]}],
        [{"x-kubernetes-preserve-unknown-fields": True}],
        [{"description": "d"}],
    ],
    "oneOf": [[{"required": ["a"]}, {"required": ["b"]}], [{"properties": {"a": {"enum": ["a"]}}}]],
    "not": [{}, {"required": ["a"]}, {"properties": {"a": {"default": 1}}}, {"type": "string"}],
    "x-kubernetes-preserve-unknown-fields": [True, False],
    "x-kubernetes-embedded-resource": [True, False],
    "x-kubernetes-int-or-string": [True, False],
    "x-kubernetes-list-type": ["atomic", "set", "map", "x", ""],
    "x-kubernetes-list-map-keys": [[], ["a"], ["a", "a"], ["zz"], ["a", "b"]],
    "x-kubernetes-map-type": ["atomic", "granular", "x", ""],
    "x-kubernetes-validations": [
        [],
        [{"rule": ""}],
        [{"rule": "true"}],
        [{"rule": "self.a == 1"}],
        [{"rule": "("}],
        [{"rule": "self", "message": ""}],
        [{"rule": "true", "fieldPath": ".a"}],
        [{"rule": "true", "reason": "x"}],
        [{"rule": "true", "messageExpression": "1"}],
        [{"rule": "oldSelf == self"}],
        [{"rule": "oldSelf.hasValue()", "optionalOldSelf": True}],
        [{"message": "a"}],
        [{"rule": "self.all(x, self.all(y, self.all(z, x == y && y == z)))"}],
        [{"rule": "true", "message": "a" * 2049}],
        [{"rule": "self.metadata.name == 'a'"}],
        [{"rule": "self.kind == 'a'"}],
    ],
    "$ref": ["#/a"],
    "definitions": [{}, {"a": {}}],
    "dependencies": [{"a": ["b"]}],
    "patternProperties": [{"a": {}}],
    "title": ["t"],
    "externalDocs": [{"url": "x"}],
    "example": [{"a": 1}, None],
    "id": ["a"],
    "$schema": ["a"],
    "additionalItems": [True, {}],
    "description": ["d"],
    "zz": [1],
}


class Definition:
    """A random CRD, and what is asked about it."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.maker = Maker(self.chance)
        self.group = f"random-{seed}.example.com"
        self.base = f"/apis/{self.group}"
        self.namespaced = self.maker.maybe(0.7)
        self.versions = ["v1", "v2"][: self.chance.choice([1, 1, 2])]
        self.schemas = {version: self.root() for version in self.versions}
        self.status = self.maker.maybe(0.5)
        self.scale = self.scale_paths() if self.maker.maybe(0.3) else None
        self.columns = {version: self.printer_columns(version) for version in self.versions}
        self.selectable = {version: self.selectable_fields(version) for version in self.versions}
        self.name = f"things.{self.group}"

    def root(self):
        schema = {"type": "object", "properties": {"spec": self.maker.of_object(3), "status": self.maker.of_object(2)}}
        if self.maker.maybe(0.2):
            schema["properties"]["metadata"] = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 2}}}
        if self.maker.maybe(0.15):
            schema["x-kubernetes-validations"] = [
                {
                    "rule": self.chance.choice(
                        [
                            "self.metadata.name != 'b'",
                            "has(self.spec)",
                            "!has(self.status) || has(self.spec)",
                            "self.kind == 'Thing'",
                            "self.metadata.?labels.hasValue()",
                            "self.metadata.generateName == ''",
                        ]
                    )
                }
            ]
        if self.maker.maybe(0.1):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        return schema

    def scale_paths(self):
        """Paths of a scale, which the schema gets if it does not have them."""
        for schema in self.schemas.values():
            schema["properties"]["spec"]["properties"]["replicas"] = {"type": "integer"}
            schema["properties"]["status"]["properties"].update(replicas={"type": "integer"}, selector={"type": "string"})
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        return {**paths, "labelSelectorPath": ".status.selector"} if self.maker.maybe(0.6) else paths

    def path(self, version, arrays):
        """The JSONPath of a field, and its schema."""
        path, schema = "." + self.chance.choice(["spec", "status"]), None
        schema = self.schemas[version]["properties"][path[1:]]
        while True:
            if schema.get("properties") and self.maker.maybe(0.9):
                name, schema = self.chance.choice(sorted(schema["properties"].items(), key=lambda item: item[0]))
                path += "." + name if name.isalnum() else self.chance.choice([f"['{name}']", "." + name.replace(".", "\\.")])
            elif arrays and schema.get("type") == "array" and self.maker.maybe(0.8):
                path, schema = path + self.chance.choice(["[0]", "[*]", "[-1]", "[0:1]", "[?(@.a==1)]"]), schema["items"]
            else:
                return path, schema

    def printer_columns(self, version):
        columns = []
        for i in range(self.chance.choice([0, 1, 2, 4])):
            path, schema = self.path(version, True)
            kind = schema.get("type", "string")
            kind = kind if kind in ("string", "integer", "number", "boolean") and self.maker.maybe(0.7) else "string"
            column = {"name": f"C{i}", "type": kind, "jsonPath": path}
            if self.maker.maybe(0.2):
                column.update(
                    self.chance.choice(
                        [
                            {"type": "date"},
                            {"priority": 1},
                            {"format": "int32"},
                            {"description": "d"},
                            {"type": "integer"},
                            {"jsonPath": ".metadata.creationTimestamp"},
                            {"jsonPath": ".metadata.labels"},
                        ]
                    )
                )
            columns.append(column)
        return columns

    def selectable_fields(self, version):
        paths = []
        for _ in range(self.chance.choice([0, 0, 1, 2])):
            path, schema = self.path(version, False)
            if schema.get("type") in ("string", "integer", "boolean") and "[" not in path and "\\" not in path and path not in paths:
                paths.append(path)
        return paths

    def body(self, schemas):
        versions = []
        for i, (version, schema) in enumerate(schemas.items()):
            entry: dict = {"name": version, "served": True, "storage": i == 0, "schema": {"openAPIV3Schema": schema}}
            if self.status:
                entry["subresources"] = {"status": {}}
            if self.scale:
                entry.setdefault("subresources", {})["scale"] = self.scale
            if self.columns[version]:
                entry["additionalPrinterColumns"] = self.columns[version]
            if self.selectable[version]:
                entry["selectableFields"] = [{"jsonPath": path} for path in self.selectable[version]]
            versions.append(entry)
        spec = {
            "group": self.group,
            "scope": "Namespaced" if self.namespaced else "Cluster",
            "versions": versions,
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        }
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": self.name}, "spec": spec}

    def spoiled(self):
        version = self.chance.choice(self.versions)
        return self.body({**self.schemas, version: self.maker.spoiled(self.schemas[version])})

    def object(self, version, name, odd):
        schema = self.schemas[version]
        value: dict = {"apiVersion": f"{self.group}/{version}", "kind": "Thing", "metadata": {"name": name}, **self.maker.fields(schema, odd)}
        value["metadata"] = {"name": name}
        if self.maker.maybe(0.3):
            value["metadata"]["labels"] = {"l": self.chance.choice(["a", "b"])}
        return value

    def url(self, version):
        return f"{self.base}/{version}" + ("/namespaces/default" if self.namespaced else "") + "/things"

    def write(self):
        """A random write of one of two objects."""
        version, name = self.chance.choice(self.versions), self.chance.choice(["a", "a", "b"])
        url = f"{self.url(version)}/{name}"
        odd = self.chance.choice([0, 0, 0.03, 0.15])
        value = self.object(version, name, odd)
        query = self.chance.choice(["", "", "fieldValidation=Strict", "fieldValidation=Ignore"])
        if self.scale and self.maker.maybe(0.15):
            return self.write_scale(f"{url}/scale", query)
        pick = self.chance.choice(["post", "put", "put", "merge", "merge", "apply", "apply", "apply", "patch", "status", "delete"])
        if pick == "post":
            return step("POST", self.url(version), query, JSON, value)
        if pick in ("put", "status"):
            return step("PUT", url + ("/status" if pick == "status" else ""), query, JSON, value)
        if pick == "merge":
            part = {key: value[key] for key in ("spec", "status") if key in value}
            return step("PATCH", url + ("/status" if self.maker.maybe(0.2) else ""), query, MERGE, self.with_nulls(part))
        if pick == "apply":
            manager = self.chance.choice(["fieldManager=one", "fieldManager=two", "fieldManager=two&force=true", "fieldManager=one&force=true"])
            return step("PATCH", url + ("/status" if self.maker.maybe(0.1) else ""), "&".join(filter(None, (manager, query))), APPLY, value)
        if pick == "patch":
            return step("PATCH", url, query, OPERATIONS, [self.operation(version) for _ in range(self.chance.choice([1, 1, 2]))])
        return step("DELETE", url, "", JSON, {})

    def write_scale(self, url, query):
        spec = {"spec": {"replicas": self.chance.choice([0, 1, 3, -1, None, "1"])}}
        pick = self.chance.choice(["get", "put", "merge", "apply"])
        if pick == "get":
            return step("GET", url, "", {})
        if pick == "merge":
            return step("PATCH", url, query, MERGE, spec)
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": url.split("/")[-2]}, **spec}
        return step("PUT", url, query, JSON, scale) if pick == "put" else step("PATCH", url, "fieldManager=one", APPLY, scale)

    def read(self):
        """A random list or get."""
        version = self.chance.choice(self.versions)
        selector = "fieldSelector=" + self.chance.choice([*(path[1:] for path in self.selectable[version]), "spec.a", "metadata.name"])
        selector += self.chance.choice(["=", "!="]) + self.chance.choice(["", "a", "1", "true", "b"])
        query = self.chance.choice(["", "", selector, selector, "limit=1", "labelSelector=l=a"])
        table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        url = self.url(version) + self.chance.choice(["", "", "/a", "/b"])
        return {**step("GET", url, query, self.chance.choice([{}, table, table])), "ignore": ["metadata.continue"]}

    def with_nulls(self, value):
        if isinstance(value, dict):
            return {key: None if self.maker.maybe(0.1) else self.with_nulls(item) for key, item in value.items()}
        return value

    def operation(self, version):
        path, schema = "/spec", self.schemas[version]["properties"]["spec"]
        while schema.get("properties") and self.maker.maybe(0.9):
            name, schema = self.chance.choice(sorted(schema["properties"].items(), key=lambda item: item[0]))
            path += "/" + name
            if schema.get("type") == "array" and self.maker.maybe(0.5):
                path, schema = path + self.chance.choice(["/0", "/-", "/1"]), schema["items"]
        kind = self.chance.choice(["add", "add", "replace", "remove", "test"])
        return {"op": kind, "path": path, **({} if kind == "remove" else {"value": self.maker.value(schema, 0.05)})}


def step(method, path, query, headers, body=None):
    made = {"id": "", "method": method, "path": path + ("?" + query if query else ""), "headers": headers}
    return made if body is None else {**made, "body": body}


class Run:
    def __init__(self, servers, end):
        self.servers, self.end, self.known = servers, end, Known(KNOWN)
        self.asked, self.by_chance, self.listed, self.found, self.created = 0, 0, 0, [], 0

    def compare(self, pair, seed, one):
        """Sends a request to both. Returns the status, or None if the responses differ."""
        reference, got = pair.send(one)
        self.asked += 1
        if reference == got:
            return reference.get("status")
        if self.is_chance(pair, one, reference, got):
            self.by_chance += 1
            return reference.get("status")
        text = signature(reference, got)
        if self.known.find(text, " ".join([one["method"], one["path"], json.dumps(one["headers"]), json.dumps(one.get("body"))])):
            self.listed += 1
            return None
        self.found.append({"seed": seed, "signature": text, "want": reference, "got": got, "step": one})
        return None

    @staticmethod
    def is_chance(pair, one, reference, got):
        """Whether kube-apiserver itself responds differently to a refused request, or to a dry run, when it is repeated."""
        if "error" in reference:
            # kube-apiserver has panicked
            return True
        refused = reference.get("status", 0) >= 400 and got.get("status", 0) >= 400
        if not refused and "dryRun" not in one["path"]:
            return False
        repeated = [pair.send(one) for _ in range(4)]
        return any(again != reference or again == ours for again, ours in repeated)

    def one(self, seed):
        if time.time() > self.end:
            return
        definition = Definition(seed)
        pair = Pair(self.servers, {"name": "random", "about": "", "steps": []})
        try:
            self.ask(pair, definition, seed)
        finally:
            for side in pair.sides:
                side.send(step("DELETE", f"{DEFINITIONS}/{definition.name}", "", JSON, {}))
            pair.close()

    def ask(self, pair, definition, seed):
        for _ in range(8):
            self.compare(pair, seed, step("POST", DEFINITIONS, "dryRun=All", JSON, definition.spoiled()))
        created = self.compare(pair, seed, step("POST", DEFINITIONS, "", JSON, definition.body(definition.schemas)))
        if created != 201:
            return
        self.created += 1
        self.wait(pair, definition)
        before = {**step("POST", definition.url(definition.versions[0]), "", JSON, definition.object(definition.versions[0], "a", 0))}
        if self.compare(pair, seed, before) is None:
            return
        for i in range(60):
            one = definition.write()
            dry = self.chance(definition)
            if dry:
                one["path"] += ("&" if "?" in one["path"] else "?") + "dryRun=All"
            status = self.compare(pair, seed, one)
            if status is None and not dry:
                break
            if i % 5 == 4:
                self.compare(pair, seed, definition.read())
        for version in definition.versions:
            self.compare(pair, seed, step("GET", f"/openapi/v3{definition.base}/{version}", "", {}))
        self.compare(pair, seed, {**step("GET", f"{DEFINITIONS}/{definition.name}", "", {}), "ignore": ["status.conditions"]})

    @staticmethod
    def chance(definition):
        return definition.maker.maybe(0.6)

    def wait(self, pair, definition):
        """Waits until both servers serve all versions."""
        for version in definition.versions:
            for path in (definition.url(version), f"/openapi/v3{definition.base}/{version}"):
                end = time.time() + 30
                while time.time() < end and any(r.get("status") != 200 for r in pair.send(step("GET", path, "", {}))):
                    time.sleep(0.2)


def main():
    args = comparison(__doc__, 300).parse_args()
    run = Run(servers_of(args), time.time() + args.seconds)
    seed = args.seed * 1_000_000
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        while time.time() < run.end:
            for result in [pool.submit(run.one, seed + i) for i in range(4 * WORKERS)]:
                result.result()
            seed += 4 * WORKERS
            if args.report:
                with open(args.report, "w", encoding="utf-8") as out:
                    json.dump(run.found, out)
            print(
                f"{run.created} definitions, {run.asked} asked, {run.by_chance} differ by chance, {run.listed} as listed, {len(run.found)} otherwise",
                flush=True,
            )
    sys.exit(bool(run.found))


if __name__ == "__main__":
    main()
