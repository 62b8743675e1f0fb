"""Reads /metrics."""
import re


def metrics_of(server, **more):
    """The samples by name and labels, and the types by name."""
    _, answer, headers = server.request("GET", "/metrics", **more)
    lines = answer.splitlines()
    types = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
    samples = [re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? (\S+)", line) for line in lines if not line.startswith("#")]
    return [(s[1], dict(re.findall(r'(\w+)="([^"]*)"', s[2] or "")), float(s[3])) for s in samples], types, headers


def value(samples, name, /, **labels):
    found = [v for n, have, v in samples if n == name and all(have.get(key) == want for key, want in labels.items())]
    assert len(found) == 1, (name, labels, found)
    return found[0]
