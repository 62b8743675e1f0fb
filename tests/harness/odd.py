#!/usr/bin/env python3
"""Asks two servers the same odd values, for each field of each built-in kind, and reports what differs.

  odd.py --reference URL --server URL --token TOKEN [--only PLURAL[/LABEL],...] [--together N [--seed N]] [--report FILE] [--seconds N]

kube-apiserver is the reference. Each field of the full sample of a kind (samples.yaml), and each field that the sample does
not have, gets values that are empty, long, negative, huge, doubled, null, of another case or beyond ASCII: in creations and
updates, and in writes of the status, all as dry runs. The order of the causes of an error is counted apart. With --together, two to
four random fields of each sample have odd values at once, N times, which finds rules that relate fields.
"""

import json
import random

from comparison import DRY, Comparison, step, tables
from kinds import DROP, SAMPLES, Kind, Schemas, changed, every, name_of, synthetic

TABLES = tables("odd")
MANY = (17, 33, 101)
# the kind that is asked about the fields of metadata
METADATA_OF = "leases"


def odd_values(value, schema):
    """Odd values of the type of a field."""
    name = schema.get("name", "")
    if name.endswith("Quantity"):
        return TABLES["quantities"]
    if name.endswith("IntOrString"):
        return TABLES["ports"]
    if name.endswith(("Time", "MicroTime")):
        return TABLES["times"]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return TABLES["numbers"]
    if isinstance(value, str):
        cases = [value.swapcase(), value + " ", value + "ä", value + ".", value + "/x"]
        return [other for other in cases if other != value] + (["", "Zog"] if "enum" in schema else TABLES["texts"])
    if isinstance(value, list):
        return [[], [None], value + value, *([value[0]] * many for many in MANY)] if value else [[], [None]]
    if isinstance(value, dict) and value:
        first = next(iter(value.values()))
        if "additionalProperties" in schema or not schema.get("properties"):
            keys = ["", "a b", "A/b", "a/b/c", "a" * 64, "ä", "kubernetes.io/a", "*", "a" * 254 + "/a", "A"]
            return [{}, *({**value, key: first} for key in keys), dict.fromkeys(value, None)]
    return [{}]


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


class Asker(Kind):
    """What is asked of one kind."""

    def __init__(self, schemas, sample):
        super().__init__(schemas, sample, "odd-")
        self.body = self.with_metadata(sample["full"], self.name)
        self.url = f"{self.collection}/{self.name}"
        self.seen = set()

    def create(self, pair):
        """Creates the object on both servers, and what it needs."""
        # what an earlier run has left
        for one in [*self.needed(), *self.removal()]:
            pair.perform(one)
        made = pair.perform(step("POST", self.collection, self.body, save={"version": "metadata.resourceVersion"}))
        if any(response.get("status") != 201 for response in made):
            print(f"!! {self.id} is not created: {made}", flush=True)

    def removal(self):
        for _ in range(2):
            yield step("PATCH", self.url, {"metadata": {"finalizers": None}})
            yield step("DELETE", f"{self.url}?gracePeriodSeconds=0&propagationPolicy=Background", {})

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
            for one in self.writes(body, (), None):
                yield {**one, "id": one["id"].split(" ")[0] + " " + " & ".join(labels)}

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
        yield step("POST", f"{self.collection}?{DRY}", other, id=f"create {label}")
        if path[:2] != ("metadata", "name"):
            yield step("PUT", f"{self.url}?{DRY}", self.versioned(body), id=f"update {label}")

    def status_steps(self):
        schema = self.schemas.resolve(self.api_version, self.schema["properties"].get("status", {}))
        if not schema.get("properties"):
            return
        status = self.sample.get("status") or {}
        url = f"{self.url}/status?{DRY}"
        for body, path, value, inner in present(status, self.schemas, self.api_version, schema):
            for new in [value, DROP, None, *odd_values(value, inner)]:
                body_of = self.versioned({**self.body, "status": changed(body, path, new)})
                label = f"{name_of(path)}={'-' if new is DROP else json.dumps(new)[:60]}"
                yield step("PUT", url, body_of, id=f"status {label}")


def samples(wanted):
    """The samples of all kinds, or of those that are wanted: PLURAL or PLURAL/LABEL."""
    names = set(filter(None, wanted.split(",")))
    for sample in [*SAMPLES["main"], *SAMPLES["odd"], *SAMPLES["union"]]:
        is_wanted = not names or names & {sample["plural"], f"{sample['plural']}/{sample.get('label', '')}"}
        if is_wanted and not sample.get("unstable"):
            yield sample


class Odd(Comparison):
    """The comparison of responses to odd values, and of the order of causes."""

    def ask(self, sample):
        try:
            asker = Asker(Schemas(self.servers[0]), sample)
        except (IndexError, KeyError, ValueError):
            return print(f"{sample['apiVersion']} {sample['plural']} is not served")
        steps = asker.together(self.args.together, random.Random(self.args.seed)) if self.args.together else asker.steps()
        with self.pair() as pair:
            asker.create(pair)
            try:
                for one in steps:
                    if self.is_over():
                        return
                    self.status(pair, one, kind=asker.plural, id=one["id"])
                    want, got = (side.causes for side in pair.sides)
                    if want and got and want != got and sorted(want, key=str) == sorted(got, key=str):
                        self.counts["in another order"] += 1
                        print(f"{asker.plural} {one['id']} has its causes in another order: {got}, not {want}", flush=True)
            finally:
                # ranges of addresses would change what Services get
                for one in asker.removal():
                    pair.perform(one)


if __name__ == "__main__":
    run = Odd(__doc__, 3600, only={"default": ""}, together={"type": int, "default": 0})
    # the large ones last
    waiting = sorted(samples(run.args.only), key=lambda sample: len(json.dumps(sample)))
    run.run(run.ask, lambda number: waiting if number == 0 else [])
