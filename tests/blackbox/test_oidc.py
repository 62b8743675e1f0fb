"""The recipe for OpenID Connect in the documentation, with the provider of harness/oidc.py."""

import json
import re

import pytest

from documentation import ROOT, Shell
from oidc import Provider

pytestmark = pytest.mark.identity

# what kubectl runs for `kubectl oidc-login`
PLUGIN = '#!/bin/sh\necho "$@" > arguments\ncat credential.json\n'


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
