"""`pintle export` and `pintle import`: selection, conflicts, interruptions and progress."""

import contextlib
import json
import os
import pathlib
import pty
import signal
import subprocess
import tempfile

import pytest

import exports
from definitions import definition
from documentation import Shell, command_cases
from pintle import eventually

pytestmark = pytest.mark.store

CORE = "/api/v1/namespaces"
CASES = command_cases("transfer")


@pytest.fixture
def directory():
    with tempfile.TemporaryDirectory(prefix="pintle-test-") as path:
        yield pathlib.Path(path)


def run_pintle(launch, *arguments, **options):
    done = launch.run(*arguments, timeout=120, **options)
    return done.returncode, done.stdout, done.stderr


def config_map(namespace, name, **labels):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, "labels": labels}}


def exported(launch, directory, *flags):
    """Exports a data directory. Returns the objects by resource and path."""
    status, out, errors = run_pintle(launch, "export", "-", "--data-dir", directory, *flags)
    assert status == 0, errors
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines[0]["objects"] == len(lines) - 2 and "sha256" in lines[-1], "the output is complete"
    return {f"{line['resource']}/{line['path']}": line["object"] for line in lines[1:-1]}


def fill(launch, directory):
    """Writes objects to a data directory."""
    with launch(storage="embedded", data_dir=directory) as server:
        for namespace in ("one", "two"):
            server.ok("POST", CORE, {"metadata": {"name": namespace}})
            for tier in ("front", "back"):
                server.ok("POST", f"{CORE}/{namespace}/configmaps", config_map(namespace, tier, tier=tier))


def test_store_is_exported_and_imported_in_part(launch, directory):
    fill(launch, directory / "data")
    both = {"configmaps/one/front", "configmaps/two/front"}
    assert set(exported(launch, directory / "data", "-l", "tier=front")) == both
    one = exported(launch, directory / "data", "--namespace", "one", "--resource", "configmaps,namespaces")
    assert {"configmaps/one/front", "configmaps/one/back", "namespaces/one"} <= set(one)
    assert not any("two" in path for path in one)
    status, _, errors = run_pintle(launch, "export", directory / "file", "--data-dir", directory / "data")
    assert status == 0 and f"{directory / 'file'} holds" in errors, errors
    status, out, errors = run_pintle(launch, "import", directory / "file", "--data-dir", directory / "part", "--selector", "tier in (front)")
    assert status == 0 and out.startswith("2 objects are imported and compared"), (out, errors)
    assert set(exported(launch, directory / "part")) == both
    with launch(storage="embedded", data_dir=directory / "part") as server:
        assert server.ok("GET", f"{CORE}/one/configmaps/front")["metadata"]["labels"] == {"tier": "front"}


def test_store_with_objects_is_imported_into_on_request(launch, directory):
    fill(launch, directory / "data")
    with launch(storage="embedded", data_dir=directory / "other") as server:
        server.ok("POST", CORE, {"metadata": {"name": "one"}})
        server.ok("POST", f"{CORE}/one/configmaps", config_map("one", "front", tier="own"))
    select = ("--namespace", "one", "--resource", "configmaps")
    assert run_pintle(launch, "export", directory / "file", "--data-dir", directory / "data", *select)[0] == 0
    before = exported(launch, directory / "other")
    into = ("import", directory / "file", "--data-dir", directory / "other")
    status, _, errors = run_pintle(launch, *into)
    assert status == 1 and "objects already" in errors and "--conflict skip or replace" in errors, errors
    assert exported(launch, directory / "other") == before
    status, out, _ = run_pintle(launch, *into, "--conflict", "skip")
    assert status == 0 and "1 exists with another content and is kept" in out, out
    assert exported(launch, directory / "other")["configmaps/one/front"]["metadata"]["labels"] == {"tier": "own"}
    status, out, _ = run_pintle(launch, *into, "--conflict", "replace")
    assert status == 0, out
    after = exported(launch, directory / "other")
    assert after["configmaps/one/front"]["metadata"]["labels"] == {"tier": "front"}
    assert {path: after[path] for path in before if path != "configmaps/one/front"} == {
        path: item for path, item in before.items() if path != "configmaps/one/front"
    }


