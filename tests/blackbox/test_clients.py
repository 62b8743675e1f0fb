"""The client libraries: one program per library in tests/clients, each with a server of its own.

A program finds the server by KUBECONFIG and the CustomResourceDefinition that all share by DEFINITION. It prints a line for
each case, "ok NAME" or "FAIL NAME: why", and "restart" or "kill" where the server shall end, by SIGTERM or SIGKILL, and
start again; it reads "started" when that is done. Its other output is shown when a case fails.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import pytest

from programs import require

# the first build of a program takes minutes
pytestmark = [pytest.mark.clients, pytest.mark.timeout(1800)]

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "tests" / "clients"
TARGET = ROOT / "target" / "clients"
SECONDS = 300
ASKED = {"restart": signal.SIGTERM, "kill": signal.SIGKILL}


def go(source, out):
    require("go")
    subprocess.run(["go", "build", "-o", str(out / "client"), "."], cwd=source, check=True)
    return [str(out / "client")]


def python(source, out):
    """A virtual environment with exactly what requirements.txt names."""
    wanted, have = source / "requirements.txt", out / "requirements.txt"
    if not have.exists() or have.read_text() != wanted.read_text():
        pytest.importorskip("ensurepip")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(out / "venv")], check=True)
        subprocess.run([str(out / "venv/bin/pip"), "install", "--quiet", "--no-deps", "--requirement", str(wanted)],
                       check=True)
        shutil.copy(wanted, have)
    return [str(out / "venv/bin/python"), str(source / "main.py")]


def node(source, out):
    """A copy of the program beside exactly the modules that package-lock.json names."""
    require("node", "npm")
    have = out / "node_modules" / ".package-lock.json"
    locked = source / "package-lock.json"
    fresh = have.exists() and (out / locked.name).exists() and (out / locked.name).read_text() == locked.read_text()
    shutil.copytree(source, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    if not fresh:
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=out, check=True)
    return ["node", str(out / "main.js")]


def rust(source, out):
    subprocess.run(["cargo", "build", "--quiet", "--locked"], cwd=source, check=True,
                   env={**os.environ, "CARGO_TARGET_DIR": str(out)})
    return [str(out / "debug" / "client")]


def java(source, out):
    """What pom.xml names, copied beside the classes; compiled without any further plugin of Maven."""
    require("mvn", "javac")
    wanted, have, lib = source / "pom.xml", out / "pom.xml", out / "lib"
    if not have.exists() or have.read_text() != wanted.read_text():
        shutil.rmtree(lib, ignore_errors=True)
        subprocess.run(["mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", "dependency:copy-dependencies",
                        f"-DoutputDirectory={lib}"], cwd=source, check=True)
        shutil.copy(wanted, have)
    sources = [str(file) for file in sorted(source.glob("src/*.java"))]
    subprocess.run(["javac", "-cp", f"{lib}/*", "-d", str(out / "classes"), *sources], check=True)
    return ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{out}/classes:{lib}/*", "Main"]


# how a program is built: a function of its source directory and its build directory that returns the command; the one that
# takes longest to build comes first
PROGRAMS = {"kube-rs": rust, "client-go": go, "controller-runtime": go, "python": python, "client-node": node,
            "fabric8": java}
# the same programs with other flags of the server and other environment variables
AGAIN = {"client-go over CBOR": ("client-go", ["--feature-gates=CBORServingAndStorage=true"],
                                 {"KUBE_FEATURE_ClientsAllowCBOR": "true", "KUBE_FEATURE_ClientsPreferCBOR": "true"})}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(AGAIN.get(name, [name])[0]))
                                  for name in [*PROGRAMS, *AGAIN]])
def test_client(name, launch, record_property):
    source, flags, environment = AGAIN.get(name, (name, [], {}))
    out = TARGET / source
    out.mkdir(parents=True, exist_ok=True)
    command = PROGRAMS[source](CLIENTS / source, out)
    lines, status = converse(launch, command, flags, environment)
    passed = [line for line in lines if line.startswith("ok ")]
    failed = [line for line in lines if line.startswith("FAIL ")]
    shown = "".join(lines[-400:])
    assert not failed, shown
    assert status == 0 and passed, f"the program ended with {status} after {len(passed)} cases\n{shown}"
    record_property("checks", len(passed))


def converse(launch, command, flags, environment):
    """Runs a program and restarts its server when it asks for that. Returns its lines and its exit status."""
    home = tempfile.mkdtemp(prefix="pintle-client-")
    try:
        with launch(*flags, storage="embedded") as server:
            kept = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
            given = {"KUBECONFIG": server.kubeconfig, "DEFINITION": str(CLIENTS / "boats.yaml"), **environment}
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, bufsize=1, errors="replace", env={**kept, **given}, cwd=home) as program:
                watchdog = threading.Timer(SECONDS, program.kill)
                watchdog.start()
                lines = [line for line in program.stdout if not restarted(line, server, program)]
                status = program.wait()
                watchdog.cancel()
        return lines, status
    finally:
        shutil.rmtree(home, ignore_errors=True)


def restarted(line, server, program):
    """Restarts the server if the line asks for that. Returns whether it does."""
    how = ASKED.get(line.strip())
    if how is None:
        return False
    server.restart(how)
    program.stdin.write("started\n")
    program.stdin.flush()
    return True
