"""The certificates of the server, their renewal and rotation, kubeconfigs, and CertificateSigningRequests."""

import base64
import calendar
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import time

import pytest

from pintle import eventually
from programs import openssl

pytestmark = pytest.mark.certificates

DAY = 24 * 3600
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def pintle(launch, *arguments, status=0, **environment):
    """Runs a command. Returns its output."""
    done = subprocess.run([launch.binary, *arguments], capture_output=True, text=True, timeout=30, env=os.environ | environment)
    assert done.returncode == status, done
    assert status == 0 or len(done.stderr.splitlines()) == 1, "an error is one line"
    return done.stdout + done.stderr


def listed(launch, directory):
    """The certificates of a directory by name; of two certificate authorities, the one that signs."""
    rows = json.loads(pintle(launch, "certificates", "list", "--data-dir", str(directory), "-o", "json"))
    return {row["name"]: row for row in reversed(rows)}


def presented(server, authority, name="localhost"):
    """The serving certificate, after its verification with a CA bundle."""
    context = ssl.create_default_context(cafile=str(authority))
    address = (server.url.split("//")[1].rsplit(":", 1)[0], int(server.url.rsplit(":", 1)[1]))
    with socket.create_connection(address) as connection, context.wrap_socket(connection, server_hostname=name) as tls:
        return tls.getpeercert()


def serial(file):
    return openssl("x509", "-in", file, "-noout", "-serial").decode().strip().removeprefix("serial=")


def days_left(certificate):
    return (ssl.cert_time_to_seconds(certificate["notAfter"]) - time.time() + 60) // DAY


def read(kubeconfig):
    """The fields of a kubeconfig, without a library for YAML: each field is on a line of its own."""
    lines = [line.strip().removeprefix("- ") for line in pathlib.Path(kubeconfig).read_text().splitlines()]
    return dict(line.split(": ", 1) for line in reversed(lines) if ": " in line)


def whoami(server, certificate, key, tmp_path, newest=ssl.TLSVersion.MAXIMUM_SUPPORTED):
    """The user and groups of a client certificate (PEM), by a request with at most this version of TLS."""
    for name, content in (("client.crt", certificate), ("client.key", key)):
        (tmp_path / name).write_bytes(content)
    context = ssl.create_default_context(cafile=str(server.dir / "ca.crt"))
    context.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    context.maximum_version = newest
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    address = (server.url.split("//")[1].rsplit(":", 1)[0], int(server.url.rsplit(":", 1)[1]))
    with socket.create_connection(address) as connection, context.wrap_socket(connection, server_hostname="localhost") as tls:
        tls.sendall(
            (
                "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
            ).encode()
        )
        response = b"".join(iter(lambda: tls.recv(65536), b""))
    head, _, body = response.partition(b"\r\n\r\n")
    assert b" 201 " in head.splitlines()[0], response
    user = json.loads(body)["status"]["userInfo"]
    return user["username"], user["groups"]


def decoded(kubeconfig, field):
    return base64.b64decode(read(kubeconfig)[field])


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda version: version.name)
def test_client_certificates_by_version_of_tls(launch, tmp_path, version):
    with launch() as server:
        certificate, key = (decoded(server.kubeconfig, f"client-{part}-data") for part in ("certificate", "key"))
        assert whoami(server, certificate, key, tmp_path, version)[0] == "kubernetes-admin"


def test_names_and_lifetime(launch):
    host = socket.gethostname().lower()
    with launch("--bind-address=0.0.0.0", "--advertise-address=10.9.8.7", "--tls-san=pintle.example.com,192.0.2.7") as server:
        certificate = presented(server, server.dir / "ca.crt")
        names = {name.lower() for _, name in certificate["subjectAltName"]}
        assert {"pintle.example.com", "192.0.2.7", "10.9.8.7", "127.0.0.1", "localhost", host} <= names, names
        assert days_left(certificate) == 365
        assert presented(server, server.dir / "ca.crt", "pintle.example.com")
        found = listed(launch, server.dir)
        assert set(found) == {"ca", "serving", "admin"} and host in found["serving"]["names"], found
        table = pintle(launch, "certificates", "list", "--data-dir", str(server.dir))
        assert table.splitlines()[0].split() == ["NAME", "EXPIRES", "IN", "SUBJECT", "NAMES"] and ("364d" in table or "365d" in table), table
    status = subprocess.run([launch.binary, "serve", "--tls-san", "a b"], capture_output=True, text=True, timeout=30)
    assert status.returncode == 2 and "'a b'" in status.stderr and "no DNS name" in status.stderr, status


