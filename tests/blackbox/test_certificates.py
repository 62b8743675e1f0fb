"""The certificates of the server, their renewal and rotation, kubeconfigs, and CertificateSigningRequests."""

import base64
import calendar
import json
import pathlib
import shutil
import signal
import socket
import ssl
import stat
import time

import pytest

from commands import refused
from connections import https, tls
from objects import REVIEWS, account, token_of
from pintle import eventually
from programs import openssl

pytestmark = pytest.mark.certificates

DAY = 24 * 3600
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
ADMIN = "kubernetes-admin"


def pintle(launch, *arguments, status=0, **environment):
    return launch.run(*arguments, status=status, env=environment)


def certificates(launch, server, *arguments, status=0):
    return pintle(launch, "certificates", *arguments, "--data-dir", server.dir, status=status)


def presented(server, authority, name="localhost"):
    """The serving certificate, after its verification with a CA bundle."""
    with tls(server, context=ssl.create_default_context(cafile=str(authority)), name=name) as connection:
        return connection.getpeercert()


def days_left(certificate):
    return (ssl.cert_time_to_seconds(certificate["notAfter"]) - time.time() + 60) // DAY


def read(kubeconfig):
    """The fields of a kubeconfig, without a library for YAML: each field is on a line of its own."""
    lines = [line.strip().removeprefix("- ") for line in pathlib.Path(kubeconfig).read_text().splitlines()]
    return dict(line.split(": ", 1) for line in reversed(lines) if ": " in line)


def decoded(kubeconfig, field):
    return base64.b64decode(read(kubeconfig)[field])


def credentials(kubeconfig):
    return decoded(kubeconfig, "client-certificate-data"), decoded(kubeconfig, "client-key-data")


def whoami(server, certificate, key, tmp_path, newest=ssl.TLSVersion.MAXIMUM_SUPPORTED):
    """The user and groups of a client certificate (PEM), by a request with at most this version of TLS; None if it is refused."""
    (tmp_path / "client.pem").write_bytes(certificate + key)
    context = ssl.create_default_context(cafile=str(server.dir / "ca.crt"))
    context.load_cert_chain(tmp_path / "client.pem")
    context.maximum_version = newest
    connection = https(server, context)
    connection.request("POST", REVIEWS + "/selfsubjectreviews", "{}", {"Content-Type": "application/json"})
    response = connection.getresponse()
    body = json.loads(response.read())
    if response.status in (401, 403):
        return None
    user = body["status"]["userInfo"]
    return user["username"], user["groups"]


def test_names_and_lifetime(launch):
    host = socket.gethostname().lower()
    with launch("--bind-address=0.0.0.0", "--advertise-address=10.9.8.7", "--tls-san=pintle.example.com,192.0.2.7") as server:
        certificate = presented(server, server.dir / "ca.crt", "pintle.example.com")
        names = {name.lower() for _, name in certificate["subjectAltName"]}
        assert {"pintle.example.com", "192.0.2.7", "10.9.8.7", "127.0.0.1", "localhost", host} <= names, names
        assert days_left(certificate) == 365
        found = {row["name"]: row for row in json.loads(certificates(launch, server, "list", "-o", "json"))}
        assert set(found) == {"ca", "serving", "admin"} and host in found["serving"]["names"], found
        table = certificates(launch, server, "list")
        assert table.splitlines()[0].split() == ["NAME", "EXPIRES", "IN", "SUBJECT", "NAMES"] and ("364d" in table or "365d" in table), table
    error = refused(launch, "--tls-san", "a b", status=2)
    assert "'a b'" in error and "no DNS name" in error, error


