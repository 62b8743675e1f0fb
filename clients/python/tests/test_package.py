"""The package as users have it: installed from the wheel, with the binary in it."""

import asyncio
import datetime
import json
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import pytest
import yaml
from kubernetes import client
from lightkube.resources.core_v1 import Namespace

import pintle_server
from pintle_server import server as servers

BOAT = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "argo"}, "spec": {"crew": 50}}
BOATS = "/apis/example.com/v1/namespaces/default/boats"


@pytest.fixture
def place(monkeypatch):
    """A directory for the sockets of this test alone. Its path is short, since those of sockets are."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="pin-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def server(place):
    with pintle_server.start(run="test") as server:
        yield server
    gone(place, server.pid)


def gone(place, *pids):
    """Waits until processes have ended, and all files are gone."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        files = sorted(found[0] for found in os.walk(place) if found[0] != str(place) or found[2])
        alive = [pid for pid in pids if runs(pid)]
        if not files and not alive:
            return
        time.sleep(0.01)
    raise AssertionError(f"{alive} run, {files} are left")


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_workspaces_are_apart(server):
    with server.workspace() as one, server.workspace() as two:
        one.apply_object(crd())
        one.apply_object(BOAT)
        assert one.request("GET", f"{BOATS}/argo")["spec"] == {"crew": 50}
        with pytest.raises(pintle_server.PintleError, match="no matches for kind 'Boat'"):
            two.apply_object(BOAT)
        with one.fork() as fork:
            fork.request("DELETE", f"{BOATS}/argo")
            assert fork.request("GET", BOATS)["items"] == []
            fork.reset()
            assert len(fork.request("GET", BOATS)["items"]) == 1
        one.request("GET", f"{BOATS}/argo")


def test_a_workspace_that_has_ended_is_not_the_next_one_of_its_name(server):
    ended = server.workspace("again", ttl="1h")
    ended.delete()
    with server.workspace("again") as later:
        with pytest.raises(pintle_server.ResponseError, match="another one has its name"):
            ended.apply_object(crd())
        with pytest.raises(pintle_server.ResponseError, match="metadata.uid: Invalid value"):
            ended.patch({"spec": {"template": True}})
        ended.delete()
        later.apply_object(crd())


def crd():
    names = {"plural": "boats", "singular": "boat", "kind": "Boat"}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"crew": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_manifests_are_applied_with_their_definitions_first(server, tmp_path):
    for name, content in (("a-boat.json", BOAT), ("z-crd.json", crd())):
        (tmp_path / name).write_text(json.dumps(content))
    with server.workspace() as workspace:
        assert [found["kind"] for found in workspace.apply(tmp_path)] == ["CustomResourceDefinition", "Boat"]
        (tmp_path / "more.yaml").write_text("---\n".join([yaml.safe_dump({**BOAT, "metadata": {"name": "vasa"}}), yaml.safe_dump(BOAT)]))
        assert len(workspace.apply(tmp_path / "more.yaml")) == 2


def test_templates_are_built_once(server):
    built = []

    def build(workspace):
        built.append(workspace.name)
        workspace.apply_object(crd())

    for _ in range(2):
        with server.template("boats", build).fork() as workspace:
            workspace.apply_object(BOAT)
    assert len(built) == 1

    def fails(workspace):
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError):
            server.template("broken", fails)


def test_processes_share_a_server(place):
    code = """
        import sys, pintle_server
        server = pintle_server.start(run="shared")
        print(server.pid, flush=True)
        sys.stdin.read()
    """
    processes = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    pids = {process.stdout.readline().strip() for process in processes}
    assert len(pids) == 1, pids
    for process in processes[:5]:
        process.kill()
        process.wait()
    assert runs(int(*pids))
    # not even the last one has to end in an orderly way
    processes[5].send_signal(signal.SIGKILL)
    processes[5].wait()
    gone(place, int(*pids))


def test_other_flags_are_another_server(place):
    with pintle_server.start(run="a") as one, pintle_server.start("--emulated-version=1.36", run="a") as two:
        assert one.pid != two.pid
        assert two.client.request("GET", "/version")["emulationMinor"] == "36"
    gone(place, one.pid, two.pid)


def test_flags_that_are_wrong_are_one_line(place):
    with pytest.raises(pintle_server.PintleError) as error:
        pintle_server.start("--no-such-flag", run="b")
    assert str(error.value) == "the server does not start: unexpected argument '--no-such-flag' found"
    gone(place)


