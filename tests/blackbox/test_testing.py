"""Faults, gates and waits: the flags, the command line, the wire, and a controller whose bugs only they show."""

import base64
import http.client
import json
import os
import re
import string
import subprocess
import sys
import time
from urllib.parse import urlparse
from xml.etree import ElementTree

import pytest

import kubectl.client as kubectl
from commands import run
from documentation import ROOT, command_tests
from objects import ACCOUNTS, APPLY, MAPS, RBAC, REVIEWS, TESTING, account, create_testing, grant, token_of, workspace
from pintle import TOKEN, eventually, insecure
from programs import openssl
from watch import Watch

pytestmark = [pytest.mark.testing, pytest.mark.timeout(180)]

EXAMPLE = ROOT / "examples" / "testing"


test_commands = command_tests("testing")


@pytest.fixture
def server(launch):
    with launch("--testing", "--workspaces") as server:
        yield server


def test_only_a_server_for_tests_has_it(launch, tmp_path):
    with launch("--testing") as server:
        assert "[+]testing ok" in server.request("GET", "/readyz?verbose")[1]
        assert "testing is on" in server.stderr().splitlines()[0]
        assert server.request("GET", "/apis/testing.pintle.dev")[0] == 200
    data = tmp_path / "data"
    with launch("--testing", storage="embedded", data_dir=data) as server:
        create_testing(server, "Fault", "busy", effect={"error": {"code": 429}}, when={"every": 2})
        server.restart()
        assert [server.request("GET", MAPS)[0] for _ in range(2)] == [200, 429], "a fault is kept like every object"
    with launch(storage="embedded", data_dir=data) as server:
        assert "testing" not in server.request("GET", "/readyz?verbose")[1]
        eventually(lambda: server.request("GET", "/apis/testing.pintle.dev")[0] == 404)
        groups = [group["name"] for group in server.ok("GET", "/apis")["groups"]]
        assert "testing.pintle.dev" not in groups
        for _ in range(4):
            server.ok("GET", MAPS)


def test_each_workspace_has_its_own(server):
    workspace(server, "a")
    create_testing(server, "Fault", "down", prefix="/clusters/a", effect={"error": {"code": 503}})
    assert (server.request("GET", "/clusters/a" + MAPS)[0], server.request("GET", MAPS)[0]) == (503, 200)
    create_testing(server, "Fault", "down", effect={"error": {"code": 500}})
    server.ok("DELETE", f"/clusters/a{TESTING}/faults/down")
    assert (server.request("GET", "/clusters/a" + MAPS)[0], server.request("GET", MAPS)[0]) == (200, 500)
    server.ok("DELETE", f"{TESTING}/faults/down")
    create_testing(server, "Fault", "down", effect={"error": {"code": 504}}, match={"resources": ["configmaps"]})
    workspace(server, "b", **{"from": {"workspace": "default"}})
    server.ok("DELETE", f"{TESTING}/faults/down")
    assert (server.request("GET", "/clusters/b" + MAPS)[0], server.request("GET", MAPS)[0]) == (504, 200), "a fork has the faults of its source"


