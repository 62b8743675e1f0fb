"""Encryption at rest with a KMS v2 plugin, reload of the configuration, and rewriting with the newest key."""

import json
import pathlib
import subprocess
import tempfile

import pytest

from commands import refused, run
from encryption import ENCODED, SECRETS, configuration, read, secret, stored
from etcd import Etcd
from pintle import eventually
from programs import ROOT, built
from upstream import Upstream
from watch import Watch

pytestmark = pytest.mark.encryption

MODULE = ROOT / "tests" / "kms"
RELOADED = "the encryption configuration has been reloaded"


class Plugin:
    """`with Plugin(directory) as plugin:` serves at `plugin.socket`. The current key is the one that `use` has set."""

    def __init__(self, directory, name="vault"):
        self.binary = built(MODULE, "k8s.io/kms", pathlib.Path("kms/kms"))
        self.name, self.socket, self.keys = name, pathlib.Path(directory) / f"{name}.sock", pathlib.Path(directory) / f"{name}.keys"
        self.process = None

    def __enter__(self):
        if not self.keys.exists():
            self.use("first")
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.process = subprocess.Popen([self.binary, "plugin", self.socket, self.keys])
        eventually(self.socket.exists)

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None
        self.socket.unlink(missing_ok=True)

    def use(self, key):
        """Sets the id of the current key."""
        new = self.keys.with_suffix(".new")
        new.write_text(key + "\n")
        new.rename(self.keys)

    def provider(self):
        return {"kms": {"apiVersion": "v2", "name": self.name, "endpoint": f"unix://{self.socket}", "timeout": "3s"}}

    def transform(self, mode, path, data):
        """Encrypts (`seal`, `seal-key`) or decrypts (`open`) the value of the etcd key `path` with kube-apiserver's code."""
        done = subprocess.run([self.binary, mode, self.socket, self.name, path], input=data, capture_output=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def directory():
    """A directory whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="pintle-kms-") as path:
        yield path


def rewrite(server, *flags, status=0):
    return run(server.binary, "storage", "rewrite", "--kubeconfig", server.kubeconfig, *flags, status=status)


def flags(path):
    return (f"--encryption-provider-config={path}", "--encryption-provider-config-automatic-reload", "--v=2")


def test_kms_values_are_those_of_kube_apiserver(launch, directory):
    """kube-apiserver's code reads the values that Pintle writes, and the reverse, in both formats."""
    with Plugin(directory) as plugin, Etcd() as etcd:
        path = configuration(directory, plugin.provider(), "identity")
        with launch("--etcd-servers", etcd.urls, f"--encryption-provider-config={path}", storage="etcd") as server:
            created = {name: server.ok("POST", SECRETS, secret(name)) for name in ("one", "two", "three")}
            keys = {name: f"/registry/secrets/default/{name}" for name in created}
            plain = {}
            for name, key in keys.items():
                value = etcd.get(key)
                assert value.startswith(b"k8s:enc:kms:v2:vault:") and ENCODED not in value and b"a very secret text" not in value
                plain[name] = plugin.transform("open", key, value)
                assert plain[name].startswith(b"k8s\0") and b"a very secret text" in plain[name]
            for name, mode in (("two", "seal"), ("three", "seal-key")):
                etcd.put(keys[name], plugin.transform(mode, keys[name], plain[name]))
            for restarted in (False, True):
                if restarted:
                    server.restart()
                for name in created:
                    current = server.wait_for(f"{SECRETS}/{name}")
                    assert current["data"] == created[name]["data"], name
            # values in the older format are stale, others are not
            before = {name: server.ok("GET", f"{SECRETS}/{name}")["metadata"]["resourceVersion"] for name in created}
            after = {name: server.ok("PATCH", f"{SECRETS}/{name}", {})["metadata"]["resourceVersion"] for name in created}
            assert [name for name in created if after[name] != before[name]] == ["three"]
            assert plugin.transform("open", keys["three"], etcd.get(keys["three"])) == plain["three"]


def test_kms_keys_are_rotated_and_objects_rewritten(launch, directory):
    with Plugin(directory) as plugin:
        path = configuration(directory, "identity")
        with launch(*flags(path), storage="embedded") as server:
            created = [server.ok("POST", SECRETS, secret(f"s-{number}")) for number in range(5)]
            assert "secrets" not in rewrite(server)
            configuration(directory, plugin.provider(), "identity")
            eventually(lambda: RELOADED in server.stderr())
            assert "secrets: 5 of 5 objects written" in rewrite(server, "--resource", "secrets")
            assert stored(server).count(b"k8s:enc:kms:v2:vault:") == 5
            assert rewrite(server).startswith("0 objects written"), "current values are not written again"
            plugin.use("second")
            # a new configuration requests the status of the plugin at once, instead of every minute
            configuration(directory, {"kms": {**plugin.provider()["kms"], "timeout": "4s"}}, "identity")
            eventually(lambda: server.stderr().count(RELOADED) == 2)
            assert "secrets: 5 of 5 objects written" in rewrite(server)
            assert "[+]kms-providers ok" in server.request("GET", "/readyz?verbose")[1]
            configuration(directory, {"kms": {**plugin.provider()["kms"], "timeout": "4s"}})
            server.restart()
            for item in created:
                assert read(server, item["metadata"]["name"]) == item["data"]


def test_an_unavailable_kms_plugin_prevents_a_start_and_no_running_server(launch, directory):
    with Plugin(directory) as plugin:
        path = configuration(directory, plugin.provider())
        with launch(*flags(path), storage="embedded") as server:
            created = server.ok("POST", SECRETS, secret("one"))
            plugin.stop()
            server.ok("POST", SECRETS, secret("two"))
            server.stop()
            start = ("--storage=embedded", "--data-dir", server.dir, f"--encryption-provider-config={path}")
            assert f"--encryption-provider-config: {path}: kms provider vault: unix://{plugin.socket}: " in refused(launch, *start)
            plugin.use("sick")
            plugin.start()
            assert "got unexpected healthz status: the vault is sealed" in refused(launch, *start)
            plugin.use("first")
            server.start()
            assert server.ok("GET", SECRETS + "/one") == created


def test_invalid_encryption_configuration_is_not_loaded(launch, directory):
    path = configuration(directory, {"aesgcm": [("old", 1)]})
    with launch(*flags(path), storage="embedded") as server:
        server.ok("POST", SECRETS, secret("one"))
        path.write_text("kind: Other\n")
        eventually(lambda: "cannot be reloaded; the previous configuration stays in use" in server.stderr())
        reloads = 'apiserver_encryption_config_controller_automatic_reloads_total{status="%s"} 1'
        assert reloads % "failure" in server.ok("GET", "/metrics")
        server.ok("POST", SECRETS, secret("two"))
        assert stored(server).count(b"k8s:enc:aesgcm:v1:old:") == 2
        configuration(directory, {"aesgcm": [("new", 2)]}, {"aesgcm": [("old", 1)]})
        eventually(lambda: RELOADED in server.stderr())
        assert reloads % "success" in server.ok("GET", "/metrics")
        server.ok("POST", SECRETS, secret("three"))
        assert "secrets: 2 of 3 objects written" in rewrite(server)
        assert stored(server).count(b"k8s:enc:aesgcm:v1:new:") == 3
        assert "there is no resource secret; wanted PLURAL or PLURAL.GROUP" in rewrite(server, "--resource", "secret", status=1)


def exchange(writer, reader, etcd, name):
    """`reader` reads, watches and changes a Secret that `writer` has encrypted."""
    path, revision = f"{SECRETS}/{name}", reader.ok("GET", SECRETS)["metadata"]["resourceVersion"]
    # kube-apiserver stops once its watches have ended
    watch = Watch(reader, f"{SECRETS}?watch=1&timeoutSeconds=10&resourceVersion={revision}")
    created = writer.ok("POST", SECRETS, secret(name))
    value = etcd.get(f"/registry/secrets/default/{name}")
    assert value.startswith(b"k8s:enc:kms:v2:vault:") and ENCODED not in value, value[:60]
    eventually(lambda: watch.lines)
    assert json.loads(watch.lines[0])["object"]["data"] == created["data"]
    assert reader.ok("GET", path)["data"] == created["data"]
    changed = reader.ok("PATCH", path, {"metadata": {"labels": {"changed": "yes"}}})["metadata"]["resourceVersion"]
    eventually(lambda: writer.ok("GET", path)["metadata"]["resourceVersion"] == changed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_both_servers_share_an_etcd_and_a_plugin(launch, directory):
    """A running kube-apiserver and Pintle exchange encrypted Secrets, also after a rotation."""
    with Plugin(directory) as plugin, Etcd() as etcd:
        path = configuration(directory, plugin.provider(), "identity")
        encrypted = f"--encryption-provider-config={path}"
        with Upstream(etcd, encrypted) as upstream, launch("--etcd-servers", etcd.urls, encrypted, storage="etcd") as server:
            for key in ("first", "second"):
                if key == "second":
                    plugin.use(key)
                    # servers read the key at the start, and then every minute
                    for each in (upstream, server):
                        each.stop()
                        each.start()
                exchange(upstream, server, etcd, f"upstream-{key}")
                exchange(server, upstream, etcd, f"pintle-{key}")
            listed = [{item["metadata"]["name"]: item["data"] for item in each.ok("GET", SECRETS)["items"]} for each in (upstream, server)]
            assert listed[0] == listed[1] and len(listed[0]) == 4, listed
