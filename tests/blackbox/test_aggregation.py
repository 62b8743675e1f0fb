"""Aggregated API servers: proxied requests, conditions of APIServices, discovery and OpenAPI."""

import base64
import contextlib
import json

import pytest

from boats import BOATS
from connections import Upgraded
from hooks import Serving
from objects import DEFINITIONS, SERVICES, definition, grant
from pintle import eventually
from watch import Watch

pytestmark = pytest.mark.aggregation

GROUP = "harbor.example.com"
AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
V1 = BOATS.format("v1")


def bundle(server):
    return base64.b64encode((server.dir / "ca.crt").read_bytes()).decode()


def register(server, group, service="kubernetes", version="v1", **spec):
    """Creates an APIService for the Service `default/kubernetes` or another one."""
    if isinstance(service, str):
        service = {"namespace": "default", "name": service}
    spec = {"group": group, "version": version, "groupPriorityMinimum": 2000, "versionPriority": 10, "service": service, **spec}
    server.ok("POST", SERVICES, {"metadata": {"name": f"{version}.{group}"}, "spec": spec})


def condition(server, group, version="v1"):
    """Waits for the condition Available, and returns (status, reason, message)."""
    (available,) = eventually(lambda: server.ok("GET", f"{SERVICES}/{version}.{group}")["status"].get("conditions"))
    assert available["type"] == "Available" and available["lastTransitionTime"], available
    return available["status"], available["reason"], available["message"]


def wait_available(server, group):
    eventually(lambda: condition(server, group) == ("True", "Passed", "all checks passed"))


def discovered(server, group):
    """The versions of a group in the aggregated discovery document, or None."""
    items = server.ok("GET", "/apis", headers=AGGREGATED)["items"]
    return next((item["versions"] for item in items if item["metadata"]["name"] == group), None)


class Backend(Serving):
    """A minimal aggregated API server: it records requests and returns configured responses."""

    def __init__(self, certificates):
        super().__init__(certificates)
        self.received, self.responses, self.peers = [], {}, set()

    def handle(self, request):
        self.peers.add(request.client_address)
        headers = {name.lower(): request.headers.get_all(name) for name in request.headers}
        if headers.get("upgrade") and not request.path.endswith("/refused"):
            return self.echo(request, headers)
        body = request.body()
        # availability checks are not recorded
        if headers["x-remote-user"] not in (["system:kube-aggregator"], ["system:aggregator"]):
            self.received.append((request.command, request.path, headers, body))
        status, more, sent = self.responses.get(request.path.split("?")[0], (200, {}, b"{}"))
        request.reply(status, sent, more)

    def echo(self, request, headers):
        """Upgrades the connection and sends back what it receives, in upper case."""
        self.received.append((request.command, request.path, headers, b""))
        request.send_response_only(101)
        for name, value in (("Connection", "Upgrade"), ("Upgrade", headers["upgrade"][0]), ("X-Own", "yes")):
            request.send_header(name, value)
        request.end_headers()
        while received := request.connection.recv(65536):
            request.connection.sendall(received.upper())
        request.close_connection = True


def address_flag(port):
    return f"--service-address=default/kubernetes=127.0.0.1:{port}"


@contextlib.contextmanager
def aggregating(launch, certificates, *flags):
    """A backend with the certificates of a server, and a server that proxies sea.example.com/v1 to it."""
    with Backend(certificates.dir) as backend, launch(address_flag(backend.port), *flags) as server:
        register(server, "sea.example.com", caBundle=bundle(certificates))
        wait_available(server, "sea.example.com")
        yield backend, server


def test_aggregated_pintle(launch, server):
    """Another Pintle is the aggregated API server and authenticates the proxy by its certificate: objects, watches, RBAC, discovery,
    and unavailability."""
    ca, key = server.dir / "ca.crt", server.dir / "admin.key"
    with launch(f"--requestheader-client-ca-file={ca}", storage="embedded") as remote:
        published = remote.ok("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")["data"]
        assert published["requestheader-client-ca-file"] == ca.read_text(), published
        assert published["requestheader-username-headers"] == '["X-Remote-User"]' and "BEGIN" in published["client-ca-file"], published
        with launch(address_flag(remote.port), f"--proxy-client-cert-file={server.dir / 'admin.crt'}", f"--proxy-client-key-file={key}") as proxy:
            check_available(proxy, remote)
            check_unavailable(proxy, remote)


