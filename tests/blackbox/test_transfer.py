"""`pintle export` and `pintle import`: selection, conflicts, interruptions and progress."""

import contextlib
import json
import os
import pty
import signal
import subprocess

import pytest

import exports
from documentation import command_tests
from objects import ANY, DEFINITIONS, definition
from pintle import eventually

pytestmark = pytest.mark.store

CORE = "/api/v1/namespaces"


def config_map(namespace, name, **labels):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, "labels": labels}}


def exported(launch, directory, *flags):
    """Exports a data directory. Returns the objects by resource and path."""
    lines = [json.loads(line) for line in launch.run("export", "-", "--data-dir", directory, *flags).stdout.splitlines()]
    assert lines[0]["objects"] == len(lines) - 2 and "sha256" in lines[-1], "the output is complete"
    return {f"{line['resource']}/{line['path']}": line["object"] for line in lines[1:-1]}


def fill(launch, directory):
    """Writes objects to a data directory."""
    with launch(storage="embedded", data_dir=directory) as server:
        for namespace in ("one", "two"):
            server.ok("POST", CORE, {"metadata": {"name": namespace}})
            for tier in ("front", "back"):
                server.ok("POST", f"{CORE}/{namespace}/configmaps", config_map(namespace, tier, tier=tier))


def test_store_is_exported_and_imported_in_part(launch, tmp_path):
    data, file, part = (tmp_path / name for name in ("data", "file", "part"))
    fill(launch, data)
    both = {"configmaps/one/front", "configmaps/two/front"}
    assert set(exported(launch, data, "-l", "tier=front")) == both
    one = exported(launch, data, "--namespace", "one", "--resource", "configmaps,namespaces")
    assert {"configmaps/one/front", "configmaps/one/back", "namespaces/one"} <= set(one)
    assert not any("two" in path for path in one)
    assert f"{file} holds" in launch.run("export", file, "--data-dir", data).stderr
    assert launch.run("import", file, "--data-dir", part, "--selector", "tier in (front)").startswith("2 objects are imported and compared")
    assert set(exported(launch, part)) == both
    with launch(storage="embedded", data_dir=part) as server:
        assert server.ok("GET", f"{CORE}/one/configmaps/front")["metadata"]["labels"] == {"tier": "front"}


def test_store_with_objects_is_imported_into_on_request(launch, tmp_path):
    data, file, other = (tmp_path / name for name in ("data", "file", "other"))
    fill(launch, data)
    with launch(storage="embedded", data_dir=other) as server:
        server.ok("POST", CORE, {"metadata": {"name": "one"}})
        server.ok("POST", f"{CORE}/one/configmaps", config_map("one", "front", tier="own"))
    launch.run("export", file, "--data-dir", data, "--namespace", "one", "--resource", "configmaps")
    before = exported(launch, other)
    into = ("import", file, "--data-dir", other)
    errors = launch.run(*into, status=1)
    assert "objects already" in errors and "--conflict skip or replace" in errors, errors
    assert exported(launch, other) == before
    assert "1 exists with another content and is kept" in launch.run(*into, "--conflict", "skip")
    front = "configmaps/one/front"
    assert exported(launch, other)[front]["metadata"]["labels"] == {"tier": "own"}
    launch.run(*into, "--conflict", "replace")
    after = exported(launch, other)
    assert after[front]["metadata"]["labels"] == {"tier": "front"}
    assert {path: after[path] for path in before if path != front} == {path: item for path, item in before.items() if path != front}


def large(directory, count):
    """Writes an export with many objects, and returns its path."""
    path = directory / "large"
    exports.write_export(path, count, (exports.config_map(f"map-{number}", {"k": "x" * 200}) for number in range(count)))
    return path


@pytest.mark.parametrize("number, status, message", [(signal.SIGKILL, -signal.SIGKILL, ""), (signal.SIGINT, 1, "run it again with --conflict skip")])
def test_store_import_continues_after_a_signal(launch, tmp_path, number, status, message):
    """Nothing serves or reads the part that an interrupted import has written; the next import writes the rest."""
    count, place = 30_000, ("--data-dir", tmp_path / "data")
    file, log = large(tmp_path, count), tmp_path / "data" / "log"
    process = subprocess.Popen([launch.binary, "import", file, *place], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    eventually(lambda: log.exists() and sum(part.stat().st_size for part in log.iterdir()) > 1_000_000)
    process.send_signal(number)
    errors = process.communicate()[1].decode()
    assert process.returncode == status and message in errors, errors
    for arguments in (["serve", "--secure-port", "0"], ["store", "check"], ["export", tmp_path / "part"]):
        assert "an import into it was not completed" in launch.run(*arguments, *place, status=1), arguments
    assert "an import needs a store without any, or --conflict skip or replace" in launch.run("import", file, *place, status=1)
    out = launch.run("import", file, *place, "--conflict", "skip", timeout=120)
    written = int(out.split()[0])
    assert 0 < written < count and f"; {count - written} were there already" in out, out
    assert len(exported(launch, tmp_path / "data")) == count


def test_store_import_that_is_refused_leaves_no_mark(launch, tmp_path):
    file, place = large(tmp_path, 10), ("--data-dir", tmp_path / "data")
    for conflict, status in (("fail", 0), ("fail", 1), ("skip", 0)):
        launch.run("import", file, *place, "--conflict", conflict, status=status)
        launch.run("store", "check", *place)


def test_store_export_shows_a_line_on_a_terminal(launch, tmp_path):
    count = 5_000
    launch.run("import", large(tmp_path, count), "--data-dir", tmp_path / "data")
    terminal, child_end = pty.openpty()
    process = subprocess.Popen([launch.binary, "export", tmp_path / "file", "--data-dir", tmp_path / "data"], stderr=child_end, env={"TERM": "xterm"})
    os.close(child_end)
    output = b""
    with contextlib.suppress(OSError):  # reading fails at the end of a terminal
        while more := os.read(terminal, 65536):
            output += more
    os.close(terminal)
    assert process.wait() == 0
    assert b"of 5000 objects" in output and f"holds {count} objects at revision".encode() in output, output


def test_facts_as_json_and_short_names(launch, tmp_path):
    with launch(storage="embedded") as server:
        crd = definition("boats", "harbor.example.com", ANY)
        crd["spec"]["names"]["shortNames"] = ["bo"]
        server.ok("POST", DEFINITIONS, crd)
        boat = {"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": "one"}}
        server.ok("POST", "/apis/harbor.example.com/v1/namespaces/default/boats", boat)
        server.stop()
        place, pintle = ("--data-dir", server.dir), launch.run
        facts = json.loads(pintle("store", "check", "-o", "json", *place).stdout)
        assert facts["objects"] > 10 and facts["revision"] > 0 and facts["lastWriteIncomplete"] is False, facts
        assert "holds 2 objects at revision" in pintle("export", tmp_path / "file", "--resource", "bo,crd", *place)
        into = ("import", tmp_path / "file", "--data-dir", tmp_path / "new")
        assert pintle(*into, "--resource", "bo").startswith("1 object is imported and compared")
        missing = tmp_path / "missing"
        for command in (("export", missing / "file"), ("store", "backup", missing / "file")):
            assert f"cannot create a file in {missing}: No such file or directory" in pintle(*command, *place, status=1)
        backups = tmp_path / "backups"
        backups.mkdir()
        pintle("store", "backup", backups / "pintle-20261101T000000Z-7.backup", *place)
        (listed,) = json.loads(pintle("store", "backups", "list", backups, "-o", "json").stdout)
        assert listed["revision"] == 7, listed


test_commands = command_tests("transfer")
