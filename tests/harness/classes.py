"""Classes of differences: the places at which two responses differ, without the names and numbers of the case."""

import json
import pathlib
import re
import tomllib

KNOWN = pathlib.Path(__file__).resolve().parent / "known.toml"
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`')
NUMBER = re.compile(r"-?\d[\d.e+]*")
WORDS_MAX = 160
# the key of the text of a body in YAML, beside its fields
TEXT = "<yaml>"
# names of fields that remain in a class; other names depend on the case
KEPT = frozenset(
    """status headers body metadata message reason details causes field kind apiVersion code name group uid items
    warning content-type rows cells columnDefinitions object managedFields fieldsV1 labels annotations finalizers type spec
    conditions resources creationTimestamp generation resourceVersion ownerReferences namespace data""".split()
)


def masked(text):
    return NUMBER.sub("0", QUOTED.sub('""', text))[:WORDS_MAX]


def leaf(value):
    if isinstance(value, str):
        return masked(value)
    return json.dumps(value) if not isinstance(value, (dict, list)) else type(value).__name__


def differences(a, b, path=()):
    """The places where two values differ, with both sides."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            yield from differences(a.get(key, "<absent>"), b.get(key, "<absent>"), path + (key,))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for one, other in zip(a, b):
            yield from differences(one, other, path + ("*",))
    elif json.dumps(a, sort_keys=True) != json.dumps(b, sort_keys=True):
        yield path, a, b


def name(path):
    return ".".join(key if key in KEPT or key == "*" else "_" for key in path)


def signature(a, b):
    """One line, which is the same for differences with the same cause; empty if the responses are equal."""
    found, places = [], list(differences(a, b))
    # the text of a body in YAML is compared only if its fields are equal
    fields = [place for place in places if place[0][-1:] != (TEXT,)]
    if any(path[:1] == ("body",) for path, _, _ in fields):
        places = fields
    for path, one, other in places:
        text = f"{name(path)}: {leaf(one)} | {leaf(other)}"
        if text not in found:
            found.append(text)
    # the causes come last, since the message repeats them
    order = {"status": 0, "body.reason": 1, "body.message": 2}
    found.sort(key=lambda text: order.get(text.split(":")[0], 3))
    return " ;; ".join(found[:3])


class Known:
    """The accepted classes: random differences of kube-apiserver, and those that docs/src/reference/differences.md lists."""

    def __init__(self, path):
        self.entries = tomllib.loads(path.read_text()).get("class", [])
        for entry in self.entries:
            assert entry["reason"] and entry["kind"] in ("chance", "listed"), entry
            entry["pattern"] = re.compile(entry["match"], re.S)
            entry["request"] = re.compile(entry.get("request", ""))

    def find(self, text, request):
        """The entry that matches a signature and a request, `METHOD path headers body`; None if there is none."""
        return next((entry for entry in self.entries if entry["pattern"].search(text) and entry["request"].search(request)), None)
