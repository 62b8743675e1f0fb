"""The data directory: corruption is reported before anything is served, and `pintle store` checks, backs up and restores."""

import http.client
import json
import os
import re
import resource
import shutil
import signal
import stat
import threading

import pytest

import commands
import objects
from disk import Disk
from metrics import metrics_of, value
from objects import MAPS, named
from pintle import eventually

pytestmark = pytest.mark.store

# what clients learn when the store fails; the cause is in the log
UNAVAILABLE = "Internal error occurred: the store is unavailable"


def config_map(name):
    return objects.config_map(name, text="x" * 500)


def failed(server, method="POST", path=MAPS, name="lost"):
    """Sends a write that must fail, since the store does."""
    status, response, _ = server.request(method, path, config_map(name))
    assert (status, response["message"]) == (500, UNAVAILABLE), response


def not_ready(server, *reasons):
    status, response, _ = server.request("GET", "/readyz")
    assert status == 500 and "[-]storage failed" in response and all(reason in response for reason in reasons), response


@pytest.fixture
def filled(launch):
    """A server that has written objects and was stopped, its only log file, and a function that runs a command on its directory."""
    with launch(storage="embedded") as server:
        for number in range(20):
            server.ok("POST", MAPS, config_map(f"map-{number}"))
        server.stop()
        (segment,) = (server.dir / "log").glob("*.log")
        yield server, segment, lambda *words, **options: launch.run(*words, "--data-dir", server.dir, **options)


SERVE = ("serve", "--secure-port", "0")


def test_flipped_bits_are_reported(filled):
    server, segment, pintle = filled
    assert stat.S_IMODE(os.stat(segment).st_mode) == 0o600
    original = segment.read_bytes()
    for at in (0, 100, len(original) // 2, len(original) - 300):
        segment.write_bytes(original[:at] + bytes([original[at] ^ 4]) + original[at + 1 :])
        damaged = segment.read_bytes()
        for arguments in (SERVE, ("store", "check"), ("store", "backup", server.dir / "backup")):
            output = pintle(*arguments, status=1)
            assert len(output.splitlines()) == 1, (at, output)
            assert f"data directory {server.dir} is corrupt: checksum mismatch at byte" in output and segment.name in output, (at, output)
        assert segment.read_bytes() == damaged, "the damaged file was changed"
        assert not (server.dir / "backup").exists()
    segment.write_bytes(original)
    assert "is intact: " in pintle("store", "check")
    segment.unlink()
    assert f"log/{segment.name} is missing" in pintle(*SERVE, status=1)


def test_damage_is_found_while_the_server_runs(launch):
    with launch("--scrub-interval", "500ms", storage="embedded") as server:
        for number in range(20):
            server.ok("POST", MAPS, config_map(f"map-{number}"))
        (segment,) = (server.dir / "log").glob("*.log")
        with segment.open("r+b") as file:
            at = segment.read_bytes().index(b'"map-7"')
            file.seek(at)
            file.write(b"?")
            file.flush()
            eventually(lambda: value(metrics_of(server)[0], "pintle_store_damaged_frames") == 1)
            log = server.stderr()
            assert f"of log/{segment.name}" in log and "pintle store backup --from-server" in log, log
            file.seek(at)
            file.write(b'"')
            file.flush()
            eventually(lambda: value(metrics_of(server)[0], "pintle_store_damaged_frames") == 0)


def test_damaged_stores_are_salvaged(launch, filled, tmp_path):
    """Readable objects are exported, lost ones are named, and the data directory is not changed."""
    server, segment, pintle = filled
    original = segment.read_bytes()
    salvage = ("store", "check", "--salvage")
    output = pintle(*salvage, tmp_path / "whole")
    assert "holds" in output and "lost" not in output, output
    every = (tmp_path / "whole").read_text().splitlines()
    for number, at in enumerate((4, original.index(b'"map-7"'), original.index(b'"map-15"'))):
        segment.write_bytes(original[:at] + bytes([original[at] ^ 4]) + original[at + 1 :])
        damaged = contents(segment.parent)
        file, data = tmp_path / f"part-{number}", tmp_path / f"data-{number}"
        output = pintle(*salvage, file, status=1, lines=None)
        assert f"lost: log/{segment.name}: bytes " in output and f"{server.dir} is corrupt: " in output, output
        assert contents(segment.parent) == damaged, "the directory was changed"
        part = file.read_text().splitlines()
        assert len(part) + output.count(" (revision ") >= len(every) and set(part[1:-1]) <= set(every), output
        missing = [f"/registry/core/configmaps/default/map-{i}" for i in range(20) if not any(f'"default/map-{i}"' in line for line in part)]
        assert all(f"{key} (revision" in output for key in missing), output
        assert f"{len(part) - 2} objects are imported and compared" in launch.run("import", file, "--data-dir", data)
        with launch(storage="embedded", data_dir=data) as again:
            assert len(again.ok("GET", MAPS)["items"]) == 20 - len(missing)
    assert f"{tmp_path / 'whole'}: the file exists already" in pintle(*salvage, tmp_path / "whole", status=1)
    launch.run(*salvage, tmp_path / "none", "--data-dir", tmp_path / "none", status=1)
    assert not (tmp_path / "none").exists()


def test_backup_of_a_running_server(launch, tmp_path):
    backup, data = tmp_path / "backup", tmp_path / "data"
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, config_map("kept"))
        version = int(server.ok("GET", MAPS)["metadata"]["resourceVersion"])
        revision = re.search(r"objects at revision (\d+)", launch.run("store", "backup", backup, "--data-dir", server.dir))
        # the server writes objects, too
        assert version <= int(revision[1]) <= int(server.ok("GET", MAPS)["metadata"]["resourceVersion"])
        assert stat.S_IMODE(os.stat(backup).st_mode) == 0o600
        kept = server.ok("GET", MAPS + "/kept")
        server.ok("DELETE", MAPS + "/kept")
        assert "the file exists already" in launch.run("store", "backup", backup, "--data-dir", server.dir, status=1)
        output = launch.run("store", "restore", backup, "--data-dir", server.dir, status=1)
        assert "is locked by another process; its file LOCK names pintle with process id" in output, output
    launch.run("store", "restore", backup, "--data-dir", data)
    with launch(storage="embedded", data_dir=data) as server:
        assert server.ok("GET", MAPS + "/kept") == kept
        created = server.ok("POST", MAPS, config_map("new"))
        assert int(created["metadata"]["resourceVersion"]) > version
        status, response, _ = server.request("GET", f"{MAPS}?watch=1&resourceVersion={version - 1}&timeoutSeconds=5")
        assert (response["type"], response["object"]["code"]) == ("ERROR", 410) if status == 200 else status == 410, response
    assert "already contains a store" in launch.run("store", "restore", backup, "--data-dir", data, status=1)
    backup.write_bytes(backup.read_bytes()[:-10])
    assert f"backup {backup}: checksum mismatch" in launch.run("store", "restore", backup, "--data-dir", tmp_path / "other", status=1)
    assert not (tmp_path / "other" / "FORMAT").exists()


