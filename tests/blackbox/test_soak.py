"""Many writes to few objects: disk and memory are bounded by the live objects and the kept history, and do not grow with the
number of writes; a restart reads no more than that. Times are printed, not asserted. Only with --slow: the short version is
`the_disk_stays_flat` of the store.
"""

import json
import multiprocessing
import signal
import socket
import time
from urllib.parse import urlparse

import pytest

from objects import MAPS
from pintle import TOKEN, insecure

pytestmark = [pytest.mark.soak, pytest.mark.slow, pytest.mark.serial, pytest.mark.timeout(7200)]

OBJECTS, WRITES, MANY = 10_000, 1_000_000, 100_000
PROCESSES = 8
BYTES = 1000


def body(number, turn):
    text = f"{turn:08}".ljust(BYTES, "x")
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"map-{number}"}, "data": {"text": text}})


def work(url, method, numbers, turns):
    """Writes its objects once per turn. It does not use `http.client`, which is too slow for a million writes."""
    address = urlparse(url)
    with socket.create_connection((address.hostname, address.port)) as plain, insecure().wrap_socket(plain) as connection:
        responses = connection.makefile("rb")
        for turn in turns:
            for number in numbers:
                path = MAPS if method == "POST" else f"{MAPS}/map-{number}"
                content = body(number, turn)
                connection.sendall(
                    f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n{content}".encode()
                )
                read_response(responses)


def read_response(responses):
    """Reads one response, which must be a success."""
    status = responses.readline()
    assert status.split()[1] in (b"200", b"201"), status
    length = None
    while (line := responses.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    responses.read(length)


def write_all(server, method, first, end, turns):
    shares = [(server.url, method, range(first + i, end, PROCESSES), turns) for i in range(PROCESSES)]
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        pool.starmap(work, shares)


def disk(server):
    return sum(file.stat().st_size for file in (server.dir / "log").iterdir())


def megabytes(size):
    return f"{size / 1e6:.0f} MB"


def test_many_writes_over_few_objects(launch):
    rounds = WRITES // OBJECTS
    with launch(storage="embedded") as server:
        write_all(server, "POST", 0, OBJECTS, [0])
        live = OBJECTS * (BYTES + 700)
        sizes, start = [], time.monotonic()
        for part in range(4):
            write_all(server, "PUT", 0, OBJECTS, range(part * rounds // 4 + 1, (part + 1) * rounds // 4 + 1))
            sizes.append((disk(server), int(server.resident_mib() * (1 << 20))))
        seconds = time.monotonic() - start
        # the live objects twice, during a checkpoint; the history, and the writes of the minute between two compactions
        bound = 2 * live + 600_000_000
        assert all(size < bound for size, _ in sizes), (bound, sizes)
        summary = ", ".join(f"{megabytes(size)} of disk and {megabytes(used)} of memory" for size, used in sizes)
        print(f"{WRITES} writes over {OBJECTS} objects, {WRITES / seconds:.0f}/s, after each quarter: {summary}", flush=True)
        version = int(server.ok("GET", MAPS + "?limit=1")["metadata"]["resourceVersion"])
        assert version > WRITES
        check_after_restarts(server, OBJECTS, rounds)
        write_all(server, "POST", OBJECTS, MANY, [rounds])
        check_after_restarts(server, MANY, rounds)


def check_after_restarts(server, objects, turn):
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        server.restart(signal_number)
        print(f"restart with {objects} objects: {server.milliseconds} ms, {megabytes(disk(server))} of disk", flush=True)
    texts = {item["metadata"]["name"]: item["data"]["text"][:8] for item in server.ok("GET", MAPS)["items"] if "text" in item["data"]}
    assert texts == {f"map-{number}": f"{turn:08}" for number in range(objects)}, len(texts)
