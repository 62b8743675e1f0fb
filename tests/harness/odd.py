#!/usr/bin/env python3
"""Asks two servers the same odd values, for each field of each built-in kind, and reports what differs.

  odd.py --reference URL --server URL --token TOKEN [--only PLURAL[/LABEL],...] [--together N [--seed N]] [--report FILE] [--seconds N]

kube-apiserver is the reference. Each field of the full sample of a kind (kind_samples.py), and each field that the sample does
not have, gets values that are empty, long, negative, huge, doubled, null, of another case or beyond ASCII: in creations and
updates, and in writes of the status, all as dry runs. The order of the causes of an error is counted apart. With --together, two to
four random fields of each sample have odd values at once, N times, which finds rules that relate fields.
"""

import argparse
import collections
import concurrent.futures
import copy
import json
import random
import sys
import time

from kind_samples import ODD_SAMPLES, SAMPLES
from kinds import DROP, DRY, JSON, MERGE, Schemas, changed, name_of, synthetic
from pair import Pair
from steps import Server, parse
from union_samples import UNION_SAMPLES

WORKERS = 4
TEXTS = [
    "",
    " ",
    "a" * 64,
    "a" * 254,
    "a" * 1100,
    "-a",
    "A.b",
    "Ab",
    "a/b",
    "a/b/c",
    "/a",
    "a/",
    "ä",
    "a_b",
    "a.",
    "..",
    ".a",
    "0",
    "a..b",
    "a\nb",
    "%",
    "*",
    "*.a.b",
    "example.com/a",
    "Example.com/A_b",
    "::1",
    "fd00::1",
    "10.0.0.1",
    "010.0.0.1",
    "10.0.0.0/8",
    "10.0.0.1/8",
    "99999999999999999999",
    "http://a.b/c",
    "a:b",
    "<a>&",
    "true",
    "kubernetes.io/a",
    "a.kubernetes.io/b",
    "a b",
    "a,b",
]
NUMBERS = [0, 1, -1, 2, 100, 101, 1000, 65535, 65536, 100001, 2147483647, 2147483648, -2147483648, 9223372036854775807]
QUANTITIES = ["0", "-1", "1.5", "1500m", "1e20", "0.1n", "", "x", "99999999999999999999", "1Gi", "0.5Gi", 1, -1]
PORTS = [0, -1, 65536, "", "http", "101%", "-1%", "50%", "100%", "1%%", "a" * 16, "UP", "a--b", "1a", "9", 2147483648, "ä"]
TIMES = ["", "x", "1970-01-01T00:00:00Z", "2026-01-02T03:04:05.123456789Z", "9999-12-31T23:59:59Z", "2026-01-02T03:04:05+02:00"]
MANY = (17, 33, 101)
# the kind that is asked about the fields of metadata
METADATA_OF = "leases"


def odd_values(value, schema):
    """Odd values of the type of a field."""
    name = schema.get("name", "")
    if name.endswith("Quantity"):
        return QUANTITIES
    if name.endswith("IntOrString"):
        return PORTS
    if name.endswith(("Time", "MicroTime")):
        return TIMES
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return NUMBERS
    if isinstance(value, str):
        cases = [value.swapcase(), value + " ", value + "ä", value + ".", value + "/x"]
        return [other for other in cases if other != value] + (["", "Zog"] if "enum" in schema else TEXTS)
    if isinstance(value, list):
        return [[], [None], value + value, *([value[0]] * many for many in MANY)] if value else [[], [None]]
    if isinstance(value, dict) and value:
        first = next(iter(value.values()))
        if "additionalProperties" in schema or not schema.get("properties"):
            keys = ["", "a b", "A/b", "a/b/c", "a" * 64, "ä", "kubernetes.io/a", "*", "a" * 254 + "/a", "A"]
            return [{}, *({**value, key: first} for key in keys), dict.fromkeys(value, None)]
    return [{}]


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


def present(body, schemas, api_version, schema):
    """The fields of an object, those that its sample does not have as well: a body, a path in it, and the field's schema."""
    for path, value, inner in every(body, schema, schemas, api_version):
        yield body, path, value, inner
    yield from added(body, (), schema, schemas, api_version, 3)


def added(body, path, schema, schemas, api_version, depth):
    value, schema = body, schemas.resolve(api_version, schema)
    for part in path:
        value = value[part]
    if isinstance(value, list):
        for i in range(min(len(value), 1)):
            yield from added(body, (*path, i), schema.get("items") or {}, schemas, api_version, depth)
    elif isinstance(value, dict):
        for key, inner in schema.get("properties", {}).items():
            here = (*path, key)
            if here in (("status",), ("metadata", "managedFields")) or key == "f:":
                continue
            if key in value:
                yield from added(body, here, inner, schemas, api_version, depth)
            elif depth:
                resolved = schemas.resolve(api_version, inner)
                new = synthetic(schemas, api_version, inner)
                more = changed(body, here, new)
                yield more, here, new, resolved
                if isinstance(new, (dict, list)) and new:
                    for inner_path, inner_value, inner_schema in every(new, inner, schemas, api_version):
                        yield more, (*here, *inner_path), inner_value, inner_schema
                    yield from added(more, here, inner, schemas, api_version, depth - 1)