def test_durability_can_be_chosen(launch):
    for durability in ("interval=50ms", "none"):
        with launch("--durability", durability, storage="embedded") as server:
            server.ok("POST", MAPS, config_map("kept"))
            assert server.stop() == 0
            server.start()
            server.ok("GET", MAPS + "/kept")
    assert "expected sync, interval=DURATION or none" in launch.run("serve", "--durability", "often", status=2)


def test_log_that_was_cut_after_a_stop(filled):
    """A log that ends before what was there at the last stop is refused, also if it was cut between two frames."""
    server, segment, pintle = filled
    assert "it was closed in good order" in pintle("store", "check")
    whole = segment.read_bytes()
    frames = [match.start() for match in re.finditer(b"PNTL", whole)]
    segment.write_bytes(whole[: frames[len(frames) // 2]])
    for arguments in (SERVE, ("store", "check")):
        output = pintle(*arguments, status=1)
        assert re.search(r"is corrupt: log/\S+ ends at revision \d+, and reached \d+ when it was closed", output), output
    segment.write_bytes(whole)
    server.start()
    server.ok("GET", f"{MAPS}/map-19")
    server.stop(signal.SIGKILL)
    assert "is intact: " in pintle("store", "check")


def test_file_size_limit(launch):
    """With a file size limit of the process, writes fail with the reason and everything else continues, until the limit is raised."""

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))

    with launch(storage="embedded", before=limited) as server:
        watch, created = server.ok("GET", MAPS)["metadata"]["resourceVersion"], []
        while True:
            status, response, _ = server.request("POST", MAPS, config_map(f"map-{len(created)}"))
            if status != 201:
                break
            created.append(response["metadata"]["name"])
        assert (status, response["message"]) == (500, UNAVAILABLE), response
        (line,) = [line for line in server.stderr().splitlines() if "a write cannot be committed" in line]
        assert "ERROR" in line and "File too large" in line, line
        assert "\npintle_failed_commits_total 1\n" in server.ok("GET", "/metrics")
        not_ready(server)
        assert server.request("GET", "/livez")[0] == 200
        assert set(named(server.ok("GET", MAPS)["items"])) == set(created)
        assert server.ok("GET", f"{MAPS}/{created[0]}")["metadata"]["name"] == created[0]
        assert events(server, watch) == len(created), "watches continue"
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)
        eventually(lambda: server.request("GET", "/readyz")[0] == 200)
        server.ok("POST", MAPS, config_map("last"))
        server.before = None
        assert server.stop() == 0
        server.start()
        assert set(named(server.ok("GET", MAPS)["items"])) == {*created, "last"}
        assert events(server, watch) == len(created) + 1


