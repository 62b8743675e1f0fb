"""Replays the scenarios recorded from kube-apiserver: all responses must be equal, except those in exceptions.toml."""

import contextlib
import functools
from urllib.parse import quote

import pytest

import transcripts

pytestmark = pytest.mark.transcripts

# the scenarios were recorded without kube-controller-manager, and finalize the namespaces that they delete themselves
BARE = "--controllers=*,-namespace-controller"


@pytest.fixture(scope="session")
def shared_server(launch):
    """One server for all scenarios that do not need a server of their own."""
    with launch(BARE) as server:
        yield server


@pytest.fixture(scope="session")
def former_servers(launch):
    """A function that returns the server that emulates a release, and starts it on first use."""
    with contextlib.ExitStack() as stack:
        yield functools.cache(lambda release: stack.enter_context(launch(BARE, "--emulated-version", release)))


def test_exceptions_are_of_recorded_steps():
    def steps(paths):
        return {(path.stem, step) for path in paths for step in transcripts.step_ids(path)}

    newest = steps(transcripts.scenarios())
    assert transcripts.exceptions() <= newest
    for release in transcripts.EARLIER:
        assert transcripts.exceptions(release) <= newest | steps(transcripts.former(release))


@pytest.mark.parametrize("path", transcripts.scenarios(), ids=lambda path: path.stem)
def test_scenario(path, launch, request, record_property):
    if path.stem in transcripts.ALONE:
        with launch(BARE) as server:
            transcripts.wait_until_settled(server)
            steps = transcripts.check(server, path)
    else:
        steps = transcripts.check(request.getfixturevalue("shared_server"), path)
    record_property("checks", steps)


@pytest.mark.parametrize(
    "path", [path for release in transcripts.EARLIER for path in transcripts.former(release)], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_former_scenario(path, launch, former_servers, record_property):
    """The responses of an earlier release, where they differ."""
    release = transcripts.release_of(path)
    if path.stem in transcripts.ALONE:
        with launch(BARE, "--emulated-version", release) as server:
            transcripts.wait_until_settled(server)
            steps = transcripts.check(server, path)
    else:
        steps = transcripts.check(former_servers(release), path)
    record_property("checks", steps)


def test_the_plugin_for_service_accounts(launch, record_property):
    """Recorded from a server with the plugin ServiceAccount; the scenario creates the accounts."""
    with launch("--enable-admission-plugins", "ServiceAccount") as server:
        record_property("checks", transcripts.check(server, transcripts.OWN / "switched" / "plugin-service-account.json"))


def test_the_plugin_for_quotas(launch, record_property):
    """The scenario writes the status of quotas itself."""
    with launch("--controllers=*,-resourcequota-controller") as server:
        checks = [transcripts.check(server, transcripts.OWN / "switched" / f"plugin-quota{name}.json") for name in ("", "-devices")]
        record_property("checks", sum(checks))


OPTIONAL = ("leasecandidates-v1beta1", "leasecandidates-v1alpha2", "storageversions-v1alpha1", "resourcepoolstatusrequests-v1alpha3")
# versions of kinds that also have a stable version
UNSTABLE = (
    "deviceclasses-v1beta1",
    "resourceclaims-v1beta1",
    "resourceclaimtemplates-v1beta1",
    "resourceslices-v1beta1",
    "podcertificaterequests-v1beta1",
    "mutatingadmissionpolicies-v1alpha1",
    "mutatingadmissionpolicybindings-v1alpha1",
)
# kinds of feature gates that are off by default
GATED = (
    "workloads-v1beta1",
    "workloads-v1alpha3",
    "podgroups-v1beta1",
    "podgroups-v1alpha3",
    "compositepodgroups-v1alpha3",
    "evictionrequests-v1alpha1",
    "evictions-v1alpha1",
)
GATES = (
    "GenericWorkload",
    "CompositePodGroup",
    "EvictionRequestAPI",
    "TopologyAwareWorkloadScheduling",
    "PodGroupPreemptionPolicy",
    "DRAWorkloadResourceClaims",
)


def test_kinds_without_a_stable_version(launch, record_property):
    """These APIs are off by default."""
    with launch("--runtime-config=api/all=true") as server:
        checks = [transcripts.check(server, transcripts.OWN / "switched" / f"kinds-{name}.json") for name in OPTIONAL + UNSTABLE]
        record_property("checks", sum(checks))


def test_kinds_of_feature_gates(launch, record_property):
    """These APIs need their feature gates and `--runtime-config`."""
    gates = ",".join(f"{gate}=true" for gate in GATES)
    with launch("--runtime-config=api/all=true", f"--feature-gates={gates}") as server:
        checks = [transcripts.check(server, transcripts.OWN / "switched" / f"kinds-{name}.json") for name in GATED]
        record_property("checks", sum(checks))


def test_kinds_of_some_feature_gates(launch, record_property):
    """Fields of feature gates that are off are dropped, and their kinds are not served."""
    with launch("--runtime-config=api/all=true", "--feature-gates=GenericWorkload=true,EvictionRequestAPI=true") as server:
        record_property("checks", transcripts.check(server, transcripts.OWN / "switched" / "gated-groups.json"))


SHARDED = "--feature-gates=ShardedListAndWatch=true"


def test_shards(launch, record_property):
    """Lists, watches and deletecollections of shards by namespace, and errors of selectors."""
    with launch(SHARDED) as server:
        record_property("checks", transcripts.check(server, transcripts.OWN / "switched" / "shards.json"))


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def shard_of_uids(start, end):
    return "shardSelector=" + quote(f"shardRange(object.metadata.uid, '0x{start:016x}', '0x{end:016x}')")


def test_shards_of_uids(launch):
    """Uids are random, so the shards are compared with hashes that the test computes."""
    path, quarters = "/api/v1/namespaces/default/secrets", [(n << 62, (n + 1) << 62) for n in range(4)]
    with launch(SHARDED) as server:
        for n in range(40):
            server.ok("POST", path, {"metadata": {"name": f"s{n:02}"}})
        uids = {item["metadata"]["uid"] for item in server.ok("GET", path)["items"]}
        assert len(uids) == 40
        for start, end in quarters:
            shard = [item["metadata"]["uid"] for item in server.ok("GET", f"{path}?{shard_of_uids(start, end)}")["items"]]
            assert len(set(shard)) == len(shard) and set(shard) == {uid for uid in uids if start <= fnv1a(uid) < end}


def test_shards_are_ignored_without_the_feature_gate(server):
    path = "/api/v1/namespaces"
    listed = server.ok("GET", f"{path}?{shard_of_uids(0, 1)}")
    assert listed["items"] and "shardInfo" not in listed["metadata"]
    assert server.request("GET", f"{path}?shardSelector=x")[0] == 200
