"""A pintle server for one test, on a free port."""
import os
import pathlib
import re
import select
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import json
import urllib.error
import urllib.request

TOKEN = "a-token-for-tests"
# the only media type of the keys of ServiceAccount tokens
KEY_SET = {"Accept": "application/jwk-set+json"}
# a start that takes longer counts as hanging
STARTED_SECONDS = 120
READY = re.compile(r"pintle is ready on (\S+) in (\d+) ms; kubeconfig: (\S+)")


# the servers of the present test, for the report when it fails
STARTED = []
# how much of a log is kept for that report, in characters
LOG_KEPT = 10_000


class Pintle:
    """`with Pintle(binary) as server:` runs a server with an ephemeral data directory."""

    def __init__(self, binary, *flags, storage="memory", data_dir=None, before=None, environment=None):
        """`flags` are added to those of `pintle serve`; `before` runs in the child process before exec; `environment` is
        added to that of the tests."""
        self.binary, self.flags, self.storage, self.before = binary, flags, storage, before
        self.environment = {**os.environ, **(environment or {})}
        self.own = data_dir is None
        self.dir = pathlib.Path(data_dir or tempfile.mkdtemp(prefix="pintle-test-"))
        self.tokens = self.dir / "tokens.csv"
        self.process, self.port, self.kept_log = None, 0, ""

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        if self.own:
            shutil.rmtree(self.dir, ignore_errors=True)

    def start(self):
        self.dir.mkdir(parents=True, exist_ok=True)
        self.tokens.write_text(f'{TOKEN},tester,1,"system:masters"\nplain-token,plain,2\n')
        command = [self.binary, "serve", "--storage", self.storage, "--data-dir", str(self.dir), "--secure-port", str(self.port),
                   "--token-auth-file", str(self.tokens), *self.flags]
        self.errors = open(self.dir / "stderr.log", "a+")
        if self not in STARTED:
            STARTED.append(self)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        preexec_fn=self.before, env=self.environment)
        readable, _, _ = select.select([self.process.stdout], [], [], STARTED_SECONDS)
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
        return self.kept_log if self.process is None else self.stderr()[-LOG_KEPT:]

    def resident_mib(self):
        """Resident memory of the server in MiB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def stop(self, how=signal.SIGTERM):
        """Ends the server. Returns its exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            status = self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.process.stdout.close()
        self.kept_log = self.stderr()[-LOG_KEPT:]
        self.errors.close()
        self.process = None
        return status

    def restart(self, how=signal.SIGTERM):
        """Ends the server and starts it again on its data and its port."""
        port = int(self.url.rsplit(":", 1)[1])
        self.stop(how)
        self.port = port
        return self.start()

    def request(self, method, path, body=None, token=TOKEN, headers=None, timeout=30):
        """Returns (status, decoded body, headers). A body that is an iterator is sent in chunks."""
        raw = body is None or isinstance(body, bytes) or hasattr(body, "__next__")
        data = body if raw else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("Content-Type", "application/merge-patch+json" if method == "PATCH" else "application/json")
        request.add_header("Accept", "application/json")
        if token:
            request.add_header("Authorization", "Bearer " + token)
        for key, value in (headers or {}).items():
            request.add_header(key, value)
        try:
            with urllib.request.urlopen(request, context=insecure(), timeout=timeout) as answer:
                return answer.status, decode(answer.read()), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, decode(error.read()), dict(error.headers)

    def awaited(self, path):
        """Waits until an object exists. Returns it."""
        def get():
            status, found, _ = self.request("GET", path)
            return found if status == 200 else None
        return eventually(get)

    def ok(self, method, path, body=None, **more):
        status, answer, _ = self.request(method, path, body, **more)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer


def insecure():
    """A TLS context that accepts any certificate, and so reads no CA bundle."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def decode(raw):
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def eventually(check, seconds=20):
    """Waits until check() is true, for at most `seconds`. Returns its value."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found or time.monotonic() > end:
            assert found, f"still {found!r} after {seconds} s"
            return found
        time.sleep(0.02)
