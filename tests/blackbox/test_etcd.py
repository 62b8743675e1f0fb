"""Pintle on etcd: transcripts, the layout of keys, several servers, outages of members and servers, invalid input."""

import base64
import concurrent.futures
import contextlib
import http.client
import json
import random
import shutil
import signal
import subprocess
import tempfile
import threading

import pytest

import encryption
import transcripts
from etcd import NEWEST, OLDER, Etcd, Member, build, of_module
from objects import ANY, CORE, DEFINITIONS, MAPS, RBAC, SECRETS, account, config_map, definition, named
from objects import SERVICES as REGISTRATIONS
from pintle import eventually
from programs import openssl
from workload import Client, ResumingWatch, Writer

pytestmark = pytest.mark.etcd

VERSIONS = [NEWEST, *(pytest.param(folder, marks=pytest.mark.slow) for folder in OLDER)]
# etcd 3.4, built with a current Go, accepts no writes after a restart
RESTARTING = ("test_missed_changes", "test_outages", "test_waits_for_etcd", "test_users_of_etcd")


@pytest.fixture(autouse=True, params=VERSIONS, ids=lambda folder: "newest" if folder == NEWEST else folder.name)
def etcd_version(request):
    """Builds and runs clusters of this version."""
    if request.param.name == "3.4" and request.function.__name__ in RESTARTING:
        pytest.skip("etcd 3.4, built with a current Go, accepts no writes after a restart")
    with of_module(request.param):
        build()
        yield


@pytest.fixture(scope="module")
def shared_server(launch):
    """One server on etcd for all scenarios that do not need a server of their own."""
    with server_for_transcripts(launch) as server:
        yield server


@contextlib.contextmanager
def server_for_transcripts(launch):
    """A server on a cluster of its own, without leader election, whose renewals of the Lease would raise the revision of the store
    between steps that expect the same revision."""
    with Etcd() as etcd, server_on(launch, etcd, "--leader-elect=false") as server:
        yield server


SCENARIOS = [path if transcripts.is_of_history(path) else pytest.param(path, marks=pytest.mark.slow) for path in transcripts.scenarios()]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path, launch, request, record_property):
    if path.stem in transcripts.ALONE:
        with server_for_transcripts(launch) as server:
            transcripts.wait_until_settled(server)
            steps = transcripts.check(server, path)
    else:
        steps = transcripts.check(request.getfixturevalue("shared_server"), path)
    record_property("checks", steps)


# what clients learn when the store fails; the cause is in the log
UNAVAILABLE = "Internal error occurred: the store is unavailable"
BOATS = "/apis/harbor.example.com/v1/namespaces/default/boats"
DEFINITION = definition("boats", "harbor.example.com", ANY)
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/pintle-controllers"


def boat(name, **more):
    return {"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": name, **more}, "spec": {"sails": 2}}


def server_on(launch, etcd, *flags, **options):
    return launch("--etcd-servers", etcd.urls, *flags, storage="etcd", **options)


def events_since(server, path, version):
    """The events of a watch of one second."""
    events = server.request("GET", f"{path}?watch=1&resourceVersion={version}&timeoutSeconds=1")[1]
    return [events] if isinstance(events, dict) else [json.loads(line) for line in events.splitlines()]


def unavailable(server, name="b"):
    """Sends a write that must fail, since etcd does."""
    status, response, _ = server.request("POST", MAPS, config_map(name))
    assert (status, response["message"]) == (500, UNAVAILABLE), response