def test_memory_runs_out(launch):
    """The process ends at once, and what was acknowledged is there at the next start."""
    size = 700 << 20
    created = []
    with launch(storage="embedded") as server:
        server.stop()
        server.before = lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))
        server.start()
        with pytest.raises((http.client.HTTPException, OSError)):
            for number in range(1000):
                server.ok("POST", MAPS, {**config_map(f"map-{number}"), "data": {"text": "x" * 900_000}})
                created.append(f"map-{number}")
        assert server.process.wait(timeout=30) == -signal.SIGABRT
        server.before = None
        server.stop()
        server.start()
        assert set(created) <= set(named(server.ok("GET", MAPS)["items"]))


def test_removed_log(launch):
    """When the log is removed under a running server, no write is acknowledged any more. /readyz and the log say why: at level 2
    with the error of each request, its paths and its audit ID, which clients do not learn."""
    web = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    writes = [(MAPS, config_map("lost")), (MAPS.replace("configmaps", "services"), web)]
    with launch("--v=2", "--logging-format=json", storage="embedded") as server:
        server.ok("POST", MAPS, config_map("before"))
        shutil.rmtree(server.dir / "log")
        failed(server)
        not_ready(server)
        server.ok("GET", MAPS + "/before")
        for number, (path, body) in enumerate(writes):
            status, response, _ = server.request("POST", path, body, headers={"Audit-ID": f"write-{number}"})
            message = response["message"]
            assert status >= 400 and "the store is unavailable" in message and message.count("Internal error occurred") < 2, response
            assert str(server.dir) not in message and "has been removed" not in message, response
        assert server.request("GET", MAPS + "/none", headers={"Audit-ID": "read"})[0] == 404
        lines = [json.loads(line) for line in server.stderr().splitlines()]
        (line,) = [line for line in lines if "takes no more writes" in str(line["fields"])]
        assert line["level"] == "ERROR" and ".log has been removed" in str(line["fields"]), line
        causes = {line["fields"]["audit_id"]: line["fields"]["cause"] for line in lines if line["fields"]["message"] == "request failed"}
        assert list(causes)[1:] == ["write-0", "write-1"], causes
        assert all("the store is unavailable: " in cause and ".log has been removed" in cause for cause in causes.values()), causes


def test_a_disk_that_cannot_sync(launch):
    """No further writes are acknowledged, and /readyz has the reason; reads and watches continue. After a restart the server has
    the acknowledged writes, and accepts new ones."""
    with Disk() as disk, launch(storage="embedded", environment=disk.environment) as server:
        server.ok("POST", MAPS, config_map("before"))
        listed = server.ok("GET", MAPS)
        names = set(named(listed["items"]))
        disk.fail_syncs()
        for name in ("lost", "other"):
            failed(server, name=name)
        disk.recover()
        assert server.request("DELETE", MAPS + "/before")[0] == 500, "a successful sync after a failed one does not count"
        not_ready(server, ": the store is unavailable: cannot sync the log: Input/output error")
        assert server.request("GET", "/livez")[0] == 500, "a supervisor restarts a server that will never write again"
        [server.request("GET", "/readyz") for _ in range(5)]
        assert server.stderr().count("storage health check failed") == 1, "probes repeat, and lines do not"
        assert server.ok("GET", MAPS)["items"] == listed["items"]
        assert events(server, listed["metadata"]["resourceVersion"]) == 0, "there are no events of writes that were not acknowledged"
        for signal_number in (signal.SIGKILL, signal.SIGTERM):
            server.restart(signal_number)
            # the write whose sync failed may be stored
            assert set(named(server.ok("GET", MAPS)["items"])) - {"lost", "after"} == names
            assert server.request("GET", "/readyz")[0] == 200
            assert server.request("POST", MAPS, config_map("after"))[0] in (201, 409)


