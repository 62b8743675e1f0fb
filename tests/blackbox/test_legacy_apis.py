"""Legacy APIs, enabled with --runtime-config: v1beta1 CRDs."""

import json
import subprocess

import pytest

from kubectl import crontab as tutorial
from kubectl.client import MANIFESTS, Kubectl, has, same, table
from legacy import BETA, CRONTABS, V1, V1BETA1, crontab, definition
from pintle import eventually
from watch import Watch

pytestmark = pytest.mark.legacy

WARNING = (
    '299 - "apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; '
    'use apiextensions.k8s.io/v1 CustomResourceDefinition"'
)


def test_off_by_default(launch):
    with launch() as server:
        for path in (V1BETA1, "/apis/extensions/v1beta1", "/apis/extensions/v1beta1/thirdpartyresources"):
            assert server.request("GET", path)[0] == 404, path
        groups = {group["name"]: group["versions"] for group in server.ok("GET", "/apis")["groups"]}
        assert "extensions" not in groups and len(groups["apiextensions.k8s.io"]) == 1, groups
    for flag, part in (
        ("batch/v2alpha1=true", "group version batch/v2alpha1 that has not been registered"),
        ("boats/v1=true", "unknown api groups boats"),
        ("api/all=maybe", "a value is true or false"),
    ):
        done = subprocess.run([launch.binary, "serve", "--storage", "memory", "--runtime-config", flag], capture_output=True, text=True, timeout=30)
        assert done.returncode == 1 and part in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    done = subprocess.run([launch.binary, "serve", "--help"], capture_output=True, text=True, timeout=30)
    assert "--runtime-config" in done.stdout and "extensions/v1beta1" in done.stdout, done.stdout


def test_every_response_has_a_warning(launch):
    """Every response of v1beta1 has a deprecation warning, successful or not."""
    with launch(BETA) as server:
        name = V1BETA1 + "/crontabs.stable.example.com"
        apply = {"Content-Type": "application/apply-patch+yaml"}
        body = definition(version="v1")
        for want, method, path, data, headers in (
            (201, "POST", V1BETA1, body, None),
            (409, "POST", V1BETA1, body, None),
            (200, "GET", V1BETA1, None, None),
            (200, "GET", name, None, None),
            (404, "GET", V1BETA1 + "/x.example.com", None, None),
            (200, "GET", name + "/status", None, None),
            (200, "PATCH", name, {"metadata": {"labels": {"a": "b"}}}, None),
            (200, "PATCH", name + "?fieldManager=me&force=true", body, apply),
            (422, "PATCH", name, {"spec": {"scope": "Cluster"}}, None),
            (200, "GET", V1BETA1, None, {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}),
            (200, "DELETE", name, None, None),
        ):
            status, response, got = server.request(method, path, data, headers=headers)
            assert (status, got.get("warning")) == (want, WARNING), (method, path, status, response, got)
        # its objects are deleted before it is gone
        eventually(lambda: server.request("GET", name)[0] == 404)
        server.ok("POST", V1BETA1, body)
        status, _, got = server.request("GET", name, headers={"Accept": "application/vnd.kubernetes.protobuf"})
        assert (status, got["content-type"], got["warning"]) == (200, "application/vnd.kubernetes.protobuf", WARNING), got
        assert "warning" not in server.request("GET", V1)[2]


