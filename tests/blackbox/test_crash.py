"""SIGKILL at random moments under 64 writers: acknowledged writes are not lost, and watches can be resumed.

Each writer has objects of its own, and tracks the states that each may have after a crash: the last one that was
acknowledged, or that of the write in flight.
"""

import random
import signal
import threading

import pytest

from pintle import eventually
from workload import MAPS, ResumingWatch, Writer

pytestmark = [pytest.mark.crash, pytest.mark.serial, pytest.mark.timeout(7200)]

WRITERS = 64
ROUNDS, ROUNDS_SLOW = 4, 200
# the server is killed after WRITES_MIN acknowledged writes of a round, and up to WRITES_MORE further ones
WRITES_MIN, WRITES_MORE = 100, 400


def test_survives_kills(launch):
    rounds = ROUNDS_SLOW if launch.slow else ROUNDS
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    with launch(storage="embedded") as server:
        start = server.ok("GET", MAPS)
        watch = ResumingWatch(start["metadata"]["resourceVersion"])
        watch.state = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in start["items"]}
        writers = [Writer(number, chance.random()) for number in range(WRITERS)]
        for number in range(rounds):
            try:
                one_round(server, writers, watch, number, chance)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, round {number}: {error}") from error


def one_round(server, writers, watch, number, chance):
    before = int(server.ok("GET", MAPS + "?limit=1")["metadata"]["resourceVersion"])
    stop = threading.Event()
    threads = [threading.Thread(target=writer.run, args=(server, stop)) for writer in writers]
    threads.append(threading.Thread(target=watch.run, args=(server,)))
    [thread.start() for thread in threads]
    wanted = sum(len(writer.acknowledged) for writer in writers) + WRITES_MIN + chance.randrange(WRITES_MORE)
    eventually(lambda: sum(len(writer.acknowledged) for writer in writers) >= wanted, seconds=60)
    server.process.send_signal(signal.SIGKILL)
    stop.set()
    [thread.join() for thread in threads]
    server.stop()
    server.start()
    listed = server.ok("GET", MAPS)
    versions = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed["items"]}
    acknowledged = {version for writer in writers for version in writer.acknowledged}
    assert int(listed["metadata"]["resourceVersion"]) >= max(acknowledged), "the resourceVersion of the list is older than an acknowledged write"
    for writer in writers:
        writer.settle(versions, before)
    mark = server.ok("POST", MAPS, {"metadata": {"name": f"mark-{number}"}})["metadata"]
    watch.run(server, until=int(mark["resourceVersion"]))
    failures = [each.failure for each in [*writers, watch] if each.failure]
    assert not failures, failures
    missed = acknowledged - watch.delivered
    assert not missed, f"acknowledged and not delivered by the watch: {sorted(missed)[:5]}"
    versions[mark["name"]] = mark["resourceVersion"]
    assert watch.state == versions, "the state after all events differs from the list"
