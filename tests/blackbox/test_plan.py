"""`pintle plan`: what a change would do, with a controller that has two versions."""

import json
import os
import re
import socketserver
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree

import pytest

from programs import ROOT

pytestmark = [pytest.mark.cli, pytest.mark.timeout(300)]

CONTROLLER = str(ROOT / "tests" / "harness" / "app_controller.py")
OLD, NEW = ([sys.executable, CONTROLLER, version] for version in "12")
BEFORE = ("--before", " ".join(OLD))

UID = "11111111-0000-0000-0000-00000000000%d"
SOURCE = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": UID % 1}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old"}},
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web", "namespace": "shop", "uid": UID % 3, "labels": {"app": "yes"}},
        "data": {"image": "a:1"},
    },
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fixed", "namespace": "shop"}, "data": {"version": "1"}, "immutable": True},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop"}, "type": "Opaque", "data": {"k": "YQ=="}},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        # its owner was not captured, which is no reason to delete it
        "metadata": {"name": "p", "namespace": "old", "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "x", "uid": UID % 9}]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    },
)


def manifest(path, *objects):
    path.write_text("".join(json.dumps(one) + "\n---\n" for one in objects))
    return str(path)


@pytest.fixture
def plan(launch, tmp_path):
    """Runs plans of a source. Generated names are shown as such."""
    source = manifest(tmp_path / "source.yaml", *SOURCE)
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(*arguments, code, sources=(source,)):
        given = [f"--from={one}" for one in sources]
        environment = {**os.environ, "TMPDIR": str(scratch)}
        quiet = [] if any(one.startswith("--quiet") for one in arguments) else ["--quiet=1s"]
        done = subprocess.run([launch.binary, "plan", *quiet, *given, *arguments], capture_output=True, text=True, timeout=120, env=environment)
        assert done.returncode == code, (done.stdout, done.stderr)
        assert not list(scratch.iterdir()), "its files are gone"
        return re.sub(r"web-run-\w{5}", "web-run-?", done.stdout) if code < 2 else done.stderr

    return run


def image(tmp_path, text):
    change = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"}, "data": {"image": text}}
    return "-f", manifest(tmp_path / "image.yaml", change)


def test_the_server_alone(plan, tmp_path):
    """Without a controller, a plan is what the server makes of a change."""
    change = manifest(
        tmp_path / "change.yaml",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop"}, "data": {"k": "Yg=="}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "namespace": "shop"}},
    )
    assert plan("-f", change, "--delete", "ns/old", code=1) == (
        "  ~ secrets shop/key  (the change)  data.k: (sensitive)\n"
        "  + configmaps shop/new  (the change)\n"
        "  - namespaces old  (the change)\n"
        "  - pods old/p  deleted with namespace old\n"
        "Plan: 1 to create, 1 to change, 0 to recreate, 2 to delete.\n"
    )
    assert "YQ==" not in plan("-f", change, "-o", "json", code=1)
    assert plan("-f", manifest(tmp_path / "same.yaml", SOURCE[4]), code=0) == "No changes.\n"


def test_controllers_react_to_a_change(plan, tmp_path):
    assert plan(*BEFORE, *image(tmp_path, "a:2"), code=1) == (
        "  ~ configmaps shop/web  (the change)  data.image: a:1 → a:2\n"
        "  ~ configmaps shop/web-settings  (app-controller)  data.image: a:1 → a:2\n"
        "  ~ statefulsets.apps shop/web  (app-controller)  spec.template.spec.containers[name=main].image: a:1 → a:2\n"
        "Plan: 0 to create, 3 to change, 0 to recreate, 0 to delete.\n"
    )
    owner = "deleted by garbage collection: owner configmaps shop/web deleted"
    assert plan(*BEFORE, "--delete", "configmap/web", code=1) == (
        "  - configmaps shop/web  (the change)\n"
        f"  - configmaps shop/web-run-?  {owner}\n  - configmaps shop/web-settings  {owner}\n  - statefulsets.apps shop/web  {owner}\n"
        "Plan: 0 to create, 0 to change, 0 to recreate, 4 to delete.\n"
    )
    assert plan("--", *OLD, code=1) == (
        "  + configmaps shop/web-settings  (app-controller)\n"
        "  + configmaps shop/web-run-?  (app-controller)\n"
        "  + statefulsets.apps shop/web  (app-controller)\n"
        "Plan: 3 to create, 0 to change, 0 to recreate, 0 to delete.\n"
    )


