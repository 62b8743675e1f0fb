"""`--from`: captures of clusters and manifests, served as they are."""

import gzip
import io
import json
import os
import tarfile

import pytest

import objects
from documentation import command_tests
from objects import WORKSPACES
from pintle import eventually
from programs import ROOT

pytestmark = [pytest.mark.cli, pytest.mark.timeout(120)]

MOMENT = "2024-05-01T10:10:00Z"


def item(version, kind, name, namespace=None, revision=1, created="2024-05-01T10:00:00Z", **fields):
    metadata = {"name": name, "uid": f"uid-of-{name}", "resourceVersion": str(revision), "creationTimestamp": created}
    return {"apiVersion": version, "kind": kind, "metadata": metadata | ({"namespace": namespace} if namespace else {}), **fields}


POD = item("v1", "Pod", "web-0", "shop", 20, spec={"nodeName": "gone", "containers": [{"name": "app", "image": "app"}]}, status={"phase": "Failed"})
POD["metadata"] |= {"deletionTimestamp": "2024-05-01T10:05:00Z", "finalizers": ["example.com/hold"]}
POD["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "no-such", "uid": "gone"}]
SCALE = {"scaleTargetRef": {"kind": "Deployment", "name": "a"}, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
LOG = "".join(f"2024-05-01T10:0{minute}:00.000000000Z line {minute}\n" for minute in range(4))
SERVICE = {"name": "metrics", "namespace": "kube-system"}

# a must-gather, with objects that no server accepts, kinds without definitions, and a group of an aggregated API server
FILES = {
    "namespaces/shop/core/pods.yaml": {"apiVersion": "v1", "kind": "PodList", "items": [POD]},
    "namespaces/shop/pods/web-0/web-0.yaml": POD,
    "namespaces/shop/pods/web-0/app/app/logs/current.log": LOG,
    "namespaces/shop/pods/web-0/app/app/logs/previous.log": LOG.replace("line", "before"),
    "namespaces/shop/core/events.yaml": item("v1", "Event", "e", "shop", 30, reason="Killed", lastTimestamp=MOMENT, involvedObject={"name": "web-0"}),
    "namespaces/shop/autoscaling/hpa.yaml": item("autoscaling/v1", "HorizontalPodAutoscaler", "h", "shop", 4, spec=SCALE),
    "namespaces/shop/example.com/gadgetry.yaml": item("example.com/v1", "Gadget", "g", "shop", 5, spec={"free": ["form"]}),
    "cluster-scoped-resources/core/namespaces/shop.yaml": item("v1", "Namespace", "shop", None, 2, status={"phase": "Active"}),
    "cluster-scoped-resources/apiregistration.k8s.io/apiservices.yaml": item(
        "apiregistration.k8s.io/v1", "APIService", "v1beta1.metrics.k8s.io", spec={"service": SERVICE, "group": "metrics.k8s.io", "version": "v1beta1"}
    ),
    "namespaces/shop/metrics.k8s.io/pods.yaml": item(
        "metrics.k8s.io/v1beta1",
        "PodMetrics",
        "web-0",
        "shop",
        containers=[{"name": "app", "usage": {"cpu": "5m", "memory": "7Mi"}}],
        window="30s",
        timestamp=MOMENT,
    ),
    "namespaces/shop/core/broken.yaml": "a: [",
}


def archive(files):
    """A tar.gz, with entries that are left out."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in [*files.items(), ("../outside.yaml", "a: 1")]:
            data = (content if isinstance(content, str) else json.dumps(content)).encode()
            entry = tarfile.TarInfo(name if name.startswith("..") else f"must-gather.local/quay-io/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo("must-gather.local/link.yaml")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return packed.getvalue()


@pytest.fixture
def bundle(tmp_path):
    path = tmp_path / "bundle.tar.gz"
    path.write_bytes(archive(FILES))
    return path


def run(launch, kubectl_binary, *sources, script):
    """Runs a script on a server with some sources. Returns its output."""
    flags = [word for source in sources for word in ("--from", source)]
    return launch.run("run", *flags, "--", "bash", "-ec", script, env={"PATH": f"{os.path.dirname(kubectl_binary)}:{os.environ['PATH']}"})


def test_a_bundle_is_served_as_it_was(launch, kubectl_binary, bundle):
    before = bundle.read_bytes()
    done = run(
        launch,
        kubectl_binary,
        bundle,
        script="""
kubectl get pods,events -A
kubectl get pod -n shop web-0 -o json | tee /dev/stderr | grep -c example.com/hold
kubectl get gadgets -n shop g -o jsonpath='{.spec.free[0]} '
kubectl get crd gadgets.example.com -o jsonpath='{.metadata.annotations.sources\\.pintle\\.dev/inferred}' 2>/dev/null || kubectl get crd
kubectl get hpa.v2.autoscaling -n shop h -o jsonpath=' {.spec.metrics[0].resource.target.averageUtilization}'
echo; kubectl top pod -n shop --use-protocol-buffers=false
kubectl get ns
kubectl create configmap -n shop new
kubectl get configmap -n shop new -o jsonpath='{.metadata.creationTimestamp}'
""",
    )
    summary, *rest = [line for line in done.stderr.splitlines() if not line.startswith((" ", "{", "}"))]
    assert summary == "7 objects of 7 kinds from bundle.tar.gz; 3 skipped, 2 kinds without a definition", done.stderr
    assert "skipped: ../outside.yaml: its path leaves the archive" in rest, rest
    assert "skipped: must-gather.local/link.yaml: links are not followed" in rest, rest
    assert "changes are kept in memory; the source is never written" in rest, rest
    pod = json.loads(done.stderr[done.stderr.index("{\n") : done.stderr.rindex("}\n") + 2])
    assert pod["metadata"].pop("resourceVersion").isdigit()
    assert pod == POD | {"metadata": {key: value for key, value in POD["metadata"].items() if key != "resourceVersion"}}
    out = done.stdout
    assert "form true 50" in " ".join(out.split()), out
    assert any(line.split()[-1] == "10m" and "web-0" in line for line in out.splitlines()), out
    assert "5m" in out and "7Mi" in out and out.endswith(MOMENT), out
    names = [line.split()[0] for line in out.split("NAME", 3)[-1].splitlines() if "Active" in line]
    assert names == ["shop"], out
    assert bundle.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ("", "line 0\nline 1\nline 2\nline 3\n"),
        ("-f --tail=1", "line 3\n"),
        ("-p --tail=1", "before 3\n"),
        ("-c app --since-time=2024-05-01T10:02:00Z", "line 2\nline 3\n"),
        ("--timestamps --tail=1", "2024-05-01T10:03:00.000000000Z line 3\n"),
        ("--all-containers --prefix --limit-bytes=6", "[pod/web-0/app] line 0\n"),
    ],
)
def test_logs_are_those_of_the_bundle(launch, kubectl_binary, bundle, options, want):
    done = run(launch, kubectl_binary, bundle, script=f"kubectl logs -n shop web-0 {options}")
    assert done.stdout.rstrip("\n") == want.rstrip("\n"), done


def test_later_sources_win_and_manifests_are_sources(launch, kubectl_binary, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other.yaml.gz"
    one.mkdir()
    (one / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {from: one}\n")
    (one / "crd.yaml").write_text((ROOT / "examples" / "crontab.yaml").read_text())
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"serviceName": "db", "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    (one / "set.json").write_text(json.dumps({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}))
    other.write_bytes(gzip.compress(b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {from: other}\n"))
    script = f"kubectl get cm a -o jsonpath='{{.data.from}}{{.metadata.uid}}'; kubectl apply -f {ROOT}/examples/my-crontab.yaml"
    # with its defaults, so that it can be applied again
    script += f"; kubectl apply --server-side -f {one}/set.json"
    done = run(launch, kubectl_binary, one, other, script=script)
    assert done.stdout.startswith("other") and len(done.stdout.split("crontab")[0]) == len("other") + 36, done
    assert done.stdout.endswith("my-new-cron-object created\nstatefulset.apps/db serverside-applied\n"), done
    assert done.stderr.splitlines()[0] == "3 objects of 3 kinds from one, other.yaml.gz", done


def test_the_shell_names_the_source(launch, bundle):
    done = launch.run("run", "--from", bundle, input='echo "$PS1"\n[ -f "$KUBECONFIG" ] && echo there\n', env={"SHELL": "/bin/sh"})
    assert done.stdout == "(bundle.tar.gz) $ \nthere\n", done


def test_a_workspace_begins_with_a_bundle(launch, bundle, tmp_path):
    def create(name, *sources, status=0):
        options = [word for source in sources for word in ("--from", str(source))]
        return launch.run("workspace", "create", name, *options, "--kubeconfig", server.kubeconfig, status=status)

    def pod(workspace):
        object = server.ok("GET", f"/clusters/{workspace}/api/v1/namespaces/shop/pods/web-0")
        assert object["metadata"].pop("resourceVersion").isdigit()
        return object

    want = POD | {"metadata": {key: value for key, value in POD["metadata"].items() if key != "resourceVersion"}}
    with launch("--workspaces") as server:
        done = create("case", bundle)
        assert done.stdout == f"{server.url}/clusters/case\n", done
        assert done.stderr.startswith("7 objects of 7 kinds from bundle.tar.gz; 3 skipped, 2 kinds without a definition\nskipped: "), done
        assert pod("case") == want, "neither admitted nor collected, although its owner was not captured"
        assert server.ok("GET", "/clusters/case/apis/example.com/v1/namespaces/shop/gadgets/g")["spec"] == {"free": ["form"]}
        # a change is undone by a reset, and the bundle can be forked again
        gadget = "/clusters/case/apis/example.com/v1/namespaces/shop/gadgets/g"
        server.ok("PATCH", gadget, {"spec": {"free": ["changed"]}})
        server.ok("PATCH", f"{WORKSPACES}/case", {"spec": {"reset": "1"}})
        eventually(lambda: server.ok("GET", f"{WORKSPACES}/case")["status"].get("reset") == "1")
        assert server.ok("GET", gadget)["spec"] == {"free": ["form"]} and pod("case") == want
        assert server.request("POST", "/clusters/case-source/storage/objects", {"objects": []})[0] == 405, "it is sealed"

        # what a request may load
        objects.workspace(server, "small", limits={"bytes": 300_000})
        load = "/clusters/small/storage/objects"
        eventually(lambda: server.request("POST", load, {"objects": []})[0] == 200)
        own = {"metadata": {"name": "t"}}
        crd = {"metadata": {"name": "faults.testing.pintle.dev"}, "spec": {"group": "testing.pintle.dev"}}
        renamed = {"metadata": {"name": "workspaces.workspaces.pintle.dev"}, "spec": {"group": "example.com"}}
        big = {"metadata": {"name": "b", "namespace": "default"}, "data": {"a": "x" * 400_000}}
        for code, group, resource, path, object in (
            (400, "", "configmaps", "default/other", big),
            (400, "", "config/maps", "default/b", big),
            (403, "workspaces.pintle.dev", "workspaces", "t", own),
            (403, "apiextensions.k8s.io", "customresourcedefinitions", "faults.testing.pintle.dev", crd),
            (403, "apiextensions.k8s.io", "customresourcedefinitions", "workspaces.workspaces.pintle.dev", renamed),
            (403, "", "configmaps", "default/b", big),
        ):
            sent = {"group": group, "resource": resource, "path": path, "object": object}
            status, body, _ = server.request("POST", load, {"objects": [sent]})
            assert status == code, (status, body)
        # one request is bounded as many are
        tiny = [{"metadata": {"name": f"t{i}", "namespace": "default"}, "data": {"a": "x" * 300}} for i in range(2000)]
        sent = [{"group": "", "resource": "configmaps", "path": f"default/{one['metadata']['name']}", "object": one} for one in tiny]
        assert server.request("POST", load, {"objects": sent})[0] == 403
        assert len(server.ok("GET", "/clusters/small/api/v1/namespaces/default/configmaps")["items"]) < 1000
        assert server.request("POST", "/storage/objects", {"objects": []})[0] == 404, "workspaces only"
        objects.account(server, "reader", prefix="/clusters/small")
        token = objects.token_of(server, "reader", prefix="/clusters/small")
        assert server.request("POST", load, {"objects": []}, token=token)[0] == 403

        for sources, why in ((["case", bundle], "write ./case for a file"), ([tmp_path / "none"], "cannot read")):
            assert why in create("other", *sources, status=1)
        assert server.request("GET", f"{WORKSPACES}/other-source")[0] == 404


def test_manifests_in_archives_are_validated(launch, tmp_path):
    path = tmp_path / "chart.tgz"
    path.write_bytes(archive({"a.yaml": item("v1", "ConfigMap", "UPPER", "shop")}))
    assert "chart.tgz/must-gather.local/quay-io/a.yaml" in launch.run("validate", path, status=2).stdout


test_commands = command_tests("sources")
