"""Backups: what a restore keeps, encryption, schedules, directories and buckets."""
import contextlib
import os
import shutil
import stat
import subprocess

import pytest

from pintle import eventually
from programs import ROOT, go_build

pytestmark = pytest.mark.store

MAPS = "/api/v1/namespaces/default/configmaps"
KEYS = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "passphrase").write_text("correct horse\n")
    return tmp_path


def pintle(launch, *words, status=0, environment=None):
    """Runs a command. Returns what it has printed, which is one line if the command is to fail."""
    done = subprocess.run([launch.binary, *map(str, words)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(environment or {})})
    said = done.stdout + done.stderr
    assert done.returncode == status, said
    assert status == 0 or len(said.splitlines()) == 1, said
    return said


def helper():
    """The program of tests/backups: age, and an S3-compatible object store."""
    return go_build(ROOT / "tests" / "backups", ROOT / "target" / "backups" / "helper")


@contextlib.contextmanager
def object_store():
    """An empty bucket s3://backups. Yields the flags of commands that use it."""
    process = subprocess.Popen([helper(), "s3"], stdout=subprocess.PIPE, text=True)
    try:
        yield ["--backup-s3-endpoint", f"http://{process.stdout.readline().strip()}"]
    finally:
        process.kill()
        process.wait()


def token_of(server):
    """A token of the ServiceAccount reader, which may read ConfigMaps."""
    server.ok("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {
        "metadata": {"name": "reader"}, "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}})
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    server.ok("POST", accounts, {"metadata": {"name": "reader"}})
    eventually(lambda: server.request("POST", accounts + "/reader/token", {"spec": {}})[0] == 201)
    return server.ok("POST", accounts + "/reader/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]


def test_a_restored_server_keeps_its_clients(launch, place):
    """On another machine, which has only the backup: certificates and tokens stay valid, and a watch gets one 410."""
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, {"metadata": {"name": "kept"}, "data": {"a": "1"}})
        token = token_of(server)
        kubeconfig = place / "admin.kubeconfig"
        shutil.copy(server.kubeconfig, kubeconfig)
        alice = pintle(launch, "kubeconfig", "create", "alice", "--group", "system:masters", "--data-dir", server.dir)
        (place / "alice.kubeconfig").write_text(alice)
        said = pintle(launch, "store", "backup", place / "backup", "--data-dir", server.dir)
        assert "the certificate authority and the key of ServiceAccount tokens" in said
        version = server.ok("POST", MAPS, {"metadata": {"name": "lost"}})["metadata"]["resourceVersion"]
        port = int(server.url.rsplit(":", 1)[1])
    said = pintle(launch, "store", "restore", place / "backup", "--data-dir", place / "restored")
    assert "ca.crt, ca.key, service-account.key" in said
    restored = launch(storage="embedded", data_dir=place / "restored")
    restored.port = port
    with restored:
        assert restored.ok("GET", MAPS + "/kept")["data"] == {"a": "1"}
        assert restored.request("GET", MAPS + "/kept", token=token)[0] == 200
        for file in (kubeconfig, place / "alice.kubeconfig"):
            # the client verifies the new serving certificate with the old CA bundle
            said = pintle(launch, "storage", "migrate", "--all", "--dry-run", "--kubeconfig", file)
            assert "nothing has been changed" in said
        status, event, _ = restored.request("GET", f"{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=5")
        assert (status, event["type"], event["object"]["code"]) == (200, "ERROR", 410), event
        current = restored.ok("GET", MAPS)["metadata"]["resourceVersion"]
        assert int(current) > int(version)
        assert restored.request("GET", f"{MAPS}?watch=1&resourceVersion={current}&timeoutSeconds=1")[0] == 200


def test_backups_can_be_encrypted(launch, place):
    seal = ["--backup-passphrase-file", place / "passphrase"]
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, {"metadata": {"name": "kept"}})
        pintle(launch, "store", "backup", place / "plain", "--data-dir", server.dir)
        pintle(launch, "store", "backup", place / "sealed", "--data-dir", server.dir, *seal)
    assert b"BEGIN" in (place / "plain").read_bytes() and b"BEGIN" not in (place / "sealed").read_bytes()
    assert stat.S_IMODE(os.stat(place / "sealed").st_mode) == 0o600
    restore = ["store", "restore", place / "sealed", "--data-dir", place / "restored"]
    assert "sealed is encrypted: give its passphrase by" in pintle(launch, *restore, status=1)
    (place / "wrong").write_text("other\n")
    assert "sealed: the passphrase is wrong" in pintle(launch, *restore, "--backup-passphrase-file", place / "wrong", status=1)
    (place / "empty").write_text("\n")
    assert "its first line is empty" in pintle(launch, *restore, "--backup-passphrase-file", place / "empty", status=1)
    whole = (place / "sealed").read_bytes()
    (place / "sealed").write_bytes(whole[:-1])
    assert "the file is corrupt or truncated" in pintle(launch, *restore, *seal, status=1)
    assert not (place / "restored").exists()
    (place / "sealed").write_bytes(whole)
    pintle(launch, *restore, *seal)
    with launch(storage="embedded", data_dir=place / "restored") as server:
        server.ok("GET", MAPS + "/kept")


