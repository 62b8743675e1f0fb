#!/usr/bin/env python3
"""Sends CRDs with random CEL rules to two servers, and reports what differs.

  random_expressions.py --reference URL --server URL --token TOKEN [--seed N] [--seconds N] [--report FILE]

kube-apiserver is the reference. Rules are composed by type from the operators, macros and functions of Kubernetes' CEL libraries; a few
parts have a wrong type. The CRDs are dry runs. Each rule has a node of its own with a default, so that both servers compile it, estimate
its cost, and evaluate it for the default.
"""

import concurrent.futures
import json
import random
import sys
import time

from odd import comparison, servers_of
from pair import Pair

WORKERS = 3
RULES = 10
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
TEXT = {"type": "string", "maxLength": 10}
NODE = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "j": {"type": "integer"},
        "d": {"type": "number"},
        "b": {"type": "boolean"},
        "s": TEXT,
        "t": TEXT,
        "at": {"type": "string", "format": "date-time"},
        "for": {"type": "string", "format": "duration"},
        "by": {"type": "string", "format": "byte", "maxLength": 8},
        "li": {"type": "array", "maxItems": 4, "items": {"type": "integer"}},
        "ls": {"type": "array", "maxItems": 4, "items": TEXT},
        "set": {"type": "array", "maxItems": 4, "items": TEXT, "x-kubernetes-list-type": "set"},
        "lo": {
            "type": "array",
            "maxItems": 4,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": TEXT, "v": {"type": "integer"}}},
        },
        "m": {"type": "object", "maxProperties": 4, "additionalProperties": {"type": "integer"}},
        "o": {"type": "object", "properties": {"x": {"type": "integer"}, "y": TEXT, "a-b": TEXT}},
        "is": {"x-kubernetes-int-or-string": True},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "none": {"type": "integer"},
    },
}
DEFAULT = {
    "i": 3,
    "j": -2,
    "d": 1.5,
    "b": True,
    "s": "ab",
    "t": "x-y",
    "at": "2026-01-02T03:04:05Z",
    "for": "1h",
    "by": "YWI=",
    "li": [3, 1, 2],
    "ls": ["a", "b", "a"],
    "set": ["p", "q"],
    "lo": [{"k": "a", "v": 1}, {"k": "b"}],
    "m": {"p": 1, "q": 2},
    "o": {"x": 1, "a-b": "c"},
    "is": "5%",
    "any": {"z": [1]},
}