def test_keys_that_everyone_can_read_are_logged(launch):
    with launch(storage="embedded") as server:
        assert "every user can" not in server.stderr()
        (server.dir / "ca.key").chmod(0o644)
        server.dir.chmod(0o755)
        server.restart()
        log = server.stderr()
        assert [log.count(f"every user can {what}") for what in ("read this key", "enter the data directory")] == [1, 1], log


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "service-account.key"])
def test_keys_that_are_lost_are_not_replaced(launch, name):
    """A server that runs says so, and the next start is refused until the file is back; with both files of a key gone, it is made anew."""
    with launch(storage="embedded") as server:
        account(server, "sailor")
        token_of(server, "sailor")
        eventually((server.dir / "service-account.pub").exists)
        file = server.dir / name
        content = file.read_bytes()
        file.unlink()
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: f"{name} is missing: put it back" in server.stderr())
        server.stop()
        for damage, want in ((None, f"{name} is missing: put it back"), (b"\xff\x00", name)):
            if damage:
                file.write_bytes(damage)
            error = refused(launch, "--storage=embedded", "--data-dir", server.dir)
            assert want in error and "remove" in error and "put it back" in error, "the remedy is named"
        file.write_bytes(content)
        server.start()


def test_serving_certificates_that_are_not_valid_are_logged(launch, tmp_path):
    key, request, certificate, extensions = (tmp_path / name for name in ("key", "request", "certificate", "extensions"))
    openssl("req", "-new", *EC, "-subj", "/CN=old", "-keyout", key, "-out", request)
    extensions.write_text("subjectAltName=DNS:localhost")
    openssl("x509", "-req", "-in", request, "-signkey", key, "-days", "-1", "-extfile", extensions, "-out", certificate)
    with launch(f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}") as server:
        lines = [line for line in server.stderr().splitlines() if "a certificate is not valid" in line]
        assert len(lines) == 1 and "it has expired" in lines[0] and "ERROR" in lines[0], lines


def test_certificates_renew_without_a_restart(launch, tmp_path):
    """Certificates are renewed by the command, and by the server when they expire soon."""
    with launch() as server:
        authority, serving = server.dir / "ca.crt", server.dir / "serving.crt"
        before = presented(server, authority)["serialNumber"]
        # another user in the same kubeconfig keeps its certificate
        pintle(launch, "kubeconfig", "create", "jane", "--merge", "--context", "jane", "--data-dir", server.dir, KUBECONFIG=server.kubeconfig)
        jane = pathlib.Path(server.kubeconfig).read_text().partition("- name: jane\n  user:")[2]
        output = certificates(launch, server, "renew")
        assert jane and jane in pathlib.Path(server.kubeconfig).read_text()
        assert "serving.crt is renewed" in output and "admin.crt is renewed" in output, output
        known = [serving.read_text()]
        eventually(lambda: presented(server, authority)["serialNumber"] != before)
        # a certificate that expires soon, with another key
        openssl("req", "-x509", *EC, "-days", 3, "-subj", "/CN=old", "-keyout", tmp_path / "k", "-out", tmp_path / "c")
        known.append((tmp_path / "c").read_text())
        shutil.copy(tmp_path / "k", server.dir / "serving.key")
        shutil.copy(tmp_path / "c", serving)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: serving.read_text() not in known)
        serial = lambda: openssl("x509", "-in", serving, "-noout", "-serial").decode().strip().removeprefix("serial=")
        eventually(lambda: presented(server, authority)["serialNumber"] == serial())
        assert days_left(presented(server, authority)) == 365
        assert whoami(server, *credentials(server.kubeconfig), tmp_path)[0] == ADMIN


