"""Interrupted and unusual starts, and files that are reloaded while the server runs."""

import json
import os
import pathlib
import pty
import signal
import socket
import ssl
import subprocess

import pytest

from connections import address, tls
from objects import MAPS
from pintle import eventually

pytestmark = pytest.mark.startup


def start(launch, directory, *flags, **options):
    """Starts a server as a program would that knows nothing of the harness, and returns its process when it is ready."""
    command = [launch.binary, "serve", "--storage", "memory", "--data-dir", str(directory), "--secure-port", "0", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    return process, process.stdout.readline()


def test_files_are_reloaded(launch, tmp_path):
    """Changed tokens and certificates apply to new requests and connections; invalid files are ignored."""
    with launch() as one, launch() as two:
        certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

        def copy_certificate(other):
            key.write_text((other.dir / "serving.key").read_text())
            certificate.write_text((other.dir / "serving.crt").read_text())

        def serves_that_of(other):
            with tls(server) as connection:
                return connection.getpeercert(binary_form=True) == ssl.PEM_cert_to_DER_cert((other.dir / "serving.crt").read_text())

        copy_certificate(one)
        with launch("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key)) as server:
            status = lambda: server.request("GET", MAPS, token="another-token")[0]
            reload = lambda: server.process.send_signal(signal.SIGHUP)
            assert serves_that_of(one)
            old = server.tokens.read_text()
            assert status() == 401
            server.tokens.write_text(old + 'another-token,other,3,"system:masters"\n')
            reload()
            eventually(lambda: status() == 200)
            copy_certificate(two)
            reload()
            eventually(lambda: serves_that_of(two))
            # changes are also found without a signal
            server.tokens.write_text(old)
            eventually(lambda: status() == 401)
            certificate.write_text("no certificate")
            server.tokens.write_text("no token file")
            reload()
            eventually(lambda: "cannot be reloaded" in server.stderr())
            assert serves_that_of(two)
            server.ok("GET", MAPS)


def test_memory_storage_writes_only_to_its_directories(launch, tmp_path):
    data, certificates = tmp_path / "new" / "data", tmp_path / "certificates"
    process, line = start(launch, data, "--cert-dir", str(certificates))
    process.terminate()
    assert process.wait(timeout=30) == 0 and "pintle is ready" in line, line
    assert (data / "admin.kubeconfig").stat().st_mode & 0o777 == 0o600
    assert not (data / "ca.key").exists() and (certificates / "ca.key").exists()


def test_backups_to_stdout(launch, tmp_path):
    with launch(storage="embedded") as server:
        server.ok("POST", MAPS, {"metadata": {"name": "kept"}})
        done = subprocess.run([launch.binary, "store", "backup", "-", "--data-dir", str(server.dir)], capture_output=True, cwd=tmp_path, timeout=60)
        assert done.returncode == 0 and b"objects at revision" in done.stderr, done.stderr
        assert list(tmp_path.iterdir()) == [], "no file is created"
        (tmp_path / "backup").write_bytes(done.stdout)
        launch.run("store", "restore", tmp_path / "backup", "--data-dir", tmp_path / "data")
        with launch(storage="embedded", data_dir=tmp_path / "data") as restored:
            restored.ok("GET", MAPS + "/kept")


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
    for request in ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PATCH /api HTTP/1.1\r\nHost: a\r\n\r\n" + "x" * 10000):
        with socket.create_connection(address(server), timeout=10) as plain:
            plain.sendall(request.encode())
            plain.shutdown(socket.SHUT_WR)
            response = b"".join(iter(lambda: plain.recv(4096), b""))
        assert response == b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", response
