"""The exit status is 0 when the server is stopped at any time, under load and directly after the start."""

import concurrent.futures
import contextlib
import random
import signal
import threading

import pytest

from objects import MAPS
from pintle import KEY_SET

pytestmark = [pytest.mark.stop, pytest.mark.serial, pytest.mark.timeout(7200)]

ROUNDS, ROUNDS_SLOW = 24, 2000
CONCURRENT = 4


def start_and_stop(launch, seed):
    """Starts a server, stops it under load, and returns its exit status."""
    chance = random.Random(seed)
    with launch() as server:
        stopping = threading.Event()

        def load(client):
            i = 0
            while not stopping.is_set():
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"map-{client}-{i}"}}
                try:
                    server.request("POST", MAPS, body, timeout=5)
                except OSError:
                    return  # the server has stopped
                i += 1

        def use_key():
            with contextlib.suppress(OSError):
                server.request("GET", "/openid/v1/jwks", headers=KEY_SET, timeout=5)

        clients = [threading.Thread(target=load, args=(client,), daemon=True) for client in range(2)]
        clients.append(threading.Thread(target=use_key, daemon=True))
        for client in clients:
            client.start()
        # the key of ServiceAccount tokens is being generated during many of these times
        stopping.wait(chance.choice((0, 0, 0.02, 0.1, 0.3)))
        try:
            return server.stop()
        finally:
            stopping.set()


def test_starts_and_stops(launch):
    rounds = ROUNDS_SLOW if launch.slow else ROUNDS
    with concurrent.futures.ThreadPoolExecutor(CONCURRENT) as pool:
        statuses = list(pool.map(lambda seed: start_and_stop(launch, seed), range(rounds)))
    failed = {seed: status for seed, status in enumerate(statuses) if status != 0}
    assert not failed, f"{len(failed)} of {rounds} stops were not clean: {failed}"


def test_signals_without_a_meaning_are_ignored(launch):
    with launch() as server:
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPIPE):
            server.process.send_signal(number)
            server.ok("GET", MAPS)
        assert server.stop() == 0
