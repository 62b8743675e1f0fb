"""Random mutations of requests: bodies, content types, queries, headers, paths and methods."""

import copy
import json
import re
from urllib.parse import parse_qsl, quote, urlsplit

from comparison import tables

WRITES = ("POST", "PUT", "PATCH", "DELETE")
TABLES = tables("odd")
# values of every type, with limits of types
ODD = TABLES["values"]
NAMES = ("unknown", "extra", "x", "")
# fields that kube-apiserver validates in every object
METADATA = TABLES["metadata"]
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u"}
CONTENT_TYPES, ACCEPTS, QUERY = TABLES["content-types"], TABLES["accepts"], TABLES["query"]
PATCHES = ("application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml")


def mutated(step, chance):
    """Returns a copy of a request step with one to three random changes."""
    step = copy.deepcopy(step)
    for name in ("until", "save", "answer"):
        step.pop(name, None)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        change(step, chance)
    return step


def dry(step):
    """The request as a dry run: dryRun=All in the query, and in the body of a DELETE if it has one."""
    step = dict(step)
    if step["method"] == "DELETE" and isinstance(step.get("body"), dict):
        step["body"] = {**step["body"], "dryRun": ["All"]}
    elif step["method"] == "DELETE":
        step.pop("body", None)
        step.pop("text", None)
    if step["method"] in WRITES and "dryRun=" not in step["path"]:
        step["path"] += ("&" if "?" in step["path"] else "?") + "dryRun=All"
    return step


def change(step, chance):
    """Makes one random change in place."""
    has_body = "body" in step or "text" in step
    kinds = [
        (change_body, 12 if has_body else 0),
        (change_patch, 4 if step["method"] == "PATCH" and has_body else 0),
        (change_query, 3),
        (change_header, 3),
        (change_path, 2),
        (change_method, 1),
    ]
    chance.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0](step, chance)


def change_body(step, chance):
    if "text" in step:
        step["text"] = changed_text(step["text"], chance)
    elif chance.random() < 0.12:
        step["text"] = changed_text(json.dumps(step.pop("body")), chance)
    else:
        step["body"] = changed_value(step["body"], chance)


