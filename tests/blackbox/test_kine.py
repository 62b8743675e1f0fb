"""Pintle on kine, which offers a part of etcd's API over SQL databases: SQLite and PostgreSQL."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from objects import DEFINITIONS as CRDS
from objects import MAPS, config_map, definition
from pintle import eventually
from programs import ROOT, built, free_port, require
from watch import Watch

# the first build of kine takes minutes
pytestmark = [pytest.mark.etcd, pytest.mark.timeout(1800)]

BOATS = "/apis/harbor.example.com/v1/namespaces/default/boats"
DEFINITION = definition("boats", "harbor.example.com", {"properties": {"sails": {"type": "integer", "maximum": 9}}})


def postgres_programs():
    """The directory of PostgreSQL's server programs, which Debian does not put into PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    require("initdb", "postgres")
    return pathlib.Path(str(shutil.which("initdb"))).parent


@contextlib.contextmanager
def postgres(directory):
    """A database cluster without passwords that listens on a Unix socket only. Yields kine's address of it."""
    programs, data = postgres_programs(), directory / "postgres"
    # PostgreSQL refuses to run as root
    user: dict = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    data.mkdir()
    if user:
        directory.chmod(0o755)
        shutil.chown(data, "nobody", "nogroup")
    subprocess.run([programs / "initdb", "-D", data / "d", "-U", "kine", "--auth=trust", "--no-sync"], check=True, capture_output=True, cwd="/", **user)
    port = free_port()
    command = [programs / "postgres", "-D", data / "d", "-c", "listen_addresses=127.0.0.1", "-p", str(port), "-k", data, "-c", "fsync=off"]
    with open(directory / "postgres.log", "w") as log, subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **user) as process:
        try:
            eventually(lambda: subprocess.run([programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port)], capture_output=True).returncode == 0)
            yield f"postgres://kine@127.0.0.1:{port}/kine?sslmode=disable"
        finally:
            process.send_signal(signal.SIGINT)


@contextlib.contextmanager
def sqlite(directory):
    yield f"sqlite://{directory}/kine.db?_journal=WAL&cache=shared&_busy_timeout=30000"


class Kine:
    """`with Kine(database) as kine:` runs kine on a database; `restart` keeps its port."""

    def __init__(self, database, directory):
        binary = built(ROOT / "tests" / "kine", r"github\.com/k3s-io/kine", pathlib.Path("kine/kine"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.command = [binary, database, f"127.0.0.1:{self.port}"]
        self.log = directory / "kine.log"

    def __enter__(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd=self.log.parent)
        eventually(self.is_open)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def is_open(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def restart(self):
        self.__exit__()
        self.__enter__()


@pytest.fixture(params=[sqlite, postgres], ids=["sqlite", "postgresql"])
def kine(request):
    with tempfile.TemporaryDirectory(prefix="pintle-kine-") as name:
        directory = pathlib.Path(name)
        with request.param(directory) as database, Kine(database, directory) as kine:
            yield kine


def on(launch, kine, **options):
    return launch("--etcd-servers", kine.url, "--leader-elect=false", storage="etcd", **options)


def test_objects_are_served_and_kept(launch, kine):
    """Writes, conflicts, watches and lists; everything is there after restarts of the server and of kine."""
    with on(launch, kine) as server:
        server.ok("POST", CRDS, DEFINITION)
        server.ok("POST", BOATS, {"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": "gig"}, "sails": 2})
        assert server.request("PATCH", BOATS + "/gig", {"sails": 10})[0] == 422
        start = server.ok("GET", MAPS)["metadata"]["resourceVersion"]
        watch = Watch(server, f"{MAPS}?watch=1&resourceVersion={start}")
        first = server.ok("POST", MAPS, config_map("one", a="1"))
        assert server.request("POST", MAPS, config_map("one"))[0] == 409
        server.ok("PUT", MAPS + "/one", {**first, "data": {"a": "2"}})
        assert server.request("PUT", MAPS + "/one", {**first, "data": {"a": "3"}})[0] == 409, "its resourceVersion is old"
        server.ok("DELETE", MAPS + "/one")

        def types():
            return [json.loads(line)["type"] for line in list(watch.lines) if '"name":"one"' in line]

        eventually(lambda: types() == ["ADDED", "MODIFIED", "DELETED"])
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda i: server.request("POST", MAPS, config_map(f"many-{i:02}"))[0], range(40)))
        assert statuses == [201] * 40
        # of concurrent writes of one object, each increment is kept
        server.ok("POST", MAPS, config_map("counter", n="0"))

        def increment(_):
            while True:
                current = server.ok("GET", MAPS + "/counter")
                current["data"]["n"] = str(int(current["data"]["n"]) + 1)
                if server.request("PUT", MAPS + "/counter", current)[0] == 200:
                    return

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(increment, range(20)))
        assert server.ok("GET", MAPS + "/counter")["data"] == {"n": "20"}
        before = server.ok("GET", MAPS)
        kine.restart()
        eventually(lambda: server.request("POST", MAPS, config_map("after-kine"))[0] in (201, 409))
        server.restart()
        after = server.ok("GET", MAPS)["items"]
        assert [item for item in after if item["metadata"]["name"] != "after-kine"] == before["items"]
        assert server.ok("GET", BOATS + "/gig")["sails"] == 2


def test_two_servers_share_it(launch, kine):
    with on(launch, kine) as one, on(launch, kine) as two:
        watch = Watch(two, MAPS + "?watch=1")
        for i in range(10):
            created = one.ok("POST", MAPS, config_map(f"map-{i}"))
            seen = two.ok("GET", f"{MAPS}/map-{i}")
            assert seen["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"], "a read sees writes of the other server"
        eventually(lambda: sum('"name":"map-' in line for line in list(watch.lines)) == 10)
