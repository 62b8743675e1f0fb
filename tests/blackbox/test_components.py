"""kube-controller-manager, kube-scheduler and kwok, unchanged, on a server and in a workspace; Envoy Gateway on a directory."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import upstream
from commands import run
from objects import CORE
from pintle import eventually
from programs import ROOT, built, go_module, openssl, require

# the first build of the components takes minutes
pytestmark = [pytest.mark.components, pytest.mark.slow, pytest.mark.timeout(1800)]

SECONDS = 90
# kube-controller-manager has all of them
NO_CONTROLLERS = "--controllers=-namespace-controller"
APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"


class Api:
    """The API of a server, or of a workspace, with a kubeconfig for programs."""

    def __init__(self, server, kubeconfig, prefix=""):
        self.server, self.kubeconfig, self.prefix = server, kubeconfig, prefix

    def ok(self, method, path, body=None):
        return self.server.ok(method, self.prefix + path, body)

    def create(self, path, kind, name, **fields):
        api_version = re.sub("^/apis?/|/namespaces/.*$|/[a-z]*$", "", path)
        return self.ok("POST", path, {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields})


@pytest.fixture(params=["server", "workspace"])
def api(request, launch, tmp_path):
    with launch(NO_CONTROLLERS, "--workspaces") as server:
        if request.param == "server":
            yield Api(server, server.kubeconfig)
            return
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(run(server.binary, "workspace", "create", "w", "-o", "kubeconfig", "--kubeconfig", server.kubeconfig))
        yield Api(server, kubeconfig, "/clusters/w")


@contextlib.contextmanager
def running(directory, *commands, env=None):
    """Runs programs, and stops them at the end."""
    processes = []
    try:
        for command in commands:
            log = open(directory / f"{pathlib.Path(command[0]).name}.log", "w")
            processes.append(subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, env=env))
        yield
        assert [process.poll() for process in processes] == [None] * len(processes)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=60)


def controller_manager(api, directory):
    key = directory / "accounts.key"
    openssl("genrsa", "-out", key, "2048")
    flags = ["--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=500"]
    return [upstream.component("kube-controller-manager"), "--kubeconfig", api.kubeconfig, "--service-account-private-key-file", key, *flags]


def scheduler(api):
    return [upstream.component("kube-scheduler"), "--kubeconfig", api.kubeconfig, "--leader-elect=false", "--secure-port=0"]


def kwok(api, directory):
    """kwok with the stages that its module has for nodes and Pods that are ready at once."""
    module = ROOT / "tests" / "kwok"
    program = built(module, r"sigs\.k8s\.io/kwok", pathlib.Path("kwok/kwok"), package="sigs.k8s.io/kwok/cmd/kwok")
    listed = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"], cwd=module, capture_output=True, text=True, check=True)
    stages = pathlib.Path(listed.stdout.strip()) / "kustomize" / "stage"
    files = [file for kind in ("node", "pod") for file in sorted((stages / kind / "fast").glob(f"{kind}-*.yaml"))]
    (directory / "stages.yaml").write_text("\n---\n".join(file.read_text() for file in files))
    return [program, "--kubeconfig", api.kubeconfig, "--manage-all-nodes=true", "--server-address=127.0.0.1:0", "--config", directory / "stages.yaml"]


def workload(name, **fields):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
    return {"spec": {"selector": {"matchLabels": labels}, "template": template, **fields}}


def job(**fields):
    return {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]}}, **fields}}


def test_kube_controller_manager(api, tmp_path):
    """Its controllers make, count and delete what they make, count and delete on kube-apiserver."""
    with running(tmp_path, controller_manager(api, tmp_path)):
        api.create("/api/v1/nodes", "Node", "node")
        api.create(f"{APPS}/deployments", "Deployment", "web", **workload("web", replicas=2))
        api.create(f"{APPS}/statefulsets", "StatefulSet", "db", **workload("db", replicas=2, serviceName="db"))
        api.create(f"{APPS}/daemonsets", "DaemonSet", "agent", **workload("agent"))
        api.create(f"{BATCH}/jobs", "Job", "once", **job())
        api.create(f"{BATCH}/cronjobs", "CronJob", "often", spec={"schedule": "* * * * *", "jobTemplate": job()})
        api.create(f"{CORE}/services", "Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        api.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "PodDisruptionBudget", "web", spec=budget)
        api.create("/api/v1/namespaces", "Namespace", "gone")
        api.create("/api/v1/namespaces/gone/configmaps", "ConfigMap", "one")
        api.ok("DELETE", "/api/v1/namespaces/gone")

        status = lambda path: api.ok("GET", path)["status"]
        pods = lambda: sorted(item["metadata"]["ownerReferences"][0]["kind"] for item in api.ok("GET", f"{CORE}/pods")["items"])
        names = lambda path: [item["metadata"]["name"] for item in api.ok("GET", path)["items"]]
        # the second Pod of a StatefulSet waits for the first one to be ready, and the CronJob for the minute
        eventually(lambda: set(pods()) >= {"DaemonSet", "Job", "ReplicaSet", "StatefulSet"} and len(pods()) >= 5, SECONDS)
        eventually(lambda: status(f"{APPS}/deployments/web").get("updatedReplicas") == 2, SECONDS)
        eventually(lambda: status(f"{APPS}/daemonsets/agent").get("desiredNumberScheduled") == 1, SECONDS)
        eventually(lambda: status("/apis/policy/v1/namespaces/default/poddisruptionbudgets/web").get("expectedPods") == 2, SECONDS)
        eventually(lambda: any(name.startswith("web-") for name in names("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")), SECONDS)
        eventually(lambda: len(names(f"{BATCH}/jobs")) == 2, SECONDS)
        eventually(lambda: "gone" not in names("/api/v1/namespaces"), SECONDS)
        assert names(f"{CORE}/serviceaccounts") == ["default"]
        api.ok("DELETE", f"{APPS}/deployments/web")
        eventually(lambda: "ReplicaSet" not in pods(), SECONDS)


def test_kwok(api, tmp_path):
    """With the scheduler and kwok, Deployments become available."""
    with running(tmp_path, controller_manager(api, tmp_path), scheduler(api), kwok(api, tmp_path)):
        resources = {"cpu": "100", "memory": "1Ti", "pods": "1000"}
        api.create("/api/v1/nodes", "Node", "node", status={"capacity": resources, "allocatable": resources})
        for number in range(10):
            api.create(f"{APPS}/deployments", "Deployment", f"web-{number}", **workload(f"web-{number}", replicas=3))
        ready = lambda: [item["status"].get("readyReplicas") for item in api.ok("GET", f"{APPS}/deployments")["items"]]
        eventually(lambda: ready() == [3] * 10, SECONDS)


ENVOY_GATEWAY = ROOT / "tests" / "envoy-gateway"
ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes"


def test_envoy_gateway_follows_a_directory(launch, kubectl_binary, tmp_path):
    """An edit of a file shows in the status that Envoy Gateway's Kubernetes provider writes."""
    require("unshare")
    if subprocess.run(["unshare", "--map-root-user", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("mount namespaces are not permitted")
    package = "github.com/envoyproxy/gateway"
    program = built(ENVOY_GATEWAY, re.escape(package), pathlib.Path("envoy-gateway/envoy-gateway"), package=f"{package}/cmd/envoy-gateway")
    definitions = go_module(f"{package}@{program.parent.name}") / "charts/gateway-helm/charts/crds/crds"
    manifests = shutil.copytree(ROOT / "examples" / "gateway" / "manifests", tmp_path / "manifests")
    with launch("-f", str(definitions), "-f", str(manifests), "--progress", "workloads") as server:
        path = os.pathsep.join([str(program.parent), str(pathlib.Path(kubectl_binary).parent), os.environ["PATH"]])
        with running(tmp_path, [ROOT / "examples" / "gateway" / "run"], env={**os.environ, "PATH": path, "KUBECONFIG": server.kubeconfig}):

            def conditions(route):
                """The conditions of a route for its current generation."""
                found = server.ok("GET", f"{ROUTES}/{route}")
                of_parents = [parent["conditions"] for parent in found.get("status", {}).get("parents", [])]
                return {c["type"]: c["status"] for c in sum(of_parents, []) if c["observedGeneration"] == found["metadata"]["generation"]}

            good, bad = {"Accepted": "True", "ResolvedRefs": "True"}, {"Accepted": "True", "ResolvedRefs": "False"}
            eventually(lambda: conditions("shop") == good, SECONDS)
            # the set workloads makes the Deployment of Envoy available, and gives its Service an address
            gateway = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways/public"
            programmed = lambda: {c["type"]: c["status"] for c in server.ok("GET", gateway)["status"]["conditions"]}.get("Programmed") == "True"
            eventually(programmed, SECONDS)
            assert server.ok("GET", gateway)["status"]["addresses"]

            file = manifests / "shop.yaml"
            text = file.read_text()
            file.write_text(text.replace("{name: shop, port: 8080}", "{name: shop, port: 9999}"))
            eventually(lambda: bad.items() <= conditions("shop").items(), SECONDS)
            # a file with an error changes nothing
            file.write_text(text.replace("hostnames:", "hostname:"))
            eventually(lambda: "hostname: field not declared in schema" in server.log_tail(), SECONDS)
            assert bad.items() <= conditions("shop").items()
            file.write_text(text)
            eventually(lambda: conditions("shop") == good, SECONDS)
            file.unlink()
            eventually(lambda: server.request("GET", f"{ROUTES}/shop")[0] == 404, SECONDS)
            eventually(lambda: server.ok("GET", gateway)["status"]["listeners"][0]["attachedRoutes"] == 0, SECONDS)