# for each type, its expressions: {TYPE} is one of a type, {x} the name of a new variable and {TYPE x} an expression that may use it; a
# map has <> for its braces
GRAMMAR = {
    "int": [
        "self.i",
        "self.j",
        "1",
        "0",
        "-3",
        "7",
        "{int} + {int}",
        "{int} - {int}",
        "{int} * {int}",
        "{int} / {int}",
        "{int} % {int}",
        "-{int}",
        "size({list})",
        "{string}.size()",
        "size({map})",
        "int({string})",
        "int({double})",
        "int({bool})",
        "{ints}[{int}]",
        "{ints}.sum()",
        "{ints}.max()",
        "{ints}.min()",
        "{ints}.indexOf({int})",
        "{string}.indexOf({string})",
        "{string}.lastIndexOf({string})",
        "({bool} ? {int} : {int})",
        "self.m[{string}]",
        "self.m.p",
        "self.lo[{int}].v",
        "self.o.x",
        "self.none",
        "self.?none.orValue({int})",
        "{time}.getFullYear()",
        "{time}.getDayOfWeek()",
        "{duration}.getSeconds()",
        "math.abs({int})",
        "{time}.getHours('Europe/Berlin')",
        "quantity({string}).asInteger()",
        "cel.bind(v, {int}, v + v)",
        "self.li.filter(x, x > {int}).size()",
        "dyn({int})",
        "int({time})",
        "{ints}.reverse()[0]",
        "math.bitAnd({int}, {int})",
        "math.sign({int})",
        "url('http://a.b:80/c').getPort().size()",
        "semver('1.2.3').minor()",
    ],
    "double": [
        "self.d",
        "1.5",
        "0.0",
        "{double} + {double}",
        "{double} * {double}",
        "{double} / {double}",
        "double({int})",
        "double({string})",
        "math.ceil({double})",
        "math.round({double})",
        "-{double}",
        "quantity({string}).asApproximateFloat()",
    ],
    "string": [
        "self.s",
        "self.t",
        "'a'",
        "''",
        "'x-y'",
        "'5'",
        "{string} + {string}",
        "string({int})",
        "string({double})",
        "string({bool})",
        "string({time})",
        "string({duration})",
        "{string}.lowerAscii()",
        "{string}.upperAscii()",
        "{string}.replace({string}, {string})",
        "{string}.substring({int})",
        "{string}.substring({int}, {int})",
        "{string}.trim()",
        "{string}.charAt({int})",
        "{strings}.join('-')",
        "{strings}.join()",
        "{strings}[{int}]",
        "{string}.split('-')[{int}]",
        "'%s %d'.format([{string}, {int}])",
        "'%.2f'.format([{double}])",
        "'%s'.format([{ints}])",
        "({bool} ? {string} : {string})",
        "self.lo[{int}].k",
        "self.o.y",
        "self.o.a__dash__b",
        "{string}.find('[a-z]+')",
        "string(self.by)",
        "self.?o.?y.orValue({string})",
        "{string}.reverse()",
        "strings.quote({string})",
        "base64.encode(b'ab')",
        "string(quantity('1k'))",
        "url('http://a.b/c').getHost()",
        "string(ip('10.0.0.1'))",
    ],
    "bool": [
        "self.b",
        "true",
        "false",
        "{int} == {int}",
        "{int} != {int}",
        "{int} < {int}",
        "{int} >= {int}",
        "{double} < {double}",
        "{string} == {string}",
        "{string} < {string}",
        "{int} < {double}",
        "!{bool}",
        "({bool} && {bool})",
        "({bool} || {bool})",
        "{int} in {ints}",
        "{string} in {strings}",
        "{string} in self.m",
        "has(self.none)",
        "has(self.o.y)",
        "has(self.any.z)",
        "{string}.startsWith({string})",
        "{string}.endsWith({string})",
        "{string}.contains({string})",
        "{string}.matches('^[a-z]+$')",
        "{string}.matches({string})",
        "{ints}.all({x}, {bool x})",
        "{ints}.exists({x}, {x} > {int})",
        "{strings}.exists_one({x}, {x} == {string})",
        "{strings}.all({x}, {x}.size() < {int})",
        "self.m.all({x}, self.m[{x}] > {int})",
        "self.lo.exists({x}, {x}.k == {string})",
        "self.lo.all({x}, has({x}.v))",
        "{ints}.isSorted()",
        "{strings}.isSorted()",
        "sets.contains({ints}, {ints})",
        "sets.intersects({strings}, {strings})",
        "sets.equivalent({ints}, {ints})",
        "type({int}) == int",
        "type({dyn}) == string",
        "{time} < {time}",
        "{duration} > {duration}",
        "{list} == {list}",
        "self.o == self.o",
        "self.lo == self.lo",
        "self == oldSelf",
        "self.i >= oldSelf.i",
        "oldSelf.set.all({x}, {x} in self.set)",
        "{dyn} == {dyn}",
        "quantity({string}).isGreaterThan(quantity('1'))",
        "isQuantity({string})",
        "isURL({string})",
        "isIP({string})",
        "cidr('10.0.0.0/8').containsIP({string})",
        "self.?none.hasValue()",
        "optional.of({int}) == optional.of({int})",
        "optional.none().orValue({bool})",
        "self.is == {int}",
        "self.is == {string}",
        "{ints}.all(i, v, i < {int} && v > {int})",
        "self.m.exists(k, v, v == {int})",
        "self.any.z[0] == {int}",
        "self.any.q == 1",
        "({bool} ? {bool} : {bool})",
        "format.dns1123Label().validate({string}).hasValue()",
        "self.set == self.set",
        "{strings} == {strings}",
        "isSemver({string})",
        "{ints}.filter({x}, {bool x}).size() > {int}",
        "self.unknown == 1",
        "bool({string})",
        "b'ab' == self.by",
    ],
    "ints": [
        "self.li",
        "[1, 2, 3]",
        "[]",
        "[{int}, {int}]",
        "{ints} + {ints}",
        "{ints}.map({x}, {x} + {int})",
        "{ints}.filter({x}, {x} > {int})",
        "{ints}.slice({int}, {int})",
        "{ints}.reverse()",
        "{ints}.distinct()",
        "{ints}.sort()",
        "{strings}.map({x}, size({x}))",
        "self.lo.map({x}, {x}.?v.orValue({int}))",
        "lists.range({int})",
        "self.m.map({x}, self.m[{x}])",
        "{ints}.transformList(i, v, i + v)",
        "[{ints}, {ints}].flatten()",
        "{ints}.sortBy({x}, -{x})",
    ],
    "strings": [
        "self.ls",
        "self.set",
        "['a', 'b']",
        "{string}.split('-')",
        "{string}.split('')",
        "{strings} + {strings}",
        "self.lo.map({x}, {x}.k)",
        "self.m.map({x}, {x})",
        "{string}.findAll('[a-z]')",
        "{strings}.filter({x}, {x} != {string})",
        "{strings}.distinct()",
        "{strings}.sort()",
        "{strings}.reverse()",
        "{ints}.map({x}, string({x}))",
        "self.set + {strings}",
    ],
    "list": ["{ints}", "{strings}", "self.lo", "[[1], [2]]", "[dyn(1), dyn('a')]"],
    "map": ["self.m", "<'a': {int}>", "<{string}: 1, {string}: 2>", "self.m.transformMap(k, v, v + {int})", "self.o", "self.any"],
    "time": ["self.at", "timestamp('2026-01-02T03:04:05Z')", "timestamp({string})", "{time} + {duration}", "{time} - {duration}", "timestamp({int})"],
    "duration": ["self.__for__", "duration('1h')", "duration('90s')", "duration({string})", "{time} - {time}", "{duration} + {duration}"],
    "dyn": ["dyn({int})", "dyn({string})", "dyn({ints})", "dyn({double})", "dyn({bool})", "self.is", "self.any", "dyn(null)", "dyn({map})"],
}


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
        properties[f"p{i}"] = {**NODE, "default": DEFAULT, "x-kubernetes-validations": [rule]}
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


