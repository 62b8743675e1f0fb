"""Fixtures and options of the black-box tests."""

import os
import pathlib
import shutil

import pytest

import commands
import etcd
import kubectl.client as kubectl
import pintle
from hooks import Hooks

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption(
        "--binary",
        help="the pintle binary under test (default: target/release/pintle)",
        default=os.environ.get("PINTLE_BINARY", str(ROOT / "target" / "release" / "pintle")),
    )
    parser.addoption("--slow", action="store_true", help="also run the tests that take minutes to hours")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("slow")])
    items[:] = [item for item in items if not item.get_closest_marker("slow")]


class Launch:
    """`with launch("--flag", storage="embedded") as server:` runs the binary under test; see `Pintle` for the arguments."""

    def __init__(self, binary, slow):
        self.binary, self.slow = binary, slow

    def __call__(self, *flags, **options):
        return pintle.Pintle(self.binary, *flags, **options)

    def run(self, *arguments, server=None, env=None, **options):
        """Runs a command to its end, with the kubeconfig of a server if one is given; see `commands.run`."""
        kubeconfig = {"KUBECONFIG": server.kubeconfig} if server else {}
        return commands.run(self.binary, *arguments, env={**kubeconfig, **(env or {})}, **options)


@pytest.fixture(scope="session")
def launch(pytestconfig):
    binary = pathlib.Path(pytestconfig.getoption("--binary")).resolve()
    assert binary.exists(), f"{binary} does not exist: cargo build --release"
    return Launch(str(binary), pytestconfig.getoption("--slow"))


@pytest.fixture
def server(launch):
    with launch() as server:
        yield server


@pytest.fixture
def hooks(server):
    with Hooks(server) as hooks:
        yield hooks


@pytest.fixture(scope="session")
def kubectl_binary():
    """The newest kubectl, for tests of something else."""
    return str(kubectl.built())


@pytest.fixture(scope="session", params=["built", "installed"])
def each_kubectl(request):
    """The newest kubectl, and the one in PATH, which should be the oldest that is supported: for tests of kubectl itself."""
    binary = kubectl.built() if request.param == "built" else shutil.which("kubectl")
    if not binary:
        pytest.skip("no kubectl in PATH")
    return str(binary)


@pytest.fixture(scope="session")
def etcd_binary():
    """Builds etcd outside the timeout of a test."""
    return etcd.build()


@pytest.fixture(autouse=True)
def servers_of_this_test():
    """Forgets the servers of earlier tests, except those that are still running."""
    pintle.STARTED[:] = [server for server in pintle.STARTED if server.process is not None]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for server in pintle.STARTED:
            report.sections.append((f"log of the server at {getattr(server, 'url', 'no address')}", server.log_tail()))


def pytest_terminal_summary(terminalreporter):
    """Prints the number of recorded responses and cases of client programs that the tests compared."""
    passed = terminalreporter.stats.get("passed", [])
    checks = sum(value for report in passed for name, value in report.user_properties if name == "checks")
    if checks:
        terminalreporter.write_line(f"{checks} responses and cases were checked within these tests")