def raw(server, method, path, body=None):
    """A request over a connection of its own; returns the response, whose body was not read."""
    url = urlparse(server.url)
    connection = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=20)
    connection.request(method, path, json.dumps(body) if body else None, {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"})
    return connection.getresponse()


def test_connections_are_reset_and_responses_cut(server):
    create_testing(server, "Fault", "lost", effect={"afterCommit": "Reset"}, match={"verbs": ["create"], "resources": ["configmaps"]})
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        raw(server, "POST", MAPS, {"metadata": {"name": "a"}})
    assert server.request("GET", f"{MAPS}/a")[0] == 200
    create_testing(server, "Fault", "cut", effect={"connection": "Cut"}, match={"verbs": ["get", "list"]})
    for path in (f"{MAPS}/a", MAPS):
        response = raw(server, "GET", path)
        assert (response.status, response.headers["pintle-fault"]) == (200, "cut")
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            response.read()


def test_audit_events_name_the_fault(launch, tmp_path):
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    with launch("--testing", "--audit-policy-file", str(policy), "--audit-log-path", str(log)) as server:
        create_testing(server, "Fault", "busy", effect={"error": {"code": 429}}, when={"every": 2})
        codes = [server.request("GET", MAPS)[0] for _ in range(4)]
        assert codes == [200, 429, 200, 429]
        eventually(lambda: log.read_text().count('"testing.pintle.dev/fault":"busy"') >= 2)


def test_settle_follows_the_last_delivery(server):
    """A watch that is delayed keeps it waiting, and it returns within milliseconds of the delivery."""
    watch = Watch(server, MAPS + "?watch=true&resourceVersion=" + server.ok("GET", MAPS)["metadata"]["resourceVersion"])
    create_testing(server, "Fault", "late", effect={"watch": "Delay", "delay": "300ms"}, match={"resources": ["configmaps"]})
    server.ok("POST", MAPS, {"metadata": {"name": "a"}})
    written = time.monotonic()
    status = create_testing(server, "Settle", "s", quiet="1ms")["status"]
    took = time.monotonic() - written
    assert status["settled"], status
    assert 0.25 < took < 2, took
    # the connection has it; this process reads it in a thread
    eventually(lambda: len(watch.lines) == 1)


def report(server, prefix="", **spec):
    """The status of a Report, with its agents by name."""
    status = create_testing(server, "Report", "r", prefix, **spec)["status"]
    status["agents"] = {agent["userAgent"]: agent for agent in status["agents"]}
    return status


def findings(agent, check):
    return {finding["subject"]: finding["count"] for finding in agent["findings"] if finding["check"] == check}


def as_agent(name, **headers):
    return {"User-Agent": f"{name}/v1 (linux/amd64) test", **headers}


def test_report_counts_requests_by_agent(server):
    """On every form of write, and per workspace."""
    robo = as_agent("robo")
    object_ = server.ok("POST", MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}, headers=robo)
    server.ok("PUT", f"{MAPS}/a", object_, headers=robo)
    server.ok("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, headers=robo)
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"y": "2"}}
    for _ in range(2):
        server.ok("PATCH", f"{MAPS}/a?fieldManager=robo&force=true", applied, headers={**robo, **APPLY})
    server.ok("PATCH", f"{MAPS}/a", {"data": {"x": "2"}}, headers=robo)
    server.ok("PUT", f"{MAPS}/a?dryRun=All", server.ok("GET", f"{MAPS}/a", headers=robo), headers=robo)
    assert server.request("PUT", f"{MAPS}/a", object_, headers=robo)[0] == 409
    assert server.request("GET", f"{MAPS}/none", headers=robo)[0] == 404
    agent = report(server)["agents"]["robo/v1"]
    assert findings(agent, "noOpWrites") == {"update configmaps default/a": 1, "patch configmaps default/a": 2}
    assert findings(agent, "conflicts") == {"update configmaps default/a": 1}
    assert findings(agent, "conflictsNotRetried") == {"configmaps default/a": 1}
    requests = {(request["verb"], request["count"], request["failed"]) for request in agent["requests"]}
    assert requests == {("create", 1, 0), ("update", 3, 1), ("patch", 4, 0), ("get", 2, 1)}
    assert {failure["reason"]: failure["count"] for failure in agent["failures"]} == {"Conflict": 1, "NotFound": 1}
    server.ok("PATCH", f"{MAPS}/a", {"data": {"x": "3"}}, headers=robo)
    status = report(server, userAgents=["robo/*"], reset=True)
    assert (list(status["agents"]), status["counts"]["conflictsNotRetried"]) == (["robo/v1"], 0)
    assert report(server)["agents"] == {}
    assert server.request("GET", f"{TESTING}/reports")[1]["items"] == [], "it is not stored"
    workspace(server, "a")
    server.ok("GET", "/clusters/a" + MAPS, headers=robo)
    assert "robo/v1" in report(server, prefix="/clusters/a")["agents"]
    assert "robo/v1" not in report(server)["agents"]