def test_names_are_added_at_the_next_start(launch):
    with launch(storage="embedded") as server:
        before = (server.dir / "ca.crt").read_text()
        server.stop()
        server.flags = ("--tls-san=later.example.com",)
        server.start()
        assert presented(server, server.dir / "ca.crt", "later.example.com")
        assert (server.dir / "ca.crt").read_text() == before


def test_keys_that_everyone_can_read_are_logged(launch):
    with launch(storage="embedded") as server:
        assert "every user can" not in server.stderr()
        server.stop()
        (server.dir / "ca.key").chmod(0o644)
        server.dir.chmod(0o755)
        server.start()
        log = server.stderr()
        assert [log.count(f"every user can {what}") for what in ("read this key", "enter the data directory")] == [1, 1], log


def test_connections_do_not_outlive_the_trust_in_their_authority(launch, tmp_path):
    with launch(storage="embedded") as server:
        former = {name: tmp_path / name for name in ("ca.crt", "admin.crt", "admin.key")}
        [shutil.copy(server.dir / name, path) for name, path in former.items()]
        context = ssl.create_default_context(cafile=str(former["ca.crt"]))
        context.load_cert_chain(former["admin.crt"], former["admin.key"])
        host, port = server.url.split("//")[1].rsplit(":", 1)
        connection = http.client.HTTPSConnection(host, int(port), context=context)

        def status():
            connection.request("GET", "/api/v1/namespaces/default/secrets")
            response = connection.getresponse()
            response.read()
            return response.status

        assert status() == 200
        socket_before = connection.sock
        pintle(launch, "certificates", "rotate-ca", "--data-dir", str(server.dir))
        eventually(lambda: "pintle-ca-" in json.dumps(presented(server, server.dir / "ca.crt")["issuer"]))
        assert status() == 200, "the former authority is still trusted"
        pintle(launch, "certificates", "rotate-ca", "--finish", "--data-dir", str(server.dir))
        eventually(lambda: status() == 401)
        assert connection.sock is socket_before


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "service-account.key"])
def test_keys_that_are_lost_are_not_replaced(launch, name):
    """A server that runs says so, and the next start is refused until the file is back; with both files of a key gone, it is made anew."""
    with launch(storage="embedded") as server:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        server.ok("POST", accounts, {"metadata": {"name": "sailor"}})
        server.ok("POST", accounts + "/sailor/token", {"spec": {}})
        eventually((server.dir / "service-account.pub").exists)
        file = server.dir / name
        content = file.read_bytes()
        file.unlink()
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: f"{name} is missing: put it back" in server.stderr())
        server.stop()
        serve = [launch.binary, "serve", "--secure-port", "0", "--data-dir", server.dir]
        for damage, want in ((None, f"{name} is missing: put it back"), (b"\xff\x00", f"{name}")):
            if damage:
                file.write_bytes(damage)
            done = subprocess.run(serve, capture_output=True, text=True, timeout=60)
            assert done.returncode == 1 and want in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
            assert "remove" in done.stderr and "put it back" in done.stderr, "the remedy is named"
        file.write_bytes(content)
        server.start()
        server.stop()


def test_serving_certificates_that_are_not_valid_are_logged(launch, tmp_path):
    key, request, certificate = tmp_path / "key", tmp_path / "request", tmp_path / "certificate"
    options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=old", "-keyout", key, "-out", request]
    openssl("req", "-new", *options)
    (tmp_path / "extensions").write_text("subjectAltName=DNS:localhost")
    openssl("x509", "-req", "-in", request, "-signkey", key, "-days", "-1", "-extfile", tmp_path / "extensions", "-out", certificate)
    with launch(f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}") as server:
        lines = [line for line in server.stderr().splitlines() if "a certificate is not valid" in line]
        assert len(lines) == 1 and "it has expired" in lines[0] and "ERROR" in lines[0], lines


