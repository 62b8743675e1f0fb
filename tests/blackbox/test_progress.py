"""Progress objects: the sets with kubectl, on the clock, in workspaces, and what stops a rule."""

import json
import subprocess

import pytest

from commands import run
from objects import MAPS, TESTING
from pintle import eventually
from programs import ROOT, go_module, helm

pytestmark = [pytest.mark.testing, pytest.mark.timeout(240)]

PROGRESSES = TESTING + "/progresses"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
JOBS, CRON_JOBS = (f"/apis/batch/v1/namespaces/default/{plural}" for plural in ("jobs", "cronjobs"))
CONTAINER = {"name": "c", "image": "i"}


@pytest.fixture
def server(launch):
    with launch("--testing", "--workspaces", "--progress", "workloads") as server:
        yield server


@pytest.fixture
def command(launch, server, kubectl_binary):
    def done(program, *arguments, status=0):
        binary = {"kubectl": kubectl_binary, "pintle": launch.binary}.get(program, program)
        output = run(binary, *arguments, status=status, lines=None, env={"KUBECONFIG": server.kubeconfig})
        return output.stderr if status else output.stdout

    return done


@pytest.fixture
def rolls_out(command):
    """Waits until a workload has rolled out."""
    return lambda workload: command("kubectl", "rollout", "status", workload, "--timeout=30s")


def workload(**spec):
    """The spec of a workload with Pods of the app x."""
    pod = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [CONTAINER]}}
    return {"selector": {"matchLabels": {"app": "x"}}, "template": pod, **spec}


def progress(name, kind, *rules, **spec):
    api_version, kind = kind
    target = {"apiVersion": api_version, "kind": kind}
    return {"apiVersion": "testing.pintle.dev/v1alpha1", "kind": "Progress", "metadata": {"name": name}, "spec": {"for": target, "rules": list(rules), **spec}}


