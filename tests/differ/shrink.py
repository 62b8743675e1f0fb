"""Makes the request of a difference smaller, as long as the difference stays in its class."""
import copy

import mutate

ASKS_MAX = 60


def shrunk(step, base, is_same):
    """Returns a smaller step for which `is_same` holds; `base` is the request before it was changed."""
    asks = ASKS_MAX
    progress = True
    while progress and asks > 0:
        progress = False
        for smaller in candidates(step, base):
            if asks == 0:
                break
            asks -= 1
            if is_same(smaller):
                step, progress = smaller, True
                break
    return step


def candidates(step, base):
    """Smaller requests, the smallest first."""
    yield from plainer(step, base)
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
            yield {**step, "text": text[:start] + text[start + length:]}
        length //= 2


def plainer(step, base):
    """The request with one of its parts as it was, or without a header or a parameter."""
    for part in ("headers", "path", "method"):
        if part in step and step[part] != base.get(part) and (part != "path" or mutate.dry(dict(base))["path"] != step["path"]):
            yield mutate.dry({**step, part: base.get(part, {})})
    for name in step.get("headers", {}):
        yield {**step, "headers": {key: value for key, value in step["headers"].items() if key != name}}
    path, query = mutate.split(step["path"])
    for spot, (name, _) in enumerate(query):
        if name != "dryRun":
            yield {**step, "path": mutate.join(path, query[:spot] + query[spot + 1:])}
