"""The data directory: corruption is reported before anything is served, and `pintle store` checks, backs up and restores."""

import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import threading

import pytest

from disk import Disk
from metrics import metrics_of, value
from pintle import eventually

pytestmark = pytest.mark.store

MAPS = "/api/v1/namespaces/default/configmaps"
# what clients learn when the store fails; the cause is in the log
UNAVAILABLE = "Internal error occurred: the store is unavailable"


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": "x" * 500}}


def run_pintle(launch, *arguments):
    done = launch.run(*arguments)
    return done.returncode, done.stdout + done.stderr


def filled(launch):
    """Starts a server, writes objects and stops it. Returns the server and its only log file."""
    server = launch(storage="embedded")
    with server:
        server.owns_dir = False
        for number in range(20):
            server.ok("POST", MAPS, config_map(f"map-{number}"))
    (segment,) = (server.dir / "log").glob("*.log")
    return server, segment


def test_flipped_bits_are_reported(launch):
    server, segment = filled(launch)
    original = segment.read_bytes()
    for at in (0, 100, len(original) // 2, len(original) - 300):
        segment.write_bytes(original[:at] + bytes([original[at] ^ 4]) + original[at + 1 :])
        damaged = segment.read_bytes()
        for arguments in (("serve", "--secure-port", "0"), ("store", "check"), ("store", "backup", server.dir / "backup")):
            status, output = run_pintle(launch, *arguments, "--data-dir", server.dir)
            assert status == 1 and len(output.splitlines()) == 1, (at, output)
            assert f"data directory {server.dir} is corrupt: checksum mismatch at byte" in output and segment.name in output, (at, output)
        assert segment.read_bytes() == damaged, "the damaged file was changed"
        assert not (server.dir / "backup").exists()
    segment.write_bytes(original)
    status, output = run_pintle(launch, "store", "check", "--data-dir", server.dir)
    assert status == 0 and "is intact: " in output, output
    segment.unlink()
    status, output = run_pintle(launch, "serve", "--secure-port", "0", "--data-dir", server.dir)
    assert status == 1 and f"log/{segment.name} is missing" in output, output
    shutil.rmtree(server.dir)


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


def test_damaged_stores_are_salvaged(launch):
    """Readable objects are exported, lost ones are named, and the data directory is not changed."""
    server, segment = filled(launch)
    original = segment.read_bytes()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="pintle-test-"))
    status, output = run_pintle(launch, "store", "check", "--salvage", directory / "whole", "--data-dir", server.dir)
    assert status == 0 and "holds" in output and "lost" not in output, output
    every = (directory / "whole").read_text().splitlines()
    for number, at in enumerate((4, original.index(b'"map-7"'), original.index(b'"map-15"'))):
        segment.write_bytes(original[:at] + bytes([original[at] ^ 4]) + original[at + 1 :])
        damaged = {path.name: path.read_bytes() for path in segment.parent.iterdir()}
        file = directory / f"part-{number}"
        status, output = run_pintle(launch, "store", "check", "--salvage", file, "--data-dir", server.dir)
        assert status == 1 and f"lost: log/{segment.name}: bytes " in output and f"{server.dir} is corrupt: " in output, output
        assert {path.name: path.read_bytes() for path in segment.parent.iterdir()} == damaged, "the directory was changed"
        part = file.read_text().splitlines()
        assert len(part) + output.count(" (revision ") >= len(every) and set(part[1:-1]) <= set(every), output
        missing = [f"/registry/core/configmaps/default/map-{i}" for i in range(20) if not any(f'"default/map-{i}"' in line for line in part)]
        assert all(f"{key} (revision" in output for key in missing), output
        status, output = run_pintle(launch, "import", file, "--data-dir", directory / f"data-{number}")
        assert status == 0 and f"{len(part) - 2} objects are imported and compared" in output, output
        with launch(storage="embedded", data_dir=directory / f"data-{number}") as again:
            assert len(again.ok("GET", MAPS)["items"]) == 20 - len(missing)
    status, output = run_pintle(launch, "store", "check", "--salvage", directory / "whole", "--data-dir", server.dir)
    assert status == 1 and f"{directory / 'whole'}: the file exists already" in output, output
    status, output = run_pintle(launch, "store", "check", "--salvage", directory / "none", "--data-dir", directory / "none")
    assert status == 1 and len(output.splitlines()) == 1 and not (directory / "none").exists(), output
    shutil.rmtree(directory)
    shutil.rmtree(server.dir)


