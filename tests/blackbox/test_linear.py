"""Linearizability: the histories of concurrent clients of few keys under faults are checked by harness/linear.py.

First tests of the checker, with histories that it must accept or reject. Then histories of real servers: during the requests of
clients the server is killed, restarted and suspended, its disk is slow, members of etcd are killed, and connections between
clients, servers and etcd are closed or stalled.
"""

import contextlib
import http.client
import json
import random
import re
import signal
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlparse

import pytest

import linear
from disk import Disk
from etcd import Etcd
from linear import Event, Listing, Operation, Stream, Violation
from pintle import Pintle, eventually
from proxy import Proxy
from workload import MAPS, Client

pytestmark = [pytest.mark.linear, pytest.mark.serial, pytest.mark.timeout(7200)]

KEYS, CLIENTS, WATCHERS = 4, 6, 3
# the number of faults of a run, and of completed requests between two of them
FAULTS, ROUNDS_SLOW = 6, 40
BETWEEN_MIN, BETWEEN_MORE = 30, 120
# the duration of a fault in seconds, and of a sync of the slow disk in milliseconds
FAULT_SECONDS, SLOW_MILLISECONDS = 0.1, 50
BROKEN = (OSError, http.client.HTTPException, ValueError)
DELETE = {"apiVersion": "v1", "kind": "DeleteOptions"}


# the checker


def added(key, value, version):
    return Event("ADDED", key, value, version)


def create(value, start, end, version=None, key="k"):
    return Operation("create", key, start, end, value, None, "ok" if version else None, version)


def update(value, expected, start, end, version=None, outcome="ok"):
    return Operation("update", "k", start, end, value, expected, outcome, version)


def get(value, version, start, end):
    return Operation("get", "k", start, end, value, None, "ok" if value else "missing", version)


CREATED, ADDED = create("a", 0, 1, 5), [added("k", "a", 5)]
MODIFIED = [*ADDED, Event("MODIFIED", "k", "b", 6)]
DELETED = [*MODIFIED, Event("DELETED", "k", "b", 9)]
UNKNOWN = create("a", 0, linear.NEVER)
NOTHING = get(None, None, 3, 4)
# what there is at the end
A, B = {"k": ("a", 5)}, {"k": ("b", 6)}

# (name, operations, streams, listings, final) of linearizable histories
LINEARIZABLE = [
    ("nothing", [], [], [], {}),
    ("one after the other", [CREATED, get("a", 5, 2, 3)], [Stream(1, ADDED)], [], A),
    ("a read concurrent with a write", [create("a", 0, 9, 5), get(None, None, 1, 2), get("a", 5, 3, 4)], [Stream(1, ADDED)], [], A),
    ("a write without a response that takes effect late", [UNKNOWN, NOTHING, get("a", 5, 5, 6)], [Stream(1, ADDED)], [], A),
    ("a write without a response that never takes effect", [UNKNOWN, NOTHING], [Stream(1)], [], {}),
    (
        "one of two wins",
        [CREATED, update("b", 5, 2, 9, 6), update("c", 5, 2, 9, outcome="conflict")],
        [Stream(1, MODIFIED), Stream(5, [5, MODIFIED[1], 6, 6])],
        [Listing(5, A, 2, 3)],
        B,
    ),
    (
        "deleted and created again",
        [CREATED, update("b", 5, 2, 3, 6), Operation("delete", "k", 4, 5, None, 6, "ok"), get(None, None, 6, 7), create("d", 8, 9, 11)],
        [Stream(1, [*DELETED, added("k", "d", 11)])],
        [Listing(6, B, 6, 7, stale=True)],
        {"k": ("d", 11)},
    ),
]

