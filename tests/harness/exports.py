"""Files as `pintle export` writes them."""

import hashlib
import json

FORMAT = "pintle objects 1"


def config_map(name, data, **labels):
    """A line of an export: a ConfigMap of the namespace `default`."""
    meta = {"name": name, "namespace": "default", "labels": labels}
    return {
        "group": "",
        "resource": "configmaps",
        "path": f"default/{name}",
        "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data},
    }


def write_export(path, count, lines):
    """Writes `count` lines, with the header and the checksum."""
    digest = hashlib.sha256()
    with open(path, "w") as file:

        def write(line):
            text = json.dumps(line, separators=(",", ":")) + "\n"
            digest.update(text.encode())
            file.write(text)

        write({"format": FORMAT, "objects": count, "revision": count})
        for line in lines:
            write(line)
        write({"sha256": digest.hexdigest()})
