"""Moves between Pintle and kube-apiserver: each serves and changes the objects that the other has written to etcd. Only with
--slow, since kube-apiserver has to be built.
"""

import pytest

from etcd import Etcd
from pintle import eventually
from programs import ROOT
from upstream import Upstream

pytestmark = pytest.mark.move

OBJECTS = ROOT / "tests" / "harness" / "moved.yaml"
# kinds that both servers serve only if they are enabled
FLAGS = (
    "--feature-gates=MutatingAdmissionPolicy=true,StorageVersionMigrator=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true,storagemigration.k8s.io/v1beta1=true",
)


def write(server, tag):
    """Writes an object of each kind, and a custom resource by create, patch of its status, and apply. Returns the objects by path."""
    paths = []
    for document in OBJECTS.read_text().replace("TAG", tag).split("---\n")[1:]:
        collection = document.split()[1]
        created = server.ok("POST", collection, document.encode(), headers={"Content-Type": "application/yaml"})
        paths.append(f"{collection}/{created['metadata']['name']}")
    version = f"{tag}.example.com/v1"
    widgets = f"/apis/{version}/namespaces/default/widgets"
    widget = {"apiVersion": version, "kind": "Widget", "metadata": {"name": "w"}, "spec": {"t": "x"}}
    eventually(lambda: server.request("POST", widgets, widget)[0] == 201)
    server.ok("PATCH", f"{widgets}/w/status", {"status": {"a": [1, 2.5, None, {"b": "c"}]}})
    labelled = {"apiVersion": version, "kind": "Widget", "metadata": {"name": "w", "labels": {"l": "1"}}}
    server.ok("PATCH", f"{widgets}/w?fieldManager=m", labelled, headers={"Content-Type": "application/apply-patch+yaml"})
    paths.append(f"{widgets}/w")
    return eventually(lambda: all_settled(server, paths))


def all_settled(server, paths):
    """The objects, or False until the controller of priority and fairness has written its condition."""
    current = {path: server.ok("GET", path) for path in paths}
    schemas = [current[path] for path in paths if "flowschemas" in path]
    return all(schema.get("status", {}).get("conditions") for schema in schemas) and current


def check_served(server, objects):
    for path, want in objects.items():
        eventually(lambda: server.request("GET", path)[0] == 200)
        got = server.ok("GET", path)
        assert got == want, (path, got, want)


def change(server, objects):
    """Changes all objects, and returns them."""
    return {path: server.ok("PATCH", path, {"metadata": {"labels": {"moved": "1"}}}) for path in objects}


def pintle(launch, etcd):
    """A Pintle without the controllers that kube-apiserver lacks, so that written objects stay unchanged."""
    return launch("--etcd-servers", etcd.urls, "--controllers=clusterrole-aggregation-controller", *FLAGS, storage="etcd")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_moves_both_ways(launch):
    with Etcd() as etcd:
        with pintle(launch, etcd) as server:
            ours = write(server, "ours")
        with Upstream(etcd, *FLAGS) as server:
            check_served(server, ours)
            theirs, ours = write(server, "theirs"), change(server, ours)
        with pintle(launch, etcd) as server:
            check_served(server, {**ours, **theirs})
            theirs = change(server, theirs)
        with Upstream(etcd, *FLAGS) as server:
            check_served(server, theirs)