def check_available(server, remote):
    assert server.request("GET", V1)[0] == 404
    boats = definition("boats", GROUP, {"x-kubernetes-preserve-unknown-fields": True}, subresources={"status": {}})
    boats["spec"]["names"]["shortNames"] = ["bt"]
    remote.ok("POST", DEFINITIONS, boats)
    register(server, GROUP, caBundle=bundle(remote))
    wait_available(server, GROUP)
    watch = Watch(server, V1 + "?watch=1")
    created = server.ok("POST", V1, {"apiVersion": f"{GROUP}/v1", "kind": "Boat", "metadata": {"name": "gig"}})
    assert remote.ok("GET", V1 + "/gig") == created == server.ok("GET", V1 + "/gig")
    remote.ok("PATCH", V1 + "/gig", {"spec": {"sails": 1}})
    server.ok("DELETE", V1 + "/gig")
    eventually(lambda: [json.loads(line)["type"] for line in watch.lines] == ["ADDED", "MODIFIED", "DELETED"])
    # the user must be authorized by both servers
    attributes = f'resource "boats" in API group "{GROUP}" in the namespace "default"'
    for each in (server, remote):
        status, response, _ = server.request("GET", V1, token="plain-token")
        assert (status, response["message"]) == (403, f'boats.{GROUP} is forbidden: User "plain" cannot list {attributes}'), response
        grant(each, "sailor", {"apiGroups": [GROUP], "resources": ["boats"], "verbs": ["list"]})
    assert server.ok("GET", V1, token="plain-token")["items"] == []
    check_openapi(server, remote)
    # responses of the aggregated server are proxied
    assert server.request("GET", V1 + "/none")[1]["message"] == f'boats.{GROUP} "none" not found'
    assert server.ok("GET", f"/apis/{GROUP}")["preferredVersion"]["version"] == "v1"
    assert GROUP in [group["name"] for group in server.ok("GET", "/apis")["groups"]]
    assert server.ok("GET", f"/apis/{GROUP}/v1") == remote.ok("GET", f"/apis/{GROUP}/v1")
    (version,) = eventually(lambda: (found := discovered(server, GROUP)) and found[0]["freshness"] == "Current" and found)
    (resource,) = version["resources"]
    assert resource["resource"] == "boats" and resource["shortNames"] == ["bt"] and resource["subresources"][0]["subresource"] == "status", resource


