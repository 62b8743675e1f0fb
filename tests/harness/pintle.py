"""A pintle server for one test, on a free port."""

import http.client
import json
import os
import pathlib
import re
import select
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse

from programs import free_port

TOKEN = "a-token-for-tests"
# names the field manager of requests without one
USER_AGENT = "Python-urllib/3"
# the only media type in which the public keys of ServiceAccount tokens are served
KEY_SET = {"Accept": "application/jwk-set+json"}
# the timeout of a start
START_SECONDS = 120
READY = re.compile(r"pintle is ready on (\S+) in (\d+) ms; kubeconfig: (\S+)")


# the servers of the current test, whose logs are shown if it fails
STARTED = []
# the size of a log in that report, in characters
LOG_CHARACTERS = 10_000


class Pintle:
    """`with Pintle(binary) as server:` runs a server with an ephemeral data directory."""

    def __init__(self, binary, *flags, storage="memory", data_dir=None, before=None, environment=None):
        """`flags` are added to those of `pintle serve`; `before` runs in the child process before exec; `environment` is
        added to that of the tests."""
        self.binary, self.flags, self.storage, self.before = binary, flags, storage, before
        self.environment = {**os.environ, **(environment or {})}
        self.owns_dir = data_dir is None
        self.dir = pathlib.Path(data_dir or tempfile.mkdtemp(prefix="pintle-test-"))
        self.tokens = self.dir / "tokens.csv"
        self.process, self.port, self.last_log = None, free_port(), ""
        self.connections = threading.local()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        if self.owns_dir:
            shutil.rmtree(self.dir, ignore_errors=True)

    def start(self):
        self.dir.mkdir(parents=True, exist_ok=True)
        self.tokens.write_text(f'{TOKEN},tester,1,"system:masters"\nplain-token,plain,2\n')
        command = [
            self.binary,
            "serve",
            "--storage",
            self.storage,
            "--data-dir",
            str(self.dir),
            "--secure-port",
            str(self.port),
            "--token-auth-file",
            str(self.tokens),
            *self.flags,
        ]
        self.errors = open(self.dir / "stderr.log", "a+")
        if self not in STARTED:
            STARTED.append(self)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True, preexec_fn=self.before, env=self.environment)
        assert self.process.stdout
        readable, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if readable else "nothing"
        match = READY.search(line)
        if not match:
            if readable:
                self.process.wait(timeout=10)
            self.process.kill()
            raise AssertionError(f"the server did not start: {line!r} {self.stderr()}")
        self.url, self.milliseconds, self.kubeconfig = match.group(1), int(match.group(2)), match.group(3)
        return self

    def stderr(self):
        """Everything that the server has logged."""
        return pathlib.Path(self.errors.name).read_text(errors="replace")

    def log_tail(self):
        """The end of the log, also after the data directory has been removed."""
        return self.last_log if self.process is None else self.stderr()[-LOG_CHARACTERS:]

    def resident_mib(self):
        """Resident memory of the server in MiB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def stop(self, signal_number=signal.SIGTERM):
        """Stops the server. Returns its exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            status = self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.process.stdout.close()
        self.last_log = self.stderr()[-LOG_CHARACTERS:]
        self.errors.close()
        self.process = None
        return status

    def restart(self, signal_number=signal.SIGTERM):
        """Stops the server and starts it again with the same data and port."""
        self.stop(signal_number)
        return self.start()

    def request(self, method, path, body=None, token=TOKEN, headers=None, timeout=30):
        """Returns (status, decoded body, headers) of the response. A body that is an iterator is sent in chunks."""
        raw = body is None or isinstance(body, bytes) or hasattr(body, "__next__")
        data = body if raw else json.dumps(body).encode()
        sent = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json", "Accept": "application/json"}
        sent |= {"User-Agent": USER_AGENT} | ({"Authorization": "Bearer " + token} if token else {}) | (headers or {})
        connection = self.connection(timeout)
        try:
            connection.request(method, path, data, sent)
            with connection.getresponse() as response:
                return response.status, decode(response.read()), dict(response.headers)
        except BaseException:
            connection.close()
            raise

    def connection(self, timeout):
        """A connection of this thread to the running process. It is kept, since a handshake takes longer than most requests."""
        peer = self.process, self.url
        if getattr(self.connections, "peer", None) != peer:
            address = urllib.parse.urlsplit(self.url).netloc
            self.connections.kept = http.client.HTTPSConnection(address, context=insecure())
            self.connections.peer = peer
        connection = self.connections.kept
        connection.timeout = timeout
        if connection.sock:
            # what can be read before a request is the end of the connection
            if select.select([connection.sock], [], [], 0)[0]:
                connection.close()
            else:
                connection.sock.settimeout(timeout)
        return connection

    def wait_for(self, path):
        """Waits until an object exists, and returns it."""

        def get():
            status, body, _ = self.request("GET", path)
            return body if status == 200 else None

        return eventually(get)

    def ok(self, method, path, body=None, **options):
        """Sends a request that must succeed, and returns the decoded body of the response."""
        status, response, _ = self.request(method, path, body, **options)
        assert status < 300, f"{method} {path}: {status} {response}"
        return response


def insecure():
    """A TLS context that accepts any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def decode(raw):
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def eventually(check, seconds=20):
    """Calls check() until its value is true, for at most `seconds`, and returns the value."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value or time.monotonic() > deadline:
            assert value, f"still {value!r} after {seconds} s"
            return value
        time.sleep(0.02)
