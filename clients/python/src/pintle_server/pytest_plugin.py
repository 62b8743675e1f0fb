"""Fixtures for pytest: `pintle_server` for the run, `pintle_workspace` for each test.

The workspace of a test is a fork of a template if there is one: what `pintle_apply` in the configuration names, or what the function does
that the fixture `pintle_build` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pintle_server as pintle

# the length of the log at the beginning of a test
LOG_SIZE = pytest.StashKey[int]()
KEPT: list[pintle.Workspace] = []
Build = Callable[[pintle.Workspace], object]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("pintle_flags", "flags of pintle serve", type="args", default=[])
    parser.addini("pintle_apply", "manifests that the workspace of each test has: files and directories", type="paths", default=[])
    group = parser.getgroup("pintle")
    group.addoption("--pintle-keep", action="store_true", help="after failures, keep the server and the workspaces of failed tests until Enter is pressed")


@pytest.fixture(scope="session")
def pintle_server(request: pytest.FixtureRequest) -> Iterator[pintle.Server]:
    """The server, which all workers of the run share."""
    with pintle.start(*request.config.getini("pintle_flags")) as server:
        yield server
        keep(request.config)


@pytest.fixture(scope="session")
def pintle_build(request: pytest.FixtureRequest) -> Build | None:
    """What makes the template: a function of a workspace, or None for empty workspaces. Meant to be overridden."""
    paths = request.config.getini("pintle_apply")
    return (lambda workspace: workspace.apply(*paths)) if paths else None


@pytest.fixture
def pintle_template(request: pytest.FixtureRequest, pintle_server: pintle.Server, pintle_build: Build | None) -> pintle.Workspace | None:
    """The template of the workspaces, or None. It is built once, but asked for by each test, since modules may override `pintle_build`."""
    if pintle_build is None:
        return None
    paths = " ".join(map(str, request.config.getini("pintle_apply")))
    return pintle_server.template(f"{pintle_build.__module__}.{pintle_build.__qualname__} {paths}", pintle_build)


@pytest.fixture
def pintle_workspace(request: pytest.FixtureRequest, pintle_server: pintle.Server, pintle_template: pintle.Workspace | None) -> Iterator[pintle.Workspace]:
    """A workspace for one test. That of a test that fails is kept."""
    request.node.stash[LOG_SIZE] = pintle_server.log_size()
    workspace = pintle_template.fork() if pintle_template else pintle_server.workspace()
    yield workspace
    if workspace not in KEPT:
        workspace.delete()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    workspace = getattr(item, "funcargs", {}).get("pintle_workspace")
    if not report.failed or call.when == "teardown" or workspace is None:
        return
    KEPT.append(workspace)
    log = workspace.server.log_since(item.stash[LOG_SIZE]).strip()
    if log:
        report.sections.append(("log of the Pintle server", log))
    hint = "" if item.config.getoption("--pintle-keep") else "\nThe server ends with the run; --pintle-keep keeps it."
    report.sections.append(("workspace of this test", f"KUBECONFIG={workspace.kubeconfig()} kubectl api-resources{hint}"))


def keep(config: pytest.Config) -> None:
    """Waits for Enter, if that is asked for and a test has failed. The workers of pytest-xdist have no terminal."""
    if not KEPT or not config.getoption("--pintle-keep") or hasattr(config, "workerinput"):
        return
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture:
        capture.suspend_global_capture(in_=True)
    print("\nPintle: the workspaces of failed tests are kept until Enter is pressed:")
    for workspace in KEPT:
        print(f"  KUBECONFIG={workspace.kubeconfig()} kubectl api-resources")
    try:
        input()
    except (EOFError, KeyboardInterrupt):
        pass