def exists(body, path):
    try:
        for part in path:
            body = body[part]
        return True
    except (KeyError, IndexError, TypeError):
        return False


def has_parent(body, path):
    """Whether a value at a path can be set: the object that it is in, or the item, exists."""
    return exists(body, path) if isinstance(path[-1], int) else exists(body, path[:-1]) and holds_fields(body, path[:-1])


def holds_fields(body, path):
    for part in path:
        body = body[part]
    return isinstance(body, dict)


class Asker:
    """What is asked of one kind."""

    def __init__(self, schemas, sample):
        self.schemas, self.sample = schemas, sample
        self.api_version, self.plural = sample["apiVersion"], sample["plural"]
        self.schema = schemas.of_kind(self.api_version, sample["kind"])
        self.namespaced = sample.get("namespaced", True)
        version = "" if sample.get("main", True) else "-" + self.api_version.rsplit("/", 1)[-1]
        self.namespace = "odd-" + self.plural + version + sample.get("label", "")
        base = ("/api/" if "/" not in self.api_version else "/apis/") + self.api_version
        self.collection = f"{base}/namespaces/{self.namespace}/{self.plural}" if self.namespaced else f"{base}/{self.plural}"
        self.name = sample.get("name", self.namespace)
        self.body = self.with_name(sample["full"], self.name)
        self.seen = set()

    def with_name(self, body, name):
        body = copy.deepcopy(body)
        metadata = {"name": name, **body.pop("metadata", {})}
        return {"apiVersion": self.api_version, "kind": self.sample["kind"], "metadata": metadata, **body}

    def before(self):
        if self.namespaced:
            yield step("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        for before in self.sample.get("before", []):
            yield step("POST", before["path"].replace("NAMESPACE", self.namespace), before["body"])
        # what an earlier run has left
        yield from self.removal()
        yield {**step("POST", self.collection, self.body), "save": {"version": "metadata.resourceVersion"}}

    def removal(self):
        url = f"{self.collection}/{self.name}"
        for _ in range(2):
            yield step("PATCH", url, {"metadata": {"finalizers": None}})
            yield step("DELETE", f"{url}?gracePeriodSeconds=0&propagationPolicy=Background", {})

    def versioned(self, body):
        metadata = body.get("metadata")
        is_versioned = self.sample.get("versioned") and isinstance(metadata, dict)
        return changed(body, ("metadata", "resourceVersion"), "${version}") if is_versioned else body

    def together(self, count, chance):
        """Writes of objects with several odd values at once."""
        changes = []
        for _, path, value, schema in present(self.body, self.schemas, self.api_version, self.schema):
            if path[0] not in ("apiVersion", "kind", "metadata", "status") and has_parent(self.body, path):
                changes.append((path, [value, DROP, *odd_values(value, schema)]))
        for _ in range(count):
            body, labels = self.body, []
            for path, values in chance.sample(changes, min(len(changes), chance.choice((2, 2, 3, 4)))):
                new = chance.choice(values)
                if has_parent(body, path) and (new is not DROP or exists(body, path)):
                    body = changed(body, path, new)
                    labels.append(f"{name_of(path)}={'-' if new is DROP else json.dumps(new)[:60]}")
            for step in self.writes(body, (), None):
                yield {**step, "id": step["id"].split(" ")[0] + " " + " & ".join(labels)}

    def steps(self):
        for body, path, value, schema in present(self.body, self.schemas, self.api_version, self.schema):
            if path[0] in ("apiVersion", "kind") or path == ("metadata",) or self.is_shared(path):
                continue
            for new in [value, DROP, None, *odd_values(value, schema)]:
                yield from self.writes(changed(body, path, new), path, new)
        yield from self.status_steps()

    def is_shared(self, path):
        """Whether a field of the metadata is the same for all kinds, and asked of one kind only."""
        return path[0] == "metadata" and path[1] not in ("name", "generateName") and self.plural != METADATA_OF

    def writes(self, body, path, new):
        label = f"{name_of(path)}={'-' if new is DROP else json.dumps(new)[:60]}"
        key = json.dumps(body, sort_keys=True)
        if key in self.seen:
            return
        self.seen.add(key)
        other = body
        if path != ("metadata", "name") and isinstance(body["metadata"].get("name"), str):
            other = changed(body, ("metadata", "name"), self.sample.get("name3", self.name + "-3"))
        yield {**step("POST", f"{self.collection}?{DRY}", other), "id": f"create {label}"}
        if path[:2] != ("metadata", "name"):
            yield {**step("PUT", f"{self.collection}/{self.name}?{DRY}", self.versioned(body)), "id": f"update {label}"}

    def status_steps(self):
        schema = self.schemas.resolve(self.api_version, self.schema["properties"].get("status", {}))
        if not schema.get("properties"):
            return
        status = self.sample.get("status") or {}
        url = f"{self.collection}/{self.name}/status?{DRY}"
        for body, path, value, inner in present(status, self.schemas, self.api_version, schema):
            for new in [value, DROP, None, *odd_values(value, inner)]:
                body_of = self.versioned({**self.body, "status": changed(body, path, new)})
                label = f"{name_of(path)}={'-' if new is DROP else json.dumps(new)[:60]}"
                yield {**step("PUT", url, body_of), "id": f"status {label}"}


def step(method, path, body):
    return {"id": "", "method": method, "path": path, "headers": MERGE if method == "PATCH" else JSON, "body": body}


def ordered(body):
    """The causes of an error in their order."""
    if not isinstance(body, dict) or not isinstance(body.get("details"), dict):
        return None
    return [(cause.get("field"), cause.get("reason"), cause.get("message")) for cause in body["details"].get("causes") or []]


class Counts:
    def __init__(self):
        self.asked, self.differing, self.reordered = (collections.Counter() for _ in range(3))
        self.found, self.moved = [], []


def ask_all(asker, steps, servers, counts, end):
    pair = Pair(servers, {"name": "odd", "about": "", "steps": []})
    orders = [None, None]
    for side, asked in enumerate(pair.sides):
        asked.body = lambda raw, step, side=side, of=asked.body: (orders.__setitem__(side, ordered(parse(raw))), of(raw, step))[1]
    try:
        for one in asker.before():
            for asked in pair.sides:
                try:
                    asked.perform(one)
                except KeyError:
                    refused = asked.send({key: value for key, value in one.items() if key != "save"})
                    print(f"!! {asker.name} is not created: {refused['body']}", flush=True)
        for one in steps:
            if time.time() > end:
                return
            orders[:] = [None, None]
            reference, got = pair.send(one)
            counts.asked[asker.plural] += 1
            if reference != got:
                counts.differing[asker.plural] += 1
                counts.found.append({"kind": asker.plural, "id": one["id"], "want": reference, "got": got, "step": one})
            elif orders[0] != orders[1]:
                counts.reordered[asker.plural] += 1
                counts.moved.append({"kind": asker.plural, "id": one["id"], "want": orders[0], "got": orders[1]})
    finally:
        # ranges of addresses would change what Services get
        for one in asker.removal():
            for asked in pair.sides:
                asked.perform(one)
        pair.close()


def is_wanted(sample, wanted):
    return not wanted or sample["plural"] in wanted or f"{sample['plural']}/{sample.get('label', '')}" in wanted


def comparison(about, seconds):
    """A parser of the arguments that comparisons of two servers share; `seconds` is the default of how long they take."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--report")
    return parser


def servers_of(args):
    return [Server(url, args.token) for url in (args.reference, args.server)]


def main():
    parser = comparison(__doc__, 3600)
    parser.add_argument("--only", default="")
    parser.add_argument("--together", type=int, default=0)
    args = parser.parse_args()
    servers = servers_of(args)
    schemas, wanted, counts = Schemas(servers[0]), set(filter(None, args.only.split(","))), Counts()
    samples = [sample for sample in [*SAMPLES, *ODD_SAMPLES, *UNION_SAMPLES] if not sample.get("unstable") and is_wanted(sample, wanted)]
    # the large ones last
    samples.sort(key=lambda sample: len(json.dumps(sample)))
    end = time.time() + args.seconds

    def save():
        if args.report:
            with open(args.report, "w", encoding="utf-8") as out:
                json.dump({"differences": list(counts.found), "moved": list(counts.moved)}, out)

    def run(sample):
        try:
            asker = Asker(schemas, sample)
        except (IndexError, KeyError, ValueError):
            return print(f"{sample['apiVersion']} {sample['plural']} is not served")
        try:
            steps = asker.together(args.together, random.Random(args.seed)) if args.together else asker.steps()
            ask_all(asker, steps, servers, counts, end)
        except Exception as error:
            print(f"!! {sample['plural']}: {type(error).__name__}: {error}")
        p = sample["plural"]
        save()
        print(f"{p}: {counts.asked[p]} asked, {counts.differing[p]} differ, {counts.reordered[p]} in another order", flush=True)

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(run, samples))
    save()
    print(f"{sum(counts.asked.values())} asked, {sum(counts.differing.values())} differ, {sum(counts.reordered.values())} have their causes in another order")
    sys.exit(bool(counts.found))


if __name__ == "__main__":
    main()
