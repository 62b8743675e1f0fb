#!/usr/bin/env python3
"""Writes random parts of samples of built-in kinds to two servers, and reports what differs.

  random_writes.py --reference URL --server URL --token TOKEN [--only PLURAL,...] [--seed N] [--seconds N] [--report FILE]

kube-apiserver is the reference. An object of each kind is applied by several managers, replaced, and patched in each of the four ways,
with random fields and items of its sample left out, moved, changed or repeated; a part of the writes are dry runs. The responses of
both servers are compared, with managedFields. A kind is left after a write whose responses differ, since the servers have different
objects from there on.
"""

import collections
import copy
import random

from comparison import APPLY, OPERATIONS, STRATEGIC, Comparison, step
from kinds import Schemas, every
from odd import Asker, odd_values, samples

WRITES = 30
# what the server chooses, and may choose differently
LEFT_OUT = {"services", "serviceaccounts", "endpoints"}


class Writer(Asker):
    """The random writes of one object."""

    def __init__(self, schemas, sample, seed):
        super().__init__(schemas, sample)
        self.chance = random.Random(f"{seed} {self.api_version} {self.plural} {sample.get('label', '')}")
        self.odd = self.odd_values()

    def maybe(self, share):
        return self.chance.random() < share

    def odd_values(self):
        """Odd values of each field, by its path without the indices of items."""
        found = collections.defaultdict(list)
        for path, value, schema in every(self.body, self.schema, self.schemas, self.api_version):
            found[tuple(part for part in path if not isinstance(part, int))] = odd_values(value, schema)
        return found

    def part(self, value, path=(), dropped=0.25):
        """A random part of a value, some of it changed."""
        if self.maybe(0.02) and self.odd[path] and path[:1] != ("metadata",):
            return copy.deepcopy(self.chance.choice(self.odd[path]))
        if isinstance(value, dict):
            kept = {key: item for key, item in value.items() if not self.maybe(dropped)}
            return {key: self.part(item, (*path, key), dropped) for key, item in kept.items()}
        if isinstance(value, list):
            items = [self.part(item, path, dropped / 2) for item in value if not self.maybe(dropped)]
            if self.maybe(0.15):
                self.chance.shuffle(items)
            if items and self.maybe(0.05):
                items.append(copy.deepcopy(items[0]))
            return items
        if isinstance(value, str) and self.maybe(0.05):
            return value + self.chance.choice(["x", "-a", "1"])
        if isinstance(value, bool):
            return value != self.maybe(0.1)
        return value + 1 if isinstance(value, int) and self.maybe(0.1) else value

    def fields(self, dropped=0.25):
        """A random part of the object, with its kind and name."""
        body = {key: item for key, item in self.body.items() if key not in ("apiVersion", "kind", "metadata", "status")}
        metadata = {"name": self.name}
        for key, values in (("labels", {"l": "a"}), ("annotations", {"example.com/a": "b"}), ("finalizers", ["example.com/f"])):
            if self.maybe(0.2):
                metadata[key] = {name: self.chance.choice(["a", "b"]) for name in values} if isinstance(values, dict) else values
        return {"apiVersion": self.api_version, "kind": self.sample["kind"], "metadata": metadata, **self.part(body, (), dropped)}

    def patch(self, strategic):
        body = self.fields(0.6)
        del body["apiVersion"], body["kind"], body["metadata"]["name"]
        return self.directed(body, strategic)

    def directed(self, value, strategic):
        """A patch with some nulls, and directives."""
        if isinstance(value, dict):
            out = {key: None if self.maybe(0.06) else self.directed(item, strategic) for key, item in value.items()}
            if strategic and self.maybe(0.04):
                out["$patch"] = self.chance.choice(["delete", "replace", "merge", "x"])
            if strategic and out and self.maybe(0.04):
                out["$retainKeys"] = sorted(out)[: self.chance.choice([1, 2, 5])]
            for key, item in list(out.items()):
                if strategic and isinstance(item, list) and item and self.maybe(0.1):
                    name = next((name for name in ("name", "mountPath", "containerPort", "type", "key") if isinstance(item[0], dict) and name in item[0]), None)
                    order = [{name: one[name]} for one in item if isinstance(one, dict) and name in one] if name else item
                    out[f"$setElementOrder/{key}"] = order[:: self.chance.choice([1, -1])]
                if strategic and isinstance(item, list) and item and not isinstance(item[0], dict) and self.maybe(0.1):
                    out[f"$deleteFromPrimitiveList/{key}"] = item[:1]
            return out
        return [self.directed(item, strategic) for item in value] if isinstance(value, list) else value

    def operations(self):
        made = []
        for _ in range(self.chance.choice([1, 1, 2, 3])):
            value, path = self.body, []
            while isinstance(value, (dict, list)) and value and (not path or self.maybe(0.75)):
                key = self.chance.choice(sorted(value) if isinstance(value, dict) else range(len(value)))
                value, path = value[key], [*path, str(key).replace("~", "~0").replace("/", "~1")]
            kind = self.chance.choice(["add", "add", "replace", "remove", "test"])
            if path[0] not in ("apiVersion", "kind", "metadata"):
                made.append({"op": kind, "path": "/" + "/".join(path), **({} if kind == "remove" else {"value": self.part(value)})})
        return made

    def write(self):
        pick = self.chance.choice(["apply"] * 5 + ["put", "put", "merge", "strategic", "strategic", "operations"])
        query = ["fieldValidation=" + self.chance.choice(["Strict", "Ignore"])] if self.maybe(0.3) else []
        if self.maybe(0.5):
            query.append("dryRun=All")
        if pick == "apply":
            query.append("fieldManager=" + self.chance.choice(["one", "two", "three"]))
            if self.maybe(0.5):
                query.append("force=true")
            return step("PATCH", self.url, self.fields(self.chance.choice([0.1, 0.4, 0.7])), APPLY, query)
        if pick == "put":
            return step("PUT", self.url, self.versioned(self.fields(0.1)), query=query)
        if pick == "operations":
            return step("PATCH", self.url, self.operations(), OPERATIONS, query)
        return step("PATCH", self.url, self.patch(pick == "strategic"), STRATEGIC if pick == "strategic" else None, query)


class Writes(Comparison):
    """The comparison of random writes."""

    def ask(self, case):
        sample, seed = case
        try:
            writer = Writer(Schemas(self.servers[0]), sample, seed)
        except (IndexError, KeyError, ValueError):
            return  # the version is not served
        with self.pair() as pair:
            writer.create(pair)
            try:
                for _ in range(WRITES):
                    if self.is_over() or self.status(pair, writer.write(), seed=seed, kind=writer.plural) is None:
                        return
            finally:
                for one in writer.removal():
                    pair.perform(one)


if __name__ == "__main__":
    run = Writes(__doc__, 300, only={"default": ""})
    waiting = [sample for sample in samples(run.args.only) if sample["plural"] not in LEFT_OUT]
    run.run(run.ask, lambda number: [(sample, run.args.seed * 1000 + number) for sample in waiting])