def test_an_upgrade(plan):
    """Another version of the controller replaces what it cannot change, and the server refuses a write."""
    changes = (
        "  ~ configmaps shop/web-settings  (app-controller)  data.version: 1 → 2\n"
        "  -/+ statefulsets.apps shop/web  (app-controller)  recreated: spec.volumeClaimTemplates: field is immutable\n"
        "      spec.volumeClaimTemplates[0].metadata.name: data-1 → data-2\n"
        "Plan: 0 to create, 1 to change, 1 to recreate, 0 to delete. 2 requests were refused"
    )
    assert plan(*BEFORE, "--", *NEW, code=1) == changes + " (see --details)\n"
    details = plan(*BEFORE, "--details", "--", *NEW, code=1)
    refused = 'app-controller: update configmaps shop/fixed: ConfigMap "fixed" is invalid: data: Forbidden: field is immutable'
    assert details.startswith(changes + "\nRefused requests:\n") and refused in details and "Different" not in details
    found = json.loads(plan(*BEFORE, "-o", "json", "--", *NEW, code=1))
    assert found["summary"] == {"create": 0, "change": 1, "recreate": 1, "delete": 0}
    assert found["changes"][0] == {
        "action": "change",
        "resource": "configmaps",
        "namespace": "shop",
        "name": "web-settings",
        "by": ["app-controller"],
        "fields": [{"path": "data.version", "old": "1", "new": "2"}],
    }
    assert [(one["verb"], one["name"], one["count"]) for one in found["refused"]] == [("update", "fixed", 1), ("update", "web", 1)]


def test_one_directory_against_another(plan, tmp_path):
    """Manifests have the defaults of the server, and what is gone from them is removed."""

    def deployment(*variables):
        environment = [{"name": name, "value": "1"} for name in variables]
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i", "env": environment}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}

    old, new = (manifest(tmp_path / name, deployment(*names)) for name, names in (("old.yaml", "AB"), ("new.yaml", "A")))
    assert plan("-f", old, code=0, sources=(old,)) == "No changes.\n"
    assert plan("-f", new, code=1, sources=(old,)) == (
        '  ~ deployments.apps default/web  (the change)  spec.template.spec.containers[name=c].env[name=B]: {"name":"B","value":"1"} → (none)\n'
        "Plan: 0 to create, 1 to change, 0 to recreate, 0 to delete.\n"
    )


CALLER = """
import os, socket, subprocess, sys, urllib.request
subprocess.run(["kubectl", "create", "-n", "shop", "configmap", "called"], check=True)
for url in ("http://127.0.0.2:%d/a", "https://cloud.invalid/b"):
    try:
        proxies = {kind: os.environ[kind.upper() + "_PROXY"] for kind in ("http", "https")}
        opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
        text = opener.open(url.replace("%d", sys.argv[1])).read().decode()
        subprocess.run(["kubectl", "create", "-n", "shop", "configmap", text], check=True)
    except OSError as error:
        print(error)
try:
    socket.create_connection(("127.0.0.2", int(sys.argv[1])), 1)
    subprocess.run(["kubectl", "create", "-n", "shop", "configmap", "connected"], check=True)
except OSError as error:
    print(error)
"""