def test_layout(launch):
    """Keys and values are those of kube-apiserver, and values that it writes are served and watched."""
    with Etcd() as etcd, server_on(launch, etcd) as server:
        server.ok("POST", MAPS, config_map("kept"))
        server.ok("POST", DEFINITIONS, DEFINITION)
        created = server.ok("POST", BOATS, boat("one"))
        keys = etcd.keys("/registry/")
        value = keys["/registry/configmaps/default/kept"]
        assert value.startswith(b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12") and b"resourceVersion" not in value, value
        value = keys["/registry/harbor.example.com/boats/default/one"]
        stored = json.loads(value)
        assert value.endswith(b"\n") and "resourceVersion" not in stored["metadata"], value
        del created["metadata"]["resourceVersion"]
        assert stored == created
        value = json.loads(keys["/registry/apiextensions.k8s.io/customresourcedefinitions/boats.harbor.example.com"])
        assert value["apiVersion"] == "apiextensions.k8s.io/v1beta1" and value["spec"]["version"] == "v1", value
        for key in ("/registry/namespaces/default", "/registry/clusterroles/cluster-admin", "/registry/leases/kube-system/pintle-controllers"):
            eventually(lambda: (etcd.get(key) or b"").startswith(b"k8s\0"))
        start = server.ok("GET", BOATS)["metadata"]["resourceVersion"]
        other = boat("two", namespace="default", uid="1234", creationTimestamp="2026-01-02T03:04:05Z")
        etcd.put("/registry/harbor.example.com/boats/default/two", json.dumps(other).encode() + b"\n")
        envelope = keys["/registry/configmaps/default/kept"]
        etcd.put("/registry/configmaps/default/back", envelope.replace(b"kept", b"back"))
        etcd.put("/registry/configmaps/default/text", json.dumps({**config_map("text"), "metadata": {"name": "text", "namespace": "default"}}).encode())
        served = server.ok("GET", BOATS + "/two")
        assert served["spec"] == other["spec"] and served["metadata"]["uid"] == "1234", served
        assert {"kept", "back", "text"} <= set(named(server.ok("GET", MAPS)["items"]))
        server.ok("PATCH", MAPS + "/text", {"data": {"more": "y"}})
        assert etcd.get("/registry/configmaps/default/text").startswith(b"k8s\0")
        etcd.delete("/registry/harbor.example.com/boats/default/two")
        assert server.request("GET", BOATS + "/two")[0] == 404
        events = events_since(server, BOATS, start)
        assert [event["type"] for event in events] == ["ADDED", "DELETED"], events
        # after a restart, watches from revisions before it have the same events
        etcd.put("/registry/masterleases/p", b"k8s\0 of another program")
        server.restart()
        assert events_since(server, BOATS, start) == events
        assert etcd.get("/registry/masterleases/p") == b"k8s\0 of another program"
        assert "keys of other programs, such as /registry/masterleases/p" in server.stderr()


def test_two_servers(launch):
    """Writes that one server has acknowledged are immediately visible at the other, for every verb."""
    with Etcd() as etcd, server_on(launch, etcd) as one, server_on(launch, etcd) as two:
        for number in range(30):
            first, second = (one, two) if number % 2 else (two, one)
            name = f"map-{number}"
            maps = f"/api/v1/namespaces/n-{number}/configmaps"
            first.ok("POST", "/api/v1/namespaces", {"metadata": {"name": f"n-{number}"}})
            second.ok("POST", maps, config_map(name))
            created = first.ok("GET", f"{maps}/{name}")
            created["data"] = {"text": "y"}
            changed = first.ok("PUT", f"{maps}/{name}", created)
            assert [item["data"]["text"] for item in second.ok("GET", maps)["items"] if item["metadata"]["name"] == name] == ["y"]
            changed["data"]["text"] = "z"
            second.ok("PUT", f"{maps}/{name}", changed)
            status, response, _ = first.request("PUT", f"{maps}/{name}", changed)
            assert status == 409, response
            assert first.request("POST", maps, config_map(name))[0] == 409
            first.ok("DELETE", f"{maps}/{name}")
            assert second.request("GET", f"{maps}/{name}")[0] == 404
            second.ok("POST", maps, config_map(name))
            third = first.ok("GET", f"{maps}?limit=1")
            if third["metadata"].get("continue"):
                second.ok("GET", f"{maps}?limit=1&continue={third['metadata']['continue']}")
        one.ok("POST", DEFINITIONS, DEFINITION)
        assert [r["name"] for r in two.ok("GET", "/apis/harbor.example.com/v1")["resources"]] == ["boats"]
        two.ok("POST", BOATS, boat("one"))
        assert one.ok("GET", BOATS + "/one")["spec"] == {"sails": 2}


SERVICES = CORE + "/services"


def service(name, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def test_services_have_distinct_addresses(launch):
    """Two servers that create Services concurrently never allocate the same address or node port."""
    with Etcd() as etcd, server_on(launch, etcd) as one, server_on(launch, etcd) as two:

        def create(number):
            server = (one, two)[number % 2]
            return server.ok("POST", SERVICES, service(f"s-{number}", type="NodePort"))

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            created = list(pool.map(create, range(40)))
        addresses = {item["spec"]["clusterIP"] for item in created}
        ports = {item["spec"]["ports"][0]["nodePort"] for item in created}
        assert len(addresses) == len(ports) == 40, created
        keys = etcd.keys("/registry/ipaddresses/")
        assert {key.rsplit("/", 1)[1] for key in keys} == addresses | {"10.0.0.1"}, keys
        assert all(value.startswith(b"k8s\0") for value in keys.values()), keys
        assert etcd.get("/registry/ranges/servicenodeports").startswith(b"k8s\0")
        address = {"clusterIP": created[0]["spec"]["clusterIP"]}
        port = {"type": "NodePort", "ports": [{"port": 80, "nodePort": created[0]["spec"]["ports"][0]["nodePort"]}]}
        for field in (address, port):
            status, response, _ = two.request("POST", SERVICES, service("other", **field))
            assert status == 422 and "is already allocated" in response["message"], response
        one.ok("DELETE", f"{SERVICES}/s-0")
        two.ok("POST", SERVICES, service("other", **address, **port))
        # lost reservations are restored at the next start
        reservations = f"/registry/ipaddresses/{address['clusterIP']}", "/registry/ranges/servicenodeports"
        [etcd.delete(key) for key in reservations]
        one.restart()
        eventually(lambda: all(etcd.get(key) is not None for key in reservations))
        assert one.request("POST", SERVICES, service("more", **address))[0] == 422


def test_custom_resources_are_stored_as_cbor_by_a_feature_gate(launch):
    """With CBORServingAndStorage custom resources are stored as CBOR, which can also be read without the feature gate."""
    key = "/registry/harbor.example.com/boats/default/one"
    with Etcd() as etcd:
        with server_on(launch, etcd, "--feature-gates=CBORServingAndStorage=true") as server:
            server.ok("POST", DEFINITIONS, DEFINITION)
            created = server.ok("POST", BOATS, boat("one"))
            assert etcd.get(key).startswith(b"\xd9\xd9\xf7"), etcd.get(key)
            definition = etcd.get("/registry/apiextensions.k8s.io/customresourcedefinitions/boats.harbor.example.com")
            assert definition.startswith(b"{"), definition
            server.restart()
            assert server.ok("GET", BOATS + "/one") == created
        with server_on(launch, etcd) as server:
            assert server.ok("GET", BOATS + "/one") == created
            server.ok("PATCH", BOATS + "/one", {})
            assert etcd.get(key).startswith(b"{"), "a write stores the object in the current format"
            assert server.ok("GET", BOATS + "/one")["metadata"]["resourceVersion"] != created["metadata"]["resourceVersion"]


def test_controllers_move(launch):
    """One server runs the controllers, which delete namespaces on requests to any server. The other one takes over when it stops."""
    with Etcd() as etcd, server_on(launch, etcd) as one, server_on(launch, etcd) as two:
        eventually(lambda: one.request("GET", LEASE)[0] == 200)
        holder = one.ok("GET", LEASE)["spec"]["holderIdentity"]
        for number, server in enumerate((one, two)):
            server.ok("POST", "/api/v1/namespaces", {"metadata": {"name": f"n-{number}"}})
            server.ok("POST", f"/api/v1/namespaces/n-{number}/configmaps", config_map("a"))
            server.ok("DELETE", f"/api/v1/namespaces/n-{number}")
        eventually(lambda: all(two.request("GET", f"/api/v1/namespaces/n-{number}")[0] == 404 for number in (0, 1)))
        assert one.stop() == 0
        lease_now = lambda: two.ok("GET", LEASE)["spec"]
        eventually(lambda: lease_now()["holderIdentity"] not in ("", holder) or lease_now()["leaseTransitions"] == 0)
        two.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "n-2"}})
        two.ok("DELETE", "/api/v1/namespaces/n-2")
        eventually(lambda: two.request("GET", "/api/v1/namespaces/n-2")[0] == 404)