def main():
    args = comparison(__doc__, 300).parse_args()
    servers, end, found, asked = servers_of(args), time.time() + args.seconds, [], [0]

    def one(seed):
        if time.time() > end:
            return
        pair, body = Pair(servers, {"name": "random", "about": "", "steps": []}), definition(seed)
        step = {"id": "", "method": "POST", "path": DEFINITIONS, "headers": {"Content-Type": "application/json"}, "body": body}
        try:
            responses = pair.send(step)
            want, got = map(causes, responses)
            # the order of maps is random in Go
            again = [causes(pair.send(step)[0]) for _ in range(5)] if want != got else []
        finally:
            pair.close()
        asked[0] += RULES
        for field in sorted(want.keys() | got.keys()):
            is_chance = any(other.get(field) != want.get(field) for other in again)
            if want.get(field) != got.get(field) and not is_chance:
                name = field.rsplit("[", 1)[-1].rstrip("]")
                node = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].get(name, {})
                found.append({"seed": seed, "rules": node.get("x-kubernetes-validations"), "field": field, "want": want.get(field), "got": got.get(field)})
        if "error" in responses[0] or responses[0].get("status") != responses[1].get("status") and not want and not got:
            found.append({"seed": seed, "rules": None, "want": responses[0], "got": responses[1]})

    seed = args.seed * 1_000_000
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        while time.time() < end:
            list(pool.map(one, range(seed, seed + 60)))
            seed += 60
            if args.report:
                with open(args.report, "w", encoding="utf-8") as out:
                    json.dump(found, out)
    print(f"{asked[0]} rules, {len(found)} differ")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
