"""Encryption at rest with a KMS v2 plugin, reload of the configuration, and rewriting with the newest key."""
import base64
import json
import pathlib
import subprocess
import tempfile

import pytest

from encryption import ENCODED, SECRETS, secret
from etcd import Etcd
from kms import Plugin, configure
from pintle import eventually
from upstream import Upstream
from watch import Watch

pytestmark = pytest.mark.encryption

IDENTITY = {"identity": {}}
RELOADED = "the encryption configuration has been reloaded"


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(prefix="pintle-kms-") as directory:
        yield pathlib.Path(directory)


def aesgcm(name, byte):
    return {"aesgcm": {"keys": [{"name": name, "secret": base64.b64encode(bytes([byte]) * 32).decode()}]}}


def stored(server):
    """The content of all files of the data directory."""
    return b"".join(file.read_bytes() for file in sorted((server.dir / "log").iterdir()))


def rewrite(launch, server, *flags):
    command = [launch.binary, "storage", "rewrite", "--kubeconfig", server.kubeconfig, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


def flags(path):
    return (f"--encryption-provider-config={path}", "--encryption-provider-config-automatic-reload", "--v=2")


def test_kms_values_are_those_of_kube_apiserver(launch, place):
    """What Pintle writes, kube-apiserver's code reads, and the reverse, in both forms that it knows."""
    with Plugin(place) as plugin, Etcd() as etcd:
        configure(place / "config", plugin.provider(), IDENTITY)
        with launch("--etcd-servers", etcd.urls, f"--encryption-provider-config={place / 'config'}", storage="etcd") as server:
            made = {name: server.ok("POST", SECRETS, secret(name)) for name in ("one", "two", "three")}
            keys = {name: f"/registry/secrets/default/{name}" for name in made}
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
                for name in made:
                    got = server.wait_for(f"{SECRETS}/{name}")
                    assert got["data"] == made[name]["data"], name
            # the older form is stale, and the newer one is not
            before = {name: server.ok("GET", f"{SECRETS}/{name}")["metadata"]["resourceVersion"] for name in made}
            after = {name: server.ok("PATCH", f"{SECRETS}/{name}", {})["metadata"]["resourceVersion"] for name in made}
            assert [name for name in made if after[name] != before[name]] == ["three"]
            assert plugin.transform("open", keys["three"], etcd.get(keys["three"])) == plain["three"]


def test_kms_keys_are_rotated_and_objects_rewritten(launch, place):
    with Plugin(place) as plugin:
        configure(place / "config", IDENTITY)
        with launch(*flags(place / "config"), storage="embedded") as server:
            made = [server.ok("POST", SECRETS, secret(f"s-{number}")) for number in range(5)]
            assert "secrets" not in rewrite(launch, server)
            configure(place / "config", plugin.provider(), IDENTITY)
            eventually(lambda: RELOADED in server.stderr())
            assert "secrets: 5 of 5 objects written" in rewrite(launch, server, "--resource", "secrets")
            assert stored(server).count(b"k8s:enc:kms:v2:vault:") == 5
            assert rewrite(launch, server).startswith("0 objects written"), "once is enough"
            plugin.use("second")
            # another configuration asks the plugin again; otherwise that happens every minute
            configure(place / "config", {"kms": {**plugin.provider()["kms"], "timeout": "4s"}}, IDENTITY)
            eventually(lambda: server.stderr().count(RELOADED) == 2)
            assert "secrets: 5 of 5 objects written" in rewrite(launch, server)
            assert "[+]kms-providers ok" in server.request("GET", "/readyz?verbose")[1]
            configure(place / "config", {"kms": {**plugin.provider()["kms"], "timeout": "4s"}})
            server.restart()
            for item in made:
                assert server.ok("GET", f"{SECRETS}/{item['metadata']['name']}")["data"] == item["data"]


def test_kms_that_is_away_stops_a_start_and_no_running_server(launch, place):
    with Plugin(place) as plugin:
        configure(place / "config", plugin.provider())
        with launch(*flags(place / "config"), storage="embedded") as server:
            made = server.ok("POST", SECRETS, secret("one"))
            plugin.stop()
            server.ok("POST", SECRETS, secret("two"))
            server.stop()
            command = [launch.binary, "serve", "--secure-port", "0", "--data-dir", str(server.dir), *flags(place / "config")[:1]]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            said = done.stdout + done.stderr
            assert done.returncode == 1 and len(said.splitlines()) == 1, said
            assert f"--encryption-provider-config: {place / 'config'}: kms provider vault: unix://{plugin.socket}: " in said, said
            plugin.use("sick")
            plugin.start()
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert done.returncode == 1 and "got unexpected healthz status: the vault is sealed" in done.stdout + done.stderr, done
            plugin.use("first")
            server.start()
            assert server.ok("GET", SECRETS + "/one") == made


def test_invalid_encryption_configuration_is_not_loaded(launch, place):
    configure(place / "config", aesgcm("old", 1))
    with launch(*flags(place / "config"), storage="embedded") as server:
        server.ok("POST", SECRETS, secret("one"))
        (place / "config").write_text("kind: Other\n")
        eventually(lambda: "cannot be reloaded; the previous configuration stays in use" in server.stderr())
        reloads = 'apiserver_encryption_config_controller_automatic_reloads_total{status="%s"} 1'
        assert reloads % "failure" in server.ok("GET", "/metrics")
        server.ok("POST", SECRETS, secret("two"))
        assert stored(server).count(b"k8s:enc:aesgcm:v1:old:") == 2
        configure(place / "config", aesgcm("new", 2), aesgcm("old", 1))
        eventually(lambda: RELOADED in server.stderr())
        assert reloads % "success" in server.ok("GET", "/metrics")
        server.ok("POST", SECRETS, secret("three"))
        assert "secrets: 2 of 3 objects written" in rewrite(launch, server)
        assert stored(server).count(b"k8s:enc:aesgcm:v1:new:") == 3
        command = [launch.binary, "storage", "rewrite", "--kubeconfig", server.kubeconfig, "--resource", "secret"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "there is no resource secret; wanted PLURAL or PLURAL.GROUP" in done.stderr, done
    done = subprocess.run([launch.binary, "serve", "--storage", "memory", "--encryption-provider-config-automatic-reload", "--data-dir", str(place / "data")],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "needs --encryption-provider-config" in done.stderr, done


def exchange(writer, reader, etcd, name):
    """A server reads, watches and changes what another one has encrypted."""
    path, revision = f"{SECRETS}/{name}", reader.ok("GET", SECRETS)["metadata"]["resourceVersion"]
    # kube-apiserver stops once its watches have ended
    watch = Watch(reader, f"{SECRETS}?watch=1&timeoutSeconds=10&resourceVersion={revision}")
    made = writer.ok("POST", SECRETS, secret(name))
    value = etcd.get(f"/registry/secrets/default/{name}")
    assert value.startswith(b"k8s:enc:kms:v2:vault:") and ENCODED not in value, value[:60]
    eventually(lambda: watch.lines)
    assert json.loads(watch.lines[0])["object"]["data"] == made["data"]
    assert reader.ok("GET", path)["data"] == made["data"]
    changed = reader.ok("PATCH", path, {"metadata": {"labels": {"changed": "yes"}}})["metadata"]["resourceVersion"]
    eventually(lambda: writer.ok("GET", path)["metadata"]["resourceVersion"] == changed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_both_servers_share_an_etcd_and_a_plugin(launch, place):
    """A running kube-apiserver and Pintle exchange encrypted Secrets, also after a rotation."""
    with Plugin(place) as plugin, Etcd() as etcd:
        configure(place / "config", plugin.provider(), IDENTITY)
        encrypted = f"--encryption-provider-config={place / 'config'}"
        with Upstream(etcd, encrypted) as theirs, launch("--etcd-servers", etcd.urls, encrypted, storage="etcd") as ours:
            for key in ("first", "second"):
                if key == "second":
                    plugin.use(key)
                    # each server learns of another key when it starts; otherwise within a minute
                    for server in (theirs, ours):
                        server.stop()
                        server.start()
                exchange(theirs, ours, etcd, f"theirs-{key}")
                exchange(ours, theirs, etcd, f"ours-{key}")
            listed = [{item["metadata"]["name"]: item["data"] for item in server.ok("GET", SECRETS)["items"]} for server in (theirs, ours)]
            assert listed[0] == listed[1] and len(listed[0]) == 4, listed