def large(directory, count):
    """Writes an export with many objects, and returns its path."""
    path = directory / "large"
    exports.write_export(path, count, (exports.config_map(f"map-{number}", {"k": "x" * 200}) for number in range(count)))
    return path


@pytest.mark.parametrize(
    "number, status, message", [(signal.SIGKILL, -signal.SIGKILL, ""), (signal.SIGINT, 1, "run it again with --conflict skip")], ids=["SIGKILL", "SIGINT"]
)
def test_store_import_continues_after_a_signal(launch, directory, number, status, message):
    """Nothing serves or reads the part that an interrupted import has written; the next import writes the rest."""
    count = 30_000
    file, log = large(directory, count), directory / "data" / "log"
    process = subprocess.Popen([launch.binary, "import", file, "--data-dir", directory / "data"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    eventually(lambda: log.exists() and sum(part.stat().st_size for part in log.iterdir()) > 1_000_000)
    process.send_signal(number)
    errors = process.communicate()[1].decode()
    assert process.returncode == status and message in errors, errors
    unfinished = "an import into it was not completed"
    for arguments in (["serve", "--secure-port", "0"], ["store", "check"], ["export", directory / "part"]):
        status, _, errors = run_pintle(launch, *arguments, "--data-dir", directory / "data")
        assert status == 1 and unfinished in errors and len(errors.splitlines()) == 1, (arguments, errors)
    status, _, errors = run_pintle(launch, "import", file, "--data-dir", directory / "data")
    assert status == 1 and "an import needs a store without any, or --conflict skip or replace" in errors, errors
    status, out, errors = run_pintle(launch, "import", file, "--data-dir", directory / "data", "--conflict", "skip")
    assert status == 0, errors
    written = int(out.split()[0])
    assert 0 < written < count, out
    assert f"; {count - written} were there already" in out, out
    assert len(exported(launch, directory / "data")) == count


def test_store_import_that_is_refused_leaves_no_mark(launch, directory):
    file, data = large(directory, 10), directory / "data"
    for conflict, status in (("fail", 0), ("fail", 1), ("skip", 0)):
        assert run_pintle(launch, "import", file, "--data-dir", data, "--conflict", conflict)[0] == status
        assert run_pintle(launch, "store", "check", "--data-dir", data)[0] == 0


def test_store_export_shows_a_line_on_a_terminal(launch, directory):
    count = 5_000
    assert run_pintle(launch, "import", large(directory, count), "--data-dir", directory / "data")[0] == 0
    terminal, child_end = pty.openpty()
    process = subprocess.Popen([launch.binary, "export", directory / "file", "--data-dir", directory / "data"], stderr=child_end, env={"TERM": "xterm"})
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
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        server.ok("POST", definitions, definition("boats", "Boat", {"type": "object"}, shortNames=["bo"]))
        server.ok(
            "POST", "/apis/harbor.example.com/v1/namespaces/default/boats", {"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": "one"}}
        )
        server.stop()
        place = ("--data-dir", str(server.dir))

        def pintle(*arguments, status=0):
            done = launch.run(*arguments)
            assert done.returncode == status, done
            return done.stdout + done.stderr

        facts = json.loads(pintle("store", "check", "-o", "json", *place))
        assert facts["objects"] > 10 and facts["revision"] > 0 and facts["lastWriteIncomplete"] is False, facts
        assert "holds 2 objects at revision" in pintle("export", str(tmp_path / "file"), "--resource", "bo,crd", *place)
        into = ("import", str(tmp_path / "file"), "--data-dir", str(tmp_path / "new"))
        assert pintle(*into, "--resource", "bo").startswith("1 object is imported and compared")
        missing = tmp_path / "missing"
        for command in (("export", str(missing / "file")), ("store", "backup", str(missing / "file"))):
            output = pintle(*command, *place, status=1)
            assert f"cannot create a file in {missing}: No such file or directory" in output, output
        (tmp_path / "backups").mkdir()
        pintle("store", "backup", str(tmp_path / "backups" / "pintle-20261101T000000Z-7.backup"), *place)
        (listed,) = json.loads(pintle("store", "backups", "list", str(tmp_path / "backups"), "-o", "json"))
        assert listed["revision"] == 7, listed


@pytest.mark.parametrize("name", CASES)
def test_commands(launch, name):
    with Shell(launch.binary) as shell:
        shell.check(CASES[name])
