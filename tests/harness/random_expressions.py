#!/usr/bin/env python3
"""Sends CRDs with random CEL rules to two servers, and reports what differs.

  random_expressions.py --reference URL --server URL --token TOKEN [--seed N] [--seconds N] [--report FILE]

kube-apiserver is the reference. Rules are composed by type from the operators, macros and functions of Kubernetes' CEL libraries; a few
parts have a wrong type. The CRDs are dry runs. Each rule has a node of its own with a default, so that both servers compile it, estimate
its cost, and evaluate it for the default.
"""

import random

from comparison import REPEATED, Comparison, step, tables

RULES = 10
ROUND = 60
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
TABLES = tables("expressions")
GRAMMAR = TABLES["grammar"]


class Composer:
    def __init__(self, chance):
        self.chance, self.variables = chance, 0

    def of(self, kind, depth, variables=()):
        if self.chance.random() < 0.015:
            kind = self.chance.choice(list(GRAMMAR))
        choices = GRAMMAR[kind]
        if depth <= 0:
            choices = [text for text in choices if "{" not in text] or choices[:1]
        if kind == "int" and variables and self.chance.random() < 0.4:
            return self.chance.choice(variables)
        return self.fill(self.chance.choice(choices), depth, variables)

    def fill(self, text, depth, variables):
        name = None
        if "{x}" in text:
            name, self.variables = f"x{self.variables}", self.variables + 1
        out, rest = "", text
        if text.startswith("<"):
            out, rest = "", "\0" + text[1:-1] + "\1"
        while "{" in rest:
            before, _, rest = rest.partition("{")
            part, _, rest = rest.partition("}")
            kind, _, uses = part.partition(" ")
            known = (*variables, name) if uses and text.startswith(("{ints}", "self.m")) else variables
            out += before + (name if part == "x" else self.of(kind, depth - 1, known))
        return (out + rest).replace("\0", "{").replace("\1", "}")


def definition(seed):
    composer = Composer(random.Random(seed))
    properties = {}
    for i in range(RULES):
        rule = {"rule": composer.of("bool", composer.chance.choice([1, 2, 2, 3]))}
        if composer.chance.random() < 0.2:
            rule["messageExpression"] = composer.of("string", 2)
        if composer.chance.random() < 0.1:
            rule["optionalOldSelf"] = True
        properties[f"p{i}"] = {**TABLES["node"], "default": TABLES["default"], "x-kubernetes-validations": [rule]}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.expressions.example.com"},
        "spec": {"group": "expressions.example.com", "scope": "Cluster", "names": names, "versions": versions},
    }


def causes(response):
    """The errors of each node."""
    found = {}
    body = response.get("body")
    for cause in (body.get("details") or {}).get("causes") or [] if isinstance(body, dict) else []:
        found.setdefault(cause["field"].split(".default")[0].split(".x-kubernetes")[0], []).append((cause["field"], cause["message"]))
    return {field: sorted(texts) for field, texts in found.items()}


class Expressions(Comparison):
    """The comparison of CRDs, with the errors of each node apart."""

    def ask(self, seed):
        body = definition(seed)
        one = step("POST", DEFINITIONS, body)
        with self.pair() as pair:
            responses = pair.send(one)
            want, got = map(causes, responses)
            # the order of maps is random in Go
            again = [causes(pair.send(one)[0]) for _ in range(REPEATED)] if want != got else []
        self.counts["asked"] += RULES
        nodes = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        for field in sorted(want.keys() | got.keys()):
            is_chance = any(other.get(field) != want.get(field) for other in again)
            if want.get(field) != got.get(field) and not is_chance:
                node = nodes.get(field.rsplit("[", 1)[-1].rstrip("]"), {})
                self.add(seed=seed, rules=node.get("x-kubernetes-validations"), field=field, want=want.get(field), got=got.get(field))
        if "error" in responses[0] or responses[0].get("status") != responses[1].get("status") and not want and not got:
            self.add(seed=seed, rules=None, want=responses[0], got=responses[1])


if __name__ == "__main__":
    run = Expressions(__doc__, 300)
    first = run.args.seed * 1_000_000
    run.run(run.ask, lambda number: range(first + number * ROUND, first + (number + 1) * ROUND))