def test_certificates_renew_without_a_restart(launch, tmp_path):
    """Certificates are renewed by the command, and by the server when they expire soon."""
    with launch() as server:
        before = presented(server, server.dir / "ca.crt")["serialNumber"]
        # another user in the same kubeconfig keeps its certificate
        pintle(launch, "kubeconfig", "create", "jane", "--merge", "--context", "jane", "--data-dir", str(server.dir), KUBECONFIG=server.kubeconfig)
        jane = pathlib.Path(server.kubeconfig).read_text().partition("- name: jane\n  user:")[2]
        output = pintle(launch, "certificates", "renew", "--data-dir", str(server.dir))
        assert jane and jane in pathlib.Path(server.kubeconfig).read_text()
        assert "serving.crt is renewed" in output and "admin.crt is renewed" in output, output
        renewed = (server.dir / "serving.crt").read_text()
        eventually(lambda: presented(server, server.dir / "ca.crt")["serialNumber"] != before)
        # a certificate that expires soon, with another key
        openssl(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            3,
            "-subj",
            "/CN=old",
            "-keyout",
            tmp_path / "k",
            "-out",
            tmp_path / "c",
        )
        shutil.copy(tmp_path / "k", server.dir / "serving.key")
        shutil.copy(tmp_path / "c", server.dir / "serving.crt")
        server.process.send_signal(1)
        expiring = (tmp_path / "c").read_text()
        eventually(lambda: (server.dir / "serving.crt").read_text() not in (renewed, expiring))
        eventually(lambda: presented(server, server.dir / "ca.crt")["serialNumber"] == serial(server.dir / "serving.crt"))
        assert days_left(presented(server, server.dir / "ca.crt")) == 365
        assert (
            whoami(server, decoded(server.kubeconfig, "client-certificate-data"), decoded(server.kubeconfig, "client-key-data"), tmp_path)[0]
            == "kubernetes-admin"
        )