def test_the_certificate_authority_is_rotated_while_clients_connect(launch, tmp_path):
    """Connections do not outlive the trust in the authority of their client certificate."""
    with launch("--controllers=*,root-ca-cert-publisher") as server:
        bundle, former, new = server.dir / "ca.crt", tmp_path / "former.crt", tmp_path / "new.crt"
        shutil.copy(bundle, former)
        own = credentials(server.kubeconfig)
        published = lambda: server.request("GET", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt")[1].get("data", {}).get("ca.crt")
        eventually(lambda: published() == former.read_text())
        (tmp_path / "former.pem").write_bytes(b"".join(own))
        context = ssl.create_default_context(cafile=str(former))
        context.load_cert_chain(tmp_path / "former.pem")
        connection = https(server, context)

        def status():
            connection.request("GET", "/api/v1/namespaces/default/secrets")
            response = connection.getresponse()
            response.read()
            return response.status

        assert status() == 200
        socket_before = connection.sock
        assert "no rotation to finish" in certificates(launch, server, "rotate-ca", "--finish", status=1)
        certificates(launch, server, "rotate-ca")
        assert "not finished" in certificates(launch, server, "rotate-ca", status=1)
        assert bundle.read_text().count("BEGIN CERTIFICATE") == 2
        new.write_text(bundle.read_text().replace(former.read_text(), ""))
        eventually(lambda: published() == bundle.read_text())
        # clients that trust either certificate authority, and clients with certificates of the former one
        eventually(lambda: "pintle-ca-" in json.dumps(presented(server, bundle)["issuer"]))
        assert all(presented(server, authority) for authority in (former, new))
        assert (status(), whoami(server, *own, tmp_path)[0]) == (200, ADMIN)
        eventually(lambda: decoded(server.kubeconfig, "certificate-authority-data").decode() == bundle.read_text())
        certificates(launch, server, "rotate-ca", "--finish")
        assert bundle.read_text() == new.read_text()
        eventually(lambda: published() == new.read_text() and status() == 401)
        assert connection.sock is socket_before
        assert presented(server, new)
        with pytest.raises(ssl.SSLCertVerificationError):
            presented(server, former)
        assert whoami(server, *own, tmp_path) is None


def test_kubeconfigs_of_users(launch, tmp_path):
    with launch() as server:
        data, file = ("--data-dir", server.dir), tmp_path / "jane.kubeconfig"
        file.write_text(pintle(launch, "kubeconfig", "create", "jane", "--group", "dev", "--group", "qa", "--ttl", "1h", *data))
        assert read(file)["server"] == server.url
        assert whoami(server, *credentials(file), tmp_path) == ("jane", ["dev", "qa", "system:authenticated"])
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            assert whoami(server, *credentials(server.kubeconfig), tmp_path, version)[0] == ADMIN
        target = tmp_path / "config"
        target.write_text("apiVersion: v1\nkind: Config\ncurrent-context: mine\nusers:\n- name: me\n  user:\n    token: t\n")
        url = "https://pintle.example.com:6443"
        merge = ("kubeconfig", "create", "joe", "--merge", "--context", "small", "--server", url, *data)
        assert str(target) in pintle(launch, *merge, KUBECONFIG=str(target))
        text = target.read_text()
        assert "token: t" in text and "current-context: mine" in text and "name: small" in text, text
        assert read(target)["server"] == url
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        assert f'{target} has context "small" already: replace it with --replace' in pintle(launch, *merge, status=1, KUBECONFIG=str(target))
        assert target.read_text() == text
        pintle(launch, *merge, "--replace", KUBECONFIG=str(target))
        assert text.count("name: small") == target.read_text().count("name: small") and text != target.read_text()
        target.write_text("- a\n")
        assert "not a kubeconfig" in pintle(launch, *merge, status=1, KUBECONFIG=str(target))
        assert target.read_text() == "- a\n"
    for flag, wrong in (("--ttl", "1m"), ("--server", "pintle.example.com")):
        assert f"'{wrong}'" in pintle(launch, "kubeconfig", "create", "joe", flag, wrong, status=2)


def test_users_are_added_beside_the_administrator(launch, tmp_path):
    """Each user has a context of its own; like kubectl, it is written to the first file of KUBECONFIG that exists."""
    with launch() as server:
        admin = pathlib.Path(server.kubeconfig)
        before, other, missing = read(admin), tmp_path / "other", tmp_path / "missing"
        create = ("kubeconfig", "create", "jane", "--merge", "--data-dir", server.dir)
        files = f"{missing}:{admin}:{other}"
        assert f'context "jane@pintle" is written to {admin}' in pintle(launch, *create, KUBECONFIG=files)
        assert read(admin) == before, "the administrator's context is still the current one, with its certificate"
        other.write_text("apiVersion: v1\nkind: Config\n")
        assert "has context" in pintle(launch, *create, status=1, KUBECONFIG=f"{other}:{admin}")
        assert "has context" in pintle(launch, *create, "--context", "pintle", status=1, KUBECONFIG=files)
        assert "up to date" in pintle(launch, "storage", "rewrite", "--resource", "secrets", KUBECONFIG=f"{missing}:{other}:{admin}")


def test_kubeconfig_of_the_administrator_keeps_changes(launch, tmp_path):
    extra = tmp_path / "extra.kubeconfig"
    with launch(f"--write-kubeconfig={extra}", "--write-kubeconfig-mode=0640", "--kubeconfig-context=small", storage="embedded") as server:
        assert [stat.S_IMODE(pathlib.Path(file).stat().st_mode) for file in (extra, server.kubeconfig)] == [0o640, 0o600]
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
        assert "clusters is not a list" in refused(launch, "--storage=embedded", "--data-dir", server.dir, "--write-kubeconfig", extra)
        assert extra.read_text() == "clusters: 7\n"


def signing_request(tmp_path, name, subject=None, usages=("client auth",), options=(), **spec):
    """A request for a certificate for the kubelet's clients, whose key is in `tmp_path`."""
    request = tmp_path / f"{name}.csr"
    openssl("req", "-new", *EC, *(options or ("-subj", subject)), "-keyout", tmp_path / f"{name}.key", "-out", request)
    encoded = base64.b64encode(request.read_bytes()).decode()
    signer = {"signerName": "kubernetes.io/kube-apiserver-client", "usages": list(usages)}
    return {"metadata": {"name": name}, "spec": {**signer, "request": encoded, **spec}}


def approve(server, name, kind="Approved"):
    request = server.ok("GET", f"{REQUESTS}/{name}")
    request["status"]["conditions"] = [{"type": kind, "status": "True", "reason": "Test", "message": "by a test"}]
    server.ok("PUT", f"{REQUESTS}/{name}/approval", request)


def signed(server, name, tmp_path):
    """The certificate of a request, as a file."""
    file = tmp_path / f"{name}.crt"
    file.write_bytes(base64.b64decode(eventually(lambda: server.ok("GET", f"{REQUESTS}/{name}")["status"].get("certificate"))))
    return file


def end_of(file):
    details = openssl("x509", "-in", file, "-noout", "-enddate").decode().strip()
    return ssl.cert_time_to_seconds(details.removeprefix("notAfter="))


def test_approved_requests_are_signed(launch, tmp_path):
    with launch() as server:
        server.ok("POST", REQUESTS, signing_request(tmp_path, "jane", "/O=dev/O=qa/CN=jane", expirationSeconds=3600))
        server.ok("POST", REQUESTS, signing_request(tmp_path, "joe", "/CN=joe", ["client auth", "server auth"]))
        server.ok("POST", REQUESTS, signing_request(tmp_path, "denied", "/CN=denied"))
        for name, kind in (("denied", "Denied"), ("jane", "Approved"), ("joe", "Approved")):
            approve(server, name, kind)
        certificate = signed(server, "jane", tmp_path)
        user = whoami(server, certificate.read_bytes(), (tmp_path / "jane.key").read_bytes(), tmp_path)
        assert user == ("jane", ["dev", "qa", "system:authenticated"])
        details = openssl("x509", "-in", certificate, "-noout", "-ext", "extendedKeyUsage,basicConstraints").decode()
        assert 3500 < end_of(certificate) - time.time() <= 3600 and "Client Authentication" in details and "CA:FALSE" in details, details
        status = lambda name: server.ok("GET", f"{REQUESTS}/{name}")["status"]
        failed = eventually(lambda: [c for c in status("joe")["conditions"] if c["type"] == "Failed"])[0]
        assert (failed["reason"], failed["message"]) == ("SignerValidationFailure", "invalid usage for client certificate: server auth")
        assert "certificate" not in status("joe") and "certificate" not in status("denied")
        # a group of administrators, in a BMPString, a T61String and a UTF8String
        configuration = tmp_path / "masked.cnf"
        for mask in ("MASK:0x800", "MASK:0x4", "utf8only"):
            names = "[names]\nO = system:masters\nCN = root\n"
            configuration.write_text(f"[req]\nstring_mask = {mask}\ndistinguished_name = names\nprompt = no\n{names}")
            code, body, _ = server.request("POST", REQUESTS, signing_request(tmp_path, "root", options=("-config", configuration)))
            assert code == 403 and "system:masters group is not allowed" in body["message"], (mask, body)


def test_lifetimes_of_signed_certificates_follow_the_clock(launch, tmp_path):
    """The server goes on to verify certificates by the time of the machine, so that no clock locks an administrator out."""
    with launch("--testing") as server:
        clock = {"apiVersion": "testing.pintle.dev/v1alpha1", "kind": "Clock", "metadata": {"name": "clock"}, "spec": {"stopped": True, "advance": "720h"}}
        shown = server.ok("POST", "/apis/testing.pintle.dev/v1alpha1/clocks", clock)["status"]["time"]
        server.ok("POST", REQUESTS, signing_request(tmp_path, "jane", "/CN=jane", expirationSeconds=3600))
        approve(server, "jane")
        wanted = calendar.timegm(time.strptime(shown[:19], "%Y-%m-%dT%H:%M:%S")) + 3600
        assert abs(end_of(signed(server, "jane", tmp_path)) - wanted) <= 1, shown


def test_certificates_of_version_1_are_accepted(launch, tmp_path):
    path = lambda name: tmp_path / name
    for name in ("old", "other"):
        openssl("req", "-x509", *EC, "-subj", "/CN=ca", "-keyout", path(f"{name}-ca.key"), "-out", path(f"{name}-ca.crt"))
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/O=dev/CN=jane", "-keyout", path(f"{name}.key"), "-out", path(f"{name}.csr"))
        authority = ("-CA", path(f"{name}-ca.crt"), "-CAkey", path(f"{name}-ca.key"), "-CAcreateserial")
        openssl("x509", "-req", "-in", path(f"{name}.csr"), *authority, "-out", path(f"{name}.crt"))
    if "Version: 1 " not in openssl("x509", "-in", path("old.crt"), "-noout", "-text").decode():
        pytest.skip("this openssl issues no certificates of version 1")
    pair = lambda name: [path(f"{name}.{suffix}").read_bytes() for suffix in ("crt", "key")]
    with launch("--client-ca-file", str(path("old-ca.crt"))) as server:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            assert whoami(server, *pair("old"), tmp_path, version) == ("jane", ["dev", "system:authenticated"])
            assert whoami(server, *pair("other"), tmp_path, version) is None


def test_signing_can_be_turned_off(launch, tmp_path):
    with launch("--controllers=-csrsigning,*") as server:
        server.ok("POST", REQUESTS, signing_request(tmp_path, "jane", "/CN=jane"))
        approve(server, "jane")
        # the signing controller would have handled the approval by the time the namespace is deleted
        server.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "short"}})
        server.ok("DELETE", "/api/v1/namespaces/short")
        eventually(lambda: server.request("GET", "/api/v1/namespaces/short")[0] == 404)
        assert "certificate" not in server.ok("GET", f"{REQUESTS}/jane")["status"]
