"""`pintle export` and `pintle import`: selection, conflicts, interruption and progress."""
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
from pintle import eventually

pytestmark = pytest.mark.store

CORE = "/api/v1/namespaces"


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(prefix="pintle-test-") as directory:
        yield pathlib.Path(directory)


def run_pintle(launch, *words, **more):
    done = subprocess.run([launch.binary, *map(str, words)], capture_output=True, text=True, timeout=120, **more)
    return done.returncode, done.stdout, done.stderr


def config_map(namespace, name, **labels):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, "labels": labels}}


def exported(launch, directory, *flags):
    """The paths of exported objects, by resource and path."""
    status, out, errors = run_pintle(launch, "export", "-", "--data-dir", directory, *flags)
    assert status == 0, errors
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines[0]["objects"] == len(lines) - 2 and "sha256" in lines[-1], "the output is complete"
    return {f"{line['resource']}/{line['path']}": line["object"] for line in lines[1:-1]}


def filled(launch, directory):
    with launch(storage="embedded", data_dir=directory) as server:
        for namespace in ("one", "two"):
            server.ok("POST", CORE, {"metadata": {"name": namespace}})
            for tier in ("front", "back"):
                server.ok("POST", f"{CORE}/{namespace}/configmaps", config_map(namespace, tier, tier=tier))


def test_store_is_exported_and_imported_in_part(launch, place):
    filled(launch, place / "data")
    both = {"configmaps/one/front", "configmaps/two/front"}
    assert set(exported(launch, place / "data", "-l", "tier=front")) == both
    one = exported(launch, place / "data", "--namespace", "one", "--resource", "configmaps,namespaces")
    assert {"configmaps/one/front", "configmaps/one/back", "namespaces/one"} <= set(one)
    assert not any("two" in path for path in one)
    status, _, errors = run_pintle(launch, "export", place / "file", "--data-dir", place / "data")
    assert status == 0 and f"{place / 'file'} holds" in errors, errors
    status, out, errors = run_pintle(launch, "import", place / "file", "--data-dir", place / "part", "--selector", "tier in (front)")
    assert status == 0 and out.startswith("2 objects are imported and compared"), (out, errors)
    assert set(exported(launch, place / "part")) == both
    with launch(storage="embedded", data_dir=place / "part") as server:
        assert server.ok("GET", f"{CORE}/one/configmaps/front")["metadata"]["labels"] == {"tier": "front"}


def test_store_with_objects_is_imported_into_on_request(launch, place):
    filled(launch, place / "data")
    with launch(storage="embedded", data_dir=place / "other") as server:
        server.ok("POST", CORE, {"metadata": {"name": "one"}})
        server.ok("POST", f"{CORE}/one/configmaps", config_map("one", "front", tier="own"))
    select = ("--namespace", "one", "--resource", "configmaps")
    assert run_pintle(launch, "export", place / "file", "--data-dir", place / "data", *select)[0] == 0
    before = exported(launch, place / "other")
    into = ("import", place / "file", "--data-dir", place / "other")
    status, _, errors = run_pintle(launch, *into)
    assert status == 1 and "objects already" in errors and "--conflict skip or replace" in errors, errors
    assert exported(launch, place / "other") == before
    status, out, _ = run_pintle(launch, *into, "--conflict", "skip")
    assert status == 0 and "exist with another content and are kept" in out, out
    assert exported(launch, place / "other")["configmaps/one/front"]["metadata"]["labels"] == {"tier": "own"}
    status, out, _ = run_pintle(launch, *into, "--conflict", "replace")
    assert status == 0, out
    after = exported(launch, place / "other")
    assert after["configmaps/one/front"]["metadata"]["labels"] == {"tier": "front"}
    assert {path: after[path] for path in before if path != "configmaps/one/front"} == {
        path: item for path, item in before.items() if path != "configmaps/one/front"}


def test_store_is_not_touched_by_bad_input(launch, place):
    (place / "text").write_text("no export\n")
    (place / "empty").write_text("")
    target = ("--data-dir", place / "data")
    cases = [
        (("import", place / "absent"), f"cannot read {place / 'absent'}: "),
        (("import", place / "text"), f"{place / 'text'}: the file is corrupt: "),
        (("import", place / "empty"), f"{place / 'empty'}: the file is empty"),
        (("export", place / "text"), f"{place / 'text'}: the file exists already"),
        (("export", place / "new"), "there is no store"),
    ]
    for words, want in cases:
        status, out, errors = run_pintle(launch, *words, *target)
        assert status == 1 and want in errors and len(errors.splitlines()) == 1 and not out, (words, out, errors)
    for flag in ("--selector=a=b=c", "--namespace=A", "--resource=Pods", "--conflict=perhaps"):
        status, _, errors = run_pintle(launch, "import", place / "text", *target, flag)
        assert status == 2 and flag.split("=")[0] in errors, errors
    assert sorted(path.name for path in place.iterdir()) == ["empty", "text"]


def large(place, count):
    """A file with many objects."""
    path = place / "large"
    exports.write_export(path, count, (exports.config_map(f"map-{number}", {"k": "x" * 200}) for number in range(count)))
    return path


@pytest.mark.parametrize("number, status, message", [(signal.SIGKILL, -signal.SIGKILL, ""), (signal.SIGINT, 1, "run it again with --conflict skip")],
                         ids=["SIGKILL", "SIGINT"])
def test_store_import_continues_after_a_signal(launch, place, number, status, message):
    """An import that is ended has written whole objects; the next one writes the others."""
    count = 30_000
    file, log = large(place, count), place / "data" / "log"
    process = subprocess.Popen([launch.binary, "import", file, "--data-dir", place / "data"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    eventually(lambda: log.exists() and sum(part.stat().st_size for part in log.iterdir()) > 1_000_000)
    process.send_signal(number)
    errors = process.communicate()[1].decode()
    assert process.returncode == status and message in errors, errors
    there = len(exported(launch, place / "data"))
    assert 0 < there < count, there
    status, _, errors = run_pintle(launch, "import", file, "--data-dir", place / "data")
    assert status == 1 and f"there are {there} objects already" in errors, errors
    status, out, errors = run_pintle(launch, "import", file, "--data-dir", place / "data", "--conflict", "skip")
    assert status == 0, errors
    assert out.startswith(f"{count - there} objects are imported and compared") and f"; {there} were there already" in out, out
    assert len(exported(launch, place / "data")) == count


def test_store_export_shows_a_bar_on_a_terminal(launch, place):
    count = 5_000
    assert run_pintle(launch, "import", large(place, count), "--data-dir", place / "data")[0] == 0
    ours, theirs = pty.openpty()
    process = subprocess.Popen([launch.binary, "export", place / "file", "--data-dir", place / "data"], stderr=theirs, env={"TERM": "xterm"})
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while more := os.read(ours, 65536):
            shown += more
    os.close(ours)
    assert process.wait() == 0
    assert b"of 5,000 objects" in shown and f"holds {count} objects at revision".encode() in shown, shown
