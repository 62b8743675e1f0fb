"""Programs of other ecosystems that tests need: found in PATH, or built once from a Go module into target."""

import contextlib
import fcntl
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# set by .ci/run: a program that is not installed fails the test instead of skipping it
REQUIRE_ALL = os.environ.get("PINTLE_TESTS_REQUIRE_ALL") == "1"
# below those that the kernel gives to connections, and to sockets that ask for any: a program that is started again finds its own free
PORTS = range(20000, 32768)
TRIED = itertools.count(random.randrange(len(PORTS)))


def free_port():
    while True:
        port = PORTS[next(TRIED) % len(PORTS)]
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def require(*programs):
    """Skips the test, or fails it under PINTLE_TESTS_REQUIRE_ALL=1, unless all of these programs are in PATH."""
    missing = ", ".join(program for program in programs if shutil.which(program) is None)
    if missing and REQUIRE_ALL:
        pytest.fail(f"{missing} not installed, and PINTLE_TESTS_REQUIRE_ALL=1", pytrace=False)
    if missing:
        pytest.skip(f"{missing} not installed")


def openssl(*arguments, input=b""):
    """Runs openssl. Returns its output."""
    require("openssl")
    return subprocess.run(["openssl", *map(str, arguments)], input=input, check=True, capture_output=True).stdout


def xtask(*arguments):
    """The command of a task of `xtask`, which `tests/run` has built and names in PINTLE_XTASK."""
    program = os.environ.get("PINTLE_XTASK")
    return [*([program] if program else ["cargo", "run", "--quiet", "--package", "xtask", "--"]), *map(str, arguments)]


@contextlib.contextmanager
def locked(path):
    """Holds an exclusive lock on a file beside `path`, so that one process builds `path` while others wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(path.name + ".lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def go_build(module, path, ldflags="", package="."):
    """Builds a main package of the Go module in the folder `module`, or of a module that it requires, as `path` unless that exists.
    Returns `path`."""
    if path.exists():
        return path
    require("go")
    with locked(path):
        if not path.exists():
            unfinished = path.with_name(path.name + ".unfinished")
            command = ["go", "build", "-ldflags", f"-s -w {ldflags}", "-o", str(unfinished), package]
            subprocess.run(command, cwd=module, check=True)
            unfinished.rename(path)
    return path


def built(module, requirement, place, ldflags="", package="."):
    """Builds a main package of a Go module unless its binary exists. Returns the path of the binary: `place` below target, in a
    directory named after the version that the pattern `requirement` finds in go.mod; in `ldflags`, `{version}` is that
    version and `{minor}` its minor one."""
    version = re.search(requirement + r" (\S+)", (module / "go.mod").read_text()).group(1)
    flags = ldflags.format(version=version, minor=version.split(".")[1])
    return go_build(module, ROOT / "target" / place.parent / version / place.name, flags, package)


def go_module(name):
    """Downloads a Go module, such as `sigs.k8s.io/gateway-api@v1.6.1`, unless it is there. Returns its directory."""
    require("go")
    done = subprocess.run(["go", "mod", "download", "-json", name], capture_output=True, text=True, check=True)
    return pathlib.Path(json.loads(done.stdout)["Dir"])


def helm(major=3):
    """Builds a major version of helm unless its binary exists, which takes minutes. Returns the path of the binary."""
    module = ROOT / "tests" / ("helm" if major == 3 else f"helm{major}")
    package = f"helm.sh/helm/v{major}"
    return built(module, re.escape(package), pathlib.Path("helm/helm"), package=f"{package}/cmd/helm")
