"""The command line, and the start, restart and shutdown of the process."""

import concurrent.futures
import json
import pathlib
import socket
import stat
import subprocess

import pytest

from commands import refused
from objects import ACCOUNTS, CORE, DEFINITIONS, MAPS, RBAC, account, definition, token_of, token_review, whoami
from pintle import KEY_SET, eventually
from programs import ROOT, xtask
from watch import Watch

pytestmark = pytest.mark.cli

BOATS = "/apis/harbor.example.com/v1/namespaces/default/boats"
PRESERVED = {"x-kubernetes-preserve-unknown-fields": True}


def boat(name, sails=1):
    return {"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": name}, "spec": {"sails": sails}}


def run(launch, *arguments, status=0, **environment):
    return launch.run(*arguments, status=status, env=environment)


def test_survives_a_restart(launch):
    with launch(storage="embedded") as server:
        server.ok("POST", DEFINITIONS, definition("boats", "harbor.example.com", PRESERVED))
        for i in range(20):
            server.ok("POST", BOATS, boat(f"boat-{i:02}", i))
        before = server.ok("GET", BOATS)
        changed = server.ok("PATCH", BOATS + "/boat-07", {"spec": {"sails": 70}})
        assert server.stop() == 0
        server.start()
        assert server.ok("GET", BOATS)["items"] == [changed if item["metadata"]["name"] == "boat-07" else item for item in before["items"]]
        version = before["metadata"]["resourceVersion"]
        watch = Watch(server, f"{BOATS}?watch=1&resourceVersion={version}&timeoutSeconds=1")
        watch.ended.wait(10)
        assert any('"MODIFIED"' in line and '"sails":70' in line for line in watch.lines), watch.lines


def test_starts_that_are_refused(launch, tmp_path):
    """By one line if the flags are valid by themselves."""
    with launch(storage="embedded") as server:
        error = refused(launch, "--storage=embedded", "--data-dir", server.dir)
        assert f"process id {server.process.pid}" in error and ":0" not in error, "a port that is chosen later is not named"
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        error = refused(launch, "--storage=embedded", "--data-dir", tmp_path / "data", "--secure-port", port)
    assert f"cannot listen on 127.0.0.1:{port}" in error and "--secure-port 0" in error and not (tmp_path / "data").exists(), error
    keys = (tmp_path / "tokens.csv").write_text("token,user,1\n") and str(tmp_path / "tokens.csv")
    for status, want, flags in (
        (2, "--data-dir", ("--data-dri", "x")),
        (2, "--allow-privileged", ("--alow-privileged",)),
        (2, "the flag is called --secure-port: --secure-port 8080", ("--port", "8080")),
        (2, "wanted a whole number from 0 to 65535", ("--secure-port", "abc")),
        (2, "there is no unit for days: write 720h", ("--event-ttl", "30d")),
        (2, "the unit is missing: write 30s, 30m or 30h", ("--request-timeout", "30")),
        (1, '"PodSecurty" is unknown; did you mean "PodSecurity"?', ("--disable-admission-plugins", "PodSecurty")),
        (2, "cannot be used with", ("--authorization-config", keys, "--authorization-mode=RBAC")),
        (1, "must be between 1 hour and 2^32 seconds", ("--service-account-max-token-expiration=5m",)),
        (1, "it holds no key", ("--service-account-key-file", keys)),
        (1, "cannot read /none", ("--service-account-signing-key-file=/none",)),
        (1, '"sweeper" is not in the list of known controllers', ("--controllers=-sweeper",)),
        (1, "group version batch/v2alpha1 that has not been registered", ("--runtime-config=batch/v2alpha1=true",)),
        (1, "unknown api groups boats", ("--runtime-config=boats/v1=true",)),
        (1, "a value is true or false", ("--runtime-config=api/all=maybe",)),
        (1, "needs --encryption-provider-config", ("--encryption-provider-config-automatic-reload",)),
    ):
        assert want in refused(launch, *flags, status=status), flags


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
        assert [line for line in server.stderr().splitlines() if "without effect" in line] == [
            "pintle: accepted without effect: flags: --allow-privileged, --vmodule; authorization modes: Node; "
            "feature gates: TaintTolerationComparisonOperators; admission plugins: NodeRestriction"
        ]