def test_a_source_is_loaded_by_a_flag(place, tmp_path):
    """Workspaces that are forked from `default` have the objects of the source, as they were captured."""
    uid = "3f6d1c1a-9d6a-4d0e-8f3e-0123456789ab"
    (tmp_path / "a.yaml").write_text(f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, namespace: shop, uid: {uid}}}, data: {{x: '1'}}}}")
    path, merge = "/api/v1/namespaces/shop/configmaps/a", "application/merge-patch+json"
    with pintle_server.start(f"--from={tmp_path}", run="source") as server:
        with server.workspace(from_={"workspace": "default"}) as workspace:
            assert workspace.request("GET", path)["metadata"]["uid"] == uid
            workspace.request("PATCH", path, {"data": {"x": "2"}}, merge)
            assert "changed ConfigMap shop/a" in workspace.changes()
            workspace.reset()
            assert workspace.request("GET", path)["data"] == {"x": "1"}
    gone(place, server.pid)


def test_proxies_and_other_authorities_are_not_used(place, monkeypatch):
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://192.0.2.1:9")
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, "/no/such/file")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pintle_server.start(run="proxy") as server, server.workspace() as workspace:
        assert workspace.request("GET", "/api/v1/namespaces")["items"]
        assert "127.0.0.1" in os.environ["NO_PROXY"]
        assert client.CoreV1Api(workspace.kubernetes()).list_namespace().items
        assert list(workspace.kr8s().get("namespaces"))
        assert list(workspace.lightkube().list(Namespace))
    gone(place, server.pid)


@pytest.mark.parametrize(
    "binary, why",
    [
        ("/no/such/pintle", "PINTLE_BINARY names /no/such/pintle, which is no program: correct or unset it"),
        (None, "this package of pintle-server has no binary for "),
    ],
)
def test_missing_binaries_are_one_line(place, monkeypatch, binary, why):
    monkeypatch.delenv("PINTLE_BINARY", raising=False)
    if binary:
        monkeypatch.setenv("PINTLE_BINARY", binary)
    else:
        monkeypatch.setattr("pintle_server.binary.BUNDLED", pathlib.Path("/no/such/file"))
    with pytest.raises(pintle_server.PintleError) as error:
        servers.Server((), "c")
    assert str(error.value).startswith(why) and "\n" not in str(error.value)


def test_binaries_of_another_version_are_one_line(place, monkeypatch):
    monkeypatch.setattr("pintle_server.binary.version", lambda: "0.0.1")
    with pytest.raises(pintle_server.PintleError, match="and pintle-server is 0.0.1: ") as error:
        servers.Server((), "d")
    assert "\n" not in str(error.value)
    gone(place)


SUITE = """
    import pytest

    @pytest.fixture(scope="session")
    def pintle_build():
        def build(workspace):
            workspace.request("POST", "/api/v1/namespaces", {{"metadata": {{"name": "built"}}}})
        return build

    @pytest.mark.parametrize("number", range({tests}))
    def test_one(pintle_workspace, number):
        pintle_workspace.request("GET", "/api/v1/namespaces/built")
        configmaps = "/api/v1/namespaces/default/configmaps"
        assert [one["metadata"]["name"] for one in pintle_workspace.request("GET", configmaps)["items"]] == {known}
        pintle_workspace.request("POST", configmaps, {{"metadata": {{"name": "one"}}}})
"""


def run_suite(tmp_path, tests, *options, known="[]"):
    (tmp_path / "test_suite.py").write_text(textwrap.dedent(SUITE.format(tests=tests, known=known)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)


def test_two_hundred_tests_leave_nothing(place, tmp_path):
    done = run_suite(tmp_path, 200, "-n", "4")
    assert "200 passed" in done.stdout, done.stdout + done.stderr
    gone(place)


def test_failures_show_the_workspace(place, tmp_path):
    for options in ((), ("-n", "2")):
        done = run_suite(tmp_path, 2, *options, known="['none']")
        assert "2 failed" in done.stdout, done.stdout + done.stderr
        assert done.stdout.count("what differs from the beginning of the workspace") == 2
        assert done.stdout.count("workspace of this test") == 2 and ".kubeconfig kubectl api-resources" in done.stdout
        gone(place)


FAILING = """
    def test_one(pintle_workspace):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        webhook = {"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "rules": [rule]}
        # where nothing listens
        webhook["clientConfig"] = {"url": "https://127.0.0.1:1/"}
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
        pintle_workspace.apply_object({**kind, "metadata": {"name": "a"}, "webhooks": [webhook]})
        pintle_workspace.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
        assert False
"""


def test_failures_show_the_log(place, tmp_path):
    (tmp_path / "test_failing.py").write_text(textwrap.dedent(FAILING))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True, text=True)
    _, log = done.stdout.split("log of the Pintle server", 1)
    assert "failed calling webhook, failing open" in log, done.stdout
    gone(place)


