"""Legacy APIs, enabled with --runtime-config: v1beta1 CRDs."""

import json

import pytest

from kubectl.client import MANIFESTS, Kubectl, check_console, console, has, same, table
from legacy import BETA, V1BETA1, crontab, definition

pytestmark = pytest.mark.legacy


def test_off_by_default(server):
    for path in (V1BETA1, "/apis/extensions/v1beta1", "/apis/extensions/v1beta1/thirdpartyresources"):
        assert server.request("GET", path)[0] == 404, path
    groups = {group["name"]: group["versions"] for group in server.ok("GET", "/apis")["groups"]}
    assert "extensions" not in groups and len(groups["apiextensions.k8s.io"]) == 1, groups


def test_kubectl_applies_v1beta1(launch, each_kubectl):
    with launch(BETA) as server, Kubectl(each_kubectl, server, "default") as kubectl:
        columns = [{"name": "Spec", "type": "string", "JSONPath": ".spec.cronSpec"}]
        file = kubectl.file("definition.yaml", json.dumps(definition(version="v1", scope="Namespaced", additionalPrinterColumns=columns)))
        out = kubectl("apply", "-f", file)
        same(out, "customresourcedefinition.apiextensions.k8s.io/crontabs.stable.example.com created\n")
        has(out.errors, "Warning: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+")
        kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=30s")
        kubectl("apply", "-f", "-", input=json.dumps(crontab(spec={"cronSpec": "* * *"})))
        same(table(kubectl("get", "crontab")), [["NAME", "SPEC"], ["a", "* * *"]])
        out = kubectl("get", "customresourcedefinitions.v1beta1.apiextensions.k8s.io", "crontabs.stable.example.com", "-o", "yaml")
        has(out, "apiVersion: apiextensions.k8s.io/v1beta1", "JSONPath: .spec.cronSpec", "preserveUnknownFields: true")
        has(kubectl("apply", "-f", file), "unchanged")
        has(kubectl("get", "crd", "-o", "yaml"), "apiVersion: apiextensions.k8s.io/v1", "jsonPath: .spec.cronSpec")
        has(kubectl("apply", "--server-side", "--force-conflicts", "-f", file), "serverside-applied")
        has(kubectl("delete", "-f", file), "deleted")


def test_kubectl_tutorial(launch, each_kubectl):
    """The tutorial on CustomResourceDefinitions with its manifests for releases before 1.16, which kubectl warns of."""
    cases = console("crontab")
    with launch(BETA) as server:
        for name in ("create_and_delete", "validation", "printer_columns", "subresources", "categories", "namespace_deletion"):
            namespace = f"tutorial-{name.replace('_', '-')}"
            server.ok("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            check_console(launch.binary, each_kubectl, server, namespace, cases[name], MANIFESTS / "v1beta1", "Warning: apiextensions.k8s.io/v1beta1 ")