RUNS, RUNS_NO_LONGER = "this server runs the controllers", "this server no longer runs the controllers"


def test_controllers_have_one_holder(launch):
    """When the holder is killed, another server takes over after the Lease has expired; a holder that was suspended for longer stops its controllers."""
    with Etcd() as etcd, server_on(launch, etcd, "-v", "2") as one:
        eventually(lambda: RUNS in one.stderr())
        with server_on(launch, etcd, "-v", "2") as two:
            first = one.ok("GET", LEASE)["spec"]["holderIdentity"]
            one.stop(signal.SIGKILL)
            eventually(lambda: RUNS in two.stderr(), seconds=40)
            one.start()
            spec = one.ok("GET", LEASE)["spec"]
            assert spec["holderIdentity"] not in ("", first) and spec["leaseTransitions"] == 1, spec
            # both processes of `one` log to the same file: the second one has not become a second holder
            assert one.stderr().count(RUNS) == 1 and RUNS_NO_LONGER not in two.stderr()
            two.process.send_signal(signal.SIGSTOP)
            eventually(lambda: one.stderr().count(RUNS) == 2, seconds=40)
            two.process.send_signal(signal.SIGCONT)
            eventually(lambda: RUNS_NO_LONGER in two.stderr())
            assert RUNS_NO_LONGER not in one.stderr() and two.stderr().count(RUNS + "\n") == 1
            spec = two.ok("GET", LEASE)["spec"]
            assert spec["leaseTransitions"] == 2, spec


def test_controllers_without_a_lease(launch):
    """With --leader-elect=false, controllers run immediately and no Lease is written."""
    with Etcd() as etcd, server_on(launch, etcd, "--leader-elect=false", "-v", "2") as server:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": server.ok("POST", MAPS, config_map("owner"))["metadata"]["uid"]}
        server.ok("POST", MAPS, {"metadata": {"name": "owned", "ownerReferences": [owner]}})
        server.ok("DELETE", f"{MAPS}/owner")
        eventually(lambda: server.request("GET", f"{MAPS}/owned")[0] == 404)
        assert server.request("GET", LEASE)[0] == 404 and RUNS not in server.stderr()


def test_migrations_are_stored_as_by_kube_apiserver(launch):
    """The server that runs the controllers performs StorageVersionMigrations; their key is that of kube-apiserver 1.35."""
    runtime_config = "--runtime-config=storagemigration.k8s.io/v1beta1=true,storagemigration.k8s.io/v1=true"
    with Etcd() as etcd, server_on(launch, etcd, runtime_config) as one, server_on(launch, etcd, runtime_config) as two:
        one.ok("POST", MAPS, config_map("kept"))
        for version, server in (("v1", one), ("v1beta1", two)):
            path = f"/apis/storagemigration.k8s.io/{version}/storageversionmigrations"
            server.ok("POST", path, {"metadata": {"name": version}, "spec": {"resource": {"group": "", "resource": "configmaps"}}})
            done = lambda: any(c["type"] == "Succeeded" for c in server.ok("GET", f"{path}/{version}")["status"].get("conditions", []))
            eventually(done)
            value = etcd.keys("/registry/")[f"/registry/storageversionmigrations/{version}"]
            assert value.startswith(b"k8s\0") and b"storagemigration.k8s.io/v1beta1" in value[:64], value


