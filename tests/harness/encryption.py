"""Configurations of encryption at rest, and secrets to encrypt."""

import base64
import json
import pathlib

SECRETS = "/api/v1/namespaces/default/secrets"
MAPS = "/api/v1/namespaces/default/configmaps"
PLAIN = "a very secret text"
ENCODED = base64.b64encode(PLAIN.encode())


def configuration(directory, *providers, resources=("secrets",)):
    """Writes an EncryptionConfiguration and returns its path. A provider is "identity" or such as `{"aescbc": [(name, byte of the
    key)]}`."""

    def provider(one):
        if one == "identity":
            return {"identity": {}}
        ((kind, keys),) = one.items()
        return {kind: {"keys": [{"name": name, "secret": base64.b64encode(bytes([byte]) * 32).decode()} for name, byte in keys]}}

    path = pathlib.Path(directory) / "encryption.json"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "EncryptionConfiguration",
                "resources": [{"resources": list(resources), "providers": [provider(one) for one in providers]}],
            }
        )
    )
    return path


def secret(name):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"k": ENCODED.decode()}}