def test_the_certificate_authority_is_rotated_while_clients_connect(launch, tmp_path):
    with launch("--controllers=*,root-ca-cert-publisher") as server:
        former, kubeconfig = tmp_path / "former.crt", tmp_path / "former.kubeconfig"
        shutil.copy(server.dir / "ca.crt", former)
        shutil.copy(server.kubeconfig, kubeconfig)
        credentials = decoded(kubeconfig, "client-certificate-data"), decoded(kubeconfig, "client-key-data")
        published = lambda: server.request("GET", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt")[1].get("data", {}).get("ca.crt")
        eventually(lambda: published() == former.read_text())
        assert "no rotation to finish" in pintle(launch, "certificates", "rotate-ca", "--finish", "--data-dir", str(server.dir), status=1)
        pintle(launch, "certificates", "rotate-ca", "--data-dir", str(server.dir))
        assert "not finished" in pintle(launch, "certificates", "rotate-ca", "--data-dir", str(server.dir), status=1)
        bundle = server.dir / "ca.crt"
        assert bundle.read_text().count("BEGIN CERTIFICATE") == 2
        new = tmp_path / "new.crt"
        new.write_text(bundle.read_text().replace(former.read_text(), ""))
        eventually(lambda: published() == bundle.read_text())
        # clients that trust either certificate authority, and clients with certificates of the former one
        for authority in (former, new, bundle):
            assert presented(server, authority)
        assert whoami(server, *credentials, tmp_path)[0] == "kubernetes-admin"
        eventually(lambda: decoded(server.kubeconfig, "certificate-authority-data").decode() == bundle.read_text())
        pintle(launch, "certificates", "rotate-ca", "--finish", "--data-dir", str(server.dir))
        assert bundle.read_text() == new.read_text()
        eventually(lambda: published() == new.read_text())
        assert presented(server, new)
        with pytest.raises(ssl.SSLCertVerificationError):
            presented(server, former)
        with pytest.raises(AssertionError, match="401|403"):
            whoami(server, *credentials, tmp_path)


def test_directories_without_certificates_are_rejected(launch, tmp_path):
    for command in (("list",), ("renew",), ("rotate-ca",)):
        output = pintle(launch, "certificates", *command, "--data-dir", str(tmp_path / "none"), status=1)
        assert str(tmp_path / "none") in output and "has no certificates" in output, output
    assert not (tmp_path / "none").exists()


def test_kubeconfigs_of_users(launch, tmp_path):
    with launch() as server:
        data = ("--data-dir", str(server.dir))
        file = tmp_path / "jane.kubeconfig"
        file.write_text(pintle(launch, "kubeconfig", "create", "jane", "--group", "dev", "--group", "qa", "--ttl", "1h", *data))
        assert read(file)["server"] == server.url
        certificate, key = decoded(file, "client-certificate-data"), decoded(file, "client-key-data")
        assert whoami(server, certificate, key, tmp_path) == ("jane", ["dev", "qa", "system:authenticated"])
        target = tmp_path / "config"
        target.write_text("apiVersion: v1\nkind: Config\ncurrent-context: mine\nusers:\n- name: me\n  user:\n    token: t\n")
        merge = ("kubeconfig", "create", "joe", "--merge", "--context", "small", "--server", "https://pintle.example.com:6443", *data)
        output = pintle(launch, *merge, KUBECONFIG=str(target))
        assert str(target) in output
        text = target.read_text()
        assert "token: t" in text and "current-context: mine" in text and "name: small" in text, text
        assert read(target)["server"] == "https://pintle.example.com:6443"
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        assert f'{target} has context "small" already: replace it with --replace' in pintle(launch, *merge, status=1, KUBECONFIG=str(target))
        assert target.read_text() == text
        pintle(launch, *merge, "--replace", KUBECONFIG=str(target))
        assert text.count("name: small") == target.read_text().count("name: small") and text != target.read_text()
        target.write_text("- a\n")
        assert "not a kubeconfig" in pintle(launch, *merge, status=1, KUBECONFIG=str(target))
        assert target.read_text() == "- a\n"
    for wrong in (("--ttl", "1m"), ("--server", "pintle.example.com")):
        done = subprocess.run([launch.binary, "kubeconfig", "create", "joe", *wrong], capture_output=True, text=True, timeout=30)
        assert done.returncode == 2 and f"'{wrong[1]}'" in done.stderr, done


def test_users_are_added_beside_the_administrator(launch, tmp_path):
    """Each user has a context of its own; like kubectl, it is written to the first file of KUBECONFIG that exists."""
    with launch() as server:
        admin = pathlib.Path(server.kubeconfig)
        before, other = read(admin), tmp_path / "other"
        files = f"{tmp_path / 'missing'}:{admin}:{other}"
        create = ("kubeconfig", "create", "jane", "--merge", "--data-dir", str(server.dir))
        assert f'context "jane@pintle" is written to {admin}' in pintle(launch, *create, KUBECONFIG=files)
        assert read(admin) == before, "the administrator's context is still the current one, with its certificate"
        other.write_text("apiVersion: v1\nkind: Config\n")
        assert "has context" in pintle(launch, *create, status=1, KUBECONFIG=f"{other}:{admin}")
        assert "has context" in pintle(launch, *create, "--context", "pintle", status=1, KUBECONFIG=files)
        lists = f"{tmp_path / 'missing'}:{other}:{admin}"
        assert "up to date" in pintle(launch, "storage", "rewrite", "--resource", "secrets", KUBECONFIG=lists)


def test_kubeconfig_of_the_administrator_keeps_changes(launch, tmp_path):
    extra = tmp_path / "extra.kubeconfig"
    with launch(f"--write-kubeconfig={extra}", "--write-kubeconfig-mode=0640", "--kubeconfig-context=small", storage="embedded") as server:
        assert stat.S_IMODE(extra.stat().st_mode) == 0o640
        assert read(extra)["current-context"] == "small" and extra.read_text() == pathlib.Path(server.kubeconfig).read_text()
        changed = extra.read_text().replace("current-context: small", "current-context: other")
        extra.write_text(changed.replace("users:\n", "users:\n- name: other\n  user:\n    token: t\n"))
        server.stop()
        server.port = 0
        server.start()
        text = extra.read_text()
        assert "token: t" in text and "current-context: other" in text and read(extra)["server"] == server.url, text
        server.stop()
        extra.write_text("clusters: 7\n")
        done = subprocess.run(
            [launch.binary, "serve", "--data-dir", str(server.dir), "--write-kubeconfig", str(extra), "--secure-port", "0"],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 1 and "clusters is not a list" in done.stderr and len(done.stderr.splitlines()) == 1, done
        assert extra.read_text() == "clusters: 7\n"


def signing_request(tmp_path, name, subject, usages=("client auth",), **spec):
    openssl(
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        subject,
        "-keyout",
        tmp_path / f"{name}.key",
        "-out",
        tmp_path / f"{name}.csr",
    )
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": list(usages),
            "request": base64.b64encode((tmp_path / f"{name}.csr").read_bytes()).decode(),
            **spec,
        },
    }