def test_report_finds_writes_at_rest_and_watches(server):
    robo, other = as_agent("robo"), as_agent("other")
    for name in "ab":
        server.ok("POST", MAPS, {"metadata": {"name": name}})
    listed = server.ok("GET", MAPS, headers=robo)["metadata"]["resourceVersion"]
    path = f"{MAPS}?watch=true&resourceVersion={listed}"
    for _ in range(2):
        # each ends at once
        server.request("GET", path + "&timeoutSeconds=1", headers=robo)
    watch = Watch(server, path, headers=robo)
    assert create_testing(server, "Settle", "s", quiet="1ms")["status"]["settled"]
    before = report(server)["agents"]["robo/v1"]
    assert before["watches"] == [{"watch": "configmaps in default", "running": 1, "started": 3, "restarted": 2, "events": 0}]
    assert findings(before, "unusedWatches") == {"configmaps in default": 1}
    server.ok("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, headers=robo)
    server.ok("PATCH", f"{MAPS}/b", {"data": {"x": "1"}}, headers=other)
    server.ok("PATCH", f"{MAPS}/a", {"data": {"x": "2"}}, headers=robo)
    eventually(lambda: len(watch.lines) == 3)
    status = report(server)
    assert findings(status["agents"]["robo/v1"], "writesAtRest") == {"patch configmaps default/a": 1}
    assert findings(status["agents"]["robo/v1"], "unusedWatches") == {}
    assert (status["counts"]["writesAtRest"], status["counts"]["watchRestarts"]) == (1, 2)


def test_report_names_the_roles_that_suffice(server):
    """Bound instead of the roles that there were, they allow the same requests."""
    grant(server, "wide", {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list", "create"]})

    def requests():
        plain = {"headers": as_agent("Robo"), "token": "plain-token"}
        listed = server.request("GET", "/api/v1/configmaps", **plain)[0]
        created, object_, _ = server.request("POST", MAPS, {"metadata": {"generateName": "a"}}, **plain)
        path = f"{MAPS}/{object_['metadata'].get('name', 'none')}"
        return [listed, created, *(server.request(method, path, **plain)[0] for method in ("GET", "DELETE"))]

    assert requests() == [200, 201, 200, 403]
    agent = report(server)["agents"]["Robo/v1"]
    assert list(findings(agent, "forbidden").values()) == [1] and "delete configmaps default/a" in next(iter(findings(agent, "forbidden")))
    (user,) = (user for user in report(server)["users"] if user["name"] == "plain")
    unused = [rule["rule"] for rule in user["unusedRules"]]
    assert unused == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "create"]}], "every verb on secrets"
    assert [(rule["kind"], rule["name"]) for rule in user["unusedRules"]] == [("ClusterRole", "wide")]
    everywhere, to_all, place, to_place = user["roles"]
    assert everywhere["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    assert (place["metadata"], place["rules"][0]["verbs"]) == ({"name": "plain", "namespace": "default"}, ["get", "create", "delete"])

    server.ok("DELETE", f"{RBAC}/clusterrolebindings/wide")
    for role, binding, path in ((everywhere, to_all, f"{RBAC}/clusterrole"), (place, to_place, f"{RBAC}/namespaces/default/role")):
        server.ok("POST", f"{path}s", role)
        server.ok("POST", f"{path}bindings", binding)
    assert requests() == [200, 201, 200, 200]


def signs_and_reviews(call, run):
    """An authority: requests that it approves, tokens that it asks for, and reviews."""
    call("POST", ACCOUNTS, {"metadata": {"name": run}})
    token = call("POST", f"{ACCOUNTS}/{run}/token", {"spec": {}})["status"]["token"]
    assert call("POST", REVIEWS + "/tokenreviews", {"spec": {"token": token}})["status"]["authenticated"]
    asked = {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": asked})
    spec = {"request": request_pem(run), "signerName": "example.com/robo", "usages": ["client auth"]}
    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    request = call("POST", requests, {"metadata": {"name": run}, "spec": spec})
    approved = {"type": "Approved", "status": "True", "reason": "Robo", "message": "yes"}
    call("PUT", f"{requests}/{run}/approval", request | {"status": {"conditions": [approved]}})


def request_pem(name):
    key = openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout")
    return base64.b64encode(openssl("req", "-new", "-key", "/dev/stdin", "-subj", f"/CN={name}", input=key)).decode()


def requests_of(lines):
    """A controller that sends the requests of some lines of controllers.txt."""

    def controller(call, run):
        values = {"run": run}
        for line in lines:
            text, _, saved = string.Template(line).substitute(values).partition(" > ")
            method, path, body = [*text.split(" ", 2), "null"][:3]
            apply = "application/apply-patch+yaml" if method == "APPLY" else None
            response = call("PATCH" if apply else method, path, json.loads(body), apply)
            name, _, field = saved.partition("=")
            for part in filter(None, field.split(".")):
                response = response[part]
            values[name] = response if isinstance(response, str) else json.dumps(response)

    return controller


_, *SCRIPTS = re.split(r"^## (\w+)\n", (ROOT / "tests" / "harness" / "controllers.txt").read_text(), flags=re.M)
CONTROLLERS = [pytest.param(requests_of(re.findall("^[A-Z].*$", text, re.M)), id=name) for name, text in zip(SCRIPTS[::2], SCRIPTS[1::2])]
CONTROLLERS.append(pytest.param(signs_and_reviews, id="signs_and_reviews"))


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_a_controller_runs_with_nothing_but_its_roles(server, controller):
    account(server, "robo")
    token = token_of(server, "robo")

    def call(method, path, body=None, kind=None):
        headers = as_agent("robo") | ({"Content-Type": kind} if kind else {})
        code, value, _ = server.request(method, path, body, headers=headers, token=token)
        assert code < 300, (method, path, code, value)
        return value

    grant(server, "all", subject=("ServiceAccount", "robo"), role="cluster-admin")
    controller(call, "one")
    (user,) = report(server, userAgents=["robo/*"], reset=True)["users"]
    assert user["name"] == "system:serviceaccount:default:robo"
    server.ok("DELETE", f"{RBAC}/clusterrolebindings/all")
    with pytest.raises(AssertionError):
        controller(call, "none")
    for role in user["roles"]:
        namespace = role["metadata"].get("namespace")
        place = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        server.ok("POST", f"{place}/{role['kind'].lower()}s", role)
    report(server, reset=True)
    controller(call, "two")
    assert report(server)["counts"]["forbidden"] == 0
    assert {rule["rule"]["verbs"][0] for rule in report(server)["users"][0]["unusedRules"]} <= {"list"}, "a list beside a watch"


def test_report_on_the_command_line(launch, server):
    def report(*arguments, status=0):
        return launch.run("report", *arguments, server=server, status=status, lines=None)

    robo = as_agent("ro<bo")
    object_ = server.ok("POST", MAPS, {"metadata": {"name": "a"}}, headers=robo)
    for _ in range(2):
        server.ok("PUT", f"{MAPS}/a", object_, headers=robo)
    text = report()
    assert "ro<bo/v1\n  noOpWrites: 2\n         2 update configmaps default/a\n  requests: 3\n" in text, text
    assert "\ntester\n  needed rules\n    configmaps: create, update in default\n" in text, text
    failed = report("--expect", "noOpWrites=1,forbidden=0", "-o", "junit", status=1)
    suite = ElementTree.fromstring(failed.stdout).find("testsuite")
    assert failed.stderr == "pintle: noOpWrites is 2, and at most 1 was expected\n  ro<bo/v1: update configmaps default/a (2)\n"
    assert {case.get("name"): case.find("failure") is not None for case in suite} == {"noOpWrites": True, "forbidden": False}
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    page = report("-o", "html")
    assert ">ro&lt;bo/v1</h2>" in page and "ro<bo" not in page
    for part in ("Report on workspace default", "v1.37.2", "Updates, patches and applies that changed nothing.", "kind: RoleBinding"):
        assert part in page, (part, page)
    link = re.search(r'href="#(noOpWrites-\d+)"', page)[1]
    assert f'<h3 id="{link}">noOpWrites: 2</h3>' in page, page
    roles = report("-o", "roles", "--user-agent", "ro<bo*")
    assert "kind: Role\n" in roles and "namespace: default\n" in roles, roles
    assert json.loads(report("--expect", "noOpWrites=2", "--reset", "-o", "json").stdout)["counts"]["noOpWrites"] == 2
    server.ok("GET", MAPS, headers=robo)
    report("--expect", "noOpWrites=0")
    unknown = report("--expect", "noOpWrites=0", "--user-agent", "ro<bo*,robot/*", status=1)
    assert unknown.stderr == 'pintle: no request was counted of a client whose User-Agent is "robot/*"\n'
    report("--reset")
    assert report("--expect", "noOpWrites=0", status=1).stderr == "pintle: no request was counted\n"


TICKETS = "/apis/example.com/v1/namespaces/default/tickets"


class Tickets:
    """The controller of the example, on a server of its own."""

    def __init__(self, launch, server, fixed):
        self.server, self.binary = server, launch.binary
        self.env = {"KUBECONFIG": server.kubeconfig}
        run(kubectl.built(), "apply", "-f", EXAMPLE / "tickets.yaml", env=self.env)
        flags = ["--fixed"] if fixed else []
        command = [sys.executable, EXAMPLE / "controller.py", *flags]
        self.process = subprocess.Popen(command, env={**os.environ, **self.env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout.readline() == "running\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def pintle(self, *arguments):
        run(self.binary, *arguments, env=self.env)

    def create(self, *names):
        for name in names:
            self.server.ok("POST", TICKETS, {"apiVersion": "example.com/v1", "kind": "Ticket", "metadata": {"name": name}})

    def delete(self, name):
        self.server.ok("DELETE", f"{TICKETS}/{name}")

    def settle(self):
        self.pintle("settle", "--quiet", "700ms", "--timeout", "50s")

    def check(self):
        return run(sys.executable, EXAMPLE / "controller.py", "check", status=None, env=self.env).stdout.splitlines()


# One ticket at a time: on a busy machine, the controller's cache is stale without a fault.
def healthy(tickets):
    for name in "abc":
        tickets.create(name)
        tickets.settle()
    tickets.delete("b")
    tickets.settle()


def lost_response(tickets):
    tickets.pintle("fault", "create", "lost", "--recipe", "lost-response", "--percent", "100", "--count", "1", "--resource", "configmaps")
    tickets.create("a")
    tickets.settle()


def ended_watch(tickets):
    tickets.create("a")
    tickets.settle()
    tickets.pintle("fault", "create", "ends", "--watch", "end", "--nth", "1", "--resource", "tickets")
    tickets.delete("a")
    tickets.settle()


def late_events(tickets):
    tickets.pintle("fault", "create", "late", "--recipe", "stale-reads", "--resource", "configmaps")
    tickets.create("a", "b")
    tickets.settle()


@pytest.mark.parametrize("fixed", [False, True], ids=["bugs", "fixed"])
@pytest.mark.parametrize(
    ("scenario", "found"),
    [
        (healthy, []),
        (lost_response, ["ticket a has 2 numbers", "number 1 was given 2 times"]),
        (ended_watch, ["ticket a is gone, and its number is not"]),
        (late_events, ["number 1 was given 2 times"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_planted_bugs_show_under_faults_alone(launch, scenario, found, fixed):
    with launch("--testing") as server, Tickets(launch, server, fixed) as tickets:
        scenario(tickets)
        tickets.pintle("fault", "delete", "--all")
        assert tickets.check() == (["all is well"] if fixed or not found else found)


@pytest.mark.parametrize("recipe", ["stale-reads", "missed-events", "lost-response", "throttled", "restarting-server", "flaky-watch"])
def test_a_careful_controller_survives_each_recipe(launch, recipe):
    with launch("--testing") as server, Tickets(launch, server, fixed=True) as tickets:
        tickets.pintle("fault", "create", "f", "--recipe", recipe, "--user-agent", "ticket-controller/*")
        names = [f"t{i}" for i in range(8)]
        tickets.create(*names)
        tickets.delete("t1")
        tickets.settle()
        tickets.delete("t2")
        tickets.settle()
        hits = server.ok("GET", f"{TESTING}/faults/f")["status"]["hits"]
        assert hits > 0
        tickets.pintle("fault", "delete", "--all")
        assert tickets.check() == ["all is well"]
