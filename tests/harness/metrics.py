"""Reads /metrics."""

import re


def metrics_of(server, **options):
    """The samples as (name, labels, value), the types by name, and the headers of the response."""
    _, text, headers = server.request("GET", "/metrics", **options)
    lines = text.splitlines()
    types = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
    samples = [re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? (\S+)", line) for line in lines if not line.startswith("#")]
    return [(s[1], dict(re.findall(r'(\w+)="([^"]*)"', s[2] or "")), float(s[3])) for s in samples], types, headers


def value(samples, name, /, **labels):
    """The value of the only sample with this name and these labels."""
    values = [v for n, have, v in samples if n == name and all(have.get(key) == want for key, want in labels.items())]
    assert len(values) == 1, (name, labels, values)
    return values[0]
