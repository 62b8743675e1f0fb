"""The client libraries: one program per library in tests/clients, each with a server of its own.

The environment variable KUBECONFIG names the kubeconfig of the server, and DEFINITION the file of the CRD that all programs create.
A program prints a line for each case, "ok NAME" or "FAIL NAME: reason". It prints "restart" or "kill" to have the server stopped by
SIGTERM or SIGKILL and started again, and then reads the line "started". Its other output is shown if a case fails.
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

import documentation
import kubectl.client as kubectl
from pintle import eventually
from programs import locked, require

# the first build of a program takes minutes
pytestmark = [pytest.mark.clients, pytest.mark.timeout(1800)]

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "tests" / "clients"
TARGET = ROOT / "target" / "clients"
SECONDS = 300
# the signal that stops the server, by the line that the program prints
SIGNALS = {"restart": signal.SIGTERM, "kill": signal.SIGKILL}


def go(source, out):
    require("go")
    # one after the other, and after kubectl: builds beside each other compile the packages that they share once for each
    with locked(TARGET / "go"):
        kubectl.built()
        subprocess.run(["go", "build", "-o", str(out / "client"), "."], cwd=source, check=True)
    return [str(out / "client")]


def python(source, out):
    """Installs the packages of requirements.txt into a virtual environment."""
    requirements, installed = source / "requirements.txt", out / "requirements.txt"
    if not installed.exists() or installed.read_text() != requirements.read_text():
        pytest.importorskip("ensurepip")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(out / "venv")], check=True)
        subprocess.run([str(out / "venv/bin/pip"), "install", "--quiet", "--no-deps", "--requirement", str(requirements)], check=True)
        shutil.copy(requirements, installed)
    return [str(out / "venv/bin/python"), str(source / "main.py")]


def node(source, out):
    """Copies the program, and installs the modules of package-lock.json beside it."""
    require("node", "npm")
    installed = out / "node_modules" / ".package-lock.json"
    locked = source / "package-lock.json"
    up_to_date = installed.exists() and (out / locked.name).exists() and (out / locked.name).read_text() == locked.read_text()
    shutil.copytree(source, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    if not up_to_date:
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=out, check=True)
    return ["node", str(out / "main.js")]


def rust(source, _out):
    """Builds all crates, as tests/run has done already: the program shares those of Pintle."""
    subprocess.run([ROOT / "tests" / "cargo"], check=True)
    return [str(pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / source.name)]


def java(source, out):
    """Copies the dependencies of pom.xml, and compiles the program with javac, which needs no further plugins of Maven."""
    require("mvn", "javac")
    pom, installed, lib = source / "pom.xml", out / "pom.xml", out / "lib"
    if not installed.exists() or installed.read_text() != pom.read_text():
        shutil.rmtree(lib, ignore_errors=True)
        subprocess.run(
            ["mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", "dependency:copy-dependencies", f"-DoutputDirectory={lib}"], cwd=source, check=True
        )
        shutil.copy(pom, installed)
    sources = [str(file) for file in sorted(source.glob("src/*.java"))]
    options = os.environ.get("PINTLE_TESTS_JAVA", "").split()
    subprocess.run(["javac", *[f"-J{option}" for option in options], "-cp", f"{lib}/*", "-d", str(out / "classes"), *sources], check=True)
    return ["java", *options, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{out}/classes:{lib}/*", "Main"]


YAML = {"Content-Type": "application/yaml"}
# the functions that build the programs, of the source directory and the build directory; they return the command. The program
# that takes longest to build comes first
PROGRAMS = {"kube-rs": rust, "client-go": go, "controller-runtime": go, "python": python, "client-node": node, "fabric8": java}
# the same programs with other flags of the server and other environment variables
VARIANTS = {
    "client-go over CBOR": (
        "client-go",
        ["--feature-gates=CBORServingAndStorage=true"],
        {"KUBE_FEATURE_ClientsAllowCBOR": "true", "KUBE_FEATURE_ClientsPreferCBOR": "true"},
    )
}


def built(name):
    """Builds the program unless that is done. Returns its command. Several tests need the same program, and each may run in a
    process of its own."""
    out = TARGET / name
    with locked(out):
        out.mkdir(parents=True, exist_ok=True)
        return PROGRAMS[name](CLIENTS / name, out)


@pytest.mark.parametrize("name", [*PROGRAMS, *VARIANTS])
def test_client(name, launch, record_property):
    source, flags, environment = VARIANTS.get(name, (name, [], {}))
    lines, status = run(launch, built(source), flags, environment)
    passed = [line for line in lines if line.startswith("ok ")]
    failed = [line for line in lines if line.startswith("FAIL ")]
    output = "".join(lines[-400:])
    assert not failed, output
    assert status == 0 and passed, f"the program ended with {status} after {len(passed)} cases\n{output}"
    record_property("checks", len(passed))


def test_kube_rs_in_process():
    """The cases of kube-rs on a server in the process of the program, without a socket and without a kubeconfig."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
    variables = {**environment, "DEFINITION": str(CLIENTS / "boats.yaml")}
    done = subprocess.run(built("kube-rs"), env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines and all(line.startswith("ok ") for line in lines), done.stdout + done.stderr


def run(launch, command, flags, environment):
    """Runs a program, and restarts the server at its requests. Returns the lines of the program and its exit status."""
    home = tempfile.mkdtemp(prefix="pintle-client-")
    try:
        with launch(*flags, storage="embedded") as server:
            inherited = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
            variables = {"KUBECONFIG": server.kubeconfig, "DEFINITION": str(CLIENTS / "boats.yaml"), **environment}
            with subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                bufsize=1,
                errors="replace",
                env={**inherited, **variables},
                cwd=home,
            ) as program:
                watchdog = threading.Timer(SECONDS, program.kill)
                watchdog.start()
                lines = [line for line in program.stdout if not restart_on_request(line, server, program)]
                status = program.wait()
                watchdog.cancel()
        return lines, status
    finally:
        shutil.rmtree(home, ignore_errors=True)