def test_a_disk_that_hangs(launch):
    """A sync that does not return is logged after five seconds and fails /readyz after fifteen, until it returns."""
    with Disk() as disk, launch(storage="embedded", environment=disk.environment) as server:
        server.ok("POST", MAPS, config_map("before"))
        disk.delay_syncs(25_000)
        writer = threading.Thread(target=server.request, args=("POST", MAPS, config_map("slow")), kwargs={"timeout": 60})
        writer.start()
        eventually(lambda: "the disk has not finished a write to the store" in server.stderr())
        assert server.request("GET", "/readyz")[0] == 200
        status, response, _ = eventually(lambda: [found for found in [server.request("GET", "/readyz")] if found[0] != 200])[0]
        assert "[-]storage failed: the store is unavailable: a write to the log has taken 1" in response, response
        assert server.request("GET", "/livez")[0] == 200
        disk.recover()
        writer.join()
        eventually(lambda: "the disk has finished the write" in server.stderr())
        assert server.request("GET", "/readyz")[0] == 200
        server.ok("GET", MAPS + "/slow")
        metrics = server.ok("GET", "/metrics")
        for name in ("commit", "sync"):
            buckets = re.findall(rf'pintle_store_{name}_duration_seconds_bucket{{le="([^"]+)"}} (\d+)', metrics)
            assert buckets[-1][0] == "+Inf" and int(buckets[-1][1]) > int(buckets[-2][1]) - 1 > 0, buckets


def test_a_full_disk(launch):
    """Writes fail, a partially written frame is truncated, and everything else continues, until space is free."""
    with Disk() as disk, launch(storage="embedded", environment=disk.environment) as server:
        server.ok("POST", MAPS, config_map("before"))
        listed = server.ok("GET", MAPS)
        disk.fill()
        for name in ("one", "two", "three"):
            failed(server, name=name)
        not_ready(server, "No space left on device")
        assert server.request("GET", "/livez")[0] == 200
        assert server.ok("GET", MAPS)["items"] == listed["items"]
        assert events(server, listed["metadata"]["resourceVersion"]) == 0, "watches continue"
        disk.recover()
        eventually(lambda: server.request("GET", "/readyz")[0] == 200)
        server.ok("POST", MAPS, config_map("after"))
        names = set(named(server.ok("GET", MAPS)["items"]))
        assert "after" in names and not names & {"one", "two", "three"}
        for signal_number in (signal.SIGKILL, signal.SIGTERM):
            server.restart(signal_number)
            assert set(named(server.ok("GET", MAPS)["items"])) == names


def test_a_full_disk_at_the_start(launch):
    """The problem is reported in one line and the directory is unchanged; once there is space the server starts."""
    with Disk() as disk, launch(storage="embedded", environment=disk.environment) as server:
        server.ok("POST", MAPS, config_map("before"))
        server.stop(signal.SIGKILL)
        before = contents(server.dir / "log")
        disk.fill()
        for data in (server.dir, server.dir / "new"):
            error = launch.run(*SERVE, "--data-dir", data, status=1, env=disk.environment)
            assert len(error.splitlines()) == 1 and "No space left on device" in error, error
        disk.recover()
        assert contents(server.dir / "log") == before
        server.start()
        server.ok("GET", MAPS + "/before")
        server.ok("POST", MAPS, config_map("after"))


