"""A kill or a failure at each call that changes files, while a command or a start of the server makes it. Whatever is left, the
next start either has everything or names the remedy, which works.

A normal run breaks some of the calls; with --slow, it breaks each of them.
"""

import http.client
import os
import re
import select
import shutil
import signal
import ssl
import subprocess
import urllib.request

import pytest

from disk import Disk
from encryption import ENCODED, SECRETS, configuration, secret
from objects import MAPS, WORKSPACES, named

pytestmark = [pytest.mark.crash, pytest.mark.serial, pytest.mark.timeout(7200)]

# the calls of one task that a normal run breaks, for each kind of fault
POINTS = 7
FAULTS = ["kill", "break", "fill"]
START_SECONDS = 120


class Sweep:
    """A binary, a disk that breaks, and the directories of one test."""

    def __init__(self, launch, disk, directory):
        self.launch, self.disk, self.directory = launch, disk, directory

    def run(self, *arguments):
        output = self.launch.run(*arguments, status=None, lines=None, env=self.disk.environment)
        return output.status, output

    def serve(self, data):
        """Starts a server and stops it once it is ready. Returns its status and its output."""
        command = [self.launch.binary, "serve", "--secure-port", "0", "--data-dir", str(data)]
        environment = {**os.environ, **self.disk.environment}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        assert process.stdout
        select.select([process.stdout], [], [], START_SECONDS)
        process.terminate()
        out, errors = process.communicate(timeout=60)
        return process.returncode, out + errors

    def points(self, task):
        """The numbers of the calls to break, of those that the task makes."""
        self.disk.set_mode("count")
        task()
        calls = self.disk.calls()
        self.disk.recover()
        assert calls > 3, calls
        return range(1, calls + 1) if self.launch.slow else sorted({1 + i * (calls - 1) // (POINTS - 1) for i in range(POINTS)})

    def each(self, task, check, prepare=lambda: None):
        """Runs `task` with each fault at each point, after `prepare`, and then `check` without a fault. The parameter of both says
        where the fault was."""
        prepare()
        points, killed = self.points(task), 0
        for fault in FAULTS:
            for point in points:
                prepare()
                self.disk.set_mode(f"{fault} {point}")
                status, output = task()
                self.disk.recover()
                killed += status == -signal.SIGKILL
                assert "panicked" not in output, (fault, point, output)
                check((fault, point, output))
        # runs differ by some calls: writes that wait are written together, and a server that is ready makes others
        assert killed > len(points) // 2, (killed, points)


@pytest.fixture
def sweep(launch, tmp_path):
    with Disk() as disk:
        yield Sweep(launch, disk, tmp_path)


def remove(path):
    shutil.rmtree(path, ignore_errors=True)


def names(sweep, data, where):
    """The names of the ConfigMaps that a server on the directory has, and whether the Service kubernetes is there."""
    with sweep.launch(storage="embedded", data_dir=data) as server:
        found = set(named(server.ok("GET", MAPS)["items"]))
        service = server.ok("GET", "/api/v1/namespaces/default/services/kubernetes")
        address = server.ok("GET", "/apis/networking.k8s.io/v1/ipaddresses/" + service["spec"]["clusterIP"])
        assert address["spec"]["parentRef"]["name"] == "kubernetes", where
        return found


def copied(original, data):
    """A function that replaces a directory by a copy of another one."""

    def prepare():
        remove(data)
        shutil.copytree(original, data)

    return prepare


def filled(sweep, data, count=3):
    with sweep.launch(storage="embedded", data_dir=data) as server:
        for number in range(count):
            server.ok("POST", MAPS, {"metadata": {"name": f"map-{number}"}, "data": {"text": "x" * 500}})
    return {f"map-{number}" for number in range(count)}


def test_first_start(sweep):
    data = sweep.directory / "data"
    sweep.each(lambda: sweep.serve(data), lambda where: names(sweep, data, where), lambda: remove(data))


def test_start(sweep):
    original, data = sweep.directory / "original", sweep.directory / "data"
    want = filled(sweep, original)

    def check(where):
        assert names(sweep, data, where) == want, where

    sweep.each(lambda: sweep.serve(data), check, copied(original, data))


def test_restore(sweep):
    data, backup = sweep.directory / "data", sweep.directory / "backup"
    want = filled(sweep, sweep.directory / "original")
    assert sweep.run("store", "backup", backup, "--data-dir", sweep.directory / "original")[0] == 0
    restore = ["store", "restore", backup, "--data-dir", data]

    def check(where):
        status, _ = sweep.run("store", "check", "--data-dir", data)
        if status != 0:
            if (data / "UNFINISHED").exists():
                _, output = sweep.serve(data)
                assert "pintle is ready" not in output and "a restore into it was not completed" in output, (where, output)
            status, output = sweep.run(*restore)
            assert status == 0, (where, output)
        assert names(sweep, data, where) == want, where
        assert sorted(path.name for path in data.iterdir() if path.name.startswith("UNFINISHED")) == [], where

    sweep.each(lambda: sweep.run(*restore), check, lambda: remove(data))


def test_import(sweep):
    data, file = sweep.directory / "data", sweep.directory / "objects.json"
    want = filled(sweep, sweep.directory / "original")
    assert sweep.run("export", file, "--data-dir", sweep.directory / "original")[0] == 0
    task = ["import", file, "--data-dir", data]

    def check(where):
        status, _ = sweep.run("store", "check", "--data-dir", data)
        if status != 0:
            status, output = sweep.run(*task, "--conflict", "skip")
            assert status == 0, (where, output)
        assert names(sweep, data, where) == want, where

    sweep.each(lambda: sweep.run(*task), check, lambda: remove(data))


def test_backup(sweep):
    data, backup, restored = (sweep.directory / name for name in ("data", "backup", "restored"))
    want = filled(sweep, data)

    def prepare():
        backup.unlink(missing_ok=True)
        remove(restored)

    def check(where):
        # a file with the name of the backup is complete
        if not backup.exists():
            assert sweep.run("store", "backup", backup, "--data-dir", data)[0] == 0, where
        status, output = sweep.run("store", "restore", backup, "--data-dir", restored)
        assert status == 0, (where, output)
        objects = re.search(r"holds (\d+) objects", output)
        assert objects and int(objects[1]) >= len(want), (where, output)

    sweep.each(lambda: sweep.run("store", "backup", backup, "--data-dir", data), check, prepare)


def test_rotation_of_the_authority(sweep):
    """Clients that trust the former authority are served after a rotation that was interrupted and run again, or not."""
    original, data = sweep.directory / "original", sweep.directory / "data"
    filled(sweep, original)
    rotate = ["certificates", "rotate-ca", "--data-dir", data]

    def check(where):
        status, output = sweep.run(*rotate)
        assert status == 0 or "the last rotation is not finished" in output, (where, output)
        with sweep.launch(storage="embedded", data_dir=data) as server:
            context = ssl.create_default_context(cafile=str(original / "ca.crt"))
            context.load_cert_chain(original / "admin.crt", original / "admin.key")
            with urllib.request.urlopen(server.url + MAPS, context=context, timeout=30) as response:
                assert response.status == 200, where
        status, output = sweep.run(*rotate, "--finish")
        assert status == 0, (where, output)

    sweep.each(lambda: sweep.run(*rotate), check, copied(original, data))


CHANGES = [
    ("POST", "/clusters/fork", {"from": {"workspace": "a"}}),
    ("POST", "/clusters/past", None),
    ("PATCH", WORKSPACES + "/reset", {"spec": {"reset": "1"}}),
    ("POST", "/clusters/a" + MAPS, {"metadata": {"name": "last"}}),
]


def test_forks_and_resets(sweep):
    """What a server acknowledged of a fork, a fork of an earlier revision and a reset is there after it was started again."""
    original, data = sweep.directory / "original", sweep.directory / "data"
    text = {"text": "x" * 300_000}

    def serve(environment=None):
        return sweep.launch("--workspaces", storage="embedded", data_dir=data, environment=environment)

    def found(server, name):
        status, listed, _ = server.request("GET", f"/clusters/{name}{MAPS}")
        return set(named(listed["items"])) - {"kube-root-ca.crt"} if status == 200 else None

    def prepare_original():
        with sweep.launch("--workspaces", storage="embedded", data_dir=original) as server:
            server.ok("POST", "/clusters/a", {})
            for number in range(3):
                server.ok("POST", f"/clusters/a{MAPS}", {"metadata": {"name": f"map-{number}"}, "data": text})
            server.ok("POST", "/clusters/reset", {"from": {"workspace": "a"}})
            server.ok("POST", f"/clusters/reset{MAPS}", {"metadata": {"name": "own"}})

    prepare_original()

    def prepare():
        remove(data)
        shutil.copytree(original, data)
        done.clear()

    done = set()

    def task():
        server, status = serve(sweep.disk.environment), None
        try:
            server.start()
            # the revision before a change of each object, so that the fork has three differences of 300 KB
            past = server.ok("GET", f"/clusters/a{MAPS}")["metadata"]["resourceVersion"]
            for number in range(3):
                server.ok("PATCH", f"/clusters/a{MAPS}/map-{number}", {"data": {"text": "y"}})
            for method, path, body in CHANGES:
                body = body or {"from": {"workspace": "a", "resourceVersion": past}}
                if server.request(method, path, body)[0] in (200, 201):
                    done.add(path)
        except (AssertionError, OSError, http.client.HTTPException):
            # it was killed, or a call failed
            pass
        if server.process is not None:
            status = server.stop()
        return status, server.last_log

    def check(where):
        want = {f"map-{number}" for number in range(3)}
        with serve() as server:
            held = found(server, "a")
            assert want <= held, where
            assert ("/clusters/a" + MAPS in done) <= ("last" in held), where
            for name in ("fork", "past"):
                there = found(server, name)
                assert (f"/clusters/{name}" in done) <= (there == want), (where, there)
                assert there in (None, want), (where, there)
            assert found(server, "reset") in ([want] if CHANGES[2][1] in done else [want, want | {"own"}]), where

    sweep.each(task, check, prepare)


def test_rewriting_of_the_storage(sweep):
    """Values that an interrupted rewriting left with the former key are written by the next one; after that, the new key reads all
    of them, those of workspaces and of what they return to at a reset as well."""
    original, data = sweep.directory / "original", sweep.directory / "data"
    old, new = {"aesgcm": [("old", 1)]}, {"aesgcm": [("new", 2)]}
    both = {"aesgcm": [("new", 2), ("old", 1)]}
    apis = ("", "/clusters/a", "/clusters/fork")

    def serve(directory, provider, environment=None):
        flag = f"--encryption-provider-config={configuration(sweep.directory, provider, 'identity')}"
        return sweep.launch("--workspaces", flag, storage="embedded", data_dir=directory, environment=environment)

    def rewrite(server):
        return sweep.launch.run("storage", "rewrite", "--resource", "secrets", server=server, status=None, lines=None)

    with serve(original, old) as server:
        server.ok("POST", "/clusters/a", {})
        for api in apis[:2]:
            for number in range(3):
                server.ok("POST", api + SECRETS, secret(f"secret-{number}"))
        server.ok("POST", "/clusters/fork", {"from": {"workspace": "a"}})

    def task():
        server, status, output = serve(data, both, sweep.disk.environment), None, ""
        try:
            server.start()
            output = rewrite(server)
        except (AssertionError, OSError):
            # it was killed, or a call failed
            pass
        if server.process is not None:
            status = server.stop()
        return status, output + server.last_log

    def check(where):
        with serve(data, both) as server:
            output = rewrite(server)
            assert output.status == 0, (where, output)
        with serve(data, new) as server:
            server.ok("PATCH", CHANGES[2][1].replace("/reset", "/fork"), {"spec": {"reset": "1"}})
            for api in apis:
                found = {item["metadata"]["name"]: item["data"] for item in server.ok("GET", api + SECRETS)["items"]}
                assert found == {f"secret-{number}": {"k": ENCODED.decode()} for number in range(3)}, (where, api)

    sweep.each(task, check, copied(original, data))