def test_deployments_roll_out(command, rolls_out):
    images = lambda: command("kubectl", "get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}")
    command("kubectl", "create", "deployment", "web", "--image=a", "--replicas=3")
    assert "successfully rolled out" in rolls_out("deployment/web")
    for change, image in ((("set", "image", "deployment/web", "a=b"), "b"), (("rollout", "undo", "deployment/web"), "a")):
        command("kubectl", *change)
        rolls_out("deployment/web")
        assert images() == f"{image} {image} {image}"
    history = command("kubectl", "rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]
    command("kubectl", "scale", "deployment/web", "--replicas=1")
    command("kubectl", "wait", "--for=jsonpath={.status.replicas}=1", "deployment/web", "--timeout=30s")
    command("kubectl", "delete", "deployment/web")
    command("kubectl", "wait", "--for=delete", "pods", "--all", "--timeout=30s")


def test_rollout_fails_at_its_deadline(command, rolls_out):
    command("pintle", "clock", "stop", "--time", "2090-01-01T00:00:00Z")
    command("kubectl", "create", "deployment", "web", "--image=a")
    rolls_out("deployment/web")
    annotation = '{"spec":{"template":{"metadata":{"annotations":{"testing.pintle.dev/waiting":"ImagePullBackOff"}}}}}'
    command("kubectl", "patch", "deployment/web", "-p", annotation)
    command("pintle", "settle", "--timeout", "30s")
    command("pintle", "clock", "advance", "601s")
    assert "exceeded its progress deadline" in command("kubectl", "rollout", "status", "deployment/web", "--timeout=30s", status=1)


# building helm takes minutes
@pytest.mark.timeout(1800)
def test_helm_waits_and_rolls_back(command):
    chart = ROOT / "tests" / "progress" / "chart"
    command(helm(), "install", "web", chart, "--wait", "--timeout", "30s")
    failed = command(helm(), "upgrade", "web", chart, "--atomic", "--timeout", "3s", "--set", "image=b,waiting=ImagePullBackOff", status=1)
    assert "rolled back due to atomic being set" in failed
    assert command("kubectl", "get", "deployment/web", "-o", "jsonpath={.spec.template.spec.containers[0].image} {.status.availableReplicas}") == "a 2"
    command(helm(), "uninstall", "web", "--wait", "--timeout", "30s")


# the definitions of the operators themselves, and the conditions that the objects of a user wait for, which are in tests/progress
DEPENDENCIES = {
    "cert-manager": (
        {"github.com/cert-manager/cert-manager@v1.21.2": "deploy/crds"},
        {"Ready": ["issuer/own", "clusterissuer/own", "certificate/web"]},
    ),
    "crossplane": (
        {
            "github.com/crossplane/crossplane/v2@v2.0.0": "cluster/crds",
            "github.com/upbound/provider-aws@v1.0.0": "package/crds/s3.aws.upbound.io_buckets.yaml",
        },
        {"Healthy": ["providers.pkg.crossplane.io/aws", "configurations.pkg.crossplane.io/platform"], "Ready": ["bucket/photos"]},
    ),
    "gateway-api": (
        {"sigs.k8s.io/gateway-api@v1.6.1": "config/crd/standard"},
        {
            "Accepted": ["gatewayclass/public"],
            "Programmed": ["gateway/public"],
            "jsonpath={.status.parents[0].conditions[0].type}=Accepted": ["httproute/shop"],
        },
    ),
}


@pytest.mark.components
@pytest.mark.slow
@pytest.mark.parametrize("name", DEPENDENCIES)
def test_dependencies_of_real_definitions(launch, kubectl_binary, name):
    modules, conditions = DEPENDENCIES[name]
    files = [go_module(module) / path for module, path in modules.items()] + [ROOT / "tests" / "progress" / f"{name}.yaml"]
    with launch("--progress", name, *(flag for file in files for flag in ("-f", str(file)))) as server:
        kubectl = [kubectl_binary, "--kubeconfig", server.kubeconfig]
        for condition, waiting in conditions.items():
            condition = condition if "=" in condition else f"condition={condition}"
            subprocess.run([*kubectl, "wait", f"--for={condition}", "--timeout=60s", *waiting], check=True)
        rules = [rule for item in server.ok("GET", PROGRESSES)["items"] for rule in item.get("status", {}).get("rules", [])]
        # a field that the definitions do not have would be pruned, and written again
        assert [rule for rule in rules if "message" in rule or rule["writes"] > 3] == []


def test_unknown_fields_of_files_are_refused(launch, tmp_path):
    (tmp_path / "maps.yaml").write_text(json.dumps(progress("maps", ("v1", "ConfigMap"), {"name": "mark", "afterwards": "1s"})))
    error = launch.run("run", "--progress", tmp_path / "maps.yaml", "--", "true", status=2)
    assert 'unknown field "spec.rules[0].afterwards"' in error, error


def test_jobs_end_by_the_clock(server, command):
    def advance(by):
        command("pintle", "clock", "advance", by)
        command("pintle", "settle", "--timeout", "30s")

    command("pintle", "clock", "stop", "--time", "2090-01-01T00:00:00Z")
    running = {"metadata": {"annotations": {"testing.pintle.dev/run-for": "30s"}}, "spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    job = {"metadata": {"name": "long"}, "spec": {"template": running}}
    server.ok("POST", JOBS, job)
    command("pintle", "settle", "--timeout", "30s")
    status = server.ok("GET", JOBS + "/long")["status"]
    assert status["active"] == 1 and "completionTime" not in status, "work that is due later does not hold a settle"
    command("pintle", "clock", "advance", "31s")
    command("kubectl", "wait", "--for=condition=complete", "job/long", "--timeout=30s")
    names = lambda: [job["metadata"]["name"].split("-")[0] for job in server.ok("GET", JOBS)["items"]]
    command("kubectl", "create", "cronjob", "often", "--image=i", "--schedule=*/5 * * * *")
    advance("5m")
    assert names().count("often") == 1
    # the clock stands at 1:05 in Berlin, which is an hour ahead
    command("kubectl", "delete", "cronjob/often")
    spec = {"schedule": "30 2 * * *", "timeZone": "Europe/Berlin", "jobTemplate": {"spec": job["spec"]}}
    server.ok("POST", CRON_JOBS, {"metadata": {"name": "zoned"}, "spec": spec})
    for by, count in (("84m", 0), ("1m", 1)):
        advance(by)
        assert names().count("zoned") == count, by


def test_finished_jobs_are_deleted_with_their_pods(server, command):
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    server.ok("POST", JOBS, {"metadata": {"name": "short"}, "spec": {"ttlSecondsAfterFinished": 0, "template": template}})
    command("kubectl", "wait", "--for=delete", "job/short", "--timeout=30s")
    eventually(lambda: not server.ok("GET", "/api/v1/namespaces/default/pods")["items"])


def test_other_workloads(server, command, rolls_out):
    pods = lambda field: command("kubectl", "get", "pods", "-o", f"jsonpath={{.items[*].metadata.{field}}}")
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    spec = workload(replicas=2, serviceName="db", volumeClaimTemplates=[claim])
    spec["template"]["spec"]["containers"] = [{**CONTAINER, "ports": [{"name": "http", "containerPort": 80}]}]
    db = {"metadata": {"name": "db"}, "spec": spec}
    server.ok("POST", STATEFUL_SETS, db)
    rolls_out("statefulset/db")
    assert pods("name") == "db-0 db-1"
    uids = pods("uid")
    command("kubectl", "delete", "statefulset/db", "--cascade=orphan")
    server.ok("POST", STATEFUL_SETS, db)
    rolls_out("statefulset/db")
    assert pods("uid") == uids, "the Pods of the former one are adopted"
    command("kubectl", "wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data-db-0", "pvc/data-db-1", "--timeout=30s")
    agent = {"selector": spec["selector"], "template": spec["template"]}
    server.ok("POST", "/apis/apps/v1/namespaces/default/daemonsets", {"metadata": {"name": "agent"}, "spec": agent})
    rolls_out("daemonset/agent")
    service = {"metadata": {"name": "x"}, "spec": {"type": "LoadBalancer", "selector": {"app": "x"}, "ports": [{"port": 8080, "targetPort": "http"}]}}
    server.ok("POST", "/api/v1/namespaces/default/services", service)
    command("kubectl", "wait", "--for=jsonpath={.status.loadBalancer.ingress[0].ip}", "service/x", "--timeout=30s")
    [slice] = server.ok("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=x")["items"]
    assert len(slice["endpoints"]) == 3 and slice["ports"][0]["port"] == 80
    command("kubectl", "delete", "pvc/data-db-0", "--wait=false")
    command("pintle", "settle")
    assert command("kubectl", "get", "pvc/data-db-0", "-o", "jsonpath={.metadata.deletionTimestamp}"), "a Pod still uses it"
    command("kubectl", "delete", "statefulset/db")
    command("kubectl", "wait", "--for=delete", "pvc/data-db-0", "--timeout=30s")


def test_containers_crash_and_restart(server, command):
    command("pintle", "clock", "stop", "--time", "2090-01-01T00:00:00Z")
    command("kubectl", "run", "p", "--image=i", "--annotations=testing.pintle.dev/crash-after=5s", "--annotations=testing.pintle.dev/exit-code=3")
    state = []
    for advance in ("1s", "4s", "10s", "5s", "19s", "1s"):
        command("pintle", "clock", "advance", advance)
        command("pintle", "settle", "--timeout", "30s")
        status = server.ok("GET", "/api/v1/namespaces/default/pods/p")["status"]
        [container] = status["containerStatuses"]
        state.append((container["state"].get("waiting", {}).get("reason", "Running"), container["ready"], container["restartCount"]))
    back_off = "CrashLoopBackOff"
    assert state == [("Running", True, 0), (back_off, False, 0), ("Running", True, 1), (back_off, False, 1), (back_off, False, 1), ("Running", True, 2)]
    assert container["lastState"]["terminated"]["exitCode"] == 3


def test_what_has_no_controller_is_adopted(server, command, rolls_out):
    path = "jsonpath={range .items[*]}{.metadata.name}={.metadata.ownerReferences[0].name} {end}"
    owners = lambda kind: command("kubectl", "get", kind, "-o", path).split()
    command("kubectl", "run", "lone", "--image=a", "--labels=app=x")
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}
    server.ok("POST", "/apis/apps/v1/namespaces/default/replicasets", {"metadata": {"name": "web"}, "spec": workload(replicas=2, selector=selector)})
    command("kubectl", "wait", "--for=jsonpath={.status.readyReplicas}=2", "rs/web", "--timeout=30s")
    command("pintle", "settle", "--timeout", "30s")
    assert "lone=web" in owners("pods") and len(owners("pods")) == 2
    command("kubectl", "delete", "rs/web")
    command("kubectl", "create", "deployment", "web", "--image=a", "--replicas=2")
    rolls_out("deployment/web")
    before = owners("replicasets"), owners("pods")
    command("kubectl", "delete", "deployment/web", "--cascade=orphan")
    command("kubectl", "create", "deployment", "web", "--image=a", "--replicas=2")
    rolls_out("deployment/web")
    assert (owners("replicasets"), owners("pods")) == before


def test_a_workspace_has_the_set(server, command):
    command("pintle", "workspace", "create", "test")
    server.ok("POST", "/clusters/test" + DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": workload()})
    command("pintle", "settle", "--workspace", "test", "--timeout", "30s")
    assert server.ok("GET", f"/clusters/test{DEPLOYMENTS}/web")["status"]["availableReplicas"] == 1
    server.ok("DELETE", f"/clusters/test{PROGRESSES}/workloads-deployments")
    command("pintle", "workspace", "fork", "test", "fork")
    server.ok("PATCH", f"/clusters/fork{DEPLOYMENTS}/web", {"spec": {"replicas": 2}})
    command("pintle", "settle", "--workspace", "fork", "--timeout", "30s")
    assert server.ok("GET", f"/clusters/fork{DEPLOYMENTS}/web")["status"]["availableReplicas"] == 1, "it has the objects of its source"


def test_what_is_wrong_stops_its_rule_alone(server, command):
    counts = {"name": "count", "merge": "{'data': {'n': string(int(object.data.n) + 1)}}", "when": "has(object.data) && has(object.data.n)"}
    wrong = {"name": "wrong", "when": "object.", "status": "{}"}
    marks = {"name": "mark", "merge": "{'metadata': {'labels': {'marked': 'yes'}}}"}
    server.ok("POST", PROGRESSES, progress("maps", ("v1", "ConfigMap"), counts, wrong, marks, namespaces=["default"]))
    server.ok("POST", PROGRESSES, progress("boats", ("example.com/v1", "Boat"), marks))
    server.ok("POST", MAPS, {"metadata": {"name": "m"}, "data": {"n": "0"}})
    eventually(lambda: server.ok("GET", f"{MAPS}/m")["metadata"].get("labels") == {"marked": "yes"})

    def messages(name):
        status = server.ok("GET", f"{PROGRESSES}/{name}").get("status", {})
        return [c["message"] for c in status.get("conditions", [])] + [rule.get("message", "") for rule in status.get("rules", [])]

    eventually(lambda: any("feeds itself" in text for text in messages("maps")), seconds=60)
    assert any("Syntax error" in text for text in messages("maps"))
    assert "not served: Boat of example.com/v1" in messages("boats")


def test_the_command_prints_sets(command):
    names = command("pintle", "progress").split()
    assert "workloads" in names
    assert all("kind: Progress" in command("pintle", "progress", name) for name in names)
