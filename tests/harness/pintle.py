"""A pintle server for one test: started on a free port, ended by its process id."""
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
# the keys of ServiceAccounts are answered in this form alone
KEY_SET = {"Accept": "application/jwk-set+json"}
# a start that takes longer hangs
STARTED_SECONDS = 120
READY = re.compile(r"pintle is ready on (\S+) in (\d+) ms; kubeconfig: (\S+)")


class Pintle:
    """`with Pintle(binary) as server:` gives a server whose data is thrown away at the end."""

    def __init__(self, binary, *flags, storage="memory", data_dir=None, before=None, environment=None):
        """`before` runs in the new process before it becomes the server; `environment` is added to ours."""
        self.binary, self.flags, self.storage, self.before = binary, flags, storage, before
        self.environment = {**os.environ, **(environment or {})}
        self.own = data_dir is None
        self.dir = pathlib.Path(data_dir or tempfile.mkdtemp(prefix="pintle-test-"))
        self.tokens = self.dir / "tokens.csv"
        self.process, self.port = None, 0

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
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        preexec_fn=self.before, env=self.environment)
        told, _, _ = select.select([self.process.stdout], [], [], STARTED_SECONDS)
        line = self.process.stdout.readline() if told else "nothing"
        match = READY.search(line)
        if not match:
            if told:
                self.process.wait(timeout=10)
            self.process.kill()
            raise AssertionError(f"the server did not start: {line!r} {self.stderr()}")
        self.url, self.milliseconds, self.kubeconfig = match.group(1), int(match.group(2)), match.group(3)
        return self

    def stderr(self):
        self.errors.flush()
        return pathlib.Path(self.errors.name).read_text()

    def stop(self, how=signal.SIGTERM):
        """Ends the server and answers its exit status."""
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
        """Answers (status, decoded body, headers); an iterator is a body of unknown length."""
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

    def ok(self, method, path, body=None, **more):
        status, answer, _ = self.request(method, path, body, **more)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer


def insecure():
    """Believes anybody, and so reads no authorities."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def decode(raw):
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def eventually(check, seconds=20):
    """Waits until check() is truthy and answers that."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found or time.monotonic() > end:
            assert found, "it did not come about"
            return found
        time.sleep(0.02)
