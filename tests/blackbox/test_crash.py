"""SIGKILL at random moments under 64 writers: acknowledged writes are not lost, and watches can be resumed.

Each writer has objects of its own and knows, at every moment, which states of them it may find after a crash: the last
one that was acknowledged, or that of the one write that was on its way.
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
# acknowledged writes of a round before the server may be killed, and how many more there may be
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
    found = server.ok("GET", MAPS)
    versions = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found["items"]}
    acknowledged = {version for writer in writers for version in writer.acknowledged}
    assert int(found["metadata"]["resourceVersion"]) >= max(acknowledged), "the version of the server has gone back"
    for writer in writers:
        writer.settle(versions, before)
    mark = server.ok("POST", MAPS, {"metadata": {"name": f"mark-{number}"}})["metadata"]
    watch.run(server, until=int(mark["resourceVersion"]))
    failures = [who.failure for who in [*writers, watch] if who.failure]
    assert not failures, failures
    missed = acknowledged - watch.delivered
    assert not missed, f"acknowledged and not seen by the watch: {sorted(missed)[:5]}"
    versions[mark["name"]] = mark["resourceVersion"]
    assert watch.state == versions, "the events do not lead to the list"
