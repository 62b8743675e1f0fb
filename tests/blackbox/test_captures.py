"""Snapshots of etcd and running clusters as sources, and `pintle capture`."""

import base64
import http.server
import json
import os
import urllib.request

import pytest

from etcd import Etcd
from hooks import TlsServer
from metrics import metrics_of
from objects import ANY, DEFINITIONS, MAPS, SECRETS, definition
from pintle import TOKEN
from player import kubeconfig
from programs import helm

pytestmark = [pytest.mark.cli, pytest.mark.timeout(120)]

WIDGETS = definition("widgets", "example.com", ANY)
CONTAINERS = [{"name": "app", "image": "app:1"}]
PODS = "/api/v1/namespaces/default/pods"


def fill(server):
    """Writes objects of some kinds. Returns the Pod and the Widget, as the server shows them."""
    server.ok("POST", DEFINITIONS, WIDGETS)
    server.ok("POST", SECRETS, {"metadata": {"name": "s"}, "data": {"k": base64.b64encode(b"hidden").decode()}})
    server.ok("POST", MAPS, {"metadata": {"name": "gone"}})
    server.ok("DELETE", MAPS + "/gone")
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    widget = server.ok("POST", "/apis/example.com/v1/namespaces/default/widgets", widget)
    server.ok("POST", PODS, {"metadata": {"name": "p", "labels": {"a": "1"}}, "spec": {"containers": CONTAINERS}})
    pod = server.ok("PATCH", PODS + "/p", {"metadata": {"labels": {"a": "2"}}})
    return pod, widget


def served(launch, source, kubectl_binary, *arguments):
    """Runs kubectl on a server with the objects of a source."""
    return launch.run("run", "--from", source, "--", kubectl_binary, *arguments)


def without_version(found):
    found["metadata"].pop("resourceVersion")
    return found


def assert_served(launch, source, kubectl_binary, pod, widget):
    done = served(launch, source, kubectl_binary, "get", "pods/p", "widgets/w", "-o", "json", "--show-managed-fields")
    found = [without_version(found) for found in json.loads(done.stdout)["items"]]
    assert found == [without_version(dict(of, metadata=dict(of["metadata"]))) for of in (pod, widget)], done.stderr
    assert "gone" not in served(launch, source, kubectl_binary, "get", "configmaps", "-n", "default", "-o", "name").stdout
    return done.stderr


def snapshot(etcd):
    """A snapshot, as `etcdctl snapshot save` writes it."""
    request = urllib.request.Request(etcd.members[0].url + "/v3/maintenance/snapshot", data=b"{}", method="POST")
    with urllib.request.urlopen(request, timeout=30) as response:
        parts = [json.loads(line)["result"] for line in response if line.strip()]
    return b"".join(base64.b64decode(part.get("blob", "")) for part in parts)


def test_snapshot_of_etcd(launch, tmp_path, kubectl_binary, etcd_binary):
    file = tmp_path / "snapshot.db"
    with Etcd() as etcd:
        with launch("--etcd-servers", etcd.urls, storage="etcd") as server:
            pod, widget = fill(server)
        etcd.put("/registry/secrets/default/sealed", b"k8s:enc:aescbc:v1:key1:" + os.urandom(40))
        etcd.put("/registry/ranges/other", b"\x00\x01")
        file.write_bytes(snapshot(etcd))
    notes = assert_served(launch, file, kubectl_binary, pod, widget)
    assert "/registry/secrets/default: it is encrypted (aescbc:v1:key1)" in notes, notes
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(file.read_bytes()[:20000])
    assert "the database is damaged" in launch.run("run", "--from", damaged, "--", "true", status=2)


