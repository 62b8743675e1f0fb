#!/usr/bin/env python3
"""Creates random CustomResourceDefinitions and custom resources on two servers, and reports what differs.

  random_schemas.py --reference URL --server URL --token TOKEN [--seed N] [--seconds N] [--report FILE]

kube-apiserver is the reference. Each CRD has one or two versions with random structural schemas: types, bounds, formats, defaults,
list types, embedded resources, extensions and CEL rules, most of them valid. Each is sent as a dry run with some of its keywords
spoiled. The valid one is created, and then random objects of it are created, replaced, patched and applied, some of them as dry
runs. The objects, the errors, the warnings and the OpenAPI documents of both servers are compared. What a CRD needs after a
response that differs is not done, since the two servers have different objects from there on.
"""

import copy
import random
import time

from comparison import APPLY, DRY, OPERATIONS, Comparison, step, tables

ROUND = 16
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
NAMES = ["a", "b", "c", "d", "e-f", "g.h", "_i"]
WORDS = ["", "a", "b", "ab", "abc", "x-y", "10", "ä", "a b", "true"]
TABLES = tables("schemas")
FORMATS, OPTIONS, RULES, SPOILED = (TABLES[name] for name in ("formats", "options", "rules", "spoiled"))
PATTERNS = ["^a", "b$", "^[a-z]*$", "^.{1,3}$", "a|b", "\\d+", "(?i)AB", "^\\p{L}+$"]