LOST, TWICE = [*MODIFIED, Event("MODIFIED", "k", "c", 7)], [*ADDED, Event("DELETED", "k", "a", 6), added("k", "a", 7)]
# (violation, part of the message, operations, streams, listings, final)
VIOLATIONS = [
    ("a lost update", "no order explains", [CREATED, update("b", 5, 2, 3, 6), update("c", 5, 4, 5, 7)], [Stream(1, LOST)], [], {"k": ("c", 7)}),
    ("a stale read", "no order explains", [CREATED, update("b", 5, 2, 3, 6), get("a", 5, 4, 5)], [Stream(1, MODIFIED)], [], B),
    ("reads that go back", "no order explains", [CREATED, update("b", 5, 2, 9, 6), get("b", 6, 3, 4), get("a", 5, 5, 6)], [Stream(1, MODIFIED)], [], B),
    ("a read of a value that was never written", "no order explains", [CREATED, get("z", 7, 2, 3)], [Stream(1, ADDED)], [], A),
    ("a read of the future", "no order explains", [get("a", 5, 0, 1), create("a", 2, 3, 5)], [Stream(1, ADDED)], [], A),
    ("a deletion that is lost", "no order explains", [CREATED, Operation("delete", "k", 2, 3, None, 5, "ok"), get("a", 5, 4, 5)], [Stream(1, ADDED)], [], A),
    ("a conflict without another write", "no order explains", [CREATED, update("b", 5, 2, 3, outcome="conflict")], [Stream(1, ADDED)], [], A),
    ("an acknowledged write that is lost", "in the watches", [CREATED], [Stream(1)], [], {}),
    ("a rejected write that takes effect", "the rejected write", [CREATED, update("b", 4, 2, 3, outcome="conflict")], [Stream(1, MODIFIED)], [], B),
    ("a write without a response that takes effect twice", "was written at", [UNKNOWN], [Stream(1, TWICE)], [], {"k": ("a", 7)}),
    (
        "versions that go back",
        "had been acknowledged",
        [create("a", 0, 1, 9), create("b", 2, 3, 5, key="l")],
        [Stream(1, [added("l", "b", 5), added("k", "a", 9)])],
        [],
        {"k": ("a", 9), "l": ("b", 5)},
    ),
    ("an event lost", "has missed", [], [Stream(1, DELETED), Stream(1, [DELETED[0], DELETED[2]])], [], {}),
    ("an event lost behind a bookmark", "has missed", [], [Stream(1, MODIFIED), Stream(1, [MODIFIED[0], 8])], [], B),
    ("an event lost when resumed", "has missed", [], [Stream(1, MODIFIED), Stream(4, [6, 7])], [], B),
    ("an event doubled", "was delivered after", [], [Stream(1, [*MODIFIED, MODIFIED[1]])], [], B),
    ("an event again when resumed", "was delivered after", [], [Stream(6, [MODIFIED[1]]), Stream(1, MODIFIED)], [], B),
    ("events in another order", "was delivered after", [], [Stream(1, MODIFIED[::-1])], [], B),
    ("a bookmark ahead of an event", "was delivered after", [], [Stream(1, [MODIFIED[0], 6, MODIFIED[1]])], [], B),
    ("a bookmark that goes back", "was delivered after", [], [Stream(1, [*MODIFIED, 5])], [], B),
    ("watches that differ", "two watches differ", [], [Stream(1, MODIFIED), Stream(1, [added("k", "z", 5)])], [], B),
    ("an existing object added", "cannot follow", [], [Stream(1, [MODIFIED[0], added("k", "b", 6)])], [], B),
    ("another last state", "cannot follow", [], [Stream(1, [*MODIFIED, Event("DELETED", "k", "a", 9)])], [], {}),
    ("a list of two versions", "a list at 5 was", [], [Stream(1, MODIFIED)], [Listing(5, B, 0, 1)], B),
    ("a stale list", "had been acknowledged", [CREATED], [Stream(1, ADDED)], [Listing(4, {}, 2, 3)], A),
    ("a list of the future", "was assigned after a list", [create("a", 2, 3, 5)], [Stream(1, ADDED)], [Listing(5, A, 0, 1)], A),
    ("another end", "a list at 20 was", [], [Stream(1, MODIFIED)], [], A),
]


