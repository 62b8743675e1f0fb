"""Interrupted and unusual starts, and files that are reloaded while the server runs."""
import hashlib
import pathlib
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
        command = [launch.binary, "serve", "--storage", "memory", "--cert-dir", base / "certificates",
                   "--data-dir", base / "new" / "data", "--secure-port", "0"]
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
        done = subprocess.run([launch.binary, "store", "backup", "-", "--data-dir", str(server.dir)], capture_output=True,
                              cwd=directory, timeout=60)
        assert done.returncode == 0 and b"objects at revision" in done.stderr, done.stderr
        assert list(pathlib.Path(directory).iterdir()) == [], "no file is created"
        backup = pathlib.Path(directory) / "backup"
        backup.write_bytes(done.stdout)
        data = pathlib.Path(directory) / "data"
        subprocess.run([launch.binary, "store", "restore", str(backup), "--data-dir", str(data)], check=True, capture_output=True)
        with launch(storage="embedded", data_dir=data) as restored:
            restored.ok("GET", MAPS + "/kept")


def test_hints_for_invalid_flags(launch):
    for flags, hint in ((["--port", "8080"], "the flag is called --secure-port: --secure-port 8080"),
                        (["--request-timeout", "30"], "the unit is missing: write 30s, 30m or 30h")):
        done = subprocess.run([launch.binary, "serve", *flags], capture_output=True, text=True, timeout=30)
        assert done.returncode == 2 and hint in done.stderr, done.stderr
