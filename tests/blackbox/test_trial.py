"""`pintle trial`: what faults break in controllers."""

import json
import subprocess
import xml.etree.ElementTree

import pytest

from documentation import command_tests
from pintle import eventually
from programs import ROOT

pytestmark = [pytest.mark.testing, pytest.mark.cli, pytest.mark.timeout(280)]

EXAMPLE = "examples/testing/trial.yaml"
FIXED = ("--start", "examples/testing/controller.py --fixed")
# what a cell of each shows, found without a hint
DEFECTS = {
    "casskop_321": "members.example.com default/c was created",
    "casskop_370": "volumes.example.com default/c-1 exists",
    "cassandra_398": "volumes.example.com default/c-1 exists",
    "cassandra_402": "volumes.example.com default/c was created",
    "cassandra_407": "volumes.example.com default/c-1 was created",
    "rabbitmq_653": "members.example.com default/c was created",
    "rabbitmq_782": "volumes.example.com default/c: spec.size: 15 → 10",
    "xtradb_725": "members.example.com default/c-haproxy was created",
    "zookeeper_314": "volumes.example.com default/c-1 was created",
    "zookeeper_513": "members.example.com default/c-1: spec.volume: new → old",
}


@pytest.fixture
def trial(launch, kubectl_binary):
    def run(*arguments, status=None, timeout=240):
        # these controllers do not pause
        quiet = [] if "--quiet" in arguments else ["--quiet=1s"]
        return launch.run("trial", *quiet, *arguments, status=status, lines=None, timeout=timeout, cwd=ROOT)

    return run


def test_cells_show_the_bugs_of_the_example(trial):
    shown = {
        "2:lost:ticket-controller:create:configmaps:1": "step 2: ticket b has 2 numbers",
        "1:late:ticket-controller:configmaps": "step 2: number 1 was given 2 times",
        "3:down": "step 3: ticket a is gone, and its number is not",
    }
    # of a command that is killed after its write, nothing is lost
    cells = [word for cell in [*shown, "1:killed-after:ticket-controller:create:configmaps:1"] for word in ("--cell", cell)]
    done = trial(EXAMPLE, *cells, status=1)
    assert "4 cells: 3 differ, 1 as without faults, 0 not tried" in done.stdout, done
    for cell, symptom in shown.items():
        assert symptom in done.stdout and f"    pintle trial --quiet=1s {EXAMPLE} --cell {cell}\n" in done.stdout, done
    done = trial(EXAMPLE, *FIXED, *cells[:2], *cells[4:6], status=0)
    assert "2 cells: 0 differ, 2 as without faults" in done.stdout, done


def test_what_hits_nothing_is_not_tried(trial):
    cell = "1:lost:ticket-controller:delete:configmaps:1"
    done = trial(EXAMPLE, "--cell", cell, "--fail-on", "not-tried", "-o", "json", status=1)
    report = json.loads(done.stdout)
    assert report["cells"] == [{"cell": cell, "reason": "hit nothing", "verdict": "not-tried"}], done
    # what differs would be repeated and shrunk
    done = trial(EXAMPLE, *FIXED, "--budget", "1ms", "--parallel", "1", "--fail-on", "not-tried", "-o", "junit", status=1)
    suite = xml.etree.ElementTree.fromstring(done.stdout)
    # what begins at once is within the budget
    assert int(suite.attrib["tests"]) > int(suite.attrib["skipped"]) - 1 > 40, done


def test_checks_are_expressions_too(trial):
    expression = "objects.filter(o, o.kind == 'ConfigMap' && has(o.metadata.generateName)).size() < 3"
    lost = "1:lost:ticket-controller:create:configmaps:1"
    done = trial(EXAMPLE, "--check", expression, "--cell", "2:down", "--cell", lost, "-o", "markdown", status=1)
    assert "**2 cells: 1 differ, 1 as without faults, 0 not tried**" in done.stdout, done
    assert f"{expression} is false".replace("|", "\\|") in done.stdout, done
    done = trial(EXAMPLE, "--check", "size(objects) == 0", status=2)
    assert "without faults, start: size(objects) == 0 is false" in done.stderr, done


def test_each_step_is_compared(trial, tmp_path):
    """What a later step deletes was wrong before."""
    text = (ROOT / "tests/trials/rabbitmq_782.yaml").read_text() + "- kubectl delete clusters,members,volumes --all\n"
    (tmp_path / "trial.yaml").write_text(text)
    done = trial(tmp_path / "trial.yaml", "--cell", "2:killed-after:rabbitmq_782:delete:members.example.com:1", status=1)
    assert f"step 2: {DEFECTS['rabbitmq_782']}" in done.stdout, done


