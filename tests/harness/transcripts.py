"""The recorded scenarios, and the differences from kube-apiserver that are accepted."""

import functools
import json
import pathlib
import re
import time
import tomllib

import player
from pintle import eventually

# scenarios for corner cases, recorded from the kube-apiserver that tests/upstream builds
OWN = pathlib.Path(__file__).resolve().parents[1] / "transcripts"
# scenarios for every area, recorded from kube-apiserver of the newest release
NEWEST = "1.37"
RECORDED = OWN / "recorded" / NEWEST
# earlier releases: recorded/RELEASE has the scenarios of both kinds whose responses differ
EARLIER = ("1.35", "1.36")
# scenarios that depend on the newest resourceVersion of the whole server, on the state of the namespace `default`, or on
# the existing CustomResourceDefinitions or namespaces: each needs a server of its own
ALONE = ("control-namespace", "crd-hello", "definition-overlaps", "definition-reads", "namespaces-of-groups", "read-pages", "read-versions")
# what reads the store's history or a part of a list, in the path of a request
OF_HISTORY = re.compile(r"[?&](?:watch|limit|continue|resourceVersion|resourceVersionMatch)=")
# a server that has not written for this long has finished its start
QUIET_SECONDS = 0.5


def scenarios():
    """The paths of all scenarios that a server without special flags replays."""
    return sorted(RECORDED.glob("*.json")) + sorted(OWN.glob("*.json"))


def is_of_history(path):
    """Whether a scenario watches, or lists pages or versions, which is what another store could answer in another way."""
    return OF_HISTORY.search(path.read_text()) is not None


def former(release):
    """The paths of the scenarios that a server replays under `--emulated-version` RELEASE: all that differ."""
    return sorted((OWN / "recorded" / release).glob("*.json"))


def release_of(path):
    """The release that a scenario was recorded from."""
    return path.parent.name if path.parent.name in EARLIER else NEWEST


@functools.cache
def exceptions(release=NEWEST):
    """The steps that may differ, as (scenario, step). An exception without a release applies to all releases."""
    listed = tomllib.loads((OWN / "exceptions.toml").read_text()).get("exception", [])
    for entry in listed:
        assert entry["reason"], entry
    return {(entry["scenario"], entry["step"]) for entry in listed if entry.get("release", release) == release}


def step_ids(path):
    return [step.get("id") for step in json.loads(path.read_text())["steps"]]


def wait_until_settled(server):
    """Waits until the controllers no longer write, so that the resourceVersion of lists does not change."""

    def version():
        return server.ok("GET", "/api/v1/namespaces")["metadata"]["resourceVersion"]

    def is_settled():
        before = version()
        time.sleep(QUIET_SECONDS)
        return version() == before

    eventually(is_settled, seconds=60)


def check(server, path):
    """Replays one scenario. Returns the number of its steps; fails if a step differs that is not listed in exceptions.toml."""
    [outcome] = player.play(server.binary, server.url, [path])
    assert outcome["steps"], "the scenario has no steps"
    listed = exceptions(release_of(path))
    different = [step for step in outcome["different"] if (path.stem, step["id"]) not in listed]
    assert not different, f"{len(different)} of {outcome['steps']} steps differ\n{player.text(path.stem, different)}"
    return outcome["steps"]
