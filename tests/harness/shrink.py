"""Shrinks the request of a difference while the class of the difference stays the same."""

import copy

import mutate

ATTEMPTS_MAX = 60


def shrunk(step, base, is_same):
    """Returns a smaller step for which `is_same` is true; `base` is the request before its mutation."""
    attempts = ATTEMPTS_MAX
    progress = True
    while progress and attempts > 0:
        progress = False
        for smaller in candidates(step, base):
            if attempts == 0:
                break
            attempts -= 1
            if is_same(smaller):
                step, progress = smaller, True
                break
    return step


def candidates(step, base):
    """Smaller requests, those with the largest cuts first."""
    yield from reverted(step, base)
    body = step.get("body")
    if isinstance(body, (dict, list)):
        for path, _ in sorted(mutate.nodes(body), key=lambda found: len(found[0])):
            smaller = copy.deepcopy(step)
            del mutate.at(smaller["body"], path[:-1])[path[-1]]
            yield mutate.dry(smaller)
    text = step.get("text", "")
    length = len(text) // 2
    while length > 0 and len(text) > 40:
        for start in range(0, len(text), length):
            yield {**step, "text": text[:start] + text[start + length :]}
        length //= 2


def reverted(step, base):
    """The request with one part as in `base`, or without a header or a parameter."""
    for part in ("headers", "path", "method"):
        if part in step and step[part] != base.get(part) and (part != "path" or mutate.dry(dict(base))["path"] != step["path"]):
            yield mutate.dry({**step, part: base.get(part, {})})
    for name in step.get("headers", {}):
        yield {**step, "headers": {key: value for key, value in step["headers"].items() if key != name}}
    path, query = mutate.split(step["path"])
    for spot, (name, _) in enumerate(query):
        if name != "dryRun":
            yield {**step, "path": mutate.join(path, query[:spot] + query[spot + 1 :])}