def test_the_client_of_kubernetes(server):
    with server.workspace() as workspace:
        names = [found.metadata.name for found in client.CoreV1Api(workspace.kubernetes()).list_namespace().items]
        assert "default" in names


def test_kr8s(server):
    with server.workspace() as workspace:
        assert "default" in [found.name for found in workspace.kr8s().get("namespaces")]


def test_lightkube(server):
    with server.workspace() as workspace:
        assert "default" in [found.metadata.name for found in workspace.lightkube().list(Namespace)]


def test_faults_and_settle(server):
    with server.workspace() as workspace:
        maps = "/api/v1/namespaces/default/configmaps"
        with workspace.fault(match={"verbs": ["create"]}, effect={"error": {"code": 503}}) as fault:
            with pytest.raises(pintle_server.ResponseError) as refused:
                workspace.request("POST", maps, {"metadata": {"name": "a"}})
            assert refused.value.code == 503, refused.value
            until = time.monotonic() + 10
            while fault.hits() != 1:
                assert time.monotonic() < until, "the status of the fault has no hit"
                time.sleep(0.01)
        workspace.request("POST", maps, {"metadata": {"name": "a"}})
        workspace.settle()
        with pytest.raises(pintle_server.PintleError, match="^not settled: "):
            workspace.settle(quiet="300ms", timeout="100ms")


def test_dead_builders_free_their_template(server, place):
    """Nothing extends the lifetime of the workspace that a dead process was building, so it ends."""
    file = place / "dead.py"
    file.write_text("""if True:
        import os, pintle_server
        built = []
        def build(workspace):
            if __name__ == "__main__":
                print(workspace.name, flush=True)
                os.kill(os.getpid(), 9)
            built.append(workspace.name)
        template = pintle_server.start(run="test").template("t", build)
    """)
    builder = subprocess.run([sys.executable, file], stdout=subprocess.PIPE, text=True)
    assert builder.returncode == -signal.SIGKILL
    # the same file, which is part of the key
    ran = runpy.run_path(str(file))
    file.unlink()
    assert ran["built"] == [ran["template"].name] == [builder.stdout.strip()]


def test_two_files_that_give_their_templates_one_name_get_their_own(server, place):
    forks = {}
    for name in ("one", "two"):
        file = place / f"{name}.py"
        file.write_text(f"def build(workspace): workspace.request('POST', '/api/v1/namespaces', {{'metadata': {{'name': {name!r}}}}})")
        forks[name] = server.template("crds", runpy.run_path(str(file))["build"]).fork()
        file.unlink()
    for name, other in (("one", "two"), ("two", "one")):
        forks[name].request("GET", f"/api/v1/namespaces/{name}")
        with pytest.raises(pintle_server.ResponseError, match="not found"):
            forks[name].request("GET", f"/api/v1/namespaces/{other}")