def test_running_cluster(launch, tmp_path, kubectl_binary):
    """A cluster is read in pages, with get and list only, and captured to an archive."""
    archive = tmp_path / "cluster.tar.gz"
    with launch() as server:
        pod, widget = fill(server)
        for number in range(1200):
            server.ok("POST", MAPS, {"metadata": {"name": f"m{number:04}"}})
        before = counts(server)
        notes = assert_served(launch, f"kubeconfig:{server.kubeconfig}", kubectl_binary, pod, widget)
        assert "skipped" not in notes, notes
        assert "there is no context" in launch.run("capture", archive, "--from", f"kubeconfig:{server.kubeconfig}#no-such", status=1)
        launch.run("capture", archive, "--from", f"kubeconfig:{server.kubeconfig}")
        asked = {verb for verb, count in counts(server).items() if count != before.get(verb, 0)}
        assert asked <= {"GET", "LIST"}, asked
    assert_served(launch, archive, kubectl_binary, pod, widget)
    listed = served(launch, archive, kubectl_binary, "get", "configmaps", "-n", "default", "-o", "name").stdout
    assert listed.count("configmap/m") == 1200
    secret = served(launch, archive, kubectl_binary, "get", "secret", "s", "-o", "jsonpath={.data.k}").stdout
    assert base64.b64decode(secret) == b"REDACTED"


