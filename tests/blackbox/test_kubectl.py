"""kubectl: the newest release, built from its Go module, and the one in PATH.

Cases are commands with their output in tests/kubectl/cases, and functions in tests/kubectl that take a `Kubectl`. Each has a namespace
and a home directory of its own. The server has the CustomResourceDefinitions of tests/kubectl/manifests/{boats,lighthouses}.yaml.
"""

import pytest

from kubectl import control
from kubectl.client import MANIFESTS, Kubectl, check_console, console

pytestmark = pytest.mark.kubectl

CONSOLE = [pytest.param(commands, id=f"{file}-{name}") for file in ("discovery", "reads", "writes", "crontab") for name, commands in console(file).items()]


@pytest.fixture(scope="module")
def shared_server(launch, each_kubectl):
    """One server for all cases of a release."""
    with launch() as server:
        with Kubectl(each_kubectl, server, "default") as kubectl:
            kubectl("apply", "-f", MANIFESTS / "boats.yaml", "-f", MANIFESTS / "lighthouses.yaml")
        yield server


@pytest.fixture
def namespace(shared_server):
    return shared_server.ok("POST", "/api/v1/namespaces", {"metadata": {"generateName": "case-"}})["metadata"]["name"]


@pytest.mark.parametrize("commands", CONSOLE)
def test_console(commands, launch, shared_server, each_kubectl, namespace):
    check_console(launch.binary, each_kubectl, shared_server, namespace, commands)


@pytest.mark.parametrize("case", control.CASES, ids=lambda case: case.__name__)
def test_kubectl(case, shared_server, each_kubectl, namespace):
    with Kubectl(each_kubectl, shared_server, namespace) as kubectl:
        case(kubectl)
