"""Interrupted and unusual starts, and files that are reloaded while the server runs."""

import hashlib
import json
import os
import pathlib
import pty
import signal
import socket
import ssl
import subprocess
import tempfile
from urllib.parse import urlparse

import pytest

from pintle import eventually, insecure

pytestmark = pytest.mark.startup

MAPS = "/api/v1/namespaces/default/configmaps"


def certificate_digest(server):
    """The digest of the serving certificate of a new connection."""
    url = urlparse(server.url)
    with socket.create_connection((url.hostname, url.port), timeout=10) as plain:
        with insecure().wrap_socket(plain, server_hostname=url.hostname) as connection:
            return hashlib.sha256(connection.getpeercert(binary_form=True)).hexdigest()


def digest_of(path):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(path.read_text())).hexdigest()


def status(server, token):
    return server.request("GET", MAPS, token=token)[0]


def test_files_are_reloaded(launch):
    """Changed tokens and certificates apply to new requests and connections; invalid files are ignored."""
    with tempfile.TemporaryDirectory(prefix="pintle-test-") as directory, launch() as one, launch() as two:
        certificate, key = (pathlib.Path(directory) / name for name in ("tls.crt", "tls.key"))

        def copy_certificate(other):
            key.write_text((other.dir / "serving.key").read_text())
            certificate.write_text((other.dir / "serving.crt").read_text())

        copy_certificate(one)
        with launch("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key)) as server:
            assert certificate_digest(server) == digest_of(one.dir / "serving.crt")
            old = server.tokens.read_text()
            assert status(server, "another-token") == 401
            server.tokens.write_text(old + 'another-token,other,3,"system:masters"\n')
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: status(server, "another-token") == 200)
            copy_certificate(two)
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: certificate_digest(server) == digest_of(two.dir / "serving.crt"))
            # changes are also found without a signal
            server.tokens.write_text(old)
            eventually(lambda: status(server, "another-token") == 401)
            certificate.write_text("no certificate")
            server.tokens.write_text("no token file")
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: "cannot be reloaded" in server.stderr())
            assert certificate_digest(server) == digest_of(two.dir / "serving.crt")
            server.ok("GET", MAPS)


def test_memory_storage_writes_only_to_its_directories(launch):
    with tempfile.TemporaryDirectory(prefix="pintle-test-") as directory:
        base = pathlib.Path(directory)
        command = [
            launch.binary,
            "serve",
            "--storage",
            "memory",
            "--cert-dir",
            base / "certificates",
            "--data-dir",
            base / "new" / "data",
            "--secure-port",
            "0",
        ]
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as process:
            line = process.stdout.readline()
            process.send_signal(signal.SIGTERM)
        assert process.returncode == 0 and "pintle is ready" in line, line
        assert (base / "new" / "data" / "admin.kubeconfig").stat().st_mode & 0o777 == 0o600
        assert not (base / "new" / "data" / "ca.key").exists() and (base / "certificates" / "ca.key").exists()


def test_the_process_that_locks_a_directory_is_named(launch):
    """The error message does not name port 0 if the port is chosen later."""
    with launch(storage="embedded") as server:
        command = [launch.binary, "serve", "--data-dir", str(server.dir), "--secure-port", "0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 1 and f"process id {server.process.pid}" in done.stderr, done.stderr
        assert ":0" not in done.stderr, done.stderr


def test_backups_to_stdout(launch):
    with launch(storage="embedded") as server, tempfile.TemporaryDirectory(prefix="pintle-test-") as directory:
        server.ok("POST", MAPS, {"metadata": {"name": "kept"}})
        done = subprocess.run([launch.binary, "store", "backup", "-", "--data-dir", str(server.dir)], capture_output=True, cwd=directory, timeout=60)
        assert done.returncode == 0 and b"objects at revision" in done.stderr, done.stderr
        assert list(pathlib.Path(directory).iterdir()) == [], "no file is created"
        backup = pathlib.Path(directory) / "backup"
        backup.write_bytes(done.stdout)
        data = pathlib.Path(directory) / "data"
        subprocess.run([launch.binary, "store", "restore", str(backup), "--data-dir", str(data)], check=True, capture_output=True)
        with launch(storage="embedded", data_dir=data) as restored:
            restored.ok("GET", MAPS + "/kept")


def test_hints_for_invalid_flags(launch):
    for flags, hint in (
        (["--port", "8080"], "the flag is called --secure-port: --secure-port 8080"),
        (["--secure-port", "abc"], "wanted a whole number from 0 to 65535"),
        (["--event-ttl", "30d"], "there is no unit for days: write 720h"),
        (["--request-timeout", "30"], "the unit is missing: write 30s, 30m or 30h"),
    ):
        done = subprocess.run([launch.binary, "serve", *flags], capture_output=True, text=True, timeout=30)
        assert done.returncode == 2 and hint in done.stderr, done.stderr


def start(launch, directory, *flags, **options):
    """Starts a server as a program would that knows nothing of the harness, and returns its process when it is ready."""
    command = [launch.binary, "serve", "--storage", "memory", "--data-dir", str(directory), "--secure-port", "0", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    return process, process.stdout.readline()


def test_new_directories_are_ignored_by_git(launch, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    theirs.mkdir()
    for directory in (ours, theirs):
        process, line = start(launch, directory)
        process.terminate()
        assert process.wait(timeout=30) == 0 and "is ready" in line
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    listed = subprocess.run(["git", "-C", tmp_path, "status", "--porcelain"], check=True, capture_output=True, text=True)
    assert listed.stdout == "?? theirs/\n"


def test_the_end_of_a_terminal_ends_the_server(launch, tmp_path):
    """SIGHUP reloads files, unless stdin is a terminal, whose end it means then."""
    controller, terminal = pty.openpty()
    process, line = start(launch, tmp_path / "data", stdin=terminal)
    assert "is ready" in line
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=30) == 0
    os.close(terminal)
    os.close(controller)


def test_the_end_of_stdin_ends_the_server(launch, tmp_path):
    process, line = start(launch, tmp_path / "data", "--exit-with-stdin", "-o", "json", stdin=subprocess.PIPE)
    ready = json.loads(line)
    assert ready["pid"] == process.pid and pathlib.Path(ready["kubeconfig"]).exists() and ready["url"].startswith("https://127.0.0.1:")
    process.stdin.write("what is written means nothing")
    process.stdin.close()
    assert process.wait(timeout=30) == 0


def test_the_end_of_the_parent_ends_the_server(launch, tmp_path):
    ready, data = tmp_path / "ready", tmp_path / "data"
    ready.write_text("of an earlier start")
    script = f"{launch.binary} serve --storage memory --data-dir {data} --secure-port 0 --exit-with-parent --ready-file {ready} & wait"
    parent = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    line = parent.stdout.readline()
    assert "is ready" in line and ready.read_text() == line
    parent.kill()
    parent.wait()
    # the server has the other end of the pipe
    assert parent.stdout.read() == ""


def test_http_without_tls_is_refused_with_the_reason(server):
    address = urlparse(server.url)
    for request in ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PATCH /api HTTP/1.1\r\nHost: a\r\n\r\n" + "x" * 10000):
        with socket.create_connection((address.hostname, address.port), timeout=10) as plain:
            plain.sendall(request.encode())
            plain.shutdown(socket.SHUT_WR)
            response = b"".join(iter(lambda: plain.recv(4096), b""))
        assert response == b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", response