def test_one_object_in_two_versions(launch):
    with launch(BETA) as server:
        events = Watch(server, V1BETA1 + "?watch=1")
        schema = {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"cronSpec": {"type": "string", "pattern": "^\\S+$"}}}},
            }
        }
        columns = [{"name": "Spec", "type": "string", "JSONPath": ".spec.cronSpec"}]
        server.ok(
            "POST",
            V1BETA1,
            definition(version="v1", validation=schema, additionalPrinterColumns=columns, subresources={"status": {}}, preserveUnknownFields=False),
        )
        name = "/crontabs.stable.example.com"
        new, old = server.ok("GET", V1 + name), server.ok("GET", V1BETA1 + name)
        version = {"name": "v1", "served": True, "storage": True}
        assert new["spec"]["versions"] == [
            {
                **version,
                "schema": schema,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec"}],
            }
        ], new
        spec = old["spec"]
        assert (spec["versions"], spec["version"], spec["scope"]) == ([version], "v1", "Namespaced"), old
        assert (spec["validation"], spec["additionalPrinterColumns"], spec["preserveUnknownFields"]) == (schema, columns, False)
        assert new["metadata"] == old["metadata"] and new["status"] == old["status"]
        # objects written in v1 are served in v1beta1, and vice versa
        new["spec"]["versions"].append({"name": "v2", "served": True, "storage": False, "schema": schema})
        new = server.ok("PUT", V1 + name, new)
        old = server.ok("GET", V1BETA1 + name)
        assert old["spec"]["validation"] == schema and "subresources" not in old["spec"], old["spec"]
        assert [("subresources" in version, "schema" in version) for version in old["spec"]["versions"]] == [(True, False), (False, False)]
        assert server.ok("PUT", V1BETA1 + name, old)["metadata"]["generation"] == new["metadata"]["generation"], "the object is unchanged"
        assert server.ok("GET", V1 + name)["spec"] == new["spec"]
        eventually(lambda: any('"MODIFIED"' in line and '"v2"' in line for line in events.lines))
        assert all('"apiVersion":"apiextensions.k8s.io/v1beta1"' in line for line in events.lines), events.lines
        # instances are not affected
        status, response, _ = server.request("POST", CRONTABS, crontab(spec={"cronSpec": "* *"}))
        assert status == 422 and "spec.cronSpec in body should match" in response["message"], response
        server.ok("POST", CRONTABS, crontab(spec={"cronSpec": "*", "more": 1}))
        rows = server.ok("GET", CRONTABS, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})["rows"]
        assert [row["cells"] for row in rows] == [["a", "*"]], rows
        assert server.ok("GET", CRONTABS + "/a")["spec"] == {"cronSpec": "*"}


def test_apply_in_two_versions(launch):
    """Managers keep their fields, in whichever version managers write."""
    with launch(BETA) as server:

        def apply(path, manager, body, force="false"):
            path = f"{path}/crontabs.stable.example.com?fieldManager={manager}&force={force}"
            data = json.dumps(body).encode()
            return server.request("PATCH", path, data, headers={"Content-Type": "application/apply-patch+yaml"})[:2]

        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        names = {"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"]}
        new = definition(scope="Namespaced", names=names, versions=[version]) | {"apiVersion": "apiextensions.k8s.io/v1"}
        old = definition(version="v1", names={**names, "shortNames": ["cron"]}, additionalPrinterColumns=[{"name": "A", "type": "string", "JSONPath": ".a"}])
        assert apply(V1, "new", new)[0] == 201
        status, response = apply(V1BETA1, "old", old)
        fields = [cause["field"] for cause in response["details"]["causes"]]
        assert status == 409 and ".spec.names.shortNames" in fields, response
        status, response = apply(V1BETA1, "old", old, "true")
        assert status == 200 and response["spec"]["validation"] == {"openAPIV3Schema": {"type": "object"}}, response
        stored = server.ok("GET", V1 + "/crontabs.stable.example.com")["spec"]
        assert stored["names"]["shortNames"] == ["cron"] and stored["versions"][0]["schema"] == version["schema"], stored
        assert stored["versions"][0]["additionalPrinterColumns"] == [{"name": "A", "type": "string", "jsonPath": ".a"}], stored
        status, response = apply(V1, "new", new)
        assert status == 409 and all('"old"' in cause["message"] for cause in response["details"]["causes"]), response


