"""Plays scenarios with `pintle replay`, which is the one player: it records, and compares responses exactly."""

import json
import subprocess
import tempfile

from pintle import TOKEN

EXACT = ("--exact", "--fast")
SECONDS = 600


def kubeconfig(url, token):
    """The text of a kubeconfig. JSON is YAML."""
    cluster = {"server": url, "insecure-skip-tls-verify": True}
    return json.dumps(
        {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
    )


def play(binary, url, files, options=EXACT, token=TOKEN):
    """Plays scenario files against a server. Returns an object for each file: "file", the number of "steps" that were compared or recorded,
    and the steps that are "different": "id", "request" and "difference"."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        config.write(kubeconfig(url, token))
        config.flush()
        command = [binary, "replay", *options, "--output=json", "--kubeconfig", config.name, *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def text(name, different):
    """Differences as text."""
    return "\n".join(f"--- {name}: {step['id']}: {step['request']}\n{step['difference']}" for step in different)
