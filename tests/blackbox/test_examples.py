"""The examples, applied with kubectl."""

import json
import pathlib
import subprocess

import pytest

from kubectl.client import Kubectl, has, same, table

pytestmark = pytest.mark.examples

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
ALL = "--runtime-config=api/all=true"


def test_examples(launch, kubectl_binary):
    with launch(ALL) as server, Kubectl(kubectl_binary, server, "default") as kubectl:

        def apply(name, object_name):
            same(kubectl("apply", "-f", EXAMPLES / name), object_name + " created\n")

        def apply_crd(name, plural):
            apply(name, f"customresourcedefinition.apiextensions.k8s.io/{plural}")
            kubectl("wait", "--for=condition=Established", f"crd/{plural}", "--timeout=30s")

        apply_crd("crontab.yaml", "crontabs.stable.example.com")
        apply("my-crontab.yaml", "crontab.stable.example.com/my-new-cron-object")
        kubectl("delete", "-f", EXAMPLES / "crontab.yaml")
        apply_crd("v1beta1-crontab.yaml", "crontabs.stable.example.com")
        apply("my-crontab.yaml", "crontab.stable.example.com/my-new-cron-object")
        same(table(kubectl("get", "ct")), [["NAME", "SPEC", "REPLICAS"], ["my-new-cron-object", "* * * * */5"]])
        apply("third-party-crontab.yaml", "thirdpartyresource.extensions/cron-tab.legacy.example.com")
        apply("my-third-party-crontab.yaml", "crontab.legacy.example.com/my-old-cron-object")
        same(kubectl("get", "crontabs.legacy.example.com", "-o", "jsonpath={.items[*].cronSpec}"), "* * * * */5")

        apply_crd("database-cluster.yaml", "databaseclusters.db.example.com")
        apply("my-database.yaml", "databasecluster.db.example.com/orders")
        same(table(kubectl("get", "databases")), [["NAME", "ENGINE", "READY", "PHASE", "AGE"], ["orders", "heron", "AGE"]])
        spec = kubectl.json("get", "dbc", "--field-selector=spec.engine.name=heron")["items"][0]["spec"]
        same((spec["primary"], spec["backup"]["retain"], spec["users"][0]["passwordFrom"]["key"]), (0, 7, "password"))
        has(kubectl("scale", "--replicas=5", "dbc/orders"), "scaled")
        for patch, message in (
            ('{"spec":{"primary":7}}', "the primary must be one of the replicas"),
            ('{"spec":{"engine":{"name":"osprey"}}}', "the engine cannot be changed"),
            ('{"spec":{"storage":{"size":"much"}}}', "spec.storage.size in body should match"),
        ):
            has(kubectl("patch", "dbc", "orders", "--type=merge", "-p", patch, code=1).errors, message)
        has(kubectl("get", "databaseclusters.v1alpha1.db.example.com").errors, "is deprecated; use db.example.com/v1 DatabaseCluster")

        apply_crd("certificate-issuer.yaml", "certificateissuers.pki.example.com")
        apply("my-issuer.yaml", "certificateissuer.pki.example.com/letters")
        same(kubectl("get", "ci", "letters", "-o", "jsonpath={.spec.lifetime}"), "2160h")
        out = kubectl("patch", "ci", "letters", "--type=merge", "-p", '{"spec":{"selfSigned":{}}}', code=1)
        has(out.errors, '"spec" must validate one and only one schema (oneOf)')

        big = subprocess.run([EXAMPLES / "big-crd"], capture_output=True, text=True, check=True).stdout
        same(kubectl("create", "-f", "-", input=big), "customresourcedefinition.apiextensions.k8s.io/settings.big.example.com created\n")
        setting = {
            "apiVersion": "big.example.com/v1",
            "kind": "Setting",
            "metadata": {"name": "a"},
            "spec": {"section99": {"setting4995": "text", "setting4996": -1, "other": 1}},
        }
        out = kubectl("create", "--validate=false", "-f", "-", input=json.dumps(setting), code=1)
        has(out.errors, "spec.section99.setting4996 in body should be greater than or equal to 0")
        setting["spec"]["section99"]["setting4996"] = 1
        kubectl("create", "--validate=false", "-f", "-", input=json.dumps(setting))
        same(
            kubectl.json("get", "setting", "a")["spec"]["section99"],
            {"setting4995": "text", "setting4996": 1, **{f"setting{n}": False for n in range(4950, 5000) if n % 5 == 2}},
        )