def test_history_is_kept_across_a_restart(launch):
    """Watches, pages of lists and lists of old revisions are the same after a restart as before it."""
    with launch(storage="embedded") as server:
        versions = [server.ok("GET", MAPS)["metadata"]["resourceVersion"]]
        for number in range(12):
            created = server.ok("POST", MAPS, config_map(f"map-{number:02}"))
            if number % 2:
                created["data"]["text"] = "y"
                created = server.ok("PUT", f"{MAPS}/map-{number:02}", created)
            if number % 5 == 0:
                created = server.ok("DELETE", f"{MAPS}/map-{number:02}")
            versions.append(server.ok("GET", MAPS)["metadata"]["resourceVersion"])
        token = server.ok("GET", MAPS + "?limit=3")["metadata"]["continue"]

        def responses():
            exact = [server.ok("GET", f"{MAPS}?resourceVersionMatch=Exact&resourceVersion={version}") for version in versions[::4]]
            watched = [server.request("GET", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={version}")[1] for version in versions[::6]]
            return server.ok("GET", f"{MAPS}?limit=3&continue={token}"), exact, watched

        before = responses()
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            server.restart(signal_number)
            assert responses() == before


def events(server, after):
    return len(server.request("GET", f"{MAPS}?watch=1&resourceVersion={after}&timeoutSeconds=1")[1].splitlines())


def test_history_is_bounded_in_bytes(launch):
    """Updates of a large object leave neither the log nor the memory larger than history may be, and a watch of the last ones continues."""
    mebibyte = 1 << 20
    with launch(f"--history-bytes={4 * mebibyte}", storage="embedded") as server:
        large: dict = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"text": "x" * 900_000}}
        first = server.ok("POST", MAPS, large)["metadata"]["resourceVersion"]
        # several times as much as segments, checkpoints and history together
        for number in range(130):
            large["data"] = {**large["data"], "number": str(number)}
            last = server.ok("PUT", MAPS + "/large", large)["metadata"]["resourceVersion"]
        log = server.dir / "log"
        eventually(lambda: sum(len(content) for content in contents(log).values()) < 60 * mebibyte, seconds=60)
        status, event, _ = server.request("GET", f"{MAPS}?watch=1&resourceVersion={first}&timeoutSeconds=5")
        assert (status, event["object"]["code"]) == (200, 410), event
        for restart in (False, True):
            if restart:
                server.restart()
            event = server.ok("GET", f"{MAPS}?watch=1&resourceVersion={int(last) - 1}&timeoutSeconds=1")
            assert (event["type"], event["object"]["data"]["number"]) == ("MODIFIED", "129"), restart


def test_flipped_bits_of_a_backup_are_reported(launch, filled, tmp_path):
    _, _, pintle = filled
    backup, directory, part = (tmp_path / name for name in ("backup", "restored", "part"))
    pintle("store", "backup", backup)
    original = backup.read_bytes()
    for at in range(0, len(original), len(original) // 25):
        backup.write_bytes(original[:at] + bytes([original[at] ^ 16]) + original[at + 1 :])
        want = f"pintle: backup {backup}: {'it is not a backup' if at < 8 else 'checksum mismatch'}"
        for command in (("store", "restore", backup, "--data-dir", directory), ("store", "check", backup)):
            assert launch.run(*command, status=1).splitlines() == [want], at
        assert not (directory / "FORMAT").exists()
    output = launch.run("store", "check", backup, "--salvage", part, status=1, lines=None)
    assert "lost: backup: bytes " in output and f"backup {backup} is corrupt: " in output and part.exists(), output
    backup.write_bytes(original)
    assert f"the backup {backup} is intact: " in launch.run("store", "check", backup)
    launch.run("store", "restore", backup, "--data-dir", directory)


def test_unusable_directories(filled):
    """The server fails with one line, and changes nothing in the directory."""
    server, _, pintle = filled
    data, format_file = server.dir, server.dir / "FORMAT"
    advice = f"if no newer pintle has written the directory, put it back with \"echo 'pintle 3' > {data}/FORMAT\""
    newer = f"data directory {data} has format 4, but this version of pintle understands up to 3; use a newer pintle"
    for content, want in (
        ("InnoDB\n", f"data directory {data}: the file FORMAT does not hold a format; {advice}"),
        ("pintle 4\n", newer),
        (None, f"data directory {data}: the file FORMAT is missing; {advice}"),
    ):
        format_file.write_text(content) if content else format_file.unlink()
        unchanged = contents(data)
        output = pintle(*SERVE, status=1)
        assert len(output.splitlines()) == 1 and want in output, output
        assert contents(data) == unchanged, content
    # the advice works
    format_file.write_text("pintle 3\n")
    assert "is intact: " in pintle("store", "check")


def contents(directory):
    """The content of all files except the lock file."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != "LOCK"}


def test_read_only_directories(launch, filled):
    """The server runs as a user without write permission, by another user id if the tests run as root."""
    server, _, _ = filled
    data = server.dir
    before = contents(data)
    binary = data / "pintle"
    shutil.copy(launch.binary, binary)
    other_user: dict = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    paths = [path for path in (data, *data.rglob("*")) if path != binary]
    [path.chmod(0o555 if path.is_dir() else 0o444) for path in paths]
    binary.chmod(0o555)
    output = commands.run(binary, *SERVE, "--data-dir", data, status=1, lines=None, **other_user)
    [path.chmod(0o755 if path.is_dir() else 0o644) for path in paths]
    # besides the warnings that others can enter the directory and read the key
    lines = [line for line in output.splitlines() if "take that permission away" not in line]
    assert lines == [f"pintle: data directory {data}: Permission denied (os error 13)"], output
    binary.unlink()
    assert contents(data) == before