def approve(server, name, kind="Approved", prefix=""):
    path = f"{prefix}{REQUESTS}/{name}/approval"
    request = server.ok("GET", f"{prefix}{REQUESTS}/{name}")
    request["status"]["conditions"] = [{"type": kind, "status": "True", "reason": "Test", "message": "by a test"}]
    server.ok("PUT", path, request)


def test_approved_requests_are_signed(launch, tmp_path):
    with launch() as server:
        server.ok("POST", REQUESTS, signing_request(tmp_path, "jane", "/O=dev/O=qa/CN=jane", expirationSeconds=3600))
        server.ok("POST", REQUESTS, signing_request(tmp_path, "joe", "/CN=joe", ["client auth", "server auth"]))
        server.ok("POST", REQUESTS, signing_request(tmp_path, "denied", "/CN=denied"))
        approve(server, "denied", "Denied")
        approve(server, "jane")
        approve(server, "joe")
        status = lambda name: server.ok("GET", f"{REQUESTS}/{name}")["status"]
        certificate = base64.b64decode(eventually(lambda: status("jane").get("certificate")))
        assert whoami(server, certificate, (tmp_path / "jane.key").read_bytes(), tmp_path) == ("jane", ["dev", "qa", "system:authenticated"])
        (tmp_path / "jane.crt").write_bytes(certificate)
        details = openssl("x509", "-in", tmp_path / "jane.crt", "-noout", "-enddate", "-ext", "extendedKeyUsage,basicConstraints").decode()
        end = ssl.cert_time_to_seconds(details.splitlines()[0].removeprefix("notAfter="))
        assert 3500 < end - time.time() <= 3600 and "Client Authentication" in details and "CA:FALSE" in details, details
        failed = eventually(lambda: [c for c in status("joe")["conditions"] if c["type"] == "Failed"])[0]
        assert (failed["reason"], failed["message"]) == ("SignerValidationFailure", "invalid usage for client certificate: server auth")
        assert "certificate" not in status("joe") and "certificate" not in status("denied")
        code, body, _ = server.request("POST", REQUESTS, signing_request(tmp_path, "root", "/O=system:masters/CN=root"))
        assert code == 403 and "system:masters" in body["message"], body


def test_workspaces_sign_no_certificates(launch, tmp_path):
    """The owner of a workspace could otherwise become any user of the server."""
    with launch("--workspaces") as server:
        server.ok("POST", "/clusters/a")
        for prefix in ("/clusters/a", ""):
            request = signing_request(tmp_path, "jane", "/CN=system:kube-controller-manager")
            server.ok("POST", prefix + REQUESTS, request)
            approve(server, "jane", prefix=prefix)
        status = lambda prefix: server.ok("GET", f"{prefix}{REQUESTS}/jane")["status"]
        eventually(lambda: status("").get("certificate"))
        assert "certificate" not in status("/clusters/a")