def test_short_help_has_the_main_flags(launch):
    short, long = run(launch, "serve", "-h"), run(launch, "serve", "--help")
    assert "--secure-port" in short and "--event-ttl" not in short and "--event-ttl" in long
    assert "--kubelet-timeout" not in long, "without effect"
    assert 20 <= sum(line.lstrip().startswith("-") for line in short.splitlines()) <= 30, short


def test_configuration_file(launch, tmp_path):
    file = tmp_path / "config.yaml"
    head = "apiVersion: config.pintle.dev/v1alpha1\nkind: ServerConfiguration\n"
    file.write_text(head + "storage: memory\nevent-ttl: 2h\nkubeconfig-context: small\n")
    with launch("--config", str(file), "--event-ttl", "3h") as server:
        assert "current-context: small" in pathlib.Path(server.kubeconfig).read_text()
    output = run(launch, "config", "view", "--event-ttl", "3h", PINTLE_CONFIG=str(file), PINTLE_SECURE_PORT="7443")
    lines = {"event-ttl: 3h # flag", "kubeconfig-context: small # file", "secure-port: 7443 # environment", "durability: sync # default"}
    assert output.startswith(head) and lines <= set(output.splitlines()), output
    for content, want in (
        ("secure-prot: 1", 'there is no flag "secure-prot"; did you mean "secure-port"?'),
        ("secure-port: many", "invalid value 'many' for '--secure-port <PORT>'"),
    ):
        file.write_text(head + content)
        error = run(launch, "serve", "--config", file, "--data-dir", tmp_path / "data", status=1)
        assert str(file) in error and want in error and not (tmp_path / "data").exists(), error
    assert "missing: cannot read it" in refused(launch, "--config", tmp_path / "missing")


def test_version_and_completions(launch, tmp_path):
    assert set(json.loads(run(launch, "version", "-o", "json"))) == {"version", "commit", "kubernetesVersion", "platform"}
    script = tmp_path / "completion"
    script.write_text(run(launch, "completion", "bash"))
    words = f". {script}; COMP_WORDS=(pintle serve --secure-p); COMP_CWORD=2; _pintle pintle --secure-p; echo ${{COMPREPLY[@]}}"
    assert subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=30).stdout == "--secure-port\n"
    assert "possible values: bash" in run(launch, "completion", "csh", status=2)


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
        assert not server.ok("GET", DEFINITIONS)["items"]


def test_account_tokens(launch):
    with launch(storage="embedded") as server:
        account(server, "sailor")
        token, vault = token_of(server, "sailor"), token_of(server, "sailor", audiences=["vault"])
        assert stat.S_IMODE((server.dir / "service-account.key").stat().st_mode) == 0o600
        server.restart()
        status, user = whoami(server, token=token)
        assert (status, user["username"]) == (201, "system:serviceaccount:default:sailor"), user
        assert whoami(server, token=vault)[0] == 401
        own = "https://kubernetes.default.svc.cluster.local"
        assert token_review(server, vault, audiences=["vault", "other"])["audiences"] == ["vault"]
        assert token_review(server, token, audiences=[])["audiences"] == [own]
        error = f'[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["{own}"]]'
        assert token_review(server, vault) == {"user": {}, "error": error}
        assert server.request("GET", "/openid/v1/jwks", token=None)[0] == 403
        status, _, headers = server.request("GET", "/openid/v1/jwks", token=token, headers=KEY_SET)
        assert (status, headers["content-type"]) == (200, "application/jwk-set+json"), headers
        server.ok("DELETE", ACCOUNTS + "/sailor")
        account(server, "sailor")
        assert whoami(server, token=token)[0] == 401, "a token is not valid for another ServiceAccount of the same name"


