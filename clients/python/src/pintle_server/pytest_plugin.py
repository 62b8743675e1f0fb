"""Fixtures for pytest: `pintle_server` for the run, `pintle_workspace` for each test, and workspaces of larger scopes.

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
STARTED: list[pintle.Server] = []
WORKSPACES = ("pintle_workspace", "pintle_class_workspace", "pintle_module_workspace", "pintle_session_workspace")
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
        STARTED.append(server)
        yield server
        keep(request.config)
        STARTED.remove(server)


@pytest.fixture(scope="session")
def pintle_build(request: pytest.FixtureRequest) -> Build | None:
    """What makes the template: a function of a workspace, or None for empty workspaces. Meant to be overridden."""
    paths = request.config.getini("pintle_apply")
    return (lambda workspace: workspace.apply(*paths)) if paths else None


def template_of(config: pytest.Config, server: pintle.Server, build: Build | None) -> pintle.Workspace | None:
    """The template of the workspaces, or None. It is built once, but asked for by each fixture, since modules may override `pintle_build`."""
    if build is None:
        return None
    paths = " ".join(map(str, config.getini("pintle_apply")))
    return server.template(f"{build.__module__}.{build.__qualname__} {paths}", build)


@pytest.fixture
def pintle_template(request: pytest.FixtureRequest, pintle_server: pintle.Server, pintle_build: Build | None) -> pintle.Workspace | None:
    """The template of the workspaces, or None."""
    return template_of(request.config, pintle_server, pintle_build)


def workspace_of(server: pintle.Server, template: pintle.Workspace | None) -> Iterator[pintle.Workspace]:
    """A workspace, which is kept if a test with it fails."""
    workspace = template.fork() if template else server.workspace()
    yield workspace
    if workspace not in KEPT:
        workspace.delete()


@pytest.fixture
def pintle_workspace(pintle_server: pintle.Server, pintle_template: pintle.Workspace | None) -> Iterator[pintle.Workspace]:
    """A workspace for one test. That of a test that fails is kept."""
    yield from workspace_of(pintle_server, pintle_template)


@pytest.fixture(scope="class")
def pintle_class_workspace(request: pytest.FixtureRequest, pintle_server: pintle.Server, pintle_build: Build | None) -> Iterator[pintle.Workspace]:
    """A workspace for the tests of a class."""
    yield from workspace_of(pintle_server, template_of(request.config, pintle_server, pintle_build))


@pytest.fixture(scope="module")
def pintle_module_workspace(request: pytest.FixtureRequest, pintle_server: pintle.Server, pintle_build: Build | None) -> Iterator[pintle.Workspace]:
    """A workspace for the tests of a module."""
    yield from workspace_of(pintle_server, template_of(request.config, pintle_server, pintle_build))


@pytest.fixture(scope="session")
def pintle_session_workspace(request: pytest.FixtureRequest, pintle_server: pintle.Server, pintle_build: Build | None) -> Iterator[pintle.Workspace]:
    """A workspace for all tests of a process: each worker of pytest-xdist has one."""
    yield from workspace_of(pintle_server, template_of(request.config, pintle_server, pintle_build))


@pytest.fixture
def pintle_kubeconfig(pintle_workspace: pintle.Workspace, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a kubeconfig for the workspace of the test, which `KUBECONFIG` names during the test."""
    path = pintle_workspace.kubeconfig()
    monkeypatch.setenv("KUBECONFIG", path)
    return path


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if STARTED:
        item.stash[LOG_SIZE] = STARTED[-1].log_size()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    arguments = getattr(item, "funcargs", {})
    workspaces = [arguments[name] for name in WORKSPACES if name in arguments]
    if not report.failed or call.when == "teardown" or not workspaces:
        return
    log = workspaces[0].server.log_since(item.stash.get(LOG_SIZE, 0)).strip()
    if log:
        report.sections.append(("log of the Pintle server", log))
    hint = "" if item.config.getoption("--pintle-keep") else "\nThe server ends with the run; --pintle-keep keeps it."
    for workspace in workspaces:
        if workspace not in KEPT:
            KEPT.append(workspace)
        report.sections.append(("workspace of this test", f"KUBECONFIG={workspace.kubeconfig()} kubectl api-resources{hint}"))
        report.sections.append(("what differs from the beginning of the workspace", changes_of(workspace)))


def changes_of(workspace: pintle.Workspace) -> str:
    try:
        return workspace.changes()
    except pintle.PintleError as error:
        return f"cannot be listed: {error}"


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
