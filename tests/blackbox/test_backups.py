"""Backups: restored clients, pipes and schedules."""

import os
import shutil
import stat
import subprocess

import pytest

import objects
from documentation import command_tests
from objects import MAPS
from pintle import eventually

pytestmark = pytest.mark.store


def token_of(server):
    """A token of the ServiceAccount reader, which may read ConfigMaps."""
    objects.grant(server, "reader", subject=("ServiceAccount", "reader"), role="view")
    objects.account(server, "reader")
    return eventually(lambda: objects.token_of(server, "reader", expirationSeconds=3600))


def test_a_restored_server_keeps_its_clients(launch, tmp_path):
    """With only the backup, as on another machine, certificates and tokens remain valid, and a watch expires once (410)."""
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, {"metadata": {"name": "kept"}, "data": {"a": "1"}})
        token = token_of(server)
        kubeconfig = tmp_path / "admin.kubeconfig"
        shutil.copy(server.kubeconfig, kubeconfig)
        alice = launch.run("kubeconfig", "create", "alice", "--group", "system:masters", "--data-dir", server.dir)
        (tmp_path / "alice.kubeconfig").write_text(alice)
        output = launch.run("store", "backup", tmp_path / "backup", "--data-dir", server.dir)
        assert "the certificate authority and the key of ServiceAccount tokens" in output
        version = server.ok("POST", MAPS, {"metadata": {"name": "lost"}})["metadata"]["resourceVersion"]
    output = launch.run("store", "restore", tmp_path / "backup", "--data-dir", tmp_path / "restored")
    assert "ca.crt, ca.key, service-account.key" in output
    restored = launch(storage="embedded", data_dir=tmp_path / "restored")
    restored.port = server.port
    with restored:
        assert restored.ok("GET", MAPS + "/kept")["data"] == {"a": "1"}
        assert restored.request("GET", MAPS + "/kept", token=token)[0] == 200
        for file in (kubeconfig, tmp_path / "alice.kubeconfig"):
            # the client verifies the new serving certificate with the old CA bundle
            output = launch.run("storage", "migrate", "--all", "--dry-run", "--kubeconfig", file)
            assert "nothing has been changed" in output
        status, event, _ = restored.request("GET", f"{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=5")
        assert (status, event["type"], event["object"]["code"]) == (200, "ERROR", 410), event
        current = restored.ok("GET", MAPS)["metadata"]["resourceVersion"]
        assert int(current) > int(version)
        assert restored.request("GET", f"{MAPS}?watch=1&resourceVersion={current}&timeoutSeconds=1")[0] == 200


def test_backups_pass_through_pipes(launch, tmp_path):
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, {"metadata": {"name": "kept"}})
        backup = subprocess.run([launch.binary, "store", "backup", "-", "--data-dir", server.dir], capture_output=True, check=True)
        launch.run("store", "backup", tmp_path / "file", "--data-dir", server.dir)
    assert b"the backup holds " in backup.stderr and stat.S_IMODE(os.stat(tmp_path / "file").st_mode) == 0o600
    restore = [launch.binary, "store", "restore", "-", "--data-dir", tmp_path / "restored"]
    for damaged in (b"", b"no backup", backup.stdout[:-1]):
        done = subprocess.run(restore, input=damaged, capture_output=True)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1) and b"stdin" in done.stderr, done.stderr
        assert not (tmp_path / "restored").exists()
    subprocess.run(restore, input=backup.stdout, check=True)
    with launch(storage="embedded", data_dir=tmp_path / "restored") as server:
        server.ok("GET", MAPS + "/kept")


@pytest.mark.parametrize("storage", ["embedded", "memory"])
def test_a_running_server_makes_a_backup(launch, tmp_path, storage):
    """From its memory and without its keys, for its administrators only."""
    with launch("--workspaces", storage=storage) as server:
        server.ok("POST", MAPS, {"metadata": {"name": "kept"}, "data": {"a": "x" * 500_000}})
        server.ok("POST", "/clusters/a", {"ephemeral": storage == "memory"})
        output = launch.run("store", "backup", "--from-server", "--kubeconfig", server.kubeconfig, tmp_path / "backup")
        assert "without keys" in output and stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o600
        refused = launch.run("store", "backup", "--from-server", "--kubeconfig", server.kubeconfig, tmp_path / "backup", status=1)
        assert "the file exists already" in refused
        token = token_of(server)
        assert server.request("POST", "/storage/backup", token=token)[0] == 403
        assert server.request("POST", "/clusters/a/storage/backup")[0] == 404
        assert server.request("GET", "/storage/backup")[0] == 404
    launch.run("store", "restore", tmp_path / "backup", "--data-dir", tmp_path / "restored")
    assert not (tmp_path / "restored" / "ca.key").exists()
    with launch(storage="embedded", data_dir=tmp_path / "restored") as server:
        server.ok("GET", MAPS + "/kept")


def test_servers_make_backups_on_a_schedule(launch, tmp_path):
    target = tmp_path / "backups"
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
    listed = launch.run("store", "backups", "list", target).splitlines()
    assert listed[0].split() == ["TIME", "REVISION", "BYTES", "NAME"] and newest in listed[-1], listed
    launch.run("store", "backups", "prune", target, "--keep", "1")
    assert sorted(path.name for path in target.iterdir()) == ["notes.txt", newest]
    launch.run("store", "restore", target / newest, "--data-dir", tmp_path / "restored")
    with launch(storage="embedded", data_dir=tmp_path / "restored") as server:
        server.ok("GET", MAPS + "/kept")


def test_failed_backups_are_reported(launch, tmp_path):
    target = tmp_path / "target"
    with launch("--backup-schedule", "@every 1s", "--backup-target", str(target), storage="embedded") as server:
        target.rename(tmp_path / "moved")
        target.write_text("")
        eventually(lambda: "a backup failed" in server.stderr())
        server.ok("GET", MAPS)


test_commands = command_tests("backups")
