"""Backups: restored clients, encryption, schedules, directories and buckets."""
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
def directory(tmp_path):
    """A directory with a passphrase file."""
    (tmp_path / "passphrase").write_text("correct horse\n")
    return tmp_path


def pintle(launch, *arguments, status=0, environment=None):
    """Runs a command, and returns its output, which must be one line if the command is expected to fail."""
    done = subprocess.run([launch.binary, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(environment or {})})
    output = done.stdout + done.stderr
    assert done.returncode == status, output
    assert status == 0 or len(output.splitlines()) == 1, output
    return output


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


def test_a_restored_server_keeps_its_clients(launch, directory):
    """With only the backup, as on another machine, certificates and tokens remain valid, and a watch expires once (410)."""
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, {"metadata": {"name": "kept"}, "data": {"a": "1"}})
        token = token_of(server)
        kubeconfig = directory / "admin.kubeconfig"
        shutil.copy(server.kubeconfig, kubeconfig)
        alice = pintle(launch, "kubeconfig", "create", "alice", "--group", "system:masters", "--data-dir", server.dir)
        (directory / "alice.kubeconfig").write_text(alice)
        output = pintle(launch, "store", "backup", directory / "backup", "--data-dir", server.dir)
        assert "the certificate authority and the key of ServiceAccount tokens" in output
        version = server.ok("POST", MAPS, {"metadata": {"name": "lost"}})["metadata"]["resourceVersion"]
        port = int(server.url.rsplit(":", 1)[1])
    output = pintle(launch, "store", "restore", directory / "backup", "--data-dir", directory / "restored")
    assert "ca.crt, ca.key, service-account.key" in output
    restored = launch(storage="embedded", data_dir=directory / "restored")
    restored.port = port
    with restored:
        assert restored.ok("GET", MAPS + "/kept")["data"] == {"a": "1"}
        assert restored.request("GET", MAPS + "/kept", token=token)[0] == 200
        for file in (kubeconfig, directory / "alice.kubeconfig"):
            # the client verifies the new serving certificate with the old CA bundle
            output = pintle(launch, "storage", "migrate", "--all", "--dry-run", "--kubeconfig", file)
            assert "nothing has been changed" in output
        status, event, _ = restored.request("GET", f"{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=5")
        assert (status, event["type"], event["object"]["code"]) == (200, "ERROR", 410), event
        current = restored.ok("GET", MAPS)["metadata"]["resourceVersion"]
        assert int(current) > int(version)
        assert restored.request("GET", f"{MAPS}?watch=1&resourceVersion={current}&timeoutSeconds=1")[0] == 200


def test_backups_can_be_encrypted(launch, directory):
    passphrase = ["--backup-passphrase-file", directory / "passphrase"]
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, {"metadata": {"name": "kept"}})
        pintle(launch, "store", "backup", directory / "plain", "--data-dir", server.dir)
        pintle(launch, "store", "backup", directory / "sealed", "--data-dir", server.dir, *passphrase)
    assert b"BEGIN" in (directory / "plain").read_bytes() and b"BEGIN" not in (directory / "sealed").read_bytes()
    assert stat.S_IMODE(os.stat(directory / "sealed").st_mode) == 0o600
    restore = ["store", "restore", directory / "sealed", "--data-dir", directory / "restored"]
    assert "sealed is encrypted: give its passphrase by" in pintle(launch, *restore, status=1)
    (directory / "wrong").write_text("other\n")
    assert "sealed: the passphrase is wrong" in pintle(launch, *restore, "--backup-passphrase-file", directory / "wrong", status=1)
    (directory / "empty").write_text("\n")
    assert "its first line is empty" in pintle(launch, *restore, "--backup-passphrase-file", directory / "empty", status=1)
    content = (directory / "sealed").read_bytes()
    (directory / "sealed").write_bytes(content[:-1])
    assert "the file is corrupt or truncated" in pintle(launch, *restore, *passphrase, status=1)
    assert not (directory / "restored").exists()
    (directory / "sealed").write_bytes(content)
    pintle(launch, *restore, *passphrase)
    with launch(storage="embedded", data_dir=directory / "restored") as server:
        server.ok("GET", MAPS + "/kept")