class RetryingWriter(Writer):
    """A writer that continues with other objects when a write fails. The effect of that write is unknown until the end, since the
    call to etcd may still be in flight."""

    def __init__(self, number, seed, servers):
        super().__init__(number, seed)
        self.servers, self.failures = servers, 0

    def run_on_any(self, stop):
        client = None
        while not stop.is_set():
            try:
                client = client or Client(self.random.choice(self.servers), timeout=20)
                self.write(client)
            except (AssertionError, OSError, ValueError, http.client.HTTPException) as error:
                if isinstance(error, AssertionError) and not self.is_outage(error):
                    self.failure = error
                    return
                self.failures += 1
                client = None
                stop.wait(0.05)

    @staticmethod
    def is_outage(error):
        return isinstance(error.args[0], tuple) and error.args[0][2] in (500, 503, 504)


def test_outages(launch):
    """Three members and two servers under load; each is killed and restarted in turn."""
    rounds = 20 if launch.slow else 1
    with Etcd(members=3) as etcd, server_on(launch, etcd) as one, server_on(launch, etcd) as two:
        servers = [one, two]
        chance = random.Random(random.randrange(1 << 32))
        writers = [RetryingWriter(number, chance.random(), servers) for number in range(8)]
        start = one.ok("GET", MAPS)
        watches = [FollowingWatch(start, servers, number) for number in range(2)]
        stop = threading.Event()
        threads = [threading.Thread(target=each.run_on_any, args=(stop,)) for each in [*writers, *watches]]
        [thread.start() for thread in threads]
        try:
            for number in range(rounds):
                for victim in [*etcd.members, *servers]:
                    wait_for_progress(writers, f"before round {number}")
                    if isinstance(victim, Member):
                        victim.stop(signal.SIGKILL)
                        wait_for_progress(writers, f"without {victim.name} in round {number}")
                        victim.start(etcd.members)
                    else:
                        victim.restart(signal.SIGKILL)
            wait_for_progress(writers, "at the end")
            stop.set()
            [thread.join(60) for thread in threads[: len(writers)]]
            compare(writers, watches, one, two)
        finally:
            stop.set()
            for watch in watches:
                watch.ended = True
            # watches wait for an event before they stop
            one.request("POST", MAPS, config_map("end"))
            [thread.join(60) for thread in threads]


def compare(writers, watches, one, two):
    """Acknowledged writes are stored, and every event was delivered once."""
    failures = [each.failure for each in [*writers, *watches] if each.failure]
    assert not failures, failures
    mark = one.ok("POST", MAPS, config_map("mark"))["metadata"]
    versions = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in two.ok("GET", MAPS)["items"]}
    for writer in writers:
        for name, possible in writer.possible.items():
            version = versions.get(name)
            assert version in possible or "?" in possible and version, (name, possible, version)
    for watch in watches:
        eventually(lambda: watch.version >= int(mark["resourceVersion"]) or watch.failure, seconds=30)
        assert not watch.failure, watch.failure
        missed = {version for writer in writers for version in writer.acknowledged} - watch.delivered
        assert not missed, f"acknowledged and not delivered by a watch: {sorted(missed)[:5]}"
        assert watch.state == versions, "the state after all events differs from the list"


def wait_for_progress(writers, when):
    """Waits until at least 5 more writes of all writers, except one, have been acknowledged."""
    before = [len(writer.acknowledged) for writer in writers]
    acknowledged = lambda: [len(writer.acknowledged) - count for writer, count in zip(writers, before)]
    try:
        eventually(lambda: sum(n >= 5 for n in acknowledged()) >= len(writers) - 1 or any(w.failure for w in writers), seconds=60)
    except AssertionError:
        raise AssertionError(f"{when} the writers make no progress: {acknowledged()}") from None


class FollowingWatch(ResumingWatch):
    """A watch that is resumed at the other server when its server fails."""

    def __init__(self, start, servers, number):
        super().__init__(start["metadata"]["resourceVersion"])
        self.state = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in start["items"]}
        self.servers, self.number, self.ended = servers, number, False

    def run_on_any(self, stop):
        while not self.ended and not self.failure:
            self.number += 1
            self.watch(self.servers[self.number % 2])
            stop.wait(0.05)

    def watch(self, server):
        try:
            response = Client(server, timeout=20).send("GET", f"{MAPS}?watch=1&resourceVersion={self.version}")
            if response.status != 200:
                return
            for line in response:
                if not line.endswith(b"\n") or self.ended:
                    return
                self.check(json.loads(line))
        except AssertionError as error:
            self.failure = error
        except (OSError, http.client.HTTPException):
            return


def test_waits_for_etcd(launch):
    """/readyz reports that etcd is unreachable at the start. The server serves as soon as etcd is reachable, and an outage is reported
    again."""
    etcd = Etcd()
    member = etcd.members[0]
    server = server_on(launch, etcd)
    thread = threading.Thread(target=server.start)
    thread.start()
    server.url = f"https://127.0.0.1:{server.port}"

    def ready():
        try:
            return server.request("GET", "/readyz")
        except OSError:
            return 0, "", {}

    eventually(lambda: f"[-]storage failed: the store is unavailable: etcd at {member.url}: " in ready()[1])
    assert ready()[0] == 500 and server.request("GET", "/livez")[0] == 200
    status, response, headers = server.request("GET", MAPS)
    assert (status, headers["retry-after"]) == (503, "1"), response
    with etcd:
        thread.join(30)
        with contextlib.ExitStack() as stopping:
            stopping.push(server)
            server.ok("POST", MAPS, config_map("a", text="x"))
            assert ready()[0] == 200
            member.stop(signal.SIGKILL)
            unavailable(server)
            assert member.url in server.stderr()
            assert "[-]storage failed: " in ready()[1]
            assert server.ok("GET", MAPS + "/a?resourceVersion=0")["data"]
            assert server.request("GET", "/livez")[0] == 200
            member.start(etcd.members)
            eventually(lambda: ready()[0] == 200)
            server.ok("POST", MAPS, config_map("c"))
            waiting = [line for line in server.stderr().splitlines() if "waiting for etcd" in line]
            assert waiting and all(member.url in line for line in waiting), waiting