def test_hosts_and_no_network(plan, kubectl_binary, tmp_path):
    """A proxy notes the hosts that the command asks for. Without a network, it reaches nothing but the API."""
    (tmp_path / "caller.py").write_text(CALLER)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfound"

    class Server(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(9999)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.2", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        command = ("-o", "json", "--", sys.executable, str(tmp_path / "caller.py"), str(port))
        hosts = [f"127.0.0.2:{port}", "cloud.invalid:443"]
        for flags, created in (((), ["called", "found", "connected"]), (("--no-network",), ["called"])):
            if flags and subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
                assert "no network without hosts can be made here: " in plan(*flags, *command, code=2)
                continue
            done = json.loads(plan(*flags, *command, code=1))
            assert [change["name"] for change in done["changes"]] == created and done["hosts"] == hosts, (flags, done)
        server.shutdown()


def test_progress_stands_for_kubelets(plan, tmp_path):
    change = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "shop"}}
    change["spec"] = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    change = manifest(tmp_path / "job.yaml", change)
    assert "0 to change" in plan("-f", change, code=1)
    done = json.loads(plan("--progress", "workloads", "-f", change, "-o", "json", code=1))
    assert {(one["action"], one["resource"]) for one in done["changes"]} >= {("create", "jobs.batch"), ("create", "pods")}, done


def test_forms(plan, tmp_path):
    arguments = (*image(tmp_path, "<a>"), "-o")
    assert plan(*arguments, "markdown", code=1) == (
        "**Plan: 0 to create, 1 to change, 0 to recreate, 0 to delete.**\n\n````diff\n! configmaps shop/web  (the change)\n    data.image: a:1 → <a>\n````\n"
    )
    suite = ElementTree.fromstring(plan(*arguments, "junit", code=1))[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert suite[0].get("name") == "configmaps shop/web" and suite[0][0].text == "data.image: a:1 → <a>"
    same = image(tmp_path, "a:1")
    assert 'failures="0"' in plan(*same, "-o", "junit", code=0) and plan(*same, "-o", "markdown", code=0) == "**No changes.**\n"
    assert json.loads(plan(*same, "-o", "json", code=0))["changes"] == []


def test_errors_are_one_line(plan, tmp_path):
    boat = manifest(tmp_path / "boat.yaml", {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "b"}})
    invalid = manifest(tmp_path / "invalid.yaml", {**SOURCE[4], "type": "other"})
    (tmp_path / "text.yaml").write_text("no object")
    (tmp_path / "none").mkdir()
    for arguments, why in (
        (("-f", str(tmp_path / "text.yaml")), "text.yaml: a document is not an object with apiVersion and kind"),
        (("-f", str(tmp_path / "none")), f"no manifests are found in {tmp_path}/none"),
        (("--", "sh", "-c", "echo reason; exit 3"), "echo reason; exit 3 has failed with exit status 3: reason"),
        (("--", "sh", "-c", r"printf 'panic: port\n\ngoroutine 1 [running]:\nmain.go:1\n'; exit 2"), "has failed with exit status 2: panic: port"),
        (("--", "/no/such/program"), "cannot run /no/such/program: No such file or directory"),
        (("--timeout=1s", "--", "sleep", "100"), "sleep 100 has sent no request within 1s: it must use the KUBECONFIG that it is given"),
        (("--quiet=3s", "--timeout=1s", "--delete=ns/old"), "not settled within 1s: "),
        (("--delete=boat/b",), 'the source has no kind "boat": add its CRD as another source'),
        (("--delete=pod/b",), 'there is no object "pod/b" in the source'),
        (("--delete=b",), '"b" is neither KIND/NAME nor KIND/NAMESPACE/NAME'),
        (("-f", boat), 'no matches for kind "Boat" in version "example.com/v1": apply its CRD first'),
        (("-f", invalid), 'Secret "key" is invalid: type: Invalid value: "other": field is immutable'),
        (("-f", str(tmp_path / "missing.yaml")), "missing.yaml: No such file or directory"),
    ):
        error = plan(*arguments, code=2)
        assert why in error and len(error.splitlines()) == 1, error
    missing = str(tmp_path / "missing.yaml")
    assert plan("--delete=a/b", code=2, sources=[missing]).count(missing) == 1
    assert "no objects are found in it" in plan("--delete=a/b", code=2, sources=[str(tmp_path / "none")])
    assert "required arguments were not provided" in plan(code=2)


@pytest.mark.parametrize("_", range(4))
def test_an_unchanged_controller_has_no_lines(plan, _):
    """Times, generated names, uids and Leases differ in each run, and are no changes. Four parts, which can run at once."""
    for _ in range(5):
        assert plan(*BEFORE, "--quiet=300ms", "--", *OLD, code=0) == "No changes.\n"
