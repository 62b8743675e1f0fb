"""The data directory: corruption is reported before anything is served, and `pintle store` checks, backs up and restores."""
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import tempfile

import pytest

from disk import Disk
from pintle import eventually

pytestmark = pytest.mark.store

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": "x" * 500}}


def run_pintle(launch, *words):
    done = subprocess.run([launch.binary, *map(str, words)], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr


def filled(launch):
    """A server that has been stopped, and its one file of changes."""
    server = launch(storage="embedded")
    with server:
        server.owns_dir = False
        for number in range(20):
            server.ok("POST", MAPS, config_map(f"map-{number}"))
    (segment,) = (server.dir / "log").iterdir()
    return server, segment


def test_flipped_bits_are_reported(launch):
    server, segment = filled(launch)
    whole = segment.read_bytes()
    for at in (0, 100, len(whole) // 2, len(whole) - 300):
        segment.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
        damaged = segment.read_bytes()
        for words in (("serve", "--secure-port", "0"), ("store", "check"), ("store", "backup", server.dir / "backup")):
            status, said = run_pintle(launch, *words, "--data-dir", server.dir)
            assert status == 1 and len(said.splitlines()) == 1, (at, said)
            assert f"data directory {server.dir} is corrupt: checksum mismatch at byte" in said and segment.name in said, (at, said)
        assert segment.read_bytes() == damaged, "the damaged file was changed"
        assert not (server.dir / "backup").exists()
    segment.write_bytes(whole)
    status, said = run_pintle(launch, "store", "check", "--data-dir", server.dir)
    assert status == 0 and "is whole: " in said, said
    segment.unlink()
    status, said = run_pintle(launch, "serve", "--secure-port", "0", "--data-dir", server.dir)
    assert status == 1 and f"log/{segment.name} is missing" in said, said
    shutil.rmtree(server.dir)


def test_damaged_stores_are_salvaged(launch):
    """What can be read is exported, what cannot is named, and the directory is not changed."""
    server, segment = filled(launch)
    whole = segment.read_bytes()
    place = pathlib.Path(tempfile.mkdtemp(prefix="pintle-test-"))
    status, said = run_pintle(launch, "store", "check", "--salvage", place / "whole", "--data-dir", server.dir)
    assert status == 0 and "holds" in said and "lost" not in said, said
    every = (place / "whole").read_text().splitlines()
    for number, at in enumerate((4, whole.index(b'"map-7"'), whole.index(b'"map-15"'))):
        segment.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
        damaged = {path.name: path.read_bytes() for path in segment.parent.iterdir()}
        file = place / f"part-{number}"
        status, said = run_pintle(launch, "store", "check", "--salvage", file, "--data-dir", server.dir)
        assert status == 1 and f"lost: log/{segment.name}: bytes " in said and f"{server.dir} is corrupt: " in said, said
        assert {path.name: path.read_bytes() for path in segment.parent.iterdir()} == damaged, "the directory was changed"
        part = file.read_text().splitlines()
        assert len(part) + said.count(" (revision ") >= len(every) and set(part[1:-1]) <= set(every), said
        missing = [f"/registry/core/configmaps/default/map-{i}" for i in range(20) if not any(f'"default/map-{i}"' in line for line in part)]
        assert all(f"{key} (revision" in said for key in missing), said
        status, said = run_pintle(launch, "import", file, "--data-dir", place / f"data-{number}")
        assert status == 0 and f"{len(part) - 2} objects are imported and compared" in said, said
        with launch(storage="embedded", data_dir=place / f"data-{number}") as again:
            assert len(again.ok("GET", MAPS)["items"]) == 20 - len(missing)
    status, said = run_pintle(launch, "store", "check", "--salvage", place / "whole", "--data-dir", server.dir)
    assert status == 1 and f"{place / 'whole'}: the file exists already" in said, said
    status, said = run_pintle(launch, "store", "check", "--salvage", place / "none", "--data-dir", place / "none")
    assert status == 1 and len(said.splitlines()) == 1 and not (place / "none").exists(), said
    shutil.rmtree(place)
    shutil.rmtree(server.dir)


def test_files_are_private(launch):
    server, segment = filled(launch)
    assert stat.S_IMODE(os.stat(segment).st_mode) == 0o600
    shutil.rmtree(server.dir)


def test_backup_beside_a_server(launch):
    place = pathlib.Path(tempfile.mkdtemp(prefix="pintle-test-"))
    backup = place / "backup"
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, config_map("kept"))
        version = int(server.ok("GET", MAPS)["metadata"]["resourceVersion"])
        status, said = run_pintle(launch, "store", "backup", backup, "--data-dir", server.dir)
        found = re.search(r"objects at revision (\d+)", said)
        # the server writes objects itself too
        assert status == 0 and version <= int(found[1]) <= int(server.ok("GET", MAPS)["metadata"]["resourceVersion"]), said
        assert stat.S_IMODE(os.stat(backup).st_mode) == 0o600
        kept = server.ok("GET", MAPS + "/kept")
        server.ok("DELETE", MAPS + "/kept")
        status, said = run_pintle(launch, "store", "backup", backup, "--data-dir", server.dir)
        assert status == 1 and "the file exists already" in said, said
        status, said = run_pintle(launch, "store", "restore", backup, "--data-dir", server.dir)
        assert status == 1 and "is locked by another process; its file LOCK names pintle with process id" in said, said
    status, said = run_pintle(launch, "store", "restore", backup, "--data-dir", place / "data")
    assert status == 0, said
    with launch(storage="embedded", data_dir=place / "data") as server:
        assert server.ok("GET", MAPS + "/kept") == kept
        made = server.ok("POST", MAPS, config_map("new"))
        assert int(made["metadata"]["resourceVersion"]) > version
        status, response, _ = server.request("GET", f"{MAPS}?watch=1&resourceVersion={version - 1}&timeoutSeconds=5")
        assert (response["type"], response["object"]["code"]) == ("ERROR", 410) if status == 200 else status == 410, response
    status, said = run_pintle(launch, "store", "restore", backup, "--data-dir", place / "data")
    assert status == 1 and "already contains a store" in said, said
    backup.write_bytes(backup.read_bytes()[:-10])
    status, said = run_pintle(launch, "store", "restore", backup, "--data-dir", place / "other")
    assert status == 1 and f"backup {backup}: checksum mismatch" in said and not (place / "other" / "FORMAT").exists(), said
    shutil.rmtree(place)


def test_durability_can_be_chosen(launch):
    for durability in ("interval=50ms", "none"):
        with launch("--durability", durability, storage="embedded") as server:
            server.ok("POST", MAPS, config_map("kept"))
            assert server.stop() == 0
            server.start()
            server.ok("GET", MAPS + "/kept")
    status, said = run_pintle(launch, "serve", "--durability", "often")
    assert status == 2 and "expected sync, interval=DURATION or none" in said, said


def test_files_that_may_not_grow(launch):
    """With a file size limit of the process, writes fail with the reason and everything else continues, until the limit is raised."""
    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))

    with launch(storage="embedded", before=limited) as server:
        watch, made = server.ok("GET", MAPS)["metadata"]["resourceVersion"], []
        while True:
            status, response, _ = server.request("POST", MAPS, config_map(f"map-{len(made)}"))
            if status != 201:
                break
            made.append(response["metadata"]["name"])
        assert (status, response["reason"]) == (500, "InternalError") and "cannot write to the log: File too large" in response["message"], response
        status, response, _ = server.request("GET", "/readyz")
        assert status == 500 and "[-]storage failed" in response, response
        assert server.request("GET", "/livez")[0] == 200
        assert {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]} == set(made)
        assert server.ok("GET", f"{MAPS}/{made[0]}")["metadata"]["name"] == made[0]
        assert events(server, watch) == len(made), "watches go on"
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)
        eventually(lambda: server.request("GET", "/readyz")[0] == 200)
        server.ok("POST", MAPS, config_map("last"))
        server.before = None
        assert server.stop() == 0
        server.start()
        assert {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]} == {*made, "last"}
        assert events(server, watch) == len(made) + 1