def test_lifetimes_of_signed_certificates_follow_the_clock(launch, tmp_path):
    """The server goes on to verify certificates by the time of the machine, so that no clock locks an administrator out."""
    with launch("--testing") as server:
        clock = {"apiVersion": "testing.pintle.dev/v1alpha1", "kind": "Clock", "metadata": {"name": "clock"}, "spec": {"stopped": True, "advance": "720h"}}
        shown = server.ok("POST", "/apis/testing.pintle.dev/v1alpha1/clocks", clock)["status"]["time"]
        server.ok("POST", REQUESTS, signing_request(tmp_path, "jane", "/CN=jane", expirationSeconds=3600))
        approve(server, "jane")
        (tmp_path / "jane.crt").write_bytes(base64.b64decode(eventually(lambda: server.ok("GET", f"{REQUESTS}/jane")["status"].get("certificate"))))
        end = openssl("x509", "-in", tmp_path / "jane.crt", "-noout", "-enddate").decode().strip().removeprefix("notAfter=")
        wanted = calendar.timegm(time.strptime(shown[:19], "%Y-%m-%dT%H:%M:%S")) + 3600
        assert abs(ssl.cert_time_to_seconds(end) - wanted) <= 1, (end, shown)


@pytest.mark.parametrize("mask", ["MASK:0x800", "MASK:0x4", "utf8only"], ids=["BMPString", "T61String", "UTF8String"])
def test_groups_of_administrators_are_refused_in_every_type_of_text(launch, tmp_path, mask):
    configuration = tmp_path / "masked.cnf"
    configuration.write_text(f"[req]\nstring_mask = {mask}\ndistinguished_name = names\nprompt = no\n[names]\nO = system:masters\nCN = root\n")
    openssl(
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-config",
        configuration,
        "-keyout",
        tmp_path / "root.key",
        "-out",
        tmp_path / "root.csr",
    )
    request = base64.b64encode((tmp_path / "root.csr").read_bytes()).decode()
    with launch() as server:
        code, body, _ = server.request(
            "POST",
            REQUESTS,
            {"metadata": {"name": "root"}, "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"], "request": request}},
        )
        assert code == 403 and "system:masters group is not allowed" in body["message"], body


def test_certificates_of_version_1_are_accepted(launch, tmp_path):
    for name in ("old", "other"):
        openssl(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            "/CN=ca",
            "-keyout",
            tmp_path / f"{name}-ca.key",
            "-out",
            tmp_path / f"{name}-ca.crt",
        )
        openssl(
            "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/O=dev/CN=jane", "-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.csr"
        )
        openssl(
            "x509",
            "-req",
            "-in",
            tmp_path / f"{name}.csr",
            "-CA",
            tmp_path / f"{name}-ca.crt",
            "-CAkey",
            tmp_path / f"{name}-ca.key",
            "-CAcreateserial",
            "-out",
            tmp_path / f"{name}.crt",
        )
    version = openssl("x509", "-in", tmp_path / "old.crt", "-noout", "-text").decode()
    if "Version: 1 " not in version:
        pytest.skip("this openssl issues no certificates of version 1")
    pair = lambda name: [(tmp_path / f"{name}.{suffix}").read_bytes() for suffix in ("crt", "key")]
    with launch("--client-ca-file", str(tmp_path / "old-ca.crt")) as server:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            assert whoami(server, *pair("old"), tmp_path, version) == ("jane", ["dev", "system:authenticated"])
            with pytest.raises(AssertionError, match="401"):
                whoami(server, *pair("other"), tmp_path, version)


def test_signing_can_be_turned_off(launch, tmp_path):
    with launch("--controllers=-csrsigning,*") as server:
        server.ok("POST", REQUESTS, signing_request(tmp_path, "jane", "/CN=jane"))
        approve(server, "jane")
        # the signing controller would have handled the approval by the time the namespace is deleted
        server.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "short"}})
        server.ok("DELETE", "/api/v1/namespaces/short")
        eventually(lambda: server.request("GET", "/api/v1/namespaces/short")[0] == 404)
        assert "certificate" not in server.ok("GET", f"{REQUESTS}/jane")["status"]