def nodes(value, path=()):
    """Every field and item below `value`, with its path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield path + (key,), item
        yield from nodes(item, path + (key,))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def changed_value(value, chance):
    """Drops, renames, retypes, adds or repeats one node, or changes metadata."""
    every = list(nodes(value))
    if isinstance(value, dict) and chance.random() < 0.12:
        return changed_metadata(value, chance)
    if not every or chance.random() < 0.02:
        return copy.deepcopy(chance.choice(ODD))
    path, old = chance.choice(every)
    parent, key = at(value, path[:-1]), path[-1]
    how = chance.randrange(7)
    if how == 0:
        del parent[key]
    elif how == 1 and isinstance(parent, dict):
        name = chance.choice((*NAMES, key + "X", key.upper(), key[:1].upper() + key[1:]))
        parent[name] = parent.pop(key) if chance.random() < 0.5 else copy.deepcopy(chance.choice((*ODD, old)))
    elif how == 2 and isinstance(old, list) and old:
        old.insert(chance.randrange(len(old) + 1), copy.deepcopy(chance.choice((*old, *ODD))))
    elif how == 3 and isinstance(old, list) and len(old) > 1:
        chance.shuffle(old)
    elif how in (4, 5) and not isinstance(old, (dict, list)):
        parent[key] = similar(old, chance)
    else:
        parent[key] = copy.deepcopy(chance.choice(ODD))
    return value


def similar(old, chance):
    """A value similar to `old`, of the same or another type."""
    if isinstance(old, bool) or old is None:
        return chance.choice((not old, str(old), None, 1))
    if isinstance(old, (int, float)):
        return chance.choice((old + 1, old - 1, -old, str(old), old * 100000, old + 0.5, float(old)))
    return chance.choice((old + "!", old.upper(), old[:1], old * 30, old + " ", " " + old, old + ".", [old], {old: old}, old.replace("a", "b")))


def changed_metadata(value, chance):
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        metadata = value["metadata"] = {}
    name = chance.choice(METADATA)
    fitting = {
        "labels": ({"a": "b"}, {"a b": "c"}, {"a": "b c"}, {"a": 1}, {"a": None}, {"": ""}, {"a/b/c": ""}),
        "annotations": ({"a": "b"}, {"A/B": "c"}, {"a": 1}, {"x" * 64: ""}, {"a": "b" * 270000}),
        "finalizers": (["a/b"], ["orphan"], ["a"], ["a/b", "a/b"], ["foregroundDeletion", "orphan"], [""], "a/b"),
        "ownerReferences": ([OWNER], [{**OWNER, "controller": True}] * 2, [{}], [{**OWNER, "kind": ""}], [OWNER, OWNER]),
        "creationTimestamp": (None, "2020-01-01T00:00:00Z", "x", 1),
        "managedFields": ([], [{}], None, [{"manager": "m", "operation": "Apply", "apiVersion": "v1", "time": None, "fieldsType": "FieldsV1", "fieldsV1": {}}]),
        "generation": (0, 5, -1, "1"),
        "resourceVersion": ("0", "1", "x", ""),
    }
    metadata[name] = copy.deepcopy(chance.choice((*fitting.get(name, ()), *ODD)))
    return value


def changed_text(text, chance):
    """Changes the text of a body: duplicate keys, a truncated end, other whitespace, broken lines."""
    how = chance.randrange(8)
    if how == 0 and text.startswith("{") and len(text) > 2:
        return "{" + chance.choice(('"kind":"X",', '"metadata":{},', '"a":1,"a":2,', '"":0,', '"spec":null,')) + text[1:]
    if how == 1:
        return text[: chance.randrange(len(text) + 1)]
    if how == 2:
        return text + chance.choice((" ", "\n", "}", "x", "\n---\n", "{}", "\0", ","))
    if how == 3:
        return text.replace(":", chance.choice((" : ", ":\t", "=", "::")), 1)
    spot = chance.randrange(len(text) + 1)
    if how in (4, 5):
        return text[:spot] + chance.choice(("\n", " ", '"', "\\", "{", "]", ",", "\x01", "é", "#", "&a ", "*a", "1e999", "- ")) + text[spot:]
    if how == 6:
        return text[:spot] + text[spot + 1 :]
    lines = text.split("\n")
    line = chance.randrange(len(lines))
    lines.insert(line, chance.choice((lines[line], " " + lines[line], lines[line][1:])))
    return "\n".join(lines)


def change_patch(step, chance):
    """Changes the type of a patch; the body is replaced if the type requires it."""
    kind = chance.choice(PATCHES)
    headers = step.setdefault("headers", {})
    body = step.get("body")
    if kind == "application/json-patch+json" and isinstance(body, dict):
        step["body"] = json_patch(body, chance)
    elif kind == "application/apply-patch+yaml" and "fieldManager=" not in step["path"]:
        step["path"] += ("&" if "?" in step["path"] else "?") + "fieldManager=" + chance.choice(("m", "replay", "other"))
    elif kind == "application/strategic-merge-patch+json" and isinstance(body, dict):
        inside = [at(body, path) for path, node in nodes(body) if isinstance(node, dict)] or [body]
        name, value = chance.choice(
            (
                ("$patch", "replace"),
                ("$patch", "delete"),
                ("$patch", "merge"),
                ("$patch", "x"),
                ("$retainKeys", ["a"]),
                ("$deleteFromPrimitiveList/finalizers", ["a"]),
                ("$setElementOrder/x", [1]),
            )
        )
        chance.choice(inside)[name] = value
    headers["Content-Type"] = kind


def json_patch(body, chance):
    def pointer(path):
        return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)

    every = list(nodes(body)) or [(("metadata",), {})]
    operations = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        path, node = chance.choice(every)
        other, _ = chance.choice(every)
        operation = {"op": chance.choice(("add", "replace", "remove", "test", "move", "copy", "x")), "path": pointer(path)}
        if operation["op"] in ("move", "copy"):
            operation["from"] = pointer(other)
        if operation["op"] in ("add", "replace", "test"):
            operation["value"] = copy.deepcopy(chance.choice((node, *ODD)))
        if chance.random() < 0.1:
            operation["path"] = chance.choice(("", "/", "x", "/metadata/labels/-", "/a~2", "/metadata/finalizers/0", "/spec/-1"))
        operations.append(operation)
    return operations


def change_query(step, chance):
    path, query = split(step["path"])
    how = chance.randrange(4)
    if how == 0 and query:
        query.pop(chance.randrange(len(query)))
    elif how == 1 and query:
        spot = chance.randrange(len(query))
        query[spot] = (query[spot][0], chance.choice(("", "x", query[spot][1] + "x", "true", "1")))
    else:
        name = chance.choice(list(QUERY))
        query.append((name, chance.choice(QUERY[name])))
        if name == "watch" or chance.random() < 0.03 and step["method"] == "GET":
            query += [("watch", "true"), ("timeoutSeconds", "1")]
    # with an empty dryRun, the request would not be a dry run
    query = [(name, value) for name, value in query if name != "dryRun" or value]
    step["path"] = join(path or "/", query)


def split(path):
    parsed = urlsplit(path)
    return parsed.path, parse_qsl(parsed.query, keep_blank_values=True)


def join(path, query):
    def text(word):
        return quote(word, safe="${}=,!.")

    return path + ("?" + "&".join(f"{text(name)}={text(value)}" for name, value in query) if query else "")


def change_header(step, chance):
    headers = step.setdefault("headers", {})
    if chance.random() < 0.35 and ("body" in step or "text" in step):
        headers["Content-Type"] = chance.choice(CONTENT_TYPES)
    elif chance.random() < 0.8:
        headers["Accept"] = chance.choice(ACCEPTS)
    else:
        name, value = chance.choice(
            (
                ("Impersonate-User", "someone"),
                ("Impersonate-Group", "g"),
                ("Authorization", "Bearer x"),
                ("Content-Encoding", "gzip"),
                ("Accept-Encoding", "identity"),
                ("User-Agent", "curl/8"),
            )
        )
        headers[name] = value


def change_path(step, chance):
    path, query = split(step["path"])
    parts = path.split("/")
    spot = chance.randrange(1, len(parts)) if len(parts) > 1 else 0
    how = chance.randrange(6)
    if how == 0:
        parts[spot] = chance.choice((parts[spot].upper(), parts[spot] + "x", "x", "a" * 254, "a%2Fb", "a%20b", "..", "v9", "%00", "~"))
    elif how == 1:
        parts.append(chance.choice(("status", "scale", "x", "finalize", "approval", "status/x")))
    elif how == 2 and len(parts) > 2:
        parts.pop(spot)
    elif how == 3:
        parts[1:] = [re.sub(r"^v\d\w*$", chance.choice(("v1", "v2", "v1beta1", "v1alpha1", "v")), part) for part in parts[1:]]
    elif how == 4:
        parts = [part for i, part in enumerate(parts) if part != "namespaces" and parts[i - 1] != "namespaces"]
    else:
        parts.insert(spot, chance.choice(("x", "namespaces/default", "watch")))
    step["path"] = join("/" + "/".join(parts).lstrip("/"), query)


def change_method(step, chance):
    step["method"] = chance.choice(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
    if step["method"] in ("GET", "HEAD", "OPTIONS"):
        for name in ("body", "text"):
            step.pop(name, None)