def test_a_disk_that_cannot_sync(launch):
    """Nothing is acknowledged from then on, and /readyz has the reason; reads and watches go on. The next start has what was
    acknowledged before, and takes writes."""
    with Disk() as disk, launch(storage="embedded", environment=disk.environment) as server:
        server.ok("POST", MAPS, config_map("before"))
        listed = server.ok("GET", MAPS)
        names = {item["metadata"]["name"] for item in listed["items"]}
        disk.fail_syncs()
        for name in ("lost", "other"):
            status, response, _ = server.request("POST", MAPS, config_map(name))
            assert (status, response["reason"]) == (500, "InternalError") and "cannot sync the log: Input/output error" in response["message"], response
        disk.recover()
        assert server.request("DELETE", MAPS + "/before")[0] == 500, "a later sync means nothing"
        status, response, _ = server.request("GET", "/readyz")
        assert status == 500 and "[-]storage failed: the store is unavailable: cannot sync the log: Input/output error" in response, response
        assert server.request("GET", "/livez")[0] == 200
        found = server.ok("GET", MAPS)
        assert found["items"] == listed["items"]
        assert events(server, listed["metadata"]["resourceVersion"]) == 0, "nobody is told of what was not acknowledged"
        for how in (signal.SIGKILL, signal.SIGTERM):
            server.restart(how)
            # the write whose sync failed may have happened, once
            assert {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]} - {"lost", "after"} == names
            assert server.request("GET", "/readyz")[0] == 200
            assert server.request("POST", MAPS, config_map("after"))[0] in (201, 409)