def test_account_flags(launch, server):
    other, key = server, server.dir / "service-account.key"
    account(other, "sailor")
    assert not key.exists(), "the key is made with the first token"
    other_token = token_of(other, "sailor")
    issuers = ["--service-account-issuer=https://issuer.example.com", "--service-account-issuer=https://old.example.com"]
    with launch(*issuers, f"--service-account-key-file={key}", "--api-audiences=api,more", "--service-account-max-token-expiration=2h") as server:
        account(server, "sailor")
        status, response, headers = server.request("POST", ACCOUNTS + "/sailor/token", {"spec": {"expirationSeconds": 90000}})
        assert (status, response["spec"]["expirationSeconds"], response["spec"]["audiences"]) == (201, 7200, ["api", "more"]), response
        assert "requested expiration of 90000 seconds shortened to 7200 seconds" in headers["warning"], headers
        assert [whoami(server, token=token)[0] for token in (response["status"]["token"], other_token)] == [201, 401]
        assert len(server.ok("GET", "/openid/v1/jwks", headers=KEY_SET)["keys"]) == 2
        assert server.ok("GET", "/.well-known/openid-configuration")["issuer"] == "https://issuer.example.com"


def test_controllers(launch):
    roles, published = RBAC + "/clusterroles/", CORE + "/configmaps/kube-root-ca.crt"
    controllers = "--controllers=*,-garbagecollector,serviceaccount,root-ca-certificate-publisher-controller"
    with launch(controllers, "--event-ttl=1s") as server:
        watch = Watch(server, CORE + "/events?watch=1")
        server.ok("POST", CORE + "/events", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "x"}})
        eventually(lambda: any('"DELETED"' in line for line in watch.lines))
        assert server.ok("GET", CORE + "/events")["items"] == []
        uid = lambda: server.wait_for(ACCOUNTS + "/default")["metadata"]["uid"]
        before = uid()
        server.ok("DELETE", ACCOUNTS + "/default")
        assert before != uid()
        authority = server.wait_for(published)
        assert authority["data"] == {"ca.crt": (server.dir / "ca.crt").read_text()}
        described = {"annotations": {"kubernetes.io/description": "x", "a": "b"}}
        server.ok("PATCH", published, {"data": {"ca.crt": "no", "more": "x"}, "metadata": described})
        eventually(lambda: server.ok("GET", published)["data"] == authority["data"])
        restored = server.ok("GET", published)["metadata"]
        assert restored["annotations"] == {**authority["metadata"]["annotations"], "a": "b"}, restored
        assert "kube-controller-manager" in [entry["manager"] for entry in restored["managedFields"]], restored
        rules = lambda role: server.ok("GET", roles + role)["rules"] or []
        view = eventually(lambda: rules("view"))
        rule = {"apiGroups": ["harbor.example.com"], "resources": ["boats"], "verbs": ["get"]}
        server.ok("POST", roles, {"metadata": {"name": "boats", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, "rules": [rule]})
        for role in ("view", "edit", "admin"):
            eventually(lambda: rule in rules(role))
        server.ok("DELETE", roles + "boats")
        eventually(lambda: rules("view") == view)
        server.ok("POST", MAPS, {"metadata": {"name": "alone"}})
        server.ok("DELETE", MAPS + "/alone?propagationPolicy=Orphan")
        assert server.ok("GET", MAPS + "/alone")["metadata"]["finalizers"] == ["orphan"]


def test_quotas(server):
    hard, quota = {"count/configmaps": "3", "secrets": "1", "cpu": "2", "count/events": "0"}, CORE + "/resourcequotas/q"
    create = lambda name: server.request("POST", MAPS, {"metadata": {"name": name}})
    status = lambda: server.ok("GET", quota).get("status")
    create("before")
    server.ok("POST", CORE + "/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    eventually(lambda: status() == {"hard": hard, "used": {"count/configmaps": "1", "secrets": "0", "cpu": "0"}})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = sorted(status for status, _, _ in pool.map(create, [f"c{i}" for i in range(8)]))
    assert statuses == [201, 201] + [403] * 6, statuses
    server.ok("DELETE", MAPS + "/before")
    eventually(lambda: status()["used"]["count/configmaps"] == "2")
    assert create("again")[0] == 201
    assert "exceeded quota: q, requested: count/configmaps=1" in create("more")[1]["message"]
    server.ok("PATCH", quota, {"spec": {"hard": {"count/configmaps": None}}})
    eventually(lambda: status()["used"] == {"secrets": "0", "cpu": "0"})
    assert create("more")[0] == 201
    # events are not counted
    server.ok("POST", CORE + "/events", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}})
