"""kubectl: the newest release, built from its Go module, and the one in PATH.

Every case is a function in tests/kubectl that takes a `Kubectl`. It runs with a namespace and a home directory of its own. The
server has the CustomResourceDefinitions of tests/kubectl/manifests/{boats,lighthouses}.yaml.
"""

import pytest

from kubectl import control, crontab, discovery, reads, writes
from kubectl.client import MANIFESTS, Kubectl

pytestmark = pytest.mark.kubectl

CASES = [case for module in (discovery, reads, writes, control, crontab) for case in module.CASES]


@pytest.fixture(scope="module")
def shared_server(launch, each_kubectl):
    """One server for all cases of a release."""
    with launch() as server:
        with Kubectl(each_kubectl, server, "default") as kubectl:
            kubectl("apply", "-f", MANIFESTS / "boats.yaml", "-f", MANIFESTS / "lighthouses.yaml")
        yield server


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_kubectl(case, shared_server, each_kubectl):
    namespace = f"case-{CASES.index(case)}"
    shared_server.ok("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    with Kubectl(each_kubectl, shared_server, namespace) as kubectl:
        case(kubectl)
