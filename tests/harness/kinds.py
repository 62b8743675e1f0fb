#!/usr/bin/env python3
"""Generates scenarios for the built-in kinds, and measures the share of equal responses.

  kinds.py generate --server URL --token TOKEN [--only PLURAL] DIR
      Writes a scenario per kind, from the samples in samples.yaml and the OpenAPI documents of a server.
  kinds.py share --server URL --token TOKEN [--classes FILE] DIR
      Replays recorded scenarios and prints the equal share of each kind. --classes writes the differences, the most frequent
      ones first.
  kinds.py keep --server URL --token TOKEN --bytes N DIR OUT
      Copies recorded scenarios with the steps whose responses are equal on a server, at most N bytes of steps per scenario.

Scenarios are recorded on kube-apiserver by `pintle replay --record`. A scenario creates a full and a minimal object, and then
sends, mostly as dry runs: the full object with each field dropped, of a wrong type and out of range, and with each field that
it lacks; updates that change each field; applies by two managers; writes of status and scale; reads as table, as
metadata and in protobuf; deletions.
"""

import argparse
import collections
import copy
import itertools
import json
import os
import re

import player
from comparison import APPLY, DRY, STRATEGIC, step, tables
from programs import ROOT
from steps import Server, write

SAMPLES = tables("samples")
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PROTOBUF = {"Accept": "application/vnd.kubernetes.protobuf"}
# only every SAMPLING-th field of pod templates is changed, since Pods cover the others
SAMPLING = 9


class Schemas:
    """The OpenAPI documents of a server."""

    def __init__(self, server):
        self.server, self.documents = server, {}

    def document(self, api_version):
        if api_version not in self.documents:
            path = f"/openapi/v3/{'api' if '/' not in api_version else 'apis'}/{api_version}"
            connection, response = self.server.send("GET", path, {"Accept": "application/json"})
            self.documents[api_version] = json.loads(response.read())["components"]["schemas"]
            connection.close()
        return self.documents[api_version]

    def of_kind(self, api_version, kind):
        group, _, version = api_version.rpartition("/")
        wanted = {"group": group, "version": version, "kind": kind}
        found = [schema for schema in self.document(api_version).values() if wanted in schema.get("x-kubernetes-group-version-kind", [])]
        return found[0]

    def resolve(self, api_version, schema):
        while schema and ("$ref" in schema or "allOf" in schema):
            schema = schema if "$ref" in schema else schema["allOf"][0]
            if "$ref" not in schema:
                return schema
            name = schema["$ref"].rsplit("/", 1)[-1]
            schema = dict(self.document(api_version)[name], name=name)
        return schema or {}


def synthetic(schemas, api_version, schema, depth=0, required_only=True):
    """A minimal value of a schema, with the required fields only."""
    schema = schemas.resolve(api_version, schema)
    kind, name = schema.get("type"), schema.get("name", "")
    if name.endswith("Quantity"):
        return "1"
    if name.endswith(("Time", "MicroTime")):
        return "2026-01-02T03:04:05Z" if not name.endswith("MicroTime") else "2026-01-02T03:04:05.000000Z"
    if name.endswith("IntOrString"):
        return 1
    if kind == "string":
        return schema.get("enum", ["x"])[0]
    if kind == "integer" or kind == "number":
        return 1
    if kind == "boolean":
        return True
    if kind == "array":
        return [synthetic(schemas, api_version, schema["items"], depth + 1)]
    if "additionalProperties" in schema:
        return {"a": synthetic(schemas, api_version, schema["additionalProperties"], depth + 1)}
    if depth > 4:
        return {}
    return {field: synthetic(schemas, api_version, schema["properties"][field], depth + 1) for field in schema.get("required", [])}