def test_encrypted_backups_are_files_of_age(launch, place):
    age = helper()
    with launch(storage="embedded") as server:
        pintle(launch, "store", "backup", place / "sealed", "--data-dir", server.dir, "--backup-passphrase-file", place / "passphrase")
    opened = subprocess.run([age, "decrypt", "correct horse"], input=(place / "sealed").read_bytes(), capture_output=True, check=True)
    (place / "plain").write_bytes(opened.stdout)
    pintle(launch, "store", "restore", place / "plain", "--data-dir", place / "one")
    sealed = subprocess.run([age, "encrypt", "correct horse"], input=opened.stdout, capture_output=True, check=True)
    (place / "sealed").write_bytes(sealed.stdout)
    pintle(launch, "store", "restore", place / "sealed", "--data-dir", place / "two", "--backup-passphrase-file", place / "passphrase")
    assert (place / "one" / "ca.key").read_bytes() == (place / "two" / "ca.key").read_bytes()


def test_servers_make_backups_on_a_schedule(launch, place):
    target = place / "backups"
    flags = ["--backup-schedule", "@every 1s", "--backup-target", str(target), "--backup-retention", "2"]

    def backups():
        return sorted(path.name for path in target.glob("pintle-*.backup"))

    with launch(*flags, storage="embedded") as server:
        server.ok("POST", MAPS, {"metadata": {"name": "kept"}})
        eventually(lambda: target.exists() and len(backups()) == 2)
        first = backups()
        (target / "notes.txt").write_text("not a backup")
        eventually(lambda: not set(first) & set(backups()))
        assert len(backups()) <= 3
    newest = backups()[-1]
    listed = pintle(launch, "store", "backups", "list", target).splitlines()
    assert listed[0].split() == ["TIME", "REVISION", "BYTES", "ENCRYPTED", "NAME"] and newest in listed[-1], listed
    pintle(launch, "store", "backups", "prune", target, "--keep", "1")
    assert sorted(path.name for path in target.iterdir()) == ["notes.txt", newest]
    pintle(launch, "store", "restore", target / newest, "--data-dir", place / "restored")
    with launch(storage="embedded", data_dir=place / "restored") as server:
        server.ok("GET", MAPS + "/kept")


def test_failed_backups_are_reported(launch, place):
    target = place / "target"
    with launch("--backup-schedule", "@every 1s", "--backup-target", str(target), storage="embedded") as server:
        target.rename(place / "moved")
        target.write_text("")
        eventually(lambda: "a backup failed" in server.stderr())
        server.ok("GET", MAPS)


@pytest.mark.parametrize("flags, said", [
    (["--backup-schedule", "@often", "--backup-target", "x"], "unrecognized descriptor: @often"),
    (["--backup-schedule", "@daily"], "--backup-target"),
    (["--backup-schedule", "@daily", "--backup-target", "x", "--backup-retention", "0"], "--backup-retention"),
    (["--backup-schedule", "@daily", "--backup-target", "x", "--storage", "memory"], "has nothing to back up"),
    (["--backup-schedule", "@daily", "--backup-target", "/dev/null/x"], "--backup-target: cannot create /dev/null/x: Not a directory"),
    (["--backup-schedule", "@daily", "--backup-target", "s3://b"], "the environment lacks AWS_ACCESS_KEY_ID"),
    (["--backup-schedule", "@daily", "--backup-target", "x", "--backup-passphrase-file", "missing"], "missing: No such file"),
])
def test_mistaken_flags_are_refused(launch, place, flags, said):
    done = subprocess.run([launch.binary, "serve", "--data-dir", place / "data", "--secure-port", "0", *flags], capture_output=True,
                          text=True, timeout=60, env={k: v for k, v in os.environ.items() if not k.startswith("AWS_")})
    assert done.returncode != 0 and said in done.stderr, done.stderr


def test_buckets_keep_backups(launch, place):
    with object_store() as s3:
        flags = ["--backup-schedule", "@every 1s", "--backup-target", "s3://backups/one/place", "--backup-retention", "2",
                 "--backup-passphrase-file", str(place / "passphrase"), *s3]
        listing = ["store", "backups", "list", "s3://backups/one/place", *s3]
        with launch(*flags, storage="embedded", environment=KEYS) as server:
            server.ok("POST", MAPS, {"metadata": {"name": "kept"}})
            eventually(lambda: len(pintle(launch, *listing, environment=KEYS).splitlines()) >= 3,
                       seconds=60)
            pintle(launch, "store", "backup", "s3://backups/other", "--data-dir", server.dir, *s3, environment=KEYS)
        name = pintle(launch, *listing, environment=KEYS).splitlines()[-1].split()[-1]
        assert name.endswith(".backup.age")
        pintle(launch, "store", "backups", "prune", "s3://backups/one/place", "--keep", "1", *s3, environment=KEYS)
        assert len(pintle(launch, *listing, environment=KEYS).splitlines()) == 2
        pintle(launch, "store", "restore", f"s3://backups/one/place/{name}", "--data-dir", place / "one",
               "--backup-passphrase-file", place / "passphrase", *s3, environment=KEYS)
        pintle(launch, "store", "restore", "s3://backups/other", "--data-dir", place / "two", *s3, environment=KEYS)
        assert (place / "one" / "ca.key").read_bytes() == (place / "two" / "ca.key").read_bytes()
        wrong = {**KEYS, "AWS_SECRET_ACCESS_KEY": "wrong"}
        assert "SignatureDoesNotMatch" in pintle(launch, *listing, environment=wrong, status=1)
        missing = ["store", "restore", "s3://backups/missing", "--data-dir", place / "three", *s3]
        assert "NoSuchKey" in pintle(launch, *missing, environment=KEYS, status=1)
        assert not (place / "three").exists()