def test_modules_of_pytest_may_build_their_own(place, tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text(f"""if True:
            import pytest
            @pytest.fixture(scope="session")
            def pintle_build():
                return lambda workspace: workspace.request("POST", "/api/v1/namespaces", {{"metadata": {{"name": "{name}"}}}})
            def test_own(pintle_workspace):
                pintle_workspace.request("GET", "/api/v1/namespaces/{name}")
        """)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
    gone(place)


def test_manifests_that_cannot_be_read_are_named(server, tmp_path):
    with server.workspace() as workspace:
        assert workspace.kubeconfig_content()["contexts"][0]["context"]["namespace"] == "default"
        for name, text, why in (
            ("", None, f"{tmp_path} has no file that ends with .yaml, .yml or .json"),
            ("broken.json", '{"a": ', f"{tmp_path}/broken.json: Expecting value"),
            ("broken.yaml", "a: 1\nb: [", f"{tmp_path}/broken.yaml:2:5: "),
        ):
            if name:
                (tmp_path / name).write_text(text)
            with pytest.raises(pintle_server.PintleError) as raised:
                workspace.apply(tmp_path / name)
            assert str(raised.value).startswith(why)


def test_texts_are_utf8_whatever_the_locale(server, tmp_path):
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {city: Zürich}\n", encoding="utf-8")
    code = f"import pintle_server; w = pintle_server.start(run='test').workspace(); print(ascii(w.apply({str(tmp_path)!r})[0]['data']['city']))"
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == ascii("Zürich"), done.stderr


def test_long_paths_and_other_programs(place, monkeypatch):
    long = place / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert servers.directory() == pathlib.Path(f"/tmp/pintle-{os.getuid()}")
    long.rmdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.setenv("PINTLE_BINARY", "/bin/true")
    with pytest.raises(pintle_server.PintleError, match="/bin/true ends without starting a server"):
        pintle_server.start(run="silent")
    gone(place)


def test_the_types_are_strict():
    """mypy reads the package as it is installed, and the example."""
    package = pathlib.Path(pintle_server.__file__).parent
    root = pathlib.Path(__file__).resolve().parents[3]
    command = [sys.executable, "-m", "mypy", "--config-file", root / "clients" / "python" / "pyproject.toml"]
    environment = os.environ | {"MYPYPATH": f"{package.parent}:{root / 'examples' / 'python'}", "MYPY_CACHE_DIR": str(root / "target" / "mypy")}
    done = subprocess.run([*command, "-p", "pintle_server", "-m", "mirror", "-m", "test_mirror"], cwd=root, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_clock(server):
    with server.workspace() as workspace:
        maps = "/api/v1/namespaces/default/configmaps"
        workspace.clock.stop(datetime.datetime(2090, 1, 1), seed=7)
        workspace.clock.advance("1h30m")
        workspace.clock.advance(datetime.timedelta(seconds=1.5))
        created = workspace.request("POST", maps, {"metadata": {"name": "argo"}})
        assert created["metadata"]["creationTimestamp"] == "2090-01-01T01:30:01Z"
        workspace.clock.set("2091-01-01T00:00:00Z")
        with pytest.raises(pintle_server.ResponseError, match="never goes back"):
            workspace.clock.set("2090-01-01T00:00:00Z")
        workspace.clock.resume()
        workspace.clock.delete()
        later = workspace.request("POST", maps, {"metadata": {"name": "beagle"}})
        assert later["metadata"]["creationTimestamp"] < "2090"


def test_the_report(server):
    with server.workspace() as workspace:
        workspace.request("GET", "/api/v1/namespaces")
        assert workspace.report()["agents"][0]["userAgent"].startswith("pintle-server")


def test_plans_and_trials(tmp_path):
    boat = tmp_path / "map.yaml"
    boat.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}))
    plan = pintle_server.plan("--from", str(boat), "--delete", "configmap/a")
    assert plan["summary"]["delete"] == 1 and plan["changes"][0]["name"] == "a"
    scenario = ("--start", "kubectl get configmaps -w", "--steps", str(boat), "--quiet", "1s")
    trial = pintle_server.trial(*scenario, "--cell", "1:down")
    assert trial["summary"].startswith("1 cell: 0 differ") and trial["cells"] == [{"cell": "1:down", "verdict": "same"}]
    with pytest.raises(pintle_server.PintleError, match='^there is no object "configmap/b" in the source$'):
        pintle_server.plan("--from", str(boat), "--delete", "configmap/b")


SCOPES = """
    import os

    import pytest

    MAPS = "/api/v1/namespaces/default/configmaps"

    def names(workspace):
        return sorted(one["metadata"]["name"] for one in workspace.request("GET", MAPS)["items"])

    class TestClass:
        def test_first(self, pintle_class_workspace, pintle_module_workspace, pintle_session_workspace):
            for workspace in (pintle_class_workspace, pintle_module_workspace, pintle_session_workspace):
                workspace.request("POST", MAPS, {"metadata": {"name": "first"}})

        def test_second(self, pintle_class_workspace):
            assert names(pintle_class_workspace) == ["first"]

    class TestOther:
        def test_own(self, pintle_class_workspace, pintle_module_workspace, pintle_session_workspace):
            assert names(pintle_class_workspace) == []
            assert names(pintle_module_workspace) == names(pintle_session_workspace) == ["first"]
            assert len({pintle_class_workspace.name, pintle_module_workspace.name, pintle_session_workspace.name}) == 3

    def test_kubeconfig(pintle_workspace, pintle_kubeconfig):
        assert os.environ["KUBECONFIG"] == pintle_kubeconfig == pintle_workspace.kubeconfig()

    def test_fails(pintle_module_workspace):
        assert names(pintle_module_workspace) == []
"""


def test_workspaces_of_larger_scopes(place, tmp_path):
    (tmp_path / "test_scopes.py").write_text(textwrap.dedent(SCOPES))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "1 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    assert "created ConfigMap default/first\n" in done.stdout, done.stdout
    gone(place)


def test_coroutines(server):
    async def use():
        with server.workspace() as workspace:
            await workspace.aio.apply_object({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
            maps = await asyncio.gather(*(workspace.aio.request("GET", "/api/v1/namespaces/default/configmaps") for _ in range(4)))
            return [[one["metadata"]["name"] for one in found["items"]] for found in maps], await workspace.aio.changes()

    maps, changes = asyncio.run(use())
    assert maps == [["a"]] * 4 and changes.startswith("created ConfigMap default/a\n"), (maps, changes)
    with server.workspace() as workspace, pytest.raises(AttributeError):
        workspace.aio.name()
