"""A server that the processes of a test run share, and that ends with the last of them.

A Unix socket stands for the server. A connection to it makes this process a user; the kernel closes it however the process ends. The
server sends a line of JSON when it is ready. Without a server there, this process starts one, which ends at once if another process was
faster; see `pintle serve --help`.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from . import binary
from .api import Client
from .errors import PintleError, ResponseError
from .workspace import WORKSPACES, Workspace

START_SECONDS = 60
BUILD_SECONDS = 300
# how long the key of a template stays taken after its builder has died
LEASE_SECONDS = 10
FLAGS = ("--storage=memory", "--workspaces", "--testing", "--secure-port=0", "--bind-address=127.0.0.1", "-o=json")
# A program that ends without a word this often, for this long, is no server; another process that starts one ends ours once or twice.
SILENT_ENDS, SILENT_SECONDS = 20, 3
# macOS has the shortest paths of sockets
SOCKET_BYTES_MAX = 103
# proxies that clients of other libraries would use
LOOPBACK = "127.0.0.1"

_started: dict[tuple[str | None, tuple[str, ...], int], Server] = {}
_starting = threading.Lock()


def start(*flags: str, run: str | None = None) -> Server:
    """The server of this test run with these flags, which is started unless it runs. `run` names the test run; the workers of
    pytest-xdist have the same one."""
    run = run or os.environ.get("PINTLE_RUN") or os.environ.get("PYTEST_XDIST_TESTRUNUID")
    with _starting:
        # without a name, it is that of this process
        key = (run, flags, os.getpid())
        if key not in _started or _started[key].is_stopped:
            _started[key] = Server(flags, run or uuid.uuid4().hex)
        return _started[key]


def directory() -> pathlib.Path:
    """The directory of the sockets, which only this user can read."""
    name = f"pintle-{os.getuid()}"
    for parent in filter(None, (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir())):
        fits = len(os.fsencode(f"{parent}/{name}/{'0' * 16}.sock")) <= SOCKET_BYTES_MAX
        if fits and os.access(parent, os.W_OK):
            return pathlib.Path(parent) / name
    return pathlib.Path("/tmp") / name


class Server:
    """A running server: `url`, `version`, `pid`, `log`."""

    def __init__(self, flags: tuple[str, ...], run: str) -> None:
        self.program = binary.find()
        status = os.stat(self.program)
        parts = [run, self.program, str(status.st_mtime_ns), str(status.st_size), *flags]
        name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        self.socket = directory() / f"{name}.sock"
        self.data = directory() / f"{name}.data"
        self.flags = [*FLAGS, f"--exit-with-users={self.socket}", f"--data-dir={self.data}", *flags]
        self.is_stopped = False
        self.connection, ready = self._join()
        self.url, self.version, self.pid, self.log = ready["url"], ready["version"], ready["pid"], ready.get("log")
        self.credentials = ready["credentials"]
        self.client = Client(self.url, self.credentials)
        self.templates: dict[str, Workspace] = {}
        self._check_version()
        no_proxy()

    def _check_version(self) -> None:
        wanted = binary.version()
        if wanted not in (None, self.version):
            remedy = f"install pintle-server=={self.version}, or another binary" if os.environ.get("PINTLE_BINARY") else "install pintle-server again"
            self.stop()
            raise PintleError(f"{self.program} has version {self.version}, and pintle-server is {wanted}: {remedy}")

    def _join(self) -> tuple[socket.socket, dict[str, Any]]:
        """Becomes a user of the server, and starts one if there is none."""
        began, ends = time.monotonic(), 0
        while (took := time.monotonic() - began) < START_SECONDS:
            joined = self._connect()
            if joined:
                return joined
            if ends > SILENT_ENDS and took > SILENT_SECONDS:
                self._forget_log()
                remedy = f"run {self.program} serve to see why, and correct PINTLE_BINARY if it is set"
                raise PintleError(f"{self.program} ends without starting a server: {remedy}")
            self._spawn()
            ends += 1
        raise PintleError(f"no server has started within {START_SECONDS} s: run {self.program} serve to see why")

    def _connect(self) -> tuple[socket.socket, dict[str, Any]] | None:
        """The connection and the first line, once the server is ready. None if there is no server, or if it is about to end."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(START_SECONDS)
        try:
            connection.connect(str(self.socket))
            with connection.makefile("rb") as file:
                line = file.readline()
            if line:
                connection.settimeout(None)
                return connection, json.loads(line)
        except (ConnectionError, FileNotFoundError):
            pass
        connection.close()
        return None

    def _spawn(self) -> None:
        """Starts a server, and returns when it accepts connections, or another one does."""
        command = [self.program, "serve", *self.flags]
        try:
            self.socket.parent.mkdir(mode=0o700, exist_ok=True)
            # the server removes it
            log = open(self.socket.with_suffix(".log"), "ab+")
        except FileNotFoundError:
            # the directory of a server that has just ended
            return
        with log:
            size = log.seek(0, os.SEEK_END)
            # a session of its own: Ctrl-C is for the tests
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
            except OSError as error:
                raise PintleError(f"cannot run {self.program}: {error.strerror}") from None
            assert process.stdout
            with process.stdout as stdout:
                is_ready = stdout.readline()
            if not is_ready and process.wait() != 0:
                log.seek(size)
                why = log.read().decode(errors="replace").strip().splitlines()
                self._forget_log()
                # after an error of the command line, there is advice
                errors = [line.split(": ", 1)[1] for line in why if line.startswith(("error: ", "pintle: "))]
                raise PintleError(f"the server does not start: {[*errors, *why[-1:], process.returncode][0]}")
        # nothing else waits for its end
        threading.Thread(target=process.wait, daemon=True).start()

    def _forget_log(self) -> None:
        """Removes the log of a server that has not started."""
        with contextlib.suppress(OSError):
            self.socket.with_suffix(".log").unlink()
            self.socket.parent.rmdir()

    def workspace(self, name: str | None = None, **spec: Any) -> Workspace:
        """A new workspace, which is empty unless `spec` says otherwise; see `pintle workspace create --help`. `from`, which is a
        keyword of Python, is `from_`."""
        spec = {field.removesuffix("_"): value for field, value in spec.items()}
        name = name or f"w-{uuid.uuid4().hex[:12]}"
        # it can be used when the response comes
        kubeconfig = self.client.request("POST", f"/clusters/{name}", spec)
        # of a workspace that ends, the URL has the uid, since another one may get the name
        place = kubeconfig["clusters"][0]["cluster"]["server"].rsplit("/", 1)[1]
        return Workspace(self, name, place.partition(".")[2])

    def template(self, key: str, build: Callable[[Workspace], object]) -> Workspace:
        """The template of a key. The first process that asks for it calls `build` with the new workspace; the others wait. The file
        that defines `build` is part of the key: two files that chose one name would otherwise get each other's objects."""
        whole = f"{file_of(build)}\0{key}"
        if whole in self.templates:
            return self.templates[whole]
        name = "t-" + hashlib.sha256(whole.encode()).hexdigest()[:16]
        until = time.monotonic() + BUILD_SECONDS
        while time.monotonic() < until:
            template = self._build(name, build) or self._built(name, until)
            if template:
                self.templates[whole] = template
                return template
        raise PintleError(f"the template {key!r} has not been built within {BUILD_SECONDS} s")

    def _build(self, name: str, build: Callable[[Workspace], object]) -> Workspace | None:
        began = time.monotonic()
        try:
            template = self.workspace(name, ttl=f"{LEASE_SECONDS}s")
        except ResponseError as error:
            if error.code != 409:
                raise
            return None
        try:
            with repeated(LEASE_SECONDS / 3, lambda: template.patch({"spec": {"ttl": f"{int(time.monotonic() - began) + LEASE_SECONDS}s"}})):
                build(template)
            template.patch({"spec": {"template": True, "ttl": None}})
        except BaseException:
            # another process may build it
            template.delete()
            raise
        return template

    def _built(self, name: str, until: float) -> Workspace | None:
        """A template that another process builds. None if it has failed."""
        while time.monotonic() < until:
            try:
                found = self.client.request("GET", f"{WORKSPACES}/{name}")
            except ResponseError as error:
                if error.code != 404:
                    raise
                return None
            if found["spec"].get("template"):
                return Workspace(self, name)
            time.sleep(0.005)
        return None

    def kubeconfig(self) -> str:
        """The path of a kubeconfig for the API outside of workspaces."""
        return str(self.data / "admin.kubeconfig")

    def log_size(self) -> int:
        """The length of the log until now, for `log_since`."""
        return os.path.getsize(self.log) if self.log and os.path.exists(self.log) else 0

    def log_since(self, size: int) -> str:
        """What the server has logged since then."""
        if not self.log or not os.path.exists(self.log):
            return ""
        with open(self.log, "rb") as file:
            file.seek(size)
            return file.read().decode(errors="replace")

    def stop(self) -> None:
        """Ends the use by this process. The server ends with its last user."""
        self.is_stopped = True
        if getattr(self, "client", None):
            self.client.close()
        self.connection.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def file_of(build: Callable[..., object]) -> str:
    """The file that defines a function; empty if that is unknown, as for objects that can be called."""
    code = getattr(inspect.unwrap(build), "__code__", None)
    return str(code.co_filename) if code else ""


@contextlib.contextmanager
def repeated(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    """Does something at intervals, in a thread."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            # the end shows whether the template is still there
            with contextlib.suppress(ResponseError, OSError):
                act()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def no_proxy() -> None:
    """Excepts the server from the proxies of the environment, for clients of other libraries and for child processes."""
    for name in ("NO_PROXY", "no_proxy"):
        known = [part for part in os.environ.get(name, "").split(",") if part]
        if LOOPBACK not in known and "*" not in known:
            os.environ[name] = ",".join([*known, LOOPBACK])
