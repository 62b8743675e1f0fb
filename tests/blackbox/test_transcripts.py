"""Replays the scenarios recorded from kube-apiserver: every response must be equal, but for those in exceptions.toml."""
import pytest

import transcripts

pytestmark = pytest.mark.transcripts


@pytest.fixture(scope="session")
def shared_server(launch):
    """One server for all scenarios that allow for others before them."""
    with launch() as server:
        yield server


def test_exceptions_are_of_recorded_steps():
    recorded = {(path.stem, step) for path in transcripts.scenarios() for step in transcripts.step_ids(path)}
    assert transcripts.exceptions() <= recorded


@pytest.mark.parametrize("path", transcripts.scenarios(), ids=lambda path: path.stem)
def test_scenario(path, launch, request, record_property):
    if path.stem in transcripts.ALONE:
        with launch() as server:
            transcripts.wait_until_settled(server)
            steps = transcripts.check(server, path)
    else:
        steps = transcripts.check(request.getfixturevalue("shared_server"), path)
    record_property("checks", steps)