class Maker:
    """Random schemas, and random values that fit them, or nearly so."""

    def __init__(self, chance):
        self.chance = chance

    def maybe(self, share):
        return self.chance.random() < share

    def with_options(self, schema, kind):
        """Adds some of the keywords that a type of schema may have."""
        for key, (share, values) in OPTIONS.get(kind, {}).items():
            if self.maybe(share):
                schema[key] = copy.deepcopy(self.chance.choice(values))
        return schema

    # schemas

    def schema(self, depth):
        kinds = ["string", "string", "integer", "number", "boolean", "intstr", "free"]
        if depth:
            kinds += ["object", "object", "object", "map", "list", "list", "set", "maplist", "maplist", "embedded"]
        kind = self.chance.choice(kinds)
        schema = self.with_options(self.of(kind, depth), "any")
        if kind not in ("free", "embedded") and self.maybe(0.25):
            schema["default"] = self.value(schema, 0)
            if schema["default"] is None and not schema.get("nullable"):
                del schema["default"]
        if self.maybe(0.15) and kind in RULES:
            self.add_rules(schema, kind)
        return schema

    def of(self, kind, depth):
        """A schema of a type, without a default."""
        make = getattr(self, "of_" + kind, lambda _: {"type": kind})
        schema = self.with_options(make(depth), kind)
        for bound in ("minimum", "maximum"):
            if bound in schema and schema.get("type") and self.maybe(0.3):
                schema["exclusive" + bound.capitalize()] = self.chance.choice([True, False])
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
        return schema

    def of_intstr(self, _):
        return {"x-kubernetes-int-or-string": True}

    def of_free(self, _):
        return {"x-kubernetes-preserve-unknown-fields": True}

    def of_object(self, depth):
        names = self.chance.sample(NAMES, self.chance.choice([1, 2, 2, 3, 4]))
        schema = {"type": "object", "properties": {name: self.schema(depth - 1) for name in names}}
        if self.maybe(0.3):
            schema["required"] = self.chance.sample(names, 1)
        if self.maybe(0.12):
            schema[self.chance.choice(["oneOf", "anyOf", "allOf"])] = [{"required": [name]} for name in names]
        if self.maybe(0.06):
            schema["not"] = {"required": [self.chance.choice(names)]}
        if self.maybe(0.06):
            name = self.chance.choice(names)
            kind = schema["properties"][name].get("type")
            bound = {"string": {"minLength": 1}, "integer": {"minimum": 1}, "number": {"maximum": 3}}.get(kind, {})
            schema[self.chance.choice(["anyOf", "allOf", "oneOf"])] = [{"properties": {name: bound}}, {"required": [name]}]
        return schema

    def of_map(self, depth):
        return {"type": "object", "additionalProperties": self.schema(depth - 1)}

    def of_list(self, depth):
        return {"type": "array", "items": self.schema(depth - 1)}

    def of_set(self, depth):
        items = self.of(self.chance.choice(["string", "integer", "boolean", "number"]), depth)
        if self.maybe(0.1):
            items = {**self.of("object", 1), "x-kubernetes-map-type": "atomic"}
        return {"type": "array", "items": items, "x-kubernetes-list-type": "set"}

    def of_maplist(self, depth):
        names = self.chance.sample(NAMES, self.chance.choice([1, 1, 2]))
        keys = {name: self.of(self.chance.choice(["string", "integer", "boolean"]), 0) for name in names}
        for schema in keys.values():
            if self.maybe(0.3):
                schema["default"] = self.value(schema, 0)
        more = self.of("object", max(depth, 1))
        items = {**more, "properties": {**more["properties"], **keys}}
        needed = [name for name, schema in keys.items() if "default" not in schema]
        items["required"] = sorted({*items.get("required", []), *needed})
        if not items["required"]:
            del items["required"]
        return {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": names}

    def of_embedded(self, depth):
        schema = {"type": "object", "x-kubernetes-embedded-resource": True}
        return {**schema, "properties": {"spec": self.of("object", depth)}} if self.maybe(0.4) else schema

    # rules

    def add_rules(self, schema, kind):
        rules = []
        for _ in range(self.chance.choice([1, 1, 2])):
            text = self.chance.choice(RULES[kind])
            fields = sorted(schema.get("properties", {})) or ["a"]
            field, other = self.chance.choice(fields), self.chance.choice(fields)
            escaped = [name.replace(".", "__dot__").replace("-", "__dash__") for name in (field, other)]
            rule = self.with_options({"rule": text.replace("FIELD", escaped[0]).replace("OTHER", escaped[1])}, "rule")
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
        schema = {"type": "object", "properties": {"spec": self.maker.of("object", 3), "status": self.maker.of("object", 2)}}
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
            return step("POST", self.url(version), value, query=[query])
        if pick in ("put", "status"):
            return step("PUT", url + ("/status" if pick == "status" else ""), value, query=[query])
        if pick == "merge":
            part = {key: value[key] for key in ("spec", "status") if key in value}
            return step("PATCH", url + ("/status" if self.maker.maybe(0.2) else ""), self.with_nulls(part), query=[query])
        if pick == "apply":
            manager = self.chance.choice(["fieldManager=one", "fieldManager=two", "fieldManager=two&force=true", "fieldManager=one&force=true"])
            return step("PATCH", url + ("/status" if self.maker.maybe(0.1) else ""), value, APPLY, [manager, query])
        if pick == "patch":
            return step("PATCH", url, [self.operation(version) for _ in range(self.chance.choice([1, 1, 2]))], OPERATIONS, [query])
        return step("DELETE", url, {})

    def write_scale(self, url, query):
        spec = {"spec": {"replicas": self.chance.choice([0, 1, 3, -1, None, "1"])}}
        pick = self.chance.choice(["get", "put", "merge", "apply"])
        if pick == "get":
            return step("GET", url)
        if pick == "merge":
            return step("PATCH", url, spec, query=[query])
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": url.split("/")[-2]}, **spec}
        return step("PUT", url, scale, query=[query]) if pick == "put" else step("PATCH", url, scale, APPLY, ["fieldManager=one"])

    def read(self):
        """A random list or get."""
        version = self.chance.choice(self.versions)
        selector = "fieldSelector=" + self.chance.choice([*(path[1:] for path in self.selectable[version]), "spec.a", "metadata.name"])
        selector += self.chance.choice(["=", "!="]) + self.chance.choice(["", "a", "1", "true", "b"])
        query = self.chance.choice(["", "", selector, selector, "limit=1", "labelSelector=l=a"])
        url = self.url(version) + self.chance.choice(["", "", "/a", "/b"])
        headers = self.chance.choice([{}, {"Accept": TABLE}, {"Accept": TABLE}])
        return step("GET", url, headers=headers, query=[query], ignore=["metadata.continue"])

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


class Schemas(Comparison):
    """The comparison of CRDs, and of objects of them."""

    def ask(self, seed):
        definition = Definition(seed)
        with self.pair() as pair:
            try:
                self.ask_all(pair, definition, seed)
            finally:
                pair.send(step("DELETE", f"{DEFINITIONS}/{definition.name}", {}))

    def ask_all(self, pair, definition, seed):
        for _ in range(8):
            self.status(pair, step("POST", DEFINITIONS, definition.spoiled(), query=[DRY]), seed=seed)
        if self.status(pair, step("POST", DEFINITIONS, definition.body(definition.schemas)), seed=seed) != 201:
            return
        self.counts["definitions"] += 1
        self.wait(pair, definition)
        if self.status(pair, step("POST", definition.url(definition.versions[0]), definition.object(definition.versions[0], "a", 0)), seed=seed) is None:
            return
        for i in range(60):
            one = definition.write()
            if definition.maker.maybe(0.6):
                one["path"] += ("&" if "?" in one["path"] else "?") + DRY
            if self.status(pair, one, seed=seed) is None:
                break
            if i % 5 == 4:
                self.status(pair, definition.read(), seed=seed)
        for version in definition.versions:
            self.status(pair, step("GET", f"/openapi/v3{definition.base}/{version}"), seed=seed)
        self.status(pair, step("GET", f"{DEFINITIONS}/{definition.name}", ignore=["status.conditions"]), seed=seed)

    @staticmethod
    def wait(pair, definition):
        """Waits until both servers serve all versions."""
        for version in definition.versions:
            for path in (definition.url(version), f"/openapi/v3{definition.base}/{version}"):
                end = time.time() + 30
                while time.time() < end and any(response.get("status") != 200 for response in pair.send(step("GET", path))):
                    time.sleep(0.2)


if __name__ == "__main__":
    run = Schemas(__doc__, 300)
    first = run.args.seed * 1_000_000
    run.run(run.ask, lambda number: range(first + number * ROUND, first + (number + 1) * ROUND))