def test_files_are_private(launch):
    server, segment = filled(launch)
    assert stat.S_IMODE(os.stat(segment).st_mode) == 0o600
    shutil.rmtree(server.dir)


def test_backup_of_a_running_server(launch):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="pintle-test-"))
    backup = directory / "backup"
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, config_map("kept"))
        version = int(server.ok("GET", MAPS)["metadata"]["resourceVersion"])
        status, output = run_pintle(launch, "store", "backup", backup, "--data-dir", server.dir)
        revision = re.search(r"objects at revision (\d+)", output)
        # the server writes objects, too
        assert status == 0 and version <= int(revision[1]) <= int(server.ok("GET", MAPS)["metadata"]["resourceVersion"]), output
        assert stat.S_IMODE(os.stat(backup).st_mode) == 0o600
        kept = server.ok("GET", MAPS + "/kept")
        server.ok("DELETE", MAPS + "/kept")
        status, output = run_pintle(launch, "store", "backup", backup, "--data-dir", server.dir)
        assert status == 1 and "the file exists already" in output, output
        status, output = run_pintle(launch, "store", "restore", backup, "--data-dir", server.dir)
        assert status == 1 and "is locked by another process; its file LOCK names pintle with process id" in output, output
    status, output = run_pintle(launch, "store", "restore", backup, "--data-dir", directory / "data")
    assert status == 0, output
    with launch(storage="embedded", data_dir=directory / "data") as server:
        assert server.ok("GET", MAPS + "/kept") == kept
        created = server.ok("POST", MAPS, config_map("new"))
        assert int(created["metadata"]["resourceVersion"]) > version
        status, response, _ = server.request("GET", f"{MAPS}?watch=1&resourceVersion={version - 1}&timeoutSeconds=5")
        assert (response["type"], response["object"]["code"]) == ("ERROR", 410) if status == 200 else status == 410, response
    status, output = run_pintle(launch, "store", "restore", backup, "--data-dir", directory / "data")
    assert status == 1 and "already contains a store" in output, output
    backup.write_bytes(backup.read_bytes()[:-10])
    status, output = run_pintle(launch, "store", "restore", backup, "--data-dir", directory / "other")
    assert status == 1 and f"backup {backup}: checksum mismatch" in output and not (directory / "other" / "FORMAT").exists(), output
    shutil.rmtree(directory)


def test_durability_can_be_chosen(launch):
    for durability in ("interval=50ms", "none"):
        with launch("--durability", durability, storage="embedded") as server:
            server.ok("POST", MAPS, config_map("kept"))
            assert server.stop() == 0
            server.start()
            server.ok("GET", MAPS + "/kept")
    status, output = run_pintle(launch, "serve", "--durability", "often")
    assert status == 2 and "expected sync, interval=DURATION or none" in output, output


def test_removed_log(launch):
    """When the log is removed under a running server, no write is acknowledged any more, and the log and /readyz say why."""
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, config_map("before"))
        shutil.rmtree(server.dir / "log")
        status, response, _ = server.request("POST", MAPS, config_map("lost"))
        assert (status, response["message"]) == (500, UNAVAILABLE), response
        (line,) = [line for line in server.stderr().splitlines() if "takes no more writes" in line]
        assert "ERROR" in line and ".log has been removed" in line, line
        status, response, _ = server.request("GET", "/readyz")
        assert status == 500 and "[-]storage failed" in response, response
        server.ok("GET", MAPS + "/before")


def test_log_that_was_cut_after_a_stop(launch):
    """A log that ends before what was there at the last stop is refused, also if it was cut between two frames."""
    server, segment = filled(launch)
    status, output = run_pintle(launch, "store", "check", "--data-dir", server.dir)
    assert status == 0 and "it was closed in good order" in output, output
    whole = segment.read_bytes()
    frames = [match.start() for match in re.finditer(b"PNTL", whole)]
    segment.write_bytes(whole[: frames[len(frames) // 2]])
    for arguments in (("serve", "--secure-port", "0"), ("store", "check")):
        status, output = run_pintle(launch, *arguments, "--data-dir", server.dir)
        assert status == 1 and re.search(r"is corrupt: log/\S+ ends at revision \d+, and reached \d+ when it was closed", output), output
    segment.write_bytes(whole)
    server.start()
    server.ok("GET", f"{MAPS}/map-19")
    server.stop(signal.SIGKILL)
    status, output = run_pintle(launch, "store", "check", "--data-dir", server.dir)
    assert status == 0 and "is intact: " in output, output
    shutil.rmtree(server.dir)


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
        status, response, _ = server.request("GET", "/readyz")
        assert status == 500 and "[-]storage failed" in response, response
        assert server.request("GET", "/livez")[0] == 200
        assert {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]} == set(created)
        assert server.ok("GET", f"{MAPS}/{created[0]}")["metadata"]["name"] == created[0]
        assert events(server, watch) == len(created), "watches continue"
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)
        eventually(lambda: server.request("GET", "/readyz")[0] == 200)
        server.ok("POST", MAPS, config_map("last"))
        server.before = None
        assert server.stop() == 0
        server.start()
        assert {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]} == {*created, "last"}
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
        assert set(created) <= {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]}


