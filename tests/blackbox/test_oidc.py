"""The recipe for OpenID Connect in the documentation, with a provider whose tokens have any claims."""

import base64
import json
import re
import time

import pytest

from documentation import ROOT, Shell
from hooks import Serving
from programs import openssl

pytestmark = pytest.mark.identity

# what kubectl runs for `kubectl oidc-login`
PLUGIN = '#!/bin/sh\necho "$@" > arguments\ncat credential.json\n'


def encoded(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider(Serving):
    """`with Provider(certificates, directory) as provider:` serves on 127.0.0.1 with the serving certificate in `certificates`; the
    key is written to `directory`."""

    def __init__(self, certificates, directory):
        super().__init__(certificates)
        self.key, self.documents = directory / "provider.key", {}

    def __enter__(self):
        super().__enter__()
        self.url = f"https://127.0.0.1:{self.port}"
        self.key.write_bytes(openssl("genrsa", "2048"))
        modulus = openssl("rsa", "-in", self.key, "-noout", "-modulus").decode().strip().removeprefix("Modulus=")
        key = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one", "n": encoded(bytes.fromhex(modulus)), "e": "AQAB"}
        self.documents["/keys"] = {"keys": [key]}
        self.documents["/.well-known/openid-configuration"] = {
            "issuer": self.url,
            "jwks_uri": self.url + "/keys",
            "authorization_endpoint": self.url + "/authorize",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        return self

    def handle(self, request):
        request.reply(200 if request.path in self.documents else 404, json.dumps(self.documents.get(request.path)).encode())

    def token(self, **claims):
        """A signed token that is valid for an hour."""
        now = int(time.time())
        head = {"alg": "RS256", "kid": "one", "typ": "JWT"}
        signed = f"{encoded(head)}.{encoded({'iss': self.url, 'iat': now, 'exp': now + 3600, **claims})}"
        return f"{signed}.{encoded(openssl('dgst', '-sha256', '-sign', self.key, input=signed.encode()))}"


def recipe(issuer):
    """The commands of the recipe, with another issuer."""
    section = (ROOT / "docs" / "src" / "guides" / "users.md").read_text().split("## OpenID Connect\n", 1)[1].split("\n## ", 1)[0]
    text = "\n".join(re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S))
    commands = re.split(r"(?<!\\)\n", text.replace("https://issuer.example.com", issuer).strip())
    assert commands[0].startswith("pintle serve ")
    return commands


def test_recipe_for_openid_connect(server, kubectl_binary, launch, tmp_path):
    with Provider(server.dir, tmp_path) as provider, Shell(launch.binary, kubectl_binary) as shell:
        work = shell.home / "work"
        plugin = shell.home / "bin" / "kubectl-oidc_login"
        plugin.write_text(PLUGIN)
        plugin.chmod(0o755)
        serve, *commands = recipe(provider.url)
        shell.serve(f"{serve} --oidc-ca-file {server.dir / 'ca.crt'}")
        shell.execute("export KUBECONFIG=.pintle/admin.kubeconfig")

        def log_in(audience="pintle", **claims):
            token = provider.token(sub="1", aud=audience, **claims)
            credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
            (work / "credential.json").write_text(json.dumps(credential))

        log_in(email="jane@example.com", groups=["admins"])
        output = ""
        for command in commands:
            output, status = shell.execute(command)
            assert status == 0, f"$ {command}\n{output}"
        # the last command of the recipe shows the user
        assert "jane@example.com" in output and "oidc:admins" in output, output
        assert f"--oidc-issuer-url={provider.url}" in (work / "arguments").read_text()
        may_delete = "kubectl --user=jane auth can-i delete secrets"
        assert shell.execute(may_delete)[0].strip() == "yes"
        log_in(email="joe@example.com", groups=["developers"])
        assert shell.execute(may_delete)[0].strip() == "no"
        log_in(audience="another", email="joe@example.com", groups=["admins"])
        output, status = shell.execute(may_delete)
        assert status != 0 and "Unauthorized" in output or "must be logged in" in output, output