def test_encrypted_backups_are_files_of_age(launch, directory):
    age = helper()
    with launch(storage="embedded") as server:
        pintle(launch, "store", "backup", directory / "sealed", "--data-dir", server.dir, "--backup-passphrase-file", directory / "passphrase")
    opened = subprocess.run([age, "decrypt", "correct horse"], input=(directory / "sealed").read_bytes(), capture_output=True, check=True)
    (directory / "plain").write_bytes(opened.stdout)
    pintle(launch, "store", "restore", directory / "plain", "--data-dir", directory / "one")
    sealed = subprocess.run([age, "encrypt", "correct horse"], input=opened.stdout, capture_output=True, check=True)
    (directory / "sealed").write_bytes(sealed.stdout)
    pintle(launch, "store", "restore", directory / "sealed", "--data-dir", directory / "two", "--backup-passphrase-file", directory / "passphrase")
    assert (directory / "one" / "ca.key").read_bytes() == (directory / "two" / "ca.key").read_bytes()


def test_servers_make_backups_on_a_schedule(launch, directory):
    target = directory / "backups"
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
    pintle(launch, "store", "restore", target / newest, "--data-dir", directory / "restored")
    with launch(storage="embedded", data_dir=directory / "restored") as server:
        server.ok("GET", MAPS + "/kept")


def test_failed_backups_are_reported(launch, directory):
    target = directory / "target"
    with launch("--backup-schedule", "@every 1s", "--backup-target", str(target), storage="embedded") as server:
        target.rename(directory / "moved")
        target.write_text("")
        eventually(lambda: "a backup failed" in server.stderr())
        server.ok("GET", MAPS)


@pytest.mark.parametrize("flags, message", [
    (["--backup-schedule", "@often", "--backup-target", "x"], "unrecognized descriptor: @often"),
    (["--backup-schedule", "@daily"], "--backup-target"),
    (["--backup-schedule", "@daily", "--backup-target", "x", "--backup-retention", "0"], "--backup-retention"),
    (["--backup-schedule", "@daily", "--backup-target", "x", "--storage", "memory"], "has nothing to back up"),
    (["--backup-schedule", "@daily", "--backup-target", "/dev/null/x"], "--backup-target: cannot create /dev/null/x: Not a directory"),
    (["--backup-schedule", "@daily", "--backup-target", "s3://b"], "the environment lacks AWS_ACCESS_KEY_ID"),
    (["--backup-schedule", "@daily", "--backup-target", "x", "--backup-passphrase-file", "missing"], "missing: No such file"),
])
def test_invalid_flags_are_rejected(launch, directory, flags, message):
    done = subprocess.run([launch.binary, "serve", "--data-dir", directory / "data", "--secure-port", "0", *flags], capture_output=True,
                          text=True, timeout=60, env={k: v for k, v in os.environ.items() if not k.startswith("AWS_")})
    assert done.returncode != 0 and message in done.stderr, done.stderr


def test_buckets_keep_backups(launch, directory):
    with object_store() as s3:
        flags = ["--backup-schedule", "@every 1s", "--backup-target", "s3://backups/one/place", "--backup-retention", "2",
                 "--backup-passphrase-file", str(directory / "passphrase"), *s3]
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
        pintle(launch, "store", "restore", f"s3://backups/one/place/{name}", "--data-dir", directory / "one",
               "--backup-passphrase-file", directory / "passphrase", *s3, environment=KEYS)
        pintle(launch, "store", "restore", "s3://backups/other", "--data-dir", directory / "two", *s3, environment=KEYS)
        assert (directory / "one" / "ca.key").read_bytes() == (directory / "two" / "ca.key").read_bytes()
        wrong = {**KEYS, "AWS_SECRET_ACCESS_KEY": "wrong"}
        assert "SignatureDoesNotMatch" in pintle(launch, *listing, environment=wrong, status=1)
        missing = ["store", "restore", "s3://backups/missing", "--data-dir", directory / "three", *s3]
        assert "NoSuchKey" in pintle(launch, *missing, environment=KEYS, status=1)
        assert not (directory / "three").exists()
