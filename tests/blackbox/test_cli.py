"""The command line, and the start, restart and shutdown of the process."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile

import pytest

from pintle import KEY_SET, eventually
from programs import ROOT, xtask
from registrations import ALTERED, MANAGED, RESTORED, alter_registrations, altered_registrations
from watch import Watch

pytestmark = pytest.mark.cli

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.harbor.example.com"},
    "spec": {
        "group": "harbor.example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"sails": {"type": "integer"}}}}}},
            }
        ],
    },
}
BOATS = "/apis/harbor.example.com/v1/namespaces/default/boats"


def boat(name, sails=1):
    return {"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": name}, "spec": {"sails": sails}}


def serve(launch, *flags):
    """Runs `pintle serve`, which must fail to start, and returns its exit status and output."""
    done = subprocess.run([launch.binary, "serve", *flags], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr


def test_survives_a_restart(launch):
    with launch(storage="embedded") as server:
        server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        for i in range(20):
            server.ok("POST", BOATS, boat(f"boat-{i:02}", i))
        before = server.ok("GET", BOATS)
        server.ok("PATCH", BOATS + "/boat-07", {"spec": {"sails": 70}})
        assert server.stop() == 0
        server.start()
        after = server.ok("GET", BOATS)
        assert len(after["items"]) == 20
        assert after["items"][7]["spec"]["sails"] == 70
        assert after["items"][3] == before["items"][3]
        version = before["metadata"]["resourceVersion"]
        watch = Watch(server, f"{BOATS}?watch=1&resourceVersion={version}&timeoutSeconds=1")
        watch.ended.wait(10)
        assert any('"MODIFIED"' in line and '"sails":70' in line for line in watch.lines), watch.lines


def test_one_process_per_directory(launch):
    with launch(storage="embedded") as server:
        status, output = serve(launch, "--data-dir", str(server.dir), "--secure-port", "0")
        assert status != 0 and f"process id {server.process.pid}" in output, output
        assert len(output.strip().splitlines()) == 1, output


def test_refuses_newer_formats(launch):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="pintle-test-"))
    (directory / "FORMAT").write_text("pintle 99\n")
    status, output = serve(launch, "--data-dir", str(directory), "--secure-port", "0")
    assert status != 0 and "format 99" in output, output
    shutil.rmtree(directory)


def test_corruption_is_reported(launch):
    with launch(storage="embedded") as server:
        server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        server.stop()
        (server.dir / "FORMAT").write_text("something else\n")
        status, output = serve(launch, "--data-dir", str(server.dir), "--secure-port", "0")
        assert status != 0 and "the file FORMAT does not hold a format" in output, output


def test_port_in_use(launch):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        directory = pathlib.Path(tempfile.mkdtemp(prefix="pintle-test-")) / "data"
        status, output = serve(launch, "--data-dir", str(directory), "--secure-port", port)
    assert status != 0 and f"cannot listen on 127.0.0.1:{port}" in output and "--secure-port 0" in output, output
    assert not directory.exists()
    directory.parent.rmdir()


def test_unwritable_directory(launch):
    status, output = serve(launch, "--data-dir", "/proc/pintle", "--secure-port", "0")
    assert status != 0 and "/proc/pintle" in output and len(output.strip().splitlines()) == 1, output


def test_wrong_flags(launch):
    status, output = serve(launch, "--data-dri", "x")
    assert status == 2 and "--data-dir" in output, output
    status, output = serve(launch, "--alow-privileged")
    assert status == 2 and "--allow-privileged" in output, output
    status, output = serve(launch, "--disable-admission-plugins", "PodSecurty", "--storage", "memory", "--secure-port", "0")
    assert status == 1 and '"PodSecurty" is unknown; did you mean "PodSecurity"?' in output, output


def test_flags_without_effect_are_accepted_with_one_warning(launch):
    flags = (
        "--vmodule=a=1",
        "--allow-privileged",
        "--authorization-mode=Node,RBAC",
        "--runtime-config=api/all=true,apps/v1=false",
        "--enable-admission-plugins=NodeRestriction,PodSecurity",
        "--feature-gates=TaintTolerationComparisonOperators=true",
    )
    with launch(*flags) as server:
        assert server.request("GET", "/readyz")[0] == 200
        log = server.stderr()
    warnings = [line for line in log.splitlines() if "without effect" in line]
    assert warnings == [
        "pintle: accepted without effect: flags: --allow-privileged, --vmodule; authorization modes: Node; "
        "feature gates: TaintTolerationComparisonOperators; admission plugins: NodeRestriction"
    ], log


def test_help_is_grouped(launch):
    done = subprocess.run([launch.binary, "serve", "--help"], capture_output=True, text=True, timeout=30)
    for heading in ("Storage:", "Serving:", "Certificates:", "Authentication:", "Logs:"):
        assert heading in done.stdout, done.stdout
    for flag in (
        "--data-dir",
        "--bind-address",
        "--secure-port",
        "--tls-cert-file",
        "--tls-private-key-file",
        "--client-ca-file",
        "--token-auth-file",
        "--cert-dir",
        "--etcd-servers",
        "--etcd-prefix",
        "--storage",
        "--request-timeout",
        "--max-requests-inflight",
        "--disable-admission-plugins",
        "-v",
    ):
        assert flag in done.stdout, flag


def run(launch, *arguments, **environment):
    """Runs a command, and returns its exit status and output."""
    done = subprocess.run([launch.binary, *arguments], capture_output=True, text=True, timeout=30, env=os.environ | environment)
    return done.returncode, done.stdout + done.stderr


def test_short_help_has_the_main_flags(launch):
    _, short = run(launch, "serve", "-h")
    _, long = run(launch, "serve", "--help")
    assert "--secure-port" in short and "--event-ttl" not in short and "--event-ttl" in long
    assert "--kubelet-timeout" not in long, "without effect"
    assert 20 <= sum(line.lstrip().startswith("-") for line in short.splitlines()) <= 30, short


def test_configuration_file(launch, tmp_path):
    file = tmp_path / "config.yaml"
    head = "apiVersion: config.pintle.dev/v1alpha1\nkind: ServerConfiguration\n"
    file.write_text(head + "storage: memory\nevent-ttl: 2h\nkubeconfig-context: small\n")
    with launch("--config", str(file), "--event-ttl", "3h") as server:
        assert "current-context: small" in pathlib.Path(server.kubeconfig).read_text()
    status, output = run(launch, "config", "view", "--event-ttl", "3h", PINTLE_CONFIG=str(file), PINTLE_SECURE_PORT="7443")
    assert status == 0 and output.startswith(head), output
    for line in ("event-ttl: 3h # flag", "kubeconfig-context: small # file", "secure-port: 7443 # environment", "durability: sync # default"):
        assert line in output.splitlines(), output
    for content, want in (
        ("secure-prot: 1", 'there is no flag "secure-prot"; did you mean "secure-port"?'),
        ("secure-port: many", "invalid value 'many' for '--secure-port <PORT>'"),
    ):
        file.write_text(head + content)
        status, output = serve(launch, "--config", str(file), "--data-dir", str(tmp_path / "data"))
        assert status == 1 and str(file) in output and want in output and len(output.splitlines()) == 1, output
    assert not (tmp_path / "data").exists()
    status, output = serve(launch, "--config", str(tmp_path / "missing"))
    assert status == 1 and "missing: cannot read it" in output, output


def test_version_and_completions(launch, tmp_path):
    status, output = run(launch, "version", "-o", "json")
    assert status == 0 and set(json.loads(output)) == {"version", "commit", "kubernetesVersion", "platform"}, output
    script = tmp_path / "completion"
    script.write_text(run(launch, "completion", "bash")[1])
    done = subprocess.run(
        ["bash", "-c", f". {script}; COMP_WORDS=(pintle serve --secure-p); COMP_CWORD=2; _pintle pintle --secure-p; echo ${{COMPREPLY[@]}}"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stdout.strip() == "--secure-port", done
    status, output = run(launch, "completion", "csh")
    assert status == 2 and "possible values: bash" in output, output


def test_kubeconfig_is_private(launch):
    with launch() as server:
        mode = stat.S_IMODE(os.stat(server.kubeconfig).st_mode)
        assert mode == 0o600, oct(mode)


def test_drains_on_stop(launch):
    with launch() as server:
        server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        watch = Watch(server, BOATS + "?watch=1")
        server.ok("POST", BOATS, boat("last"))
        eventually(lambda: watch.lines)
        assert server.stop(signal.SIGINT) == 0
        assert watch.ended.wait(10), "the watch was not closed"
        assert "broken" not in watch.lines, watch.lines


def test_unauthenticated_and_forbidden_requests(launch):
    with launch() as server:
        path = "/api/v1/namespaces/default/configmaps"
        status, response, _ = server.request("GET", path, token="wrong")
        assert (status, response["reason"], response["message"]) == (401, "Unauthorized", "Unauthorized"), response
        status, response, _ = server.request("GET", path, token=None)
        want = 'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" in the namespace "default"'
        assert (status, response["message"]) == (403, want), response
        status, response, _ = server.request("GET", path + "/x", token="plain-token")
        assert status == 403 and 'User "plain" cannot get' in response["message"], response
        assert server.request("GET", "/readyz", token=None)[0] == 200
        status, response, _ = server.request("POST", path, b"x" * (3 * 1024 * 1024 + 1))
        assert (status, response["reason"]) == (413, "RequestEntityTooLarge"), response


def test_bench_against_another(launch):
    """The benchmark measures two servers, prints a comparison, and removes its objects from the other server."""
    with launch() as server:
        flags = ("--quick", "--only", "create,watch,first", "--binary", launch.binary, "--against", server.url, "--kubeconfig", server.kubeconfig)
        done = subprocess.run(xtask("bench", *flags), capture_output=True, text=True, timeout=300, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        head, _, *rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
        assert "other" in head and "ratio" in head and len(rows) == 3, done.stdout
        assert all(row.rstrip("| ").endswith("×") for row in rows), done.stdout
        assert "left behind" not in done.stderr, done.stderr
        assert not server.ok("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]


ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def token_of(server, name="sailor", **spec):
    return server.ok("POST", f"{ACCOUNTS}/{name}/token", {"spec": spec})["status"]["token"]


def whoami(server, token):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return server.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, token=token)


def test_account_tokens(launch):
    with launch(storage="embedded") as server:
        server.ok("POST", ACCOUNTS, {"metadata": {"name": "sailor"}})
        token, vault = token_of(server), token_of(server, audiences=["vault"])
        key = server.dir / "service-account.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        server.stop()
        server.start()
        status, response, _ = whoami(server, token)
        assert (status, response["status"]["userInfo"]["username"]) == (201, "system:serviceaccount:default:sailor"), response
        status, response, _ = whoami(server, vault)
        assert (status, response["message"]) == (401, "Unauthorized"), response

        def review(token, *audiences):
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, "audiences": list(audiences)}}
            return server.ok("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)["status"]

        assert review(vault, "vault", "other")["audiences"] == ["vault"]
        assert review(token)["audiences"] == ["https://kubernetes.default.svc.cluster.local"]
        assert review(vault) == {
            "user": {},
            "error": '[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["https://kubernetes.default.svc.cluster.local"]]',
        }
        assert server.request("GET", "/openid/v1/jwks", token=None)[0] == 403
        status, response, headers = server.request("GET", "/openid/v1/jwks", token=token, headers=KEY_SET)
        assert (status, headers["content-type"]) == (200, "application/jwk-set+json"), headers
        server.ok("DELETE", ACCOUNTS + "/sailor")
        server.ok("POST", ACCOUNTS, {"metadata": {"name": "sailor"}})
        assert whoami(server, token)[0] == 401, "a token is not valid for another ServiceAccount of the same name"


def test_account_flags(launch):
    with launch() as other:
        key = str(other.dir / "service-account.key")
        other.ok("POST", ACCOUNTS, {"metadata": {"name": "sailor"}})
        assert not os.path.exists(key), "the key is made with the first token"
        other_token = token_of(other)
        flags = [
            "--service-account-issuer=https://issuer.example.com",
            "--service-account-issuer=https://old.example.com",
            "--service-account-key-file",
            key,
            "--api-audiences=api,more",
            "--service-account-max-token-expiration=2h",
        ]
        with launch(*flags) as server:
            server.ok("POST", ACCOUNTS, {"metadata": {"name": "sailor"}})
            body = {"spec": {"expirationSeconds": 90000}}
            status, response, headers = server.request("POST", ACCOUNTS + "/sailor/token", body)
            assert (status, response["spec"]["expirationSeconds"]) == (201, 7200), response
            assert response["spec"]["audiences"] == ["api", "more"], response
            assert "requested expiration of 90000 seconds shortened to 7200 seconds" in headers["warning"], headers
            assert whoami(server, response["status"]["token"])[0] == 201
            assert whoami(server, other_token)[0] == 401
            assert len(server.ok("GET", "/openid/v1/jwks", headers=KEY_SET)["keys"]) == 2
            configuration = server.ok("GET", "/.well-known/openid-configuration")
            assert configuration["issuer"] == "https://issuer.example.com", configuration
        for flag, want in (
            ("--service-account-max-token-expiration=5m", "must be between 1 hour and 2^32 seconds"),
            ("--service-account-key-file=" + str(other.tokens), "it holds no key"),
            ("--service-account-signing-key-file=/none", "cannot read /none"),
            ("--controllers=-sweeper", '"sweeper" is not in the list of known controllers'),
        ):
            directory = tempfile.mkdtemp(prefix="pintle-test-")
            status, output = serve(launch, "--data-dir", directory, "--secure-port", "0", flag)
            shutil.rmtree(directory)
            assert status != 0 and want in output, output


def test_roles_are_reconciled(launch):
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:"
    with launch(storage="embedded") as server:
        discovery = server.ok("GET", path + "discovery")["rules"]
        more = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
        server.ok("PATCH", path + "discovery", {"rules": [more]})
        server.ok("PATCH", path + "monitoring", {"rules": [more], "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}})
        server.ok("DELETE", path + "basic-user")
        server.stop()
        server.start()
        assert server.ok("GET", path + "discovery")["rules"] == [more] + discovery
        assert server.ok("GET", path + "monitoring")["rules"] == [more]
        assert server.ok("GET", path + "basic-user")["rules"]
        version = server.ok("GET", path + "discovery")["metadata"]["resourceVersion"]
        server.stop()
        server.start()
        assert server.ok("GET", path + "discovery")["metadata"]["resourceVersion"] == version


def test_registrations_are_restored_at_start(launch):
    path = "/apis/apiregistration.k8s.io/v1/apiservices/v1."
    with launch(storage="embedded") as server:
        alter_registrations(server)
        # a new CRD triggers the controller of APIServices
        server.ok(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "boats.last.example.com"},
                "spec": {
                    "group": "last.example.com",
                    "scope": "Cluster",
                    "names": {"plural": "boats", "kind": "Boat"},
                    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
                },
            },
        )
        eventually(lambda: server.request("GET", path + "last.example.com")[0] == 200)
        assert altered_registrations(server) == ALTERED, altered_registrations(server)
        server.restart()
        assert altered_registrations(server) == RESTORED, altered_registrations(server)
        assert server.ok("GET", path + "rbac.authorization.k8s.io")["metadata"]["labels"] == {MANAGED: "onstart", "more": "x"}
        versions = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in server.ok("GET", path[:-4])["items"]}
        server.restart()
        assert versions == {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in server.ok("GET", path[:-4])["items"]}


def test_controllers(launch):
    core, roles = "/api/v1/namespaces/default", "/apis/rbac.authorization.k8s.io/v1/clusterroles/"
    controllers = "--controllers=*,-garbagecollector,serviceaccount,root-ca-certificate-publisher-controller"
    with launch(controllers, "--event-ttl=1s") as server:

        def get(path):
            status, response, _ = server.request("GET", path)
            return response if status == 200 else None

        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "x"}}
        watch = Watch(server, core + "/events?watch=1")
        server.ok("POST", core + "/events", event)
        eventually(lambda: any('"DELETED"' in line for line in watch.lines))
        assert get(core + "/events")["items"] == []
        before = eventually(lambda: get(core + "/serviceaccounts/default"))["metadata"]["uid"]
        server.ok("DELETE", core + "/serviceaccounts/default")
        after = eventually(lambda: get(core + "/serviceaccounts/default"))["metadata"]["uid"]
        assert before != after
        authority = eventually(lambda: get(core + "/configmaps/kube-root-ca.crt"))["data"]["ca.crt"]
        assert authority == (server.dir / "ca.crt").read_text()
        server.ok("PATCH", core + "/configmaps/kube-root-ca.crt", {"data": {"ca.crt": "no", "more": "x"}})
        eventually(lambda: get(core + "/configmaps/kube-root-ca.crt")["data"] == {"ca.crt": authority})
        view = eventually(lambda: get(roles + "view")["rules"])
        rule = {"apiGroups": ["harbor.example.com"], "resources": ["boats"], "verbs": ["get"]}
        server.ok("POST", roles, {"metadata": {"name": "boats", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, "rules": [rule]})
        for role in ("view", "edit", "admin"):
            eventually(lambda: rule in (get(roles + role)["rules"] or []))
        server.ok("DELETE", roles + "boats")
        eventually(lambda: get(roles + "view")["rules"] == view)
        server.ok("POST", core + "/configmaps", {"metadata": {"name": "alone"}})
        server.ok("DELETE", core + "/configmaps/alone?propagationPolicy=Orphan")
        assert get(core + "/configmaps/alone")["metadata"]["finalizers"] == ["orphan"]


def test_quotas(launch):
    core, hard = "/api/v1/namespaces/default", {"count/configmaps": "3", "secrets": "1", "cpu": "2", "count/events": "0"}
    with launch() as server:

        def create(name):
            return server.request("POST", core + "/configmaps", {"metadata": {"name": name}})

        def status():
            return server.ok("GET", core + "/resourcequotas/q").get("status")

        server.ok("POST", core + "/configmaps", {"metadata": {"name": "before"}})
        server.ok("POST", core + "/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        eventually(lambda: status() == {"hard": hard, "used": {"count/configmaps": "1", "secrets": "0", "cpu": "0"}})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = sorted(status for status, _, _ in pool.map(create, [f"c{i}" for i in range(8)]))
        assert statuses == [201, 201] + [403] * 6, statuses
        server.ok("DELETE", core + "/configmaps/before")
        eventually(lambda: status()["used"]["count/configmaps"] == "2")
        assert create("again")[0] == 201
        assert "exceeded quota: q, requested: count/configmaps=1" in create("more")[1]["message"]
        server.ok("PATCH", core + "/resourcequotas/q", {"spec": {"hard": {"count/configmaps": None}}})
        eventually(lambda: status()["used"] == {"secrets": "0", "cpu": "0"})
        assert create("more")[0] == 201
        # events are not counted
        server.ok("POST", core + "/events", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}})
