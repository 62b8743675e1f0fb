"""Clusters of etcd, which is built from its Go module. Keys are read and written through the JSON gateway."""

import base64
import contextlib
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from programs import ROOT, built, free_port

NEWEST = ROOT / "tests" / "etcd"
OLDER = sorted((NEWEST / "older").iterdir())
SECONDS = 60
module = NEWEST


@contextlib.contextmanager
def of_module(folder):
    """Within the context, clusters run the etcd of another Go module."""
    global module
    module = folder
    try:
        yield
    finally:
        module = NEWEST


def build():
    """Builds etcd unless its binary exists. Returns the path of the binary."""
    return built(module, r"go\.etcd\.io/etcd(?:/server/v3)?", pathlib.Path("etcd/etcd"))


class Member:
    """A process of a cluster; its data and ports remain the same when it is started again."""

    def __init__(self, name, directory, scheme="http", flags=()):
        self.name, self.dir, self.flags = name, directory / name, flags
        self.url, self.peer = (f"{s}://127.0.0.1:{free_port()}" for s in (scheme, "http"))
        self.process = None

    def start(self, members):
        cluster = ",".join(f"{member.name}={member.peer}" for member in members)
        self.dir.mkdir(parents=True, exist_ok=True)
        flags = {
            "name": self.name,
            "data-dir": self.dir / "data",
            "log-level": "error",
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": self.peer,
            "initial-advertise-peer-urls": self.peer,
            "initial-cluster": cluster,
        }
        command = [build(), *(f"--{name}={value}" for name, value in flags.items()), *self.flags]
        with open(self.dir / "log", "a") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log)

    def stop(self, signal_number=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(signal_number)
            self.process.wait(timeout=SECONDS)
            self.process = None


class Etcd:
    """`with Etcd() as etcd:` runs a cluster with ephemeral data."""

    def __init__(self, members=1, scheme="http", flags=("--unsafe-no-fsync",)):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pintle-etcd-"))
        names = [f"member{number}" for number in range(members)]
        self.members = [Member(name, self.dir, scheme, flags) for name in names]
        self.token = None

    def __enter__(self):
        for member in self.members:
            member.start(self.members)
        if self.members[0].url.startswith("http:"):
            self.wait()
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.stop(signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)

    @property
    def urls(self):
        return ",".join(member.url for member in self.members)

    def wait(self):
        """Waits until the cluster accepts writes."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return self.put("/ready", b"")
            except (OSError, urllib.error.URLError):
                assert time.monotonic() < deadline, (self.dir / "member0" / "log").read_text()
                time.sleep(0.05)

    def call(self, path, body, member=None):
        running = [member] if member else [member for member in self.members if member.process]
        request = urllib.request.Request(running[0].url + path, data=json.dumps(body).encode(), method="POST")
        if self.token:
            request.add_header("Authorization", self.token)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read())

    def put(self, key, value):
        return self.call("/v3/kv/put", {"key": text(key.encode()), "value": text(value)})

    def put_all(self, values):
        """Puts the values of up to 128 keys at once."""
        puts = [{"requestPut": {"key": text(key.encode()), "value": text(value)}} for key, value in values.items()]
        return self.call("/v3/kv/txn", {"success": puts})

    def delete(self, key):
        return self.call("/v3/kv/deleterange", {"key": text(key.encode())})

    def get(self, key):
        """The value of a key, or None."""
        pairs = self.call("/v3/kv/range", {"key": text(key.encode())}).get("kvs", [])
        return base64.b64decode(pairs[0].get("value", "")) if pairs else None

    def keys(self, prefix):
        """The values of all keys that begin with a prefix, by key."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        pairs = self.call("/v3/kv/range", {"key": text(prefix.encode()), "range_end": text(end.encode())}).get("kvs", [])
        return {base64.b64decode(kv["key"]).decode(): base64.b64decode(kv.get("value", "")) for kv in pairs}


def text(raw):
    return base64.b64encode(raw).decode()
