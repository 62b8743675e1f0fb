"""The OpenAPI documents of built-in kinds, without descriptions, which are Pintle's own.

    python3 tests/harness/openapi.py compare BINARY    # compares kube-apiserver and Pintle, both with default flags
    python3 tests/harness/openapi.py record            # writes tests/openapi/built-in.txt, from kube-apiserver

The file has a line for each document with its hash. To locate differences, it also has a line for each path and each schema: its
hash in v2, and its hashes in v3, which are several if documents differ.
"""

import collections
import hashlib
import json
import sys

from etcd import Etcd
from pintle import Pintle
from programs import ROOT
from upstream import Upstream

RECORD = ROOT / "tests" / "openapi" / "built-in.txt"
# the length of a hash: enough to distinguish some thousand parts
DIGITS = 12


def without_descriptions(value, named=False):
    """A part of a document without its descriptions. If `named`, the keys of the object are names of properties or schemas."""
    if isinstance(value, dict):
        return {
            key: without_descriptions(child, not named and key in ("properties", "schemas", "definitions"))
            for key, child in value.items()
            if named or key != "description" or not isinstance(child, str)
        }
    if isinstance(value, list):
        return [without_descriptions(item) for item in value]
    return value


def documents(server):
    """All documents of a server: {"v2": document, name: document of v3}."""
    by_name = {"v2": without_descriptions(server.ok("GET", "/openapi/v2"))}
    for name, location in server.ok("GET", "/openapi/v3")["paths"].items():
        by_name[name] = without_descriptions(server.ok("GET", location["serverRelativeURL"]))
    return by_name


def schemas(document):
    return document["definitions"] if "swagger" in document else document.get("components", {}).get("schemas", {})


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:DIGITS]


def record(documents):
    """The lines of the file."""
    lines, parts = {}, collections.defaultdict(lambda: (set(), set()))
    for name, document in documents.items():
        lines[f"document {name}"] = [digest(document)]
        for kind, values in (("path", document.get("paths", {})), ("schema", schemas(document))):
            for key, value in values.items():
                parts[f"{kind} {key}"][name != "v2"].add(digest(value))
    lines |= {key: [",".join(sorted(hashes)) or "-" for hashes in both] for key, both in parts.items()}
    return [f"{key} {' '.join(hashes)}" for key, hashes in sorted(lines.items())]


def nodes(value):
    """The number of objects in a part."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict) + sum(nodes(child) for child in children)


def differences(place, want, found):
    """The places that differ: (class, place)."""
    if isinstance(want, dict) and isinstance(found, dict):
        for key in sorted(want.keys() | found.keys()):
            if key not in found:
                yield f"lacks {key}", f"{place}/{key}"
            elif key not in want:
                yield f"has {key}", f"{place}/{key}"
            else:
                yield from differences(f"{place}/{key}", want[key], found[key])
    elif want != found:
        yield f"another {place.rsplit('/', 1)[-1]}", f"{place}: {json.dumps(found)[:200]} is not {json.dumps(want)[:200]}"


def compare(binary):
    """Prints how many parts of each document are equal, and the classes of differences."""
    with Etcd() as etcd, Upstream(etcd) as upstream:
        want = documents(upstream)
    with Pintle(binary) as server:
        found = documents(server)
    total, classes = collections.Counter(), collections.defaultdict(list)
    for name in sorted(want.keys() | found.keys()):
        ours, theirs = found.get(name, {}), want.get(name, {})
        counts = collections.Counter()
        parts = {
            "paths": lambda document: document.get("paths", {}),
            "schemas": schemas,
            "operations": lambda document: {
                (path, method): operation for path, item in document.get("paths", {}).items() for method, operation in item.items() if method != "parameters"
            },
        }
        for word, of in parts.items():
            for key, value in of(theirs).items() if theirs else ():
                equal = bool(ours) and of(ours).get(key) == value
                counts[word] += 1
                counts[f"equal {word}"] += equal
                if word == "schemas":
                    counts["nodes"] += nodes(value)
                    counts["equal nodes"] += nodes(value) if equal else 0
        print(f"{name}: " + ", ".join(f"{counts[f'equal {word}']} of {counts[word]} {word}" for word in (*parts, "nodes")))
        total.update(counts)
        for what, place in differences(name, theirs, ours):
            classes[what].append(place)
    print("all: " + ", ".join(f"{total[f'equal {word}']} of {total[word]} {word}" for word in (*parts, "nodes")))
    for what, places in sorted(classes.items(), key=lambda one: -len(one[1])):
        print(f"{len(places)} {what}: {'; '.join(places[:5])}")
    return not classes


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        sys.exit(0 if compare(sys.argv[2]) else 1)
    with Etcd() as etcd, Upstream(etcd) as upstream:
        RECORD.write_text("\n".join(record(documents(upstream))) + "\n")