class FailingCluster(http.server.BaseHTTPRequestHandler):
    """An API whose second page has expired, whose lists of Secrets break off, and which is busy once."""

    protocol_version = "HTTP/1.1"
    kinds = (("configmaps", "ConfigMap"), ("secrets", "Secret"), ("pods", "Pod"), ("services", "Service"))
    busy = [True]

    def do_GET(self):  # noqa: N802
        path, _, query = self.path.partition("?")
        resources = [{"name": name, "kind": kind, "namespaced": True, "verbs": ["list"]} for name, kind in self.kinds]
        token = dict(part.partition("=")[::2] for part in query.split("&")).get("continue", "")
        item = lambda name: {"metadata": {"name": name, "namespace": "n"}}  # noqa: E731
        if path == "/api/v1/secrets":
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        elif path == "/api/v1/pods":
            self.respond(410, {"kind": "Status", "code": 410, "message": "expired for good", "metadata": {}})
        elif path == "/api/v1/services" and self.busy:
            self.busy.pop()
            self.respond(429, {"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 1}})
        elif path == "/api/v1/configmaps" and token == "one":
            self.respond(410, {"kind": "Status", "code": 410, "message": "expired", "metadata": {"continue": "two"}})
        else:
            lists = {"": ("a", "one"), "two": ("b", "")}
            name, following = lists[token] if path.endswith("configmaps") else ("s", "")
            bodies = {"/apis": {"groups": []}, "/api/v1": {"resources": resources}}
            self.respond(200, bodies.get(path, {"metadata": {"continue": following}, "items": [item(name)]}))

    def respond(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format, *args):
        pass


def test_what_a_failing_cluster_still_lists(launch, tmp_path, kubectl_binary):
    with launch() as server, TlsServer(server.dir, FailingCluster) as cluster:
        (tmp_path / "config").write_text(kubeconfig(f"https://127.0.0.1:{cluster.server_address[1]}", TOKEN))
        done = served(launch, f"kubeconfig:{tmp_path / 'config'}", kubectl_binary, "get", "configmaps,services", "-n", "n", "-o", "name")
        cluster.shutdown()
    notes = done.stderr
    assert done.stdout.split() == ["configmap/a", "configmap/b", "service/s"], notes
    assert "skipped: api/v1/pods: expired for good" in notes and "skipped: api/v1/secrets: " in notes, notes
    assert "3 objects of 2 kinds" in notes and "2 skipped" in notes, notes


def test_credentials_of_a_program(launch, tmp_path, kubectl_binary):
    """The kubeconfigs of most clouds name a program that prints a token."""
    (tmp_path / "token.sh").write_text("#!/bin/sh\necho '" + json.dumps({"status": {"token": TOKEN}}) + "'\n")
    (tmp_path / "token.sh").chmod(0o755)
    with launch() as server:
        config = json.loads(kubeconfig(server.url, ""))
        config["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./token.sh"}}
        (tmp_path / "config").write_text(json.dumps(config))
        assert "namespace/default" in served(launch, f"kubeconfig:{tmp_path / 'config'}#c", kubectl_binary, "get", "namespaces", "-o", "name")


def test_logs_of_a_running_cluster(launch, tmp_path, kubectl_binary):
    """The cluster is a capture itself, since Pintle alone has no logs."""
    status = {"containerStatuses": [{"name": "app", "restartCount": 1, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": CONTAINERS}, "status": status}
    source = tmp_path / "source"
    logs = source / "namespaces" / "n" / "pods" / "p" / "app" / "app" / "logs"
    logs.mkdir(parents=True)
    (source / "pod.json").write_text(json.dumps(pod))
    for name, line in (("current", "second run"), ("previous", "first run")):
        (logs / f"{name}.log").write_text(f"2024-05-01T10:00:00.000000000Z {line}\n")
    archive = tmp_path / "cluster.tgz"
    script = f"{launch.binary} capture {archive} --logs --from kubeconfig:$KUBECONFIG"
    launch.run("run", "--from", source, "--", "bash", "-ec", script)
    for flags, line in (((), "second run\n"), (("-p",), "first run\n")):
        assert served(launch, archive, kubectl_binary, "logs", "-n", "n", "p", *flags).stdout == line


# what charts ask the API for, and what is rendered: `None` is a chart that cannot be rendered
CHARTS = {
    # helm 8137 and 9426: objects of the cluster in a dry run
    'color: {{ (lookup "v1" "ConfigMap" "shop" "settings").data.color }}': "color: blue",
    'size: {{ (lookup "example.com/v1" "Widget" "shop" "w").spec.size | quote }}': 'size: "3"',
    'missing: {{ lookup "example.com/v1" "Gadget" "shop" "g" | toJson | quote }}': 'missing: "{}"',
    "version: {{ .Capabilities.KubeVersion.Version }}": "version: v1.37",
    'widgets: {{ .Capabilities.APIVersions.Has "example.com/v1/Widget" | quote }}': 'widgets: "true"',
    'gadgets: {{ .Capabilities.APIVersions.Has "example.com/v1/Gadget" | quote }}': 'gadgets: "false"',
    # helm-unittest 249 and 296: a chart keeps the password that it has generated before
    'password: {{ (lookup "v1" "Secret" "shop" "db").data.password | default (randAlphaNum 8 | b64enc) }}': "password: czNjcmV0",
    # helm-unittest 380: a list without objects is a list
    'accounts: {{ if lookup "v1" "ServiceAccount" "" "" }}listed{{ else }}offline{{ end }}': "accounts: listed",
    # cozystack 4013: a kind that is not served fails, unless the chart asks for it first
    'ip: {{ lookup "kubeovn.io/v1" "IP" "" "vm" | toJson | quote }}': None,
    'ip: {{ if .Capabilities.APIVersions.Has "kubeovn.io/v1" }}{{ lookup "kubeovn.io/v1" "IP" "" "vm" | toJson }}{{ else }}none{{ end }}': "ip: none",
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("major", [3, 4])
def test_charts_see_the_source(launch, tmp_path, major):
    """`lookup` and Capabilities of helm are those of the captured cluster."""
    of_shop = lambda name: {"name": name, "namespace": "shop"}  # noqa: E731
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": of_shop("settings"), "data": {"color": "blue"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": of_shop("db"), "data": {"password": "czNjcmV0"}}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": of_shop("w"), "spec": {"size": 3}}
    source = tmp_path / "source.json"
    source.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [WIDGETS, settings, secret, widget]}))
    template = tmp_path / "chart" / "templates" / "found.yaml"
    template.parent.mkdir(parents=True)
    (tmp_path / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 1.0.0\n")

    def rendered(*lines, **options):
        template.write_text("\n".join(["apiVersion: v1", "kind: ConfigMap", "metadata: {name: found}", "data:", *(f"  {line}" for line in lines)]))
        # helm 3 asks the server for Capabilities only here, not in `helm template`
        return launch.run("run", "--from", source, "--", helm(major), "install", "c", "--dry-run=server", template.parents[1], **options)

    out = rendered(*(line for line, found in CHARTS.items() if found)).stdout
    assert [found for found in CHARTS.values() if found and f"\n  {found}" not in out] == [], out
    for line in (line for line, found in CHARTS.items() if not found):
        assert "kubeovn.io/v1" in rendered(line, status=1, lines=None).stderr


def counts(server):
    """The number of requests by verb, but for those of the test."""
    samples, _, _ = metrics_of(server)
    found = {}
    for name, labels, value in samples:
        if name == "apiserver_request_total":
            found[labels["verb"]] = found.get(labels["verb"], 0) + value
    return found
