"""Configurations of encryption at rest, and secrets to encrypt."""

import base64
import json
import pathlib

from objects import SECRETS

PLAIN = "a very secret text"
ENCODED = base64.b64encode(PLAIN.encode())


def configuration(directory, *providers, resources=("secrets",)):
    """Writes an EncryptionConfiguration, atomically, and returns its path. A provider is "identity", or such as `{"aescbc": [(name,
    byte of the key)]}`, or as the file has it."""

    def provider(one):
        if one == "identity":
            return {"identity": {}}
        ((kind, keys),) = one.items()
        if isinstance(keys, dict):
            return one
        return {kind: {"keys": [{"name": name, "secret": base64.b64encode(bytes([byte]) * 32).decode()} for name, byte in keys]}}

    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration"}
    encrypted = {"resources": list(resources), "providers": [provider(one) for one in providers]}
    path = pathlib.Path(directory) / "encryption.json"
    new = path.with_suffix(".new")
    new.write_text(json.dumps({**head, "resources": [encrypted]}))
    return new.replace(path)


def secret(name):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"k": ENCODED.decode()}}


def read(server, name="one", prefix=""):
    """The data of a secret."""
    return server.ok("GET", f"{prefix}{SECRETS}/{name}")["data"]


def stored(server):
    """The content of all files of the log."""
    return b"".join(file.read_bytes() for file in sorted((server.dir / "log").glob("0*")))