def test_linearizable_histories_are_accepted():
    for name, operations, streams, listings, final in LINEARIZABLE:
        try:
            linear.check(operations, streams, listings, Listing(20, final, 90, 91))
        except Violation as violation:
            raise AssertionError(f"{name}: {violation}") from violation


def test_violations_are_reported():
    for name, want, operations, streams, listings, final in VIOLATIONS:
        with pytest.raises(Violation, match=re.escape(want)):
            linear.check(operations, streams, listings, Listing(20, final, 90, 91))
            raise AssertionError(f"{name} was accepted")


# tests with servers


@dataclass
class Endpoint:
    """The address of a server, or of the proxy before it."""

    url: str


@dataclass
class Setting:
    """Servers and their faults; each fault has ended when its function returns."""

    server: Pintle
    endpoints: list
    faults: list
    # the statuses of requests that failed with an unknown effect, or without one
    outages: tuple = (503,)


class Worker(threading.Thread):
    """Calls `step` repeatedly. After a failed connection it connects to a random server."""

    def __init__(self, setting, stop, seed):
        super().__init__()
        self.setting, self.stop, self.random, self.failure, self.client = setting, stop, random.Random(seed), None, None

    def step(self):
        raise NotImplementedError

    def run(self):
        while not self.stop.is_set() and self.failure is None:
            try:
                self.client = self.client or Client(self.random.choice(self.setting.endpoints), timeout=20)
                self.step()
            except AssertionError as error:
                self.failure = error
            except BROKEN:
                self.client = None
                # the server is restarting or unreachable
                self.stop.wait(0.02)

    def expect(self, status, response):
        """Fails the test if the status is an error other than an outage."""
        if status in self.setting.outages:
            raise ConnectionError(response)
        assert status == 200, (status, response)


class Actor(Worker):
    """Changes and reads objects, and records operations and lists."""

    def __init__(self, number, *rest):
        super().__init__(*rest)
        self.number, self.count, self.known = number, 0, {}
        self.operations, self.listings = [], []

    def step(self):
        key = f"key-{self.random.randrange(KEYS)}"
        what = self.random.choices(["create", "update", "delete", "get", "list", "stream"], [3, 5, 1.5, 4, 1, 0.5])[0]
        if what == "list":
            return self.list()
        if what == "stream":
            return self.list_by_watch()
        if what == "update" and key not in self.known:
            what = "get"
        value = f"{self.number}-{self.count}" if what in ("create", "update") else None
        self.count += 1
        expected = self.known.get(key) if what in ("update", "delete") else None
        operation = Operation(what, key, time.monotonic(), value=value, expected=expected)
        self.operations.append(operation)
        status, response = self.send(operation)
        if status in self.setting.outages:
            raise ConnectionError(response)
        operation.end = time.monotonic()
        operation.outcome = self.outcome(operation, status, response)
        self.learn(operation, response)

    def send(self, operation):
        path = f"{MAPS}/{operation.key}"
        version = {"resourceVersion": str(operation.expected)} if operation.expected else {}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": operation.key, **version}, "data": {"n": operation.value}}
        match operation.what:
            case "create":
                return self.client.request("POST", MAPS, body)
            case "update":
                return self.client.request("PUT", path, body)
            case "delete":
                return self.client.request("DELETE", path, operation.expected and {**DELETE, "preconditions": version})
        return self.client.request("GET", path)

    def outcome(self, operation, status, response):
        reason = response.get("reason")
        outcomes = {"AlreadyExists": "exists", "Conflict": "conflict", "NotFound": "missing"}
        outcome = "ok" if status in (200, 201) else outcomes.get(reason)
        assert outcome, (operation, status, response)
        return outcome

    def learn(self, operation, response):
        if operation.outcome == "ok" and operation.what != "delete":
            operation.version = int(response["metadata"]["resourceVersion"])
            operation.value = response["data"]["n"]
            self.known[operation.key] = operation.version
        elif operation.outcome == "missing" or operation.what == "delete" and operation.outcome == "ok":
            self.known.pop(operation.key, None)

    def list(self):
        stale = self.random.random() < 0.3
        start = time.monotonic()
        status, response = self.client.request("GET", MAPS + ("?resourceVersion=0" if stale else ""))
        self.expect(status, response)
        self.listings.append(listing(response, start, stale))

    def list_by_watch(self):
        """Lists by the initial events of a watch."""
        options = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=5"
        start, items = time.monotonic(), []
        response = self.client.send("GET", f"{MAPS}?{options}")
        self.expect(response.status, response)
        for line in response:
            event = json.loads(line)
            if event["type"] == "BOOKMARK":
                list_of = {"metadata": event["object"]["metadata"], "items": items}
                self.listings.append(listing(list_of, start, stale=False))
                break
            assert event["type"] == "ADDED", event
            items.append(event["object"])
        self.client = None