def restart_on_request(line, server, program):
    """Restarts the server if the line requests it. Returns whether it does."""
    signal_number = SIGNALS.get(line.strip())
    if signal_number is None:
        return False
    server.restart(signal_number)
    program.stdin.write("started\n")
    program.stdin.flush()
    return True


def on_path(launch, directory):
    """Environment variables with which `pintle` is the binary under test."""
    (directory / "bin").mkdir()
    (directory / "bin" / "pintle").symlink_to(launch.binary)
    return {**os.environ, "PATH": f"{directory / 'bin'}:{os.environ['PATH']}"}


def test_documented_python(launch, tmp_path):
    """The examples of the pages on tests and on clients run as they are printed."""
    interpreter, environment = built("python")[0], on_path(launch, tmp_path)
    fixture = documentation.files(ROOT / "docs" / "src" / "guides" / "test-an-operator.md")["test_boats.py"]
    # a stand-in for pytest, which the environment of the client does not have
    (tmp_path / "pytest.py").write_text("import contextlib\nfixture = contextlib.contextmanager\n")
    (tmp_path / "test_boats.py").write_text(fixture + "\n\nwith api() as api:\n    test_namespaces(api)\n")
    subprocess.run([interpreter, tmp_path / "test_boats.py"], check=True, cwd=tmp_path, env=environment, timeout=60)
    (tmp_path / "watch.py").write_text(documentation.files(ROOT / "docs" / "src" / "reference" / "clients.md")["watch.py"])
    with launch(data_dir=tmp_path / ".pintle") as server:
        definition, crontab = ((ROOT / "examples" / name).read_bytes() for name in ("crontab.yaml", "my-crontab.yaml"))
        server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, headers=YAML)
        crontabs = "/apis/stable.example.com/v1/namespaces/default/crontabs"
        server.ok("POST", crontabs, crontab, headers=YAML)
        with subprocess.Popen([interpreter, tmp_path / "watch.py"], cwd=tmp_path, env=environment) as program:
            eventually(lambda: server.ok("GET", crontabs)["items"][0]["spec"]["replicas"] == 3)
            program.kill()


@pytest.mark.timeout(60)
def test_documented_setup_of_vitest(launch, tmp_path):
    """The server is ready after the setup, and gone after the teardown."""
    require("node")
    (tmp_path / "setup.mjs").write_text(documentation.files(ROOT / "docs" / "src" / "guides" / "test-an-operator.md")["setup.mjs"])
    (tmp_path / "main.mjs").write_text("""
import setup from "./setup.mjs";
import { existsSync } from "node:fs";
const teardown = await setup();
const before = existsSync(process.env.KUBECONFIG);
await teardown();
console.log(before, existsSync(process.env.KUBECONFIG));
""")
    done = subprocess.run(["node", tmp_path / "main.mjs"], capture_output=True, text=True, timeout=60, env=on_path(launch, tmp_path))
    assert (done.stdout, done.stderr, done.returncode) == ("true false\n", "", 0), done