LEAK = """
from operators import Operator

def reconcile(operator, name, cluster):
    cluster = operator.get("clusters", name)
    if cluster is None:
        return
    finalizers = cluster["metadata"].setdefault("finalizers", [])
    if cluster["metadata"].get("deletionTimestamp"):
        operator.delete("volumes", name)
        finalizers.clear()
    elif not finalizers:
        # what has no finalizer yet is deleted without its volume
        operator.create("volumes", name, {})
        finalizers.append("example.com/volume")
    else:
        return
    operator.update("clusters", cluster)

Operator("clusters").run("clusters", reconcile)
"""


def test_edits_of_users_are_compared_with_those_at_rest(trial, tmp_path):
    (tmp_path / "leak.py").write_text(LEAK)
    (tmp_path / "cluster.yaml").write_text("{apiVersion: example.com/v1, kind: Cluster, metadata: {name: c}}")
    base = "--start", f"PYTHONPATH=tests/trials exec python3 {tmp_path}/leak.py", "--setup", "tests/trials/crds.yaml"
    base += "--steps", str(tmp_path / "cluster.yaml")
    moments = "create:volumes.example.com", "update:clusters.example.com"
    cells = [f"1:user-deletes:leak:{moment}:clusters.example.com/default/c" for moment in moments]
    done = trial(*base, "--cell", cells[0], "--cell", cells[1], "--cell", "all:release:1.36", status=1)
    assert "3 cells: 1 differ, 2 as without faults, 0 not tried" in done.stdout, done
    symptom = "    step 1: volumes.example.com default/c exists\n"
    assert done.stdout.startswith("step 1: a user deletes clusters.example.com default/c right after the first create ") and symptom in done.stdout, done
    done = trial(*base, "--budget", "1ms", "--parallel", "1", "-o", "json")
    assert {*cells, "all:release:1.35"} < {cell["cell"] for cell in json.loads(done.stdout)["cells"]}, done


LEADER = """
kubectl create configmap lock
kubectl get configmaps -w &
while kubectl annotate --overwrite configmap lock control-plane.alpha.kubernetes.io/leader="{\\"holderIdentity\\":\\"$(date +%N)\\"}"
do sleep 0.2; done
"""


def test_heartbeats_of_older_leaders_are_no_activity(trial):
    """client-go once elected leaders by an annotation of a ConfigMap, which it writes every two seconds."""
    done = trial("--start", LEADER, "--steps", "kubectl create namespace n", "--cell", "1:down", "--quiet", "1500ms", status=0)
    assert "0 differ, 1 as without faults" in done.stdout, done


def test_commands_end_with_a_trial_that_is_killed(launch, tmp_path):
    line = f"echo $$ > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/pid && exec sleep 1000"
    process = subprocess.Popen([launch.binary, "trial", "--start", line, "--steps", "true"], stderr=subprocess.DEVNULL)
    eventually((tmp_path / "pid").exists)
    process.kill()
    process.wait()
    pid = (tmp_path / "pid").read_text().strip()
    eventually(lambda: subprocess.run(["kill", "-0", pid], capture_output=True).returncode != 0)


def test_progress_makes_pods_ready(trial):
    steps = "kubectl create deployment web --image=nginx && kubectl wait --for=condition=available deployment/web --timeout=20s"
    done = trial("--start", "kubectl get pods -w", "--steps", steps, "--progress", "workloads", "--cell", "1:down", status=0)
    assert "1 cell: 0 differ, 1 as without faults" in done.stdout, done


test_commands = command_tests("trial")


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_quiet_times_may_be_longer_than_requests(trial):
    """As controllers need that look every minute."""
    base = "--start", "kubectl get pods -w", "--steps", "true", "--cell", "1:down", "--timeout", "90s"
    done = trial(*base, "--quiet", "61s", "--check", "true", timeout=900, status=0)
    assert "0 differ, 1 as without faults" in done.stdout, done


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_trials_find_the_bugs_of_the_example(trial):
    """One command without hints shows all three, and what has none of them shows nothing."""
    done = trial(EXAMPLE, "-o", "json", timeout=600, status=1)
    findings = json.loads(done.stdout)["findings"]
    for kind in ("lost:ticket-controller:create:configmaps", "late:ticket-controller:configmaps", "down"):
        assert any(kind in cell for finding in findings for cell in finding["cells"]), (kind, findings)
    done = trial(EXAMPLE, *FIXED, timeout=600, status=0)
    assert " 0 differ" in done.stdout, done


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(DEFECTS))
def test_published_defects_are_shown(trial, name):
    done = trial(f"tests/trials/{name}.yaml", "-o", "json", timeout=500, status=1)
    symptoms = [line for cell in json.loads(done.stdout)["cells"] for line in cell.get("symptoms", [])]
    assert any(DEFECTS[name] in line for line in symptoms), (DEFECTS[name], symptoms)