def test_a_disk_without_room(launch):
    """Writes fail with the reason, a partially written frame is truncated, and everything else continues, until space is free."""
    with Disk() as disk, launch(storage="embedded", environment=disk.environment) as server:
        server.ok("POST", MAPS, config_map("before"))
        listed = server.ok("GET", MAPS)
        disk.fill()
        for name in ("one", "two", "three"):
            status, response, _ = server.request("POST", MAPS, config_map(name))
            assert (status, response["reason"]) == (500, "InternalError") and "cannot write to the log: No space left on device" in response["message"], response
        status, response, _ = server.request("GET", "/readyz")
        assert status == 500 and "[-]storage failed: " in response and "No space left on device" in response, response
        assert server.request("GET", "/livez")[0] == 200
        assert server.ok("GET", MAPS)["items"] == listed["items"]
        assert events(server, listed["metadata"]["resourceVersion"]) == 0, "watches go on"
        disk.recover()
        eventually(lambda: server.request("GET", "/readyz")[0] == 200)
        server.ok("POST", MAPS, config_map("after"))
        names = {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]}
        assert "after" in names and not names & {"one", "two", "three"}
        for how in (signal.SIGKILL, signal.SIGTERM):
            server.restart(how)
            assert {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]} == names


def test_a_disk_without_room_at_the_start(launch):
    """The problem is reported in one line and the directory stays unchanged; with room the server starts."""
    with Disk() as disk, launch(storage="embedded", environment=disk.environment) as server:
        server.ok("POST", MAPS, config_map("before"))
        server.stop(signal.SIGKILL)
        found = contents(server.dir / "log")
        disk.fill()
        for data in (server.dir, server.dir / "new"):
            done = subprocess.run([launch.binary, "serve", "--secure-port", "0", "--data-dir", data], capture_output=True, text=True,
                                  timeout=30, env={**os.environ, **disk.environment})
            said = done.stdout + done.stderr
            assert done.returncode == 1 and len(said.splitlines()) == 1 and "No space left on device" in said, said
        disk.recover()
        assert contents(server.dir / "log") == found
        server.start()
        server.ok("GET", MAPS + "/before")
        server.ok("POST", MAPS, config_map("after"))