def test_causes_of_failures_are_in_the_log(launch):
    """Clients learn that the store failed. Its error, with paths and errors of the operating system, is in the log at level 2, with
    the audit ID of the request."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    writes = [(MAPS, config_map("lost")), (MAPS.replace("configmaps", "services"), service)]
    with launch("--v=2", "--logging-format=json", storage="embedded") as server:
        server.ok("POST", MAPS, config_map("before"))
        shutil.rmtree(server.dir / "log")
        for number, (path, body) in enumerate(writes):
            status, response, _ = server.request("POST", path, body, headers={"Audit-ID": f"write-{number}"})
            message = response["message"]
            assert status >= 400 and "the store is unavailable" in message and message.count("Internal error occurred") < 2, response
            assert str(server.dir) not in message and "has been removed" not in message, response
        assert server.request("GET", MAPS + "/none", headers={"Audit-ID": "read"})[0] == 404
        lines = [json.loads(line)["fields"] for line in server.stderr().splitlines()]
        failed = [line for line in lines if line["message"] == "request failed"]
        assert [line["audit_id"] for line in failed] == ["write-0", "write-1"], failed
        assert all("the store is unavailable: " in line["cause"] and ".log has been removed" in line["cause"] for line in failed), failed


def test_a_disk_that_cannot_sync(launch):
    """No further writes are acknowledged, and /readyz has the reason; reads and watches continue. After a restart the server has
    the acknowledged writes, and accepts new ones."""
    with Disk() as disk, launch(storage="embedded", environment=disk.environment) as server:
        server.ok("POST", MAPS, config_map("before"))
        listed = server.ok("GET", MAPS)
        names = {item["metadata"]["name"] for item in listed["items"]}
        disk.fail_syncs()
        for name in ("lost", "other"):
            status, response, _ = server.request("POST", MAPS, config_map(name))
            assert (status, response["message"]) == (500, UNAVAILABLE), response
        disk.recover()
        assert server.request("DELETE", MAPS + "/before")[0] == 500, "a successful sync after a failed one does not count"
        status, response, _ = server.request("GET", "/readyz")
        assert status == 500 and "[-]storage failed: the store is unavailable: cannot sync the log: Input/output error" in response, response
        assert server.request("GET", "/livez")[0] == 500, "a supervisor restarts a server that will never write again"
        [server.request("GET", "/readyz") for _ in range(5)]
        assert server.stderr().count("storage health check failed") == 1, "probes repeat, and lines do not"
        assert server.ok("GET", MAPS)["items"] == listed["items"]
        assert events(server, listed["metadata"]["resourceVersion"]) == 0, "there are no events of writes that were not acknowledged"
        for signal_number in (signal.SIGKILL, signal.SIGTERM):
            server.restart(signal_number)
            # the write whose sync failed may be stored
            assert {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]} - {"lost", "after"} == names
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
            status, response, _ = server.request("POST", MAPS, config_map(name))
            assert (status, response["message"]) == (500, UNAVAILABLE), response
        status, response, _ = server.request("GET", "/readyz")
        assert status == 500 and "[-]storage failed: " in response and "No space left on device" in response, response
        assert server.request("GET", "/livez")[0] == 200
        assert server.ok("GET", MAPS)["items"] == listed["items"]
        assert events(server, listed["metadata"]["resourceVersion"]) == 0, "watches continue"
        disk.recover()
        eventually(lambda: server.request("GET", "/readyz")[0] == 200)
        server.ok("POST", MAPS, config_map("after"))
        names = {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]}
        assert "after" in names and not names & {"one", "two", "three"}
        for signal_number in (signal.SIGKILL, signal.SIGTERM):
            server.restart(signal_number)
            assert {item["metadata"]["name"] for item in server.ok("GET", MAPS)["items"]} == names


def test_a_full_disk_at_the_start(launch):
    """The problem is reported in one line and the directory is unchanged; once there is space the server starts."""
    with Disk() as disk, launch(storage="embedded", environment=disk.environment) as server:
        server.ok("POST", MAPS, config_map("before"))
        server.stop(signal.SIGKILL)
        before = contents(server.dir / "log")
        disk.fill()
        for data in (server.dir, server.dir / "new"):
            done = subprocess.run(
                [launch.binary, "serve", "--secure-port", "0", "--data-dir", data],
                capture_output=True,
                text=True,
                timeout=30,
                env={**os.environ, **disk.environment},
            )
            output = done.stdout + done.stderr
            assert done.returncode == 1 and len(output.splitlines()) == 1 and "No space left on device" in output, output
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


def test_flipped_bits_of_a_backup_are_reported(launch):
    server, _ = filled(launch)
    backup, directory = server.dir / "backup", server.dir / "restored"
    assert run_pintle(launch, "store", "backup", backup, "--data-dir", server.dir)[0] == 0
    original = backup.read_bytes()
    for at in range(0, len(original), len(original) // 25):
        backup.write_bytes(original[:at] + bytes([original[at] ^ 16]) + original[at + 1 :])
        status, output = run_pintle(launch, "store", "restore", backup, "--data-dir", directory)
        want = "it is not a backup" if at < 8 else "checksum mismatch"
        assert status == 1 and output.splitlines() == [f"pintle: backup {backup}: {want}"], (at, output)
        assert not (directory / "FORMAT").exists()
        status, output = run_pintle(launch, "store", "check", backup)
        assert status == 1 and output.splitlines() == [f"pintle: backup {backup}: {want}"], (at, output)
    part = server.dir / "part"
    status, output = run_pintle(launch, "store", "check", backup, "--salvage", part)
    assert status == 1 and "lost: backup: bytes " in output and f"backup {backup} is corrupt: " in output and part.exists(), output
    backup.write_bytes(original)
    status, output = run_pintle(launch, "store", "check", backup)
    assert status == 0 and f"the backup {backup} is intact: " in output, output
    assert run_pintle(launch, "store", "restore", backup, "--data-dir", directory)[0] == 0
    shutil.rmtree(server.dir)


def test_unusable_directories(launch):
    """The server fails with one line, and changes nothing in the directory."""
    server, _ = filled(launch)
    data = server.dir
    format_file = data / "FORMAT"
    advice = f"if no newer pintle has written the directory, put it back with \"echo 'pintle 3' > {data}/FORMAT\""
    cases = [
        ("of another program", lambda: format_file.write_text("InnoDB\n"), f"data directory {data}: the file FORMAT does not hold a format; {advice}"),
        (
            "of a newer version",
            lambda: format_file.write_text("pintle 4\n"),
            f"data directory {data} has format 4, but this version of pintle understands up to 3; use a newer pintle",
        ),
        ("without its format", format_file.unlink, f"data directory {data}: the file FORMAT is missing; {advice}"),
    ]
    before = format_file.read_text()
    for name, damage, want in cases:
        damage()
        unchanged = contents(data)
        status, output = run_pintle(launch, "serve", "--secure-port", "0", "--data-dir", data)
        assert status == 1 and len(output.splitlines()) == 1 and want in output, (name, output)
        assert contents(data) == unchanged, name
        format_file.write_text(before)
    # the advice works
    format_file.write_text("pintle 3\n")
    status, output = run_pintle(launch, "store", "check", "--data-dir", data)
    assert status == 0 and "is intact: " in output, output
    shutil.rmtree(data)


def contents(directory):
    """The content of all files except the lock file."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != "LOCK"}


def test_read_only_directories(launch):
    """The server runs as a user without write permission, by another user id if the tests run as root."""
    server, _ = filled(launch)
    data = server.dir
    before = contents(data)
    binary = data / "pintle"
    shutil.copy(launch.binary, binary)
    other_user: dict = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    paths = [path for path in (data, *data.rglob("*")) if path != binary]
    [path.chmod(0o555 if path.is_dir() else 0o444) for path in paths]
    binary.chmod(0o555)
    done = subprocess.run([binary, "serve", "--secure-port", "0", "--data-dir", data], capture_output=True, text=True, timeout=30, **other_user)
    output = done.stdout + done.stderr
    [path.chmod(0o755 if path.is_dir() else 0o644) for path in paths]
    # besides the warnings that others can enter the directory and read the key
    lines = [line for line in output.splitlines() if "take that permission away" not in line]
    assert done.returncode == 1 and lines == [f"pintle: data directory {data}: Permission denied (os error 13)"], output
    binary.unlink()
    assert contents(data) == before
    shutil.rmtree(data)