def test_validation_depends_on_the_version_of_the_request(launch):
    with launch(BETA) as server:
        name = "/crontabs.stable.example.com"
        server.ok("POST", V1BETA1, definition(version="v1"))
        stored = server.ok("GET", V1 + name)
        assert stored["spec"]["preserveUnknownFields"] is True and "schema" not in stored["spec"]["versions"][0], stored
        reasons = {c["type"]: c["message"] for c in stored["status"]["conditions"] if c["status"] == "True"}
        assert reasons["NonStructuralSchema"] == "spec.preserveUnknownFields: Invalid value: true: must be false", reasons
        fields = {"spec": {"a": [1, None, {"b": 1.50}]}, "other": "x"}
        created = server.ok("POST", CRONTABS, crontab(**fields))
        assert {key: created[key] for key in fields} == fields, created
        # v1 preserves stored values that it does not accept in a change
        server.ok("PATCH", V1 + name, {"metadata": {"labels": {"a": "b"}}})
        server.ok("PATCH", V1BETA1 + name, {"spec": {"validation": {"openAPIV3Schema": {"required": ["spec"]}}}})
        status, response, _ = server.request("POST", CRONTABS, crontab("b"))
        assert status == 422 and "spec: Required value" in response["message"], response
        server.ok("PATCH", V1BETA1 + name, {"spec": {"preserveUnknownFields": False, "validation": {"openAPIV3Schema": {"type": "object"}}}})
        status, response, _ = server.request("PATCH", V1 + name, {"spec": {"preserveUnknownFields": True}})
        assert status == 422 and "spec.preserveUnknownFields: Invalid value: true: cannot set to true" in response["message"], response
        bad = {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}}
        status, response, _ = server.request("PATCH", V1BETA1 + name, {"spec": {"validation": bad}})
        assert status == 422 and "must use apiextensions.k8s.io/v1)" in response["message"], response
        for path, version in ((V1, "v1beta1"), (V1BETA1, "v1")):
            status, response, _ = server.request("POST", path, {**definition(), "apiVersion": "apiextensions.k8s.io/" + version})
            assert status == 400 and "does not match the expected API version" in response["message"], response
        scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
        subresources = {"subresources": {"scale": {**scale, "ScaleGroupVersion": "autoscaling/v1"}}}
        patched = server.ok("PATCH", V1BETA1 + name, {"spec": subresources})
        assert patched["spec"]["subresources"] == {"scale": scale}, "the field was never released, and is unknown"
        status, response, _ = server.request("PATCH", V1BETA1 + name + "?fieldValidation=Strict", {"spec": {"versions": None, "odd": 1}})
        assert status == 422 and 'unknown field "spec.odd"' in response["message"], response


def test_is_discovered(launch):
    with launch("--runtime-config=api/all=true") as server:
        group = server.ok("GET", "/apis/apiextensions.k8s.io")
        assert [v["version"] for v in group["versions"]] == ["v1", "v1beta1"], group
        assert group["preferredVersion"]["version"] == "v1"
        resources = {r["name"]: r for r in server.ok("GET", "/apis/apiextensions.k8s.io/v1beta1")["resources"]}
        assert resources["customresourcedefinitions"]["shortNames"] == ["crd", "crds"] and len(resources) == 2, resources
        aggregated = server.ok("GET", "/apis", headers={"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"})
        versions = {item["metadata"]["name"]: [v["version"] for v in item["versions"]] for item in aggregated["items"]}
        assert versions["apiextensions.k8s.io"] == ["v1", "v1beta1"], versions
        document = server.ok("GET", "/openapi/v3/apis/apiextensions.k8s.io/v1beta1")
        schema = document["components"]["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinition"]
        text = json.dumps(schema)
        assert '"validation"' in text and '"version"' in text, text


def test_kubectl_applies_v1beta1(launch, each_kubectl):
    with launch(BETA) as server, Kubectl(each_kubectl, server, "default") as kubectl:
        file = kubectl.file(
            "definition.yaml",
            json.dumps(
                definition(version="v1", scope="Namespaced", additionalPrinterColumns=[{"name": "Spec", "type": "string", "JSONPath": ".spec.cronSpec"}])
            ),
        )
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
    """The tutorial on CustomResourceDefinitions with its manifests for releases before 1.16."""
    cases = [
        tutorial.tutorial_create_and_delete,
        tutorial.tutorial_validation,
        tutorial.tutorial_printer_columns,
        tutorial.tutorial_subresources,
        tutorial.tutorial_categories,
        tutorial.tutorial_namespace_deletion,
    ]
    with launch(BETA) as server:
        for number, case in enumerate(cases):
            with Kubectl(each_kubectl, server, f"tutorial-{number}") as kubectl:
                kubectl.manifests = MANIFESTS / "v1beta1"
                server.ok("POST", "/api/v1/namespaces", {"metadata": {"name": kubectl.namespace}})
                case(kubectl)