def test_history_goes_on_over_a_restart(launch):
    """Watches, pages of lists and lists of old revisions are the same after a restart as before it."""
    with launch(storage="embedded") as server:
        versions = [server.ok("GET", MAPS)["metadata"]["resourceVersion"]]
        for number in range(12):
            made = server.ok("POST", MAPS, config_map(f"map-{number:02}"))
            if number % 2:
                made["data"]["text"] = "y"
                made = server.ok("PUT", f"{MAPS}/map-{number:02}", made)
            if number % 5 == 0:
                made = server.ok("DELETE", f"{MAPS}/map-{number:02}")
            versions.append(server.ok("GET", MAPS)["metadata"]["resourceVersion"])
        token = server.ok("GET", MAPS + "?limit=3")["metadata"]["continue"]

        def seen():
            exact = [server.ok("GET", f"{MAPS}?resourceVersionMatch=Exact&resourceVersion={version}") for version in versions[::4]]
            watched = [server.request("GET", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={version}")[1] for version in versions[::6]]
            return server.ok("GET", f"{MAPS}?limit=3&continue={token}"), exact, watched

        before = seen()
        for how in (signal.SIGTERM, signal.SIGKILL):
            server.restart(how)
            assert seen() == before


def events(server, after):
    return len(server.request("GET", f"{MAPS}?watch=1&resourceVersion={after}&timeoutSeconds=1")[1].splitlines())


def test_flipped_bits_of_a_backup_are_reported(launch):
    server, _ = filled(launch)
    backup, place = server.dir / "backup", server.dir / "place"
    assert run_pintle(launch, "store", "backup", backup, "--data-dir", server.dir)[0] == 0
    whole = backup.read_bytes()
    for at in range(0, len(whole), len(whole) // 25):
        backup.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1:])
        status, said = run_pintle(launch, "store", "restore", backup, "--data-dir", place)
        want = "it is not a backup" if at < 8 else "checksum mismatch"
        assert status == 1 and said.splitlines() == [f"pintle: backup {backup}: {want}"], (at, said)
        assert not (place / "FORMAT").exists()
    backup.write_bytes(whole)
    assert run_pintle(launch, "store", "restore", backup, "--data-dir", place)[0] == 0
    shutil.rmtree(server.dir)


def test_directories_that_cannot_be_used(launch):
    """Each fails with one line, and nothing in the directory is changed."""
    server, _ = filled(launch)
    data = server.dir
    format_file = data / "FORMAT"
    cases = [
        ("of another program", lambda: format_file.write_text("InnoDB\n"), f"data directory {data} is corrupt: the file FORMAT does not hold a format"),
        ("of a newer version", lambda: format_file.write_text("pintle 3\n"), f"data directory {data} has format 3, but this version of pintle understands up to 2; use a newer pintle"),
        ("without its format", format_file.unlink, f"data directory {data} is corrupt: the file FORMAT is missing"),
    ]
    before = format_file.read_text()
    for what, spoil, want in cases:
        spoil()
        found = contents(data)
        status, said = run_pintle(launch, "serve", "--secure-port", "0", "--data-dir", data)
        assert status == 1 and len(said.splitlines()) == 1 and want in said, (what, said)
        assert contents(data) == found, what
        format_file.write_text(before)
    shutil.rmtree(data)


def contents(directory):
    """The content of all files except the lock file."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != "LOCK"}


def test_read_only_directories(launch):
    """As a user without write permission; root becomes another user for it."""
    server, _ = filled(launch)
    data = server.dir
    found = contents(data)
    binary = data / "pintle"
    shutil.copy(launch.binary, binary)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    places = [path for path in (data, *data.rglob("*")) if path != binary]
    [path.chmod(0o555 if path.is_dir() else 0o444) for path in places]
    binary.chmod(0o555)
    done = subprocess.run([binary, "serve", "--secure-port", "0", "--data-dir", data], capture_output=True, text=True, timeout=30, **nobody)
    said = done.stdout + done.stderr
    [path.chmod(0o755 if path.is_dir() else 0o644) for path in places]
    assert done.returncode == 1 and said.splitlines() == [f"pintle: data directory {data}: Permission denied (os error 13)"], said
    binary.unlink()
    assert contents(data) == found
    shutil.rmtree(data)