class WaitingServer:
    """A server that does not become ready. Calling the object returns the response of /readyz."""

    def __init__(self, server):
        self.server, self.last = server, ""

    def __enter__(self):
        server = self.server
        command = [server.binary, "serve", "--data-dir", server.dir, "--secure-port", server.url.rsplit(":", 1)[1], *server.flags]
        self.errors = open(server.dir / "stderr.log", "a")
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=self.errors)
        server.errors = self.errors
        return self

    def __call__(self):
        try:
            self.last = str(self.server.request("GET", "/readyz", token=None)[1])
        except OSError:
            pass
        return self.last

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.errors.close()


def start_error(launch, etcd, directory, *flags):
    """Starts a server that must fail. Returns the line that says why."""
    output = launch.run("serve", "--etcd-servers", etcd.urls, "--data-dir", directory, "--secure-port", "0", *flags, status=1, lines=None)
    (line,) = [line for line in output.splitlines() if line.startswith("pintle: ")]
    return line


def test_foreign_keys(launch, tmp_path):
    with Etcd() as etcd:
        for key, value, error in (
            ("/registry/configmaps/default/a", b"hello", "it is neither JSON nor protobuf"),
            ("/registry/secrets/default/a", b"k8s:enc:aescbc:v1:key1:xyz", "it is encrypted, and no provider reads it (k8s:enc:aescbc:v1:key1)"),
            ("/registry/www.example.com/a/b", b"<html>", "it has no metadata"),
        ):
            etcd.put(key, value)
            before = etcd.keys("/")
            line = start_error(launch, etcd, tmp_path)
            assert key in line and error in line, line
            assert etcd.keys("/") == before, "a key was written"
            etcd.delete(key)
        with server_on(launch, etcd, "--etcd-prefix", "elsewhere/") as server:
            server.ok("POST", MAPS, config_map("a"))
            assert etcd.get("/elsewhere/configmaps/default/a")


def test_users_of_etcd(launch, tmp_path):
    with Etcd() as etcd:
        etcd.call("/v3/auth/role/add", {"name": "root"})
        for user in ("root", "pintle"):
            etcd.call("/v3/auth/user/add", {"name": user, "password": "right"})
        etcd.call("/v3/auth/role/add", {"name": "registry"})
        encoded = lambda text: base64.b64encode(text).decode()
        for first, end in ((b"/registry/", b"/registry0"), (b"compact_rev_key", b"")):
            permission = {"permType": "READWRITE", "key": encoded(first), "range_end": encoded(end)}
            etcd.call("/v3/auth/role/grant", {"name": "registry", "perm": permission})
        etcd.call("/v3/auth/user/grant", {"user": "root", "role": "root"})
        etcd.call("/v3/auth/user/grant", {"user": "pintle", "role": "registry"})
        etcd.call("/v3/auth/enable", {})
        password = etcd.dir / "password"
        for flags, error in (
            ((), "user name is empty"),
            (("--etcd-username", "pintle", "--etcd-password-file", password), "authentication failed, invalid user ID or password"),
            (("--etcd-username", "pintle", "--etcd-password-file", password, "--etcd-prefix", "/other"), "permission denied"),
        ):
            password.write_text("right\n" if "permission" in error else "wrong")
            assert f"etcd at {etcd.urls}: {error}" in start_error(launch, etcd, tmp_path, *flags)
        with server_on(launch, etcd, "--etcd-username", "pintle", "--etcd-password-file", str(password)) as server:
            server.ok("POST", MAPS, config_map("a"))
            # tokens are lost with the member that issued them
            etcd.members[0].stop(signal.SIGKILL)
            etcd.members[0].start(etcd.members)
            eventually(lambda: server.request("POST", MAPS, config_map("b"))[0] in (201, 409))
            assert "right" not in server.stderr()


def test_compaction_while_the_server_runs(launch):
    """Compaction every second: watches of compacted revisions get 410, newer ones continue."""
    with Etcd() as etcd, server_on(launch, etcd, "--etcd-compaction-interval", "1s") as server:
        old = server.ok("GET", MAPS)["metadata"]["resourceVersion"]
        for number in range(3):
            server.ok("POST", MAPS, config_map(f"map-{number}"))
        compacted = lambda: int(etcd.get("compact_rev_key") or b"0")
        newest = int(server.ok("GET", MAPS)["metadata"]["resourceVersion"])
        eventually(lambda: compacted() >= newest)
        server.restart()
        event = events_since(server, MAPS, old)[0]
        assert event.get("object", event)["code"] == 410, event
        assert len(server.ok("GET", MAPS)["items"]) >= 3


