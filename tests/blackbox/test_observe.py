"""Log lines by level and format, and dashboards and alerts that use existing metrics."""

import json
import re
import signal
import time

import pytest

from hooks import Hooks
from metrics import metrics_of
from objects import MAPS, register, webhook
from pintle import eventually
from programs import ROOT
from watch import Watch

pytestmark = pytest.mark.observe

MONITORING = ROOT / "examples/monitoring"
# the functions and keywords of PromQL that expressions use
PROMQL = {"sum", "by", "rate", "histogram_quantile", "increase", "changes", "topk", "le", "time"}


def entries(server, message):
    """The fields of the log lines with this message."""
    lines = (json.loads(line)["fields"] for line in server.stderr().splitlines())
    return [line for line in lines if line["message"] == message]


def test_log_lines(launch):
    """Level 2 logs start, reload and stop; level 3 every request, with its audit ID. All lines are JSON with --logging-format=json."""
    with launch("--v=2", "--logging-format=json", "--allow-privileged=true") as server:
        (started,) = eventually(lambda: entries(server, "started"))
        assert started["storage"] == "Memory" and "v=2" in started["flags"].split() and started["revision"] > 0, started
        server.tokens.write_text(server.tokens.read_text() + "new-token,newcomer,3\n")
        eventually(lambda: entries(server, "certificates, keys and tokens have been reloaded"))
        assert server.request("GET", MAPS, token="new-token")[0] == 403
        assert entries(server, "request") == []
        with Hooks(server) as hooks:
            admit(server, hooks.on("/slow", lambda _: time.sleep(1.1) or {"allowed": True}))
            server.ok("POST", MAPS, {"metadata": {"name": "one"}})
            (slow,) = eventually(lambda: entries(server, "slow request"))
            assert (slow["method"], slow["uri"], slow["status"]) == ("POST", MAPS, 201) and slow["milliseconds"] > 1000, slow
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(30)
        assert [entries(server, message) != [] for message in ("stopping", "stopped")] == [True, True]
        assert entries(server, "stopping")[0]["reason"] == "signal"
    with launch("--v=3", "--logging-format=json") as server:
        server.ok("GET", MAPS + "?limit=1", headers={"Audit-ID": "of-this-test"})
        (request,) = eventually(lambda: [line for line in entries(server, "request") if line["audit_id"] == "of-this-test"])
        assert (request["method"], request["uri"], request["status"], request["user"]) == ("GET", MAPS + "?limit=1", 200, "tester"), request


def test_failures_are_logged_at_level_0(launch):
    """Each kind of failure that an operator must know has a line at once, and later ones are counted, not logged."""
    with launch("--logging-format=json") as server, Hooks(server):
        admit(server, {"url": "https://127.0.0.1:1/x"})
        for number in range(3):
            assert server.request("POST", MAPS, {"metadata": {"name": f"refused-{number}"}})[0] == 500
            assert server.request("GET", MAPS, token="unknown")[0] == 401
        (closed,) = entries(server, "failed calling webhook, failing closed")
        assert closed["webhook"] == "a.hooks.example.com" and "connection refused" in closed["why"] and closed["more"] == 0, closed
        (refused,) = entries(server, "a bearer token was refused")
        assert "invalid bearer token" in refused["why"], refused


def test_log_lines_have_no_control_characters(launch):
    with launch("--v=3") as server:
        server.tokens.write_text(server.tokens.read_text() + '"odd-token","a\x1b[31mb",3\n')
        eventually(lambda: server.request("GET", "/version", token="odd-token")[0] == 200)
        (line, *_) = eventually(lambda: [line for line in server.stderr().splitlines() if "[31mb" in line])
        assert "\x1b" not in line and r"user=a\u{1b}[31mb" in line, line


def admit(server, client, name="hook", **more):
    register(server, "validating", webhook("a", client, "CREATE", **more), name=name)


def expressions(rules):
    """The expressions of Prometheus rules, on one line or in an indented block."""
    matches = re.findall(r"(?m)^( *)expr: (.*)\n((?:\1 +.*\n)*)", rules)
    return [block if first.strip() == "|" else first for _, first, block in matches]


def samples_of(expression):
    """The names of metrics in a PromQL expression."""
    text = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)', " ", expression)
    return {name for name in re.findall(r"[a-zA-Z_:][\w:]*", text) if name not in PROMQL}


def labels_of(expression):
    inside = re.findall(r"\{([^}]*)\}", re.sub(r'"[^"]*"', '""', expression)) + re.findall(r"\bby \(([^)]*)\)", expression)
    return {name for part in inside for name in re.findall(r"[a-z_]+", part)}


def test_dashboard_and_alerts_use_metrics_that_exist(launch):
    with launch(storage="embedded") as server, Hooks(server) as hooks:
        Watch(server, MAPS + "?watch=1")
        admit(server, hooks.on("/look", lambda review: {"allowed": review["name"] != "fails"}))
        # nothing listens there
        admit(server, {"url": "https://127.0.0.1:1/"}, "ignored", failurePolicy="Ignore")
        server.ok("POST", MAPS, {"metadata": {"name": "one"}})
        assert server.request("POST", MAPS, {"metadata": {"name": "fails"}})[0] >= 400
        assert server.request("GET", MAPS + "/none")[0] == 404
        samples, _, _ = metrics_of(server)
    known = {}
    for name, labels, _ in samples:
        known.setdefault(name, {"job", "instance"}).update(labels)
    known["up"] = {"job", "instance"}
    rules = expressions((MONITORING / "rules.yaml").read_text())
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(rules) >= 10 and len(panels) >= 12 and all(panel["description"] for panel in dashboard["panels"])
    for expression in rules + panels:
        names = samples_of(expression)
        assert names and not [name for name in names if name not in known], (expression, names)
        assert labels_of(expression) <= set().union(*(known[name] for name in names)), expression


def test_labels_are_bounded(server):
    """Names that clients choose are not labels: requests for many paths and by many users do not add series."""

    def count_after_requests(i):
        for path in (f"/apis/none-{i}.example.com/v{i}/things-{i}", f"{MAPS}/map-{i}"):
            for user in ({"Impersonate-User": f"user-{i}"}, {}):
                server.request("GET", path, headers={"User-Agent": f"agent-{i}", **user})
        return len(metrics_of(server)[0])

    count_after_requests(0)
    before = count_after_requests(1)
    assert max(count_after_requests(i) for i in range(2, 100)) == before


def test_metrics_of_operation(launch, tmp_path):
    """Also of the backup that an earlier process has made."""
    (tmp_path / "pintle-20261101T000000Z-7.backup").write_text("")
    flags = ("--backup-schedule", "0 0 1 1 *", "--backup-target", str(tmp_path))
    with launch(*flags, storage="embedded") as server:

        def values():
            return {(name, labels.get("name")): value for name, labels, value in metrics_of(server)[0] if name.startswith("pintle_")}

        eventually(lambda: values()["pintle_backup_last_success_timestamp_seconds", None] == 1793491200)
        found = values()
        assert 0 < found["pintle_data_directory_free_bytes", None] < found["pintle_data_directory_size_bytes", None]
        for name, days in (("serving", 365), ("admin", 365), ("ca", 3650)):
            left = found["pintle_certificate_expiration_timestamp_seconds", name] - time.time()
            assert abs(left / 86400 - days) < 2, (name, left)