def listing(response, start, stale=False):
    items = {}
    for item in response["items"]:
        if "n" in item.get("data", {}):
            items[item["metadata"]["name"]] = (item["data"]["n"], int(item["metadata"]["resourceVersion"]))
    return Listing(int(response["metadata"]["resourceVersion"]), items, start, time.monotonic(), stale)


class Watcher(Worker):
    """A watch that is resumed after the last event or bookmark whenever it ends."""

    def __init__(self, after, *rest):
        super().__init__(*rest)
        self.stream, self.version = Stream(after), after

    def step(self):
        seconds = self.random.choice([3, 60])
        options = f"watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={self.version}"
        response = self.client.send("GET", f"{MAPS}?{options}")
        self.expect(response.status, response)
        for line in response:
            if not line.endswith(b"\n"):
                break
            self.record(json.loads(line))
            if self.stop.is_set():
                break
            if self.random.random() < 0.001:
                self.client = None
                return

    def record(self, event):
        metadata = event["object"]["metadata"]
        assert event["type"] != "ERROR", event
        self.version = int(metadata["resourceVersion"])
        if event["type"] == "BOOKMARK":
            self.stream.items.append(self.version)
        elif "n" in event["object"].get("data", {}):
            self.stream.items.append(Event(event["type"], metadata["name"], event["object"]["data"]["n"], self.version))
        else:
            # the event of another object is recorded as a bookmark
            self.stream.items.append(self.version)


def killed(server):
    return lambda: server.restart(signal.SIGKILL)


def restarted(server):
    return lambda: server.restart()


def paused(process):
    """Suspends the process that `process` returns for a short time, so that requests wait."""

    def fault():
        process().send_signal(signal.SIGSTOP)
        time.sleep(FAULT_SECONDS)
        process().send_signal(signal.SIGCONT)

    return fault


def cut(proxies, seconds):
    """Connections are closed, and new ones are rejected for a while."""

    def fault():
        [proxy.cut() for proxy in proxies]
        time.sleep(seconds)
        [proxy.restore() for proxy in proxies]

    return fault


def stalled(proxies, seconds):
    """Connections stay open, but no bytes are transmitted for a while."""

    def fault():
        [proxy.stall() for proxy in proxies]
        time.sleep(seconds)
        [proxy.restore() for proxy in proxies]

    return fault


def proxy_to(stack, url):
    address = urlparse(url)
    return stack.enter_context(Proxy(address.hostname, address.port))


@contextlib.contextmanager
def one_embedded(launch):
    """A server with a faulty disk, and a proxy before it."""
    with Disk() as disk, launch(storage="embedded", environment=disk.environment) as server, contextlib.ExitStack() as stack:
        network = proxy_to(stack, server.url)

        def slow():
            disk.delay_syncs(SLOW_MILLISECONDS)
            time.sleep(3 * FAULT_SECONDS)
            disk.recover()

        faults = [
            killed(server),
            killed(server),
            restarted(server),
            paused(lambda: server.process),
            slow,
            cut([network], FAULT_SECONDS),
            stalled([network], FAULT_SECONDS),
        ]
        yield Setting(server, [Endpoint(f"https://127.0.0.1:{network.port}")], faults)