def test_servers_start_concurrently(launch):
    """Three servers on an empty etcd: one set of namespaces and roles, one uid each."""
    with Etcd() as etcd:
        servers = [server_on(launch, etcd) for _ in range(3)]
        threads = [threading.Thread(target=server.start) for server in servers]
        try:
            [thread.start() for thread in threads]
            [thread.join(30) for thread in threads]
            # with their uids
            namespaces, roles = ([server.ok("GET", path)["items"] for server in servers] for path in ("/api/v1/namespaces", RBAC + "/clusterroles"))
            metadata = [[item["metadata"] for item in items] for items in namespaces]
            assert metadata[0] == metadata[1] == metadata[2] and len(metadata[0]) == 4, metadata
            assert roles[0] == roles[1] == roles[2]
        finally:
            [server.__exit__() for server in servers]


def test_api_services_of_other_servers_are_kept(launch):
    """APIServices of unknown groups may belong to another server on the same etcd, and are not deleted."""
    with Etcd() as etcd, server_on(launch, etcd) as server:
        spec = {"groupPriorityMinimum": 1234, "versionPriority": 99}
        for name in ("v1.once.example.com", "v9.coordination.k8s.io"):
            version, group = name.split(".", 1)
            labels = {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
            server.ok("POST", REGISTRATIONS, {"metadata": {"name": name, "labels": labels}, "spec": {**spec, "group": group, "version": version}})
        server.ok("PATCH", REGISTRATIONS + "/v1.rbac.authorization.k8s.io", {"spec": spec})
        server.ok("DELETE", REGISTRATIONS + "/v1.coordination.k8s.io")
        server.restart()
        current = {item["metadata"]["name"]: item["spec"]["groupPriorityMinimum"] for item in server.ok("GET", REGISTRATIONS)["items"]}
        restored = {"v1.rbac.authorization.k8s.io": 17000, "v1.coordination.k8s.io": 16500, "v1.once.example.com": 1234}
        assert restored.items() <= current.items() and "v9.coordination.k8s.io" not in current, current


def test_each_server_tracks_uses_of_tokens(launch):
    """The server that authenticates a token of a Secret records the day, even if another server runs the controllers."""
    label = "kubernetes.io/legacy-token-last-used"
    with Etcd() as etcd, server_on(launch, etcd) as one:
        key = one.dir / "service-account.key"
        eventually(key.exists)
        with server_on(launch, etcd, "--service-account-signing-key-file", str(key)) as two:
            account(one, "bot")
            for name, server in (("first", one), ("second", two)):
                path, meta = f"{SECRETS}/{name}", {"name": name, "annotations": {"kubernetes.io/service-account.name": "bot"}}
                server.ok("POST", SECRETS, {"metadata": meta, "type": "kubernetes.io/service-account-token"})
                token = eventually(lambda: server.ok("GET", path).get("data", {}).get("token"))
                assert server.request("GET", "/version", token=base64.b64decode(token).decode())[0] == 200
                eventually(lambda: server.ok("GET", path)["metadata"].get("labels", {}).get(label))


def test_encrypted_connections(launch, tmp_path):
    """etcd authenticates its clients by certificates."""
    authority, key = tmp_path / "ca", "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    openssl(*f"req -x509 {key} -days 2 -subj /CN=authority -keyout {authority}.key -out {authority}.crt".split())
    for name, extension in (("server", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth"), ("client", "extendedKeyUsage=clientAuth")):
        place = tmp_path / name
        (tmp_path / "ext").write_text(extension)
        openssl(*f"req {key} -subj /CN={name} -keyout {place}.key -out {place}.csr".split())
        signer = f"-CA {authority}.crt -CAkey {authority}.key -CAcreateserial -days 2 -extfile {tmp_path}/ext"
        openssl(*f"x509 -req -in {place}.csr -out {place}.crt {signer}".split())
    flags = f"--unsafe-no-fsync --cert-file {tmp_path}/server.crt --key-file {tmp_path}/server.key --client-cert-auth --trusted-ca-file {authority}.crt".split()
    client = f"--etcd-cafile {authority}.crt --etcd-certfile {tmp_path}/client.crt --etcd-keyfile {tmp_path}/client.key".split()
    with Etcd(scheme="https", flags=flags) as etcd:
        with server_on(launch, etcd, *client) as server:
            server.ok("POST", MAPS, config_map("a"))
            assert server.ok("GET", MAPS)["items"]
        for flags, error in ((client[:2], ""), ((), "invalid peer certificate")):
            line = launch.run("export", "-", "--etcd-servers", etcd.urls, *flags, status=1, lines=None).splitlines()[-1]
            assert line.startswith(f"pintle: the store is unavailable: etcd at {etcd.urls}: ") and error in line, line


def test_events_have_leases(launch):
    """etcd deletes expired Events even if no server is running; many Events share a lease."""
    events = CORE + "/events"

    def lease_of(name):
        response = etcd.call("/v3/kv/range", {"key": base64.b64encode(f"/registry/events/default/{name}".encode()).decode()})
        return response["kvs"][0].get("lease")

    with Etcd() as etcd, server_on(launch, etcd, "--event-ttl", "10m") as server:
        for name in "ab":
            server.ok("POST", events, {"metadata": {"name": name}, "involvedObject": {"namespace": "default", "name": "x"}})
        server.ok("POST", MAPS, config_map("c"))
        lease = lease_of("a")
        assert lease and lease == lease_of("b")
        granted = etcd.call("/v3/lease/timetolive", {"ID": lease, "keys": True})
        assert granted["grantedTTL"] == str(600 + 30) and len(granted["keys"]) == 2, granted
        version = server.ok("GET", events)["metadata"]["resourceVersion"]
        etcd.call("/v3/lease/revoke", {"ID": lease})
        eventually(lambda: server.ok("GET", events)["items"] == [])
        assert [event["type"] for event in events_since(server, events, version)] == ["DELETED", "DELETED"]
        # the next Event has another lease
        server.ok("POST", events, {"metadata": {"name": "d"}, "involvedObject": {"namespace": "default", "name": "x"}})
        assert lease_of("d") not in (None, lease)
        assert server.ok("GET", MAPS + "/c")


def test_a_new_data_directory_keeps_the_id_of_the_cluster(launch, tmp_path):
    with Etcd() as etcd:
        command = [launch.binary, "serve", "--etcd-servers", etcd.urls, "--data-dir", str(tmp_path / "new"), "--secure-port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert "is ready" in process.stdout.readline()
            assert (tmp_path / "new" / "etcd-cluster").read_text()
            process.terminate()
            assert "cluster" not in process.stderr.read()


def test_another_cluster(launch):
    """A new etcd cluster at the same address is not accepted as the previous one."""
    with Etcd() as etcd, server_on(launch, etcd) as server:
        server.ok("POST", MAPS, config_map("a"))
        member = etcd.members[0]
        member.stop(signal.SIGKILL)
        shutil.rmtree(member.dir / "data")
        member.flags = (*member.flags, "--initial-cluster-token", "another")
        member.start(etcd.members)
        etcd.wait()
        eventually(lambda: "has cluster id" in server.request("GET", "/readyz")[1])
        unavailable(server)
        assert "the id that it had before" in server.stderr()
        assert not etcd.keys("/registry/")
        # the next start waits for the previous cluster, and reports that
        server.stop()
        file = server.dir / "etcd-cluster"
        message = f"etcd at {etcd.urls} has cluster id "
        with WaitingServer(server) as readyz:
            eventually(lambda: f"[-]storage failed: the store is unavailable: {message}" in readyz() and f"according to {file}; remove that file" in readyz())
            assert not etcd.keys("/registry/")
            assert any(message in line and "remove that file" in line and "waiting for etcd" in line for line in server.stderr().splitlines())
        cluster_id = readyz.last.split(message)[1].split(" ")[0]
        server.flags = (*server.flags, "--etcd-cluster-id", "1f")
        with WaitingServer(server) as readyz:
            eventually(lambda: f"{message}{cluster_id} and not 1f, the id that is configured" in readyz())
        server.flags = (*server.flags[:-1], cluster_id)
        server.start()
        server.stop()
        server.flags = server.flags[:-2]
        file.unlink()
        server.start()
        assert file.read_text() == cluster_id + "\n"


def test_etcd_without_space(launch):
    """Writes fail with etcd's message and change nothing; reads and watches continue. Once space is free and the alarm is cleared, writes succeed."""
    quota, text = 6_000_000, "x" * 100_000
    with Etcd(flags=("--unsafe-no-fsync", f"--quota-backend-bytes={quota}")) as etcd, server_on(launch, etcd) as server:
        start, created = server.ok("GET", MAPS)["metadata"]["resourceVersion"], []
        while True:
            name = f"map-{len(created)}"
            status, response, _ = server.request("POST", MAPS, config_map(name, text=text))
            if status != 201:
                break
            created.append(name)
            assert len(created) * len(text) < 2 * quota, "the quota is not enforced"
        assert (status, response["message"]) == (500, "etcdserver: mvcc: database space exceeded"), response
        assert "mvcc: database space exceeded" in server.stderr()
        assert set(named(server.ok("GET", MAPS + "?labelSelector=!other")["items"])) >= set(created)
        # the events are many megabytes, and take a while on a busy machine
        watch, missing = Client(server).send("GET", f"{MAPS}?watch=1&resourceVersion={start}"), set(created)
        while missing:
            missing.discard(json.loads(watch.readline())["object"]["metadata"]["name"])
        for name in created:
            server.ok("DELETE", f"{MAPS}/{name}")
        revision = server.ok("GET", MAPS)["metadata"]["resourceVersion"]
        etcd.call("/v3/kv/compaction", {"revision": revision, "physical": True})
        etcd.call("/v3/maintenance/defragment", {})
        for alarm in etcd.call("/v3/maintenance/alarm", {"action": "GET"})["alarms"]:
            etcd.call("/v3/maintenance/alarm", {"action": "DEACTIVATE", **alarm})
        server.ok("POST", MAPS, config_map("after"))
        assert server.request("GET", "/readyz")[0] == 200


def test_missed_changes(launch):
    """While a server is suspended, its watch of etcd breaks and the changes that it missed are compacted. It then reads all objects
    again, and its watches expire with 410."""
    with Etcd() as etcd, server_on(launch, etcd) as server:
        server.ok("POST", DEFINITIONS, DEFINITION)
        server.ok("POST", BOATS, boat("gone"))
        stored = json.loads(etcd.get("/registry/harbor.example.com/boats/default/gone"))
        start = server.ok("GET", BOATS)["metadata"]["resourceVersion"]
        response = Client(server).send("GET", f"{BOATS}?watch=1&resourceVersion={start}")
        server.process.send_signal(signal.SIGSTOP)
        etcd.members[0].stop(signal.SIGKILL)
        etcd.members[0].start(etcd.members)
        etcd.wait()
        etcd.delete("/registry/harbor.example.com/boats/default/gone")
        stored["metadata"]["name"] = "new"
        etcd.put("/registry/harbor.example.com/boats/default/new", json.dumps(stored).encode())
        newest = etcd.put("/ready", b"")["header"]["revision"]
        etcd.call("/v3/kv/compaction", {"revision": newest})
        server.process.send_signal(signal.SIGCONT)
        event = json.loads(next(iter(response)))
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410), event
        listed = server.ok("GET", BOATS)
        assert named(listed["items"]) == ["new"], listed
        assert server.request("GET", BOATS + "/gone")[0] == 404
        server.ok("POST", BOATS, boat("newer"))
        (event,) = events_since(server, BOATS, listed["metadata"]["resourceVersion"])
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "newer"), event


def test_member_hangs(launch):
    """Calls and the watch switch to another member if one accepts connections but does not respond."""
    with Etcd(members=3) as etcd, server_on(launch, etcd) as server:
        start, created = server.ok("GET", MAPS)["metadata"]["resourceVersion"], set()
        for member in etcd.members[:2]:
            member.process.send_signal(signal.SIGSTOP)
            try:
                for number in range(10):
                    status, response, _ = server.request("POST", MAPS, config_map(f"{member.name}-{number}"))
                    if status == 201:
                        break
                    assert (status, response["message"]) == (500, UNAVAILABLE) and "has not responded within 5 s" in server.stderr(), response
                assert status == 201
                created |= set(named(server.ok("GET", MAPS)["items"]))
            finally:
                member.process.send_signal(signal.SIGCONT)
        versions = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in server.ok("GET", MAPS)["items"]}
        assert created <= set(versions)
        watch = ResumingWatch(start)
        watch.run(server, until=max(map(int, versions.values())))
        assert not watch.failure and watch.state == versions, (watch.failure, watch.state, versions)


def test_export_and_import(launch, tmp_path):
    """Objects are moved from a data directory to etcd and back unchanged; the file is checked before anything is written."""
    file, first, second = (tmp_path / name for name in ("file", "first", "second"))

    def objects(server):
        lists = [server.ok("GET", path)["items"] for path in (MAPS, BOATS, DEFINITIONS, RBAC + "/clusterrolebindings")]
        for item in (item for items in lists for item in items):
            del item["metadata"]["resourceVersion"]
        return lists

    with Etcd() as etcd:
        on_etcd = ("--etcd-servers", etcd.urls)
        with launch(storage="embedded", data_dir=first) as server:
            server.ok("POST", DEFINITIONS, DEFINITION)
            for number in range(20):
                server.ok("POST", MAPS, config_map(f"map-{number}"))
                server.ok("POST", BOATS, boat(f"boat-{number}"))
            want = objects(server)
            assert "objects at revision" in launch.run("export", file, "--data-dir", first)
        truncated = tmp_path / "truncated"
        truncated.write_bytes(file.read_bytes()[:-100])
        assert "the file is corrupt" in launch.run("import", truncated, *on_etcd, status=1) and not etcd.keys("/registry/")
        assert "objects are imported and compared" in launch.run("import", file, *on_etcd)
        assert "an import needs a store without any" in launch.run("import", file, *on_etcd, status=1)
        # the key is there while an import runs, and stays when it is interrupted
        etcd.put("/registry/pintle/importing", b"")
        for arguments in (["serve", "--secure-port", "0", "--data-dir", tmp_path / "refused"], ["export", tmp_path / "part"]):
            output = launch.run(*arguments, *on_etcd, status=1)
            assert "an import into it was not completed" in output and len(output.splitlines()) == 1, output
        launch.run("import", file, *on_etcd, status=1)
        assert etcd.get("/registry/pintle/importing") == b""
        launch.run("import", file, *on_etcd, "--conflict", "skip")
        with server_on(launch, etcd) as server:
            assert objects(server) == want
            launch.run("import", "-", "--data-dir", second, input=launch.run("export", "-", *on_etcd).stdout)
        with launch(storage="embedded", data_dir=second) as server:
            assert objects(server) == want


def test_encrypted_values(launch):
    """Values in etcd are encrypted as by kube-apiserver, with a prefix that names the key."""
    with tempfile.TemporaryDirectory() as directory, Etcd() as etcd:
        path = encryption.configuration(directory, {"secretbox": [("key1", 1)]}, resources=["secrets", "*.harbor.example.com"])
        with server_on(launch, etcd, "--encryption-provider-config", str(path)) as server:
            created = server.ok("POST", SECRETS, encryption.secret("one"))
            server.ok("POST", DEFINITIONS, DEFINITION)
            server.ok("POST", BOATS, boat("one"))
            for key in ("/registry/secrets/default/one", "/registry/harbor.example.com/boats/default/one"):
                assert etcd.get(key).startswith(b"k8s:enc:secretbox:v1:key1:"), etcd.get(key)
            server.restart()
            assert server.ok("GET", SECRETS + "/one") == created
            path = encryption.configuration(directory, "identity", {"secretbox": [("key1", 1)]}, resources=["*.*"])
            server.restart()
            server.ok("PUT", SECRETS + "/one", created)
            assert etcd.get("/registry/secrets/default/one").startswith(b"k8s\0")
