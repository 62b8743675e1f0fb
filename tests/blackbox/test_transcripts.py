"""Replays the scenarios recorded from kube-apiserver: every response must be equal, but for those in exceptions.toml."""
import time

import pytest

import transcripts
from pintle import eventually

pytestmark = pytest.mark.transcripts

QUIET_SECONDS = 0.5


@pytest.fixture(scope="session")
def shared_server(launch):
    """One server for all scenarios that allow for others before them."""
    with launch() as server:
        yield server


def wait_until_settled(server):
    """Waits until the controllers have nothing left to write after the start."""
    def version():
        return server.ok("GET", "/api/v1/namespaces")["metadata"]["resourceVersion"]

    def is_settled():
        before = version()
        time.sleep(QUIET_SECONDS)
        return version() == before

    eventually(is_settled, seconds=60)


def test_exceptions_are_of_recorded_steps():
    recorded = {(path.stem, step) for path in transcripts.scenarios() for step in transcripts.step_ids(path)}
    assert transcripts.exceptions() <= recorded


@pytest.mark.parametrize("path", transcripts.scenarios(), ids=lambda path: path.stem)
def test_scenario(path, launch, request, record_property):
    if path.stem in transcripts.ALONE:
        with launch() as server:
            wait_until_settled(server)
            steps = transcripts.check(server, path)
    else:
        steps = transcripts.check(request.getfixturevalue("shared_server"), path)
    record_property("checks", steps)