def every(value, schema, schemas, api_version, path=()):
    """Every field and item of a value below the root, with its schema; of items with the same fields the first."""
    schema = schemas.resolve(api_version, schema)
    if isinstance(value, dict):
        inner = [(key, item, schema.get("properties", {}).get(key, schema.get("additionalProperties") or {})) for key, item in value.items()]
    elif isinstance(value, list):
        forms = {json.dumps(sorted(item) if isinstance(item, dict) else ""): i for i, item in reversed(list(enumerate(value)))}
        inner = [(i, value[i], schema.get("items") or {}) for i in sorted(forms.values())]
    else:
        return
    for key, item, known in inner:
        yield (*path, key), item, schemas.resolve(api_version, known)
        yield from every(item, known, schemas, api_version, (*path, key))


def absent(value, schema, schemas, api_version, path=()):
    """Every field of the schema that an object does not have, with its schema."""
    schema = schemas.resolve(api_version, schema)
    if isinstance(value, dict):
        for key, inner in schema.get("properties", {}).items():
            if key in value:
                yield from absent(value[key], inner, schemas, api_version, (*path, key))
            else:
                yield (*path, key), inner
    elif isinstance(value, list):
        for i, inner in enumerate(value[:1]):
            yield from absent(inner, schema.get("items") or {}, schemas, api_version, (*path, i))


def changed(value, path, new):
    """A copy of a value with `new` at a path, or without the field at the path if `new` is `DROP`."""
    value = copy.deepcopy(value)
    target = value
    for part in path[:-1]:
        target = target[part]
    if new is DROP:
        del target[path[-1]]
    else:
        target[path[-1]] = new
    return value


DROP = object()


def wrong_types(value):
    """A value of another type."""
    if isinstance(value, bool):
        return ["yes"]
    if isinstance(value, (int, float)):
        return ["x", 1.5]
    if isinstance(value, str):
        return [7]
    if isinstance(value, list):
        return [{"a": 1}, "x"]
    return [["x"], 1]


def odd_values(value, schema):
    """Values of the same type that are probably invalid."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [0, -1, 70000, 2147483648]
    if isinstance(value, str):
        return ["", "Not_Valid!", "a" * 300] if "enum" not in schema else ["", "Zog"]
    if isinstance(value, list):
        return [[], value + value] if value else [[]]
    if isinstance(value, dict):
        more = [{**value, "not a key!": next(iter(value.values()))}] if "additionalProperties" in schema and value else []
        return [{}, *more]
    return []


def other_values(value):
    """Other values of the same type that are probably valid."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, str):
        return [value + "1"]
    return []


def name_of(path):
    return ".".join(str(part) for part in path)