@contextlib.contextmanager
def two_over_etcd(launch):
    """Three members of etcd and two servers; each server has a proxy to its clients and one to each member."""
    with contextlib.ExitStack() as stack:
        etcd = stack.enter_context(Etcd(members=3))
        faults, servers, endpoints = [], [], []
        for member in etcd.members:
            faults += [member_killed(etcd, member), paused(lambda member=member: member.process)]
        for _ in range(2):
            inner = [proxy_to(stack, member.url) for member in etcd.members]
            urls = ",".join(f"http://127.0.0.1:{proxy.port}" for proxy in inner)
            server = stack.enter_context(launch("--etcd-servers", urls, storage="etcd"))
            outer = proxy_to(stack, server.url)
            servers.append(server)
            endpoints.append(Endpoint(f"https://127.0.0.1:{outer.port}"))
            # during longer faults calls are sent to other members, or fail
            seconds = [FAULT_SECONDS, 8] if launch.slow else [FAULT_SECONDS]
            faults += [killed(server), restarted(server)]
            faults += [fault(proxies, long) for fault in (cut, stalled) for proxies in (inner, inner[:1], [outer]) for long in seconds]
        yield Setting(servers[0], endpoints, faults, outages=(500, 503, 504))


def member_killed(etcd, member):
    def fault():
        member.stop(signal.SIGKILL)
        time.sleep(FAULT_SECONDS)
        member.start(etcd.members)

    return fault


def test_histories_of_one_server(launch):
    histories(launch, one_embedded)


def test_histories_over_etcd(launch, etcd_binary):
    histories(launch, two_over_etcd)


def histories(launch, setting):
    for _ in range(ROUNDS_SLOW if launch.slow else 1):
        seed = random.randrange(1 << 32)
        try:
            with setting(launch) as started:
                one_history(started, random.Random(seed))
        except (AssertionError, Violation) as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def one_history(setting, chance):
    server = setting.server
    after = int(server.ok("GET", MAPS)["metadata"]["resourceVersion"])
    stop_actors, stop_watchers = threading.Event(), threading.Event()
    actors = [Actor(number, setting, stop_actors, chance.random()) for number in range(CLIENTS)]
    watchers = [Watcher(after, setting, stop_watchers, chance.random()) for _ in range(WATCHERS)]
    threads = [*actors, *watchers]
    [thread.start() for thread in threads]
    try:
        for _ in range(FAULTS):
            wait_for_responses(threads, actors, BETWEEN_MIN + chance.randrange(BETWEEN_MORE))
            chance.choice(setting.faults)()
        wait_for_responses(threads, actors, BETWEEN_MIN)
        stop_actors.set()
        [actor.join() for actor in actors]
        mark = eventually(lambda: marked(setting, "mark"))
        eventually(lambda: failures(threads) or all(watcher.version >= mark for watcher in watchers), seconds=30)
        start = time.monotonic()
        final = listing(server.ok("GET", MAPS), start)
    finally:
        stop_actors.set()
        stop_watchers.set()
        # watchers wait for an event before they stop
        eventually(lambda: marked(setting, "end"))
        [thread.join() for thread in threads]
    assert not failures(threads), failures(threads)
    operations = [operation for actor in actors for operation in actor.operations]
    listings = [listing for actor in actors for listing in actor.listings]
    linear.check(operations, [watcher.stream for watcher in watchers], listings, final)


def marked(setting, name):
    """Creates an object, whose event all watches receive, and returns its version; None during an outage."""
    status, response, _ = setting.server.request("POST", MAPS, {"metadata": {"name": name}})
    if status == 409:
        status, response, _ = setting.server.request("GET", f"{MAPS}/{name}")
    assert status in (200, 201, *setting.outages), response
    return int(response["metadata"]["resourceVersion"]) if status < 300 else None


def wait_for_responses(threads, actors, more):
    def completed():
        return sum(operation.outcome is not None for actor in actors for operation in list(actor.operations))

    total = completed() + more
    eventually(lambda: failures(threads) or completed() >= total, seconds=60)


def failures(threads):
    return [thread.failure for thread in threads if thread.failure]