def check_openapi(server, remote):
    """OpenAPI documents of the aggregated server are published: those of v3 are proxied, those of v2 merged."""
    name = f"apis/{GROUP}/v1"
    location = lambda one: one.ok("GET", "/openapi/v3")["paths"].get(name)
    found = eventually(lambda: location(server))
    assert found == location(remote), found
    url = found["serverRelativeURL"]
    assert server.ok("GET", url) == remote.ok("GET", url)
    assert server.request("GET", "/openapi/v3/apis/harbor.example.com/v2")[0] == 404
    path = V1.replace("default", "{namespace}")
    (document,) = eventually(lambda: [found for found in [server.ok("GET", "/openapi/v2")] if path in found["paths"]])
    boat = document["definitions"]["com.example.harbor.v1.Boat"]
    assert boat["x-kubernetes-group-version-kind"] == [{"group": GROUP, "kind": "Boat", "version": "v1"}], boat
    missing = [reference for reference in references(document) if reference[1] not in document[reference[0]]]
    renamed = [name for name in document["definitions"] if name.endswith("_v2")]
    assert (missing, renamed) == ([], []), "equal definitions are shared"
    protobuf = {"Accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
    assert "com.example.harbor.v1.Boat" in server.request("GET", "/openapi/v2", headers=protobuf)[1]


def references(value):
    """The references of a document, as (section, name)."""
    if isinstance(value, list):
        return [name for item in value for name in references(item)]
    if isinstance(value, dict):
        own = [tuple(value["$ref"].split("/")[1:])] if isinstance(value.get("$ref"), str) else []
        return own + [name for item in value.values() for name in references(item)]
    return []


def check_unavailable(server, remote):
    refused = f"dial tcp 127.0.0.1:{remote.port}: connect: connection refused"
    remote.stop()
    status, response, headers = server.request("GET", V1)
    assert (status, response) == (503, f"error trying to reach service: {refused}\n"), response
    assert headers["content-type"] == "text/plain; charset=utf-8", headers
    # a change of the spec is handled immediately
    server.ok("PATCH", f"{SERVICES}/v1.{GROUP}", {"spec": {"versionPriority": 11}})
    url = f"https://127.0.0.1:{remote.port}/apis/{GROUP}/v1"
    message = f'failing or missing response from {url}: Get "{url}": {refused}'
    eventually(lambda: condition(server, GROUP) == ("False", "FailedDiscoveryCheck", message))
    assert server.request("GET", V1)[:2] == (503, "service unavailable\n")
    eventually(lambda: discovered(server, GROUP) == [{"version": "v1", "freshness": "Stale"}])
    metrics, series = lambda: server.ok("GET", "/metrics"), f'aggregator_unavailable_apiservice{{name="v1.{GROUP}"}}'
    assert series + " 1" in metrics() and f'name="v1.{GROUP}",reason="FailedDiscoveryCheck"}} 1' in metrics(), metrics()
    # it becomes available again without a change
    remote.start()
    wait_available(server, GROUP)
    eventually(lambda: series + " 0" in metrics())
    server.ok("DELETE", f"{SERVICES}/v1.{GROUP}")
    eventually(lambda: series not in metrics() and server.request("GET", V1)[0] == 404)
    assert discovered(server, GROUP) is None


def test_forwarded_requests(launch, server):
    """Requests have the user headers of the proxy and none of the client; bodies of any size are forwarded in both directions."""
    header_flags = ["--requestheader-username-headers=X-Own-User", "--requestheader-extra-headers-prefix=X-Own-Extra-"]
    with aggregating(launch, server, *header_flags) as (backend, server):
        root = "/apis/sea.example.com/v1"
        client_headers = {
            "X-Remote-User": "evil",
            "X-Remote-Group": "system:masters",
            "X-Remote-Extra-Scopes": "all",
            "X-Remote-Uid": "0",
            "X-Mine": "1",
            "X-Own-User": "evil",
            "X-Own-Extra-Scopes": "all",
            "Impersonate-User": "bob",
            "Impersonate-Uid": "7",
            "Impersonate-Group": "system:masters",
            "Impersonate-Extra-a.b%2fc": "d",
            "X-Forwarded-For": "10.0.0.1",
            "Audit-ID": "an-id",
        }
        server.ok("GET", root + "/namespaces/n/waves/x/foam?b=2&watch=&a=x%20y;&a=1", headers=client_headers)
        method, path, headers, body = backend.received.pop()
        assert (method, path, body) == ("GET", root + "/namespaces/n/waves/x/foam?a=1&b=2&watch=", b""), path
        forwarded = {name: value for name, value in headers.items() if name not in ("accept", "accept-encoding", "user-agent", "connection")}
        host = f"127.0.0.1:{backend.port}"
        assert forwarded == {
            "x-remote-user": ["bob"],
            "x-remote-uid": ["7"],
            "x-remote-group": ["system:masters", "system:authenticated"],
            "x-remote-extra-a.b%2fc": ["d"],
            "x-mine": ["1"],
            "audit-id": ["an-id"],
            "host": [host],
            "content-type": ["application/json"],
            "x-forwarded-for": ["10.0.0.1, 127.0.0.1"],
            "x-forwarded-host": [host],
            "x-forwarded-proto": ["https"],
            "x-forwarded-uri": [root + "/namespaces/n/waves/x/foam"],
        }, forwarded
        # the proxied path is the one that was authorized
        server.ok("GET", root + "/namespaces/n%2fwaves/%41%20")
        assert backend.received.pop()[1] == root + "/namespaces/n/waves/A%20"
        # reads reuse a connection while the server keeps it open
        before = len(backend.peers)
        for _ in range(50):
            server.ok("GET", root + "/waves")
        assert len(backend.peers) - before < 20, "one connection, and a few of availability checks"
        # a header that a response names in Connection is not returned
        backend.responses[root + "/once"] = (200, {"Connection": "close, X-Hop", "X-Hop": "1", "X-Own": "1"}, b"{}")
        for _ in range(5):
            status, _, headers = server.request("GET", root + "/once")
            assert status == 200 and headers["x-own"] == "1" and "x-hop" not in headers, headers
        backend.received.clear()
        large = json.dumps({"text": "x" * 8_000_000}).encode()
        backend.responses[root + "/waves"] = (201, {"X-Own": "yes"}, large)
        for sent in (large, iter([large[:100], large[100:]])):
            status, response, headers = server.request("POST", root + "/waves", sent)
            assert (status, response["text"], headers["x-own"]) == (201, "x" * 8_000_000, "yes"), headers
            assert backend.received.pop()[3] == large
        backend.responses[root + "/away"] = (302, {"Location": "https://elsewhere.example.com/"}, b"")
        assert server.request("GET", root + "/away")[:2] == (502, "the backend attempted to redirect this request, which is not permitted")
        status, response, headers = server.request("HEAD", root + "/waves")
        assert (status, response, headers["content-length"]) == (201, "", str(len(large))), headers
        assert server.request("GET", root + "/waves", token=None)[0] == 403 and not [r for r in backend.received if r[0] == "GET" and r[1].endswith("waves")]


def test_upgraded_connections(launch, server):
    """Connections are upgraded to the protocols of exec, port-forward and watches, and bytes are forwarded in both directions."""
    path = "/apis/sea.example.com/v1/namespaces/n/waves/x/exec"
    with aggregating(launch, server) as (backend, server):

        def upgrade(path, protocol):
            return Upgraded(server, path, protocol, "POST", **{"Sec-WebSocket-Protocol": "v5.channel.k8s.io", "Content-Length": 0})

        for protocol in ("SPDY/3.1", "websocket"):
            with upgrade(path, protocol) as connection:
                head = connection.head.lower()
                assert connection.status == 101 and f"upgrade: {protocol}".lower() in head and "x-own: yes" in head, head
                for sent in (b"hello", b"x" * 300_000):
                    connection.socket.sendall(sent)
                    assert connection.file.read(len(sent)) == sent.upper()
            _, _, headers, _ = backend.received.pop()
            assert headers["x-remote-user"] == ["tester"] and headers["upgrade"] == [protocol], headers
            assert headers["sec-websocket-protocol"] == ["v5.channel.k8s.io"] and "authorization" not in headers, headers
        # requests within h2c could have the headers of another user
        for refused, protocol in ((path, "h2c"), (path + "/refused", "SPDY/3.1")):
            with upgrade(refused, protocol) as connection:
                assert connection.status == 200, connection.head


def test_reasons_of_unavailability(launch, server):
    other = server
    with Backend(other.dir) as backend, launch(address_flag(backend.port)) as server:
        create_service = lambda name, **spec: server.ok("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": name}, "spec": spec})
        create_service("nowhere", ports=[{"port": 443}])
        create_service("local", type="ExternalName", externalName="localhost")
        port = {"namespace": "default", "name": "local", "port": backend.port}
        register(server, "gone.example.com", "gone")
        register(server, "port.example.com", {"namespace": "default", "name": "nowhere", "port": 80}, version="v2")
        register(server, "nowhere.example.com", "nowhere")
        backend.responses["/apis/broken.example.com/v1"] = (500, {}, b"{}")
        register(server, "broken.example.com", port, caBundle=bundle(other))
        register(server, "distrusted.example.com", caBundle=bundle(server))
        register(server, "unverified.example.com", port, insecureSkipTLSVerify=True)
        url = f"https://localhost:{backend.port}/apis/broken.example.com/v1"
        cases = [
            ("gone", "v1", "ServiceNotFound", 'service/gone in "default" is not present'),
            ("port", "v2", "ServicePortError", 'service/nowhere in "default" is not listening on port 80'),
            ("nowhere", "v1", "EndpointsNotFound", 'cannot find endpointslices for service/nowhere in "default"'),
            ("broken", "v1", "FailedDiscoveryCheck", f"failing or missing response from {url}: bad status from {url}: 500"),
        ]
        for name, version, reason, message in cases:
            group = name + ".example.com"
            assert condition(server, group, version) == ("False", reason, message), name
            assert server.request("GET", f"/apis/{group}/{version}/things")[:2] == (503, "service unavailable\n")
            assert discovered(server, group) == [{"version": version, "freshness": "Stale"}]
        # availability checks do not verify the certificate; forwarded requests do
        wait_available(server, "distrusted.example.com")
        assert server.request("GET", "/apis/distrusted.example.com/v1/things")[:2] == (
            503,
            "error trying to reach service: tls: failed to verify certificate: x509: certificate signed by unknown authority\n",
        )
        wait_available(server, "unverified.example.com")
        assert server.ok("GET", "/apis/unverified.example.com/v1/things") == {}
        # a Service that is created later is found
        create_service("gone", type="ExternalName", externalName="localhost")
        server.ok("PATCH", SERVICES + "/v1.gone.example.com", {"spec": {"service": port, "insecureSkipTLSVerify": True}})
        wait_available(server, "gone.example.com")