class Kind:
    """A kind that a tester asks about: its sample, its schema, and the paths of its objects."""

    def __init__(self, schemas, sample, prefix, name=None):
        self.schemas, self.sample = schemas, sample
        self.api_version, self.kind, self.plural = sample["apiVersion"], sample["kind"], sample["plural"]
        self.schema = schemas.of_kind(self.api_version, self.kind)
        version = "" if sample.get("main", True) else "-" + self.api_version.rsplit("/", 1)[-1]
        self.id = prefix + self.plural + version + sample.get("label", "")
        self.namespaced = sample.get("namespaced", True)
        base = ("/api/" if "/" not in self.api_version else "/apis/") + self.api_version
        self.collection = f"{base}/namespaces/{self.id}/{self.plural}" if self.namespaced else f"{base}/{self.plural}"
        self.name = sample.get("name", name if name and self.namespaced else self.id)

    def with_metadata(self, body, name):
        body = copy.deepcopy(body)
        metadata = {"name": name, **body.pop("metadata", {})}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **body}

    def needed(self):
        """Requests that create what the object needs."""
        if self.namespaced:
            yield step("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.id}}, id="namespace")
        for before in self.sample.get("before", []):
            yield step("POST", before["path"].replace("NAMESPACE", self.id), before["body"], id="before")

    def versioned(self, body):
        """An object with the resourceVersion that kinds without unconditional updates need."""
        is_versioned = self.sample.get("versioned") and isinstance(body.get("metadata"), dict)
        return changed(body, ("metadata", "resourceVersion"), "${version}") if is_versioned else body


class Generator(Kind):
    """The scenario of one kind."""

    def __init__(self, schemas, sample):
        super().__init__(schemas, sample, "kinds-", "one")
        self.full = self.with_metadata(sample["full"], self.name)
        self.minimal = self.with_metadata(sample.get("minimal", sample["full"]), sample.get("name2", self.name + "-2"))
        self.steps, self.ids = [], collections.Counter()

    def step(self, name, method, path="", body=None, headers=None, **more):
        self.ids[name] += 1
        name = name if self.ids[name] == 1 else f"{name}-{self.ids[name]}"
        self.steps.append(step(method, self.collection + path, body, headers, id=name, **more))

    def one(self):
        return "/" + self.name

    def two(self):
        return "/" + self.minimal["metadata"]["name"]

    def scenario(self):
        self.steps += self.needed()
        saved = {"save": {"version": "metadata.resourceVersion"}} if self.sample.get("versioned") else {}
        self.step("create-full", "POST", "", self.full, None, **saved)
        self.step("create-minimal", "POST", "", self.minimal)
        self.reads()
        self.creates()
        self.updates()
        self.patches()
        self.applies()
        self.status()
        self.scale()
        self.step("delete", "DELETE", self.one())
        self.step("delete-foreground", "DELETE", self.two() + "?propagationPolicy=Background")
        return {"name": self.id, "about": f"{self.kind} in {self.api_version}: generated by tests/harness/kinds.py.", "compact": True, "steps": self.steps}

    def reads(self):
        self.step("get", "GET", self.one())
        # there may be other writes between these requests
        volatile = ["metadata.resourceVersion"]
        self.step("list", "GET", "", ignore=volatile)
        self.step("table", "GET", self.one(), headers=TABLE, ignore=["rows.*.cells"])
        self.step("table-list", "GET", "", headers=TABLE, ignore=["rows.*.cells", *volatile])
        self.step("metadata", "GET", self.one(), headers=PARTIAL)
        self.step("protobuf", "GET", self.one(), headers=PROTOBUF, protobuf=True)
        self.step("protobuf-minimal", "GET", self.two(), headers=PROTOBUF, protobuf=True)
        self.step("zog", "GET", self.one() + "/zog")
        self.step("selector", "GET", "?fieldSelector=metadata.name=" + self.name, headers=PARTIAL, ignore=volatile)
        self.step("selector-unknown", "GET", "?fieldSelector=spec.zog=1")

    def is_sampled(self, path, count):
        """Whether the field is changed: of the fields of pod templates, only every SAMPLING-th is."""
        text = name_of(path)
        inside = self.kind != "Pod" and re.search(r"template\.spec\.|volumeClaimTemplates\.0\.", text)
        return not inside or count % SAMPLING == 0

    def below(self, value):
        count = 0
        for path, inner, schema in every(value, self.schema, self.schemas, self.api_version):
            if path[0] in ("apiVersion", "kind") or path[:2] == ("metadata", "name"):
                continue
            count += 1
            if self.is_sampled(path, count):
                yield path, inner, schema

    def lacking(self):
        """The fields that the full object does not have, with a value of each."""
        count = 0
        for path, schema in absent(self.full, self.schema, self.schemas, self.api_version):
            if path[0] not in ("metadata", "status") and self.is_sampled(path, count := count + 1):
                yield path, synthetic(self.schemas, self.api_version, schema)

    def create(self, name, body):
        metadata = body.get("metadata")
        if "name" not in self.sample and isinstance(metadata, dict) and "name" in metadata:
            body = changed(body, ("metadata", "name"), metadata["name"] + "-3")
        self.step(name, "POST", "?" + DRY, body)

    def creates(self):
        self.create("empty", self.with_metadata({}, self.name))
        for path, value, schema in self.below(self.full):
            self.create("drop:" + name_of(path), changed(self.full, path, DROP))
            for other in wrong_types(value):
                self.create("type:" + name_of(path), changed(self.full, path, other))
            for other in odd_values(value, schema):
                self.create("odd:" + name_of(path), changed(self.full, path, other))
        for path, value in self.lacking():
            self.create("add:" + name_of(path), changed(self.full, path, value))
            if isinstance(value, dict) and value:
                self.create("add-empty:" + name_of(path), changed(self.full, path, {}))
        self.step("strict", "POST", f"?{DRY}&fieldValidation=Strict", {**self.minimal, "zog": 1})

    def update(self, name, body):
        """A PUT as a dry run."""
        self.step(name, "PUT", f"{self.one()}?{DRY}", self.versioned(body))

    def updates(self):
        for path, value, _ in self.below(self.full):
            self.update("update-drop:" + name_of(path), changed(self.full, path, DROP))
            for other in other_values(value):
                self.update("update:" + name_of(path), changed(self.full, path, other))
        for path, value in self.lacking():
            self.update("update-add:" + name_of(path), changed(self.full, path, value))

    def patches(self):
        self.step("merge", "PATCH", self.one(), {"metadata": {"labels": {"l": "1"}}})
        self.step("strategic", "PATCH", self.one(), {"metadata": {"annotations": {"x": "y"}}}, STRATEGIC)
        for path, value, schema in self.below(self.full):
            if isinstance(value, list) and value and isinstance(value[0], dict):
                item = copy.deepcopy(value[0])
                for key in schema.get("x-kubernetes-list-map-keys", [])[:1]:
                    if isinstance(item.get(key), str):
                        item[key] += "2"
                body = [item]
                for part in reversed(list(path)):
                    body = {part: body} if isinstance(part, str) else [body]
                self.step("strategic:" + name_of(path), "PATCH", f"{self.one()}?{DRY}", body, STRATEGIC)
        if "update" in self.sample:
            self.step("merge-real", "PATCH", self.one(), self.sample["update"])

    def applies(self):
        name = self.name + "-4" if "name" not in self.sample else self.name
        configuration = self.with_metadata(self.sample["full"], name)
        self.step("apply", "PATCH", f"/{name}?fieldManager=a&force=true", configuration, APPLY)
        self.step("apply-again", "PATCH", f"/{name}?fieldManager=b", configuration, APPLY)
        for path, value, schema in list(self.below(configuration)):
            if isinstance(value, list) and value and isinstance(value[0], dict):
                keys = schema.get("x-kubernetes-list-map-keys", [])
                item = copy.deepcopy(value[0])
                for key in keys[:1]:
                    if isinstance(item.get(key), str):
                        item[key] += "2"
                more = changed(configuration, path, [item])
                self.step("apply-list:" + name_of(path), "PATCH", f"/{name}?fieldManager=c&{DRY}", more, APPLY)
            if path[0] == "spec":
                for other in other_values(value)[:1]:
                    self.step("apply-conflict:" + name_of(path), "PATCH", f"/{name}?fieldManager=d&{DRY}", changed(configuration, path, other), APPLY)
        self.step("apply-less", "PATCH", f"/{name}?fieldManager=a&force=true", self.with_metadata(self.sample.get("minimal", self.sample["full"]), name), APPLY)

    def status(self):
        path = self.one() + "/status"
        self.step("status", "GET", path)
        schema = self.schemas.resolve(self.api_version, self.schema["properties"].get("status", {}))
        for field, inner in schema.get("properties", {}).items():
            value = synthetic(self.schemas, self.api_version, inner)
            self.step("status:" + field, "PATCH", f"{path}?{DRY}", {"status": {field: value}})
            for other in wrong_types(value)[:1] + odd_values(value, self.schemas.resolve(self.api_version, inner))[1:2]:
                self.step("status-odd:" + field, "PATCH", f"{path}?{DRY}", {"status": {field: other}})
            for inner_path, more in absent({field: value}, schema, self.schemas, self.api_version):
                if len(inner_path) > 1 and inner_path[0] == field:
                    body = changed({field: value}, inner_path, synthetic(self.schemas, self.api_version, more))
                    self.step("status-add:" + name_of(inner_path), "PATCH", f"{path}?{DRY}", {"status": body})
        if "status" in self.sample:
            self.step("status-full", "PATCH", path, {"status": self.sample["status"]})
            self.step("status-protobuf", "GET", self.one(), headers=PROTOBUF, protobuf=True)
        self.step("status-apply", "PATCH", f"{path}?fieldManager=s&{DRY}", self.with_metadata({}, self.name), APPLY)

    def scale(self):
        path = self.one() + "/scale"
        self.step("scale", "GET", path)
        for replicas in (2, 0, -1):
            self.step("scale-to", "PATCH", f"{path}?{DRY}", {"spec": {"replicas": replicas}})


def generate(args):
    server = Server(args.server, args.token)
    schemas = Schemas(server)
    os.makedirs(args.dir, exist_ok=True)
    for sample in SAMPLES["main"]:
        if args.only and sample["plural"] != args.only:
            continue
        scenario = Generator(schemas, sample).scenario()
        write(os.path.join(args.dir, scenario["name"] + ".json"), scenario)
        print(scenario["name"], len(scenario["steps"]))


def shape_of(difference):
    """The class of a difference: its changed lines without names and numbers."""
    lines = [line for line in difference if line[:1] in "+-" and not line.startswith(("+++", "---"))]
    text = "\n".join(lines[:6])
    return re.sub(r"\d+", "N", text)[:600]


def share(args):
    classes, rows, examples = collections.Counter(), [], {}
    for file in sorted(os.listdir(args.dir)):
        if not file.endswith(".json") or (args.only and args.only not in file):
            continue
        [outcome] = player.play(args.binary, args.server, [os.path.join(args.dir, file)], token=args.token)
        name = file.removesuffix(".json").removeprefix("kinds-")
        rows.append((name, outcome["steps"], len(outcome["different"])))
        for different in outcome["different"]:
            key = shape_of(different["difference"].splitlines())
            classes[key] += 1
            examples.setdefault(key, []).append(f"{name} {different['id']}: {different['request']}")
    for name, steps, failed in rows:
        print(f"| {name} | {steps} | {steps - failed} | {(steps - failed) * 1000 // steps / 10} % |")
    steps, failed = sum(row[1] for row in rows), sum(row[2] for row in rows)
    print(f"| all | {steps} | {steps - failed} | {(steps - failed) * 1000 // max(steps, 1) / 10} % |")
    if args.classes:
        with open(args.classes, "w", encoding="utf-8") as out:
            for key, count in classes.most_common():
                print(f"=== {count}", *examples[key][:4], key, sep="\n", file=out)


def keep(args):
    os.makedirs(args.out, exist_ok=True)
    for file in sorted(os.listdir(args.dir)):
        path = os.path.join(args.dir, file)
        [outcome] = player.play(args.binary, args.server, [path], token=args.token)
        failed = {step["id"] for step in outcome["different"]}
        with open(path, encoding="utf-8") as source:
            scenario = json.load(source)
        steps = [step for step in scenario["steps"] if step["id"] not in failed]
        sizes = [len(json.dumps(step, separators=(",", ":"))) for step in steps]
        needed = [i for i, step in enumerate(steps) if DRY not in step["path"]]
        # steps with small responses, such as errors, come first; the classes of steps take turns
        by_class = collections.defaultdict(list)
        for i in sorted((i for i in range(len(steps)) if i not in needed), key=lambda i: sizes[i]):
            by_class[steps[i]["id"].split(":")[0]].append(i)
        turns = [i for turn in itertools.zip_longest(*by_class.values()) for i in turn if i is not None]
        kept, total = set(needed), sum(sizes[i] for i in needed)
        for i in turns:
            if total + sizes[i] <= args.bytes:
                kept.add(i)
                total += sizes[i]
        scenario["steps"] = [step for i, step in enumerate(steps) if i in kept]
        write(os.path.join(args.out, file), scenario)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, function in (("generate", generate), ("share", share), ("keep", keep)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("--server", required=True)
        command.add_argument("--token", required=True)
        command.add_argument("--only")
        command.add_argument("--binary", default=ROOT / "target" / "debug" / "pintle", help="the pintle whose replay plays the scenarios")
        command.add_argument("dir")
        if name == "share":
            command.add_argument("--classes")
        if name == "keep":
            command.add_argument("--bytes", type=int, required=True)
            command.add_argument("out")
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
