"""The client libraries against pintle: one program per library in tests/clients, each with a server of its own.

A program finds the server by KUBECONFIG and the definition that all share by DEFINITION. It prints a line for each case,
"ok NAME" or "FAIL NAME: why", and "restart" or "kill" where the server shall end, politely or not, and start again; it is
told "started" when that is done. Whatever else it prints is shown when a case fails.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from pintle import Pintle
from report import Skipped, require

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "tests" / "clients"
TARGET = ROOT / "target" / "clients"
SECONDS = 300
TOGETHER = 2
ASKED = {"restart": signal.SIGTERM, "kill": signal.SIGKILL}


def go(source, out):
    require("go")
    subprocess.run(["go", "build", "-o", str(out / "client"), "."], cwd=source, check=True)
    return [str(out / "client")]


def python(source, out):
    """A virtual environment with exactly what requirements.txt names."""
    wanted, have = source / "requirements.txt", out / "requirements.txt"
    if not have.exists() or have.read_text() != wanted.read_text():
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


# how a program is made: a function of its directory and one for what is built, which answers the command;
# that which takes longest to build comes first
PROGRAMS = {"kube-rs": rust, "client-go": go, "controller-runtime": go, "python": python, "client-node": node,
            "fabric8": java}
# the same programs once more, with another server and other words in their environment
AGAIN = {"client-go over CBOR": ("client-go", ["--feature-gates=CBORServingAndStorage=true"],
                                 {"KUBE_FEATURE_ClientsAllowCBOR": "true", "KUBE_FEATURE_ClientsPreferCBOR": "true"})}


def run(args, report):
    wanted = [name for name in [*PROGRAMS, *AGAIN] if args.filter in name]
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        for name, outcome in zip(wanted, pool.map(lambda name: attempt(args.binary, name), wanted)):
            if isinstance(outcome, Skipped):
                report.skip(name, outcome)
            else:
                count(name, outcome, report)


def attempt(binary, name):
    """Builds and runs a program. Returns its lines, its exit status and the time it took, or `Skipped`."""
    source, flags, words = AGAIN.get(name, (name, [], {}))
    out, began = TARGET / source, time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    try:
        command = PROGRAMS[source](CLIENTS / source, out)
    except Skipped as reason:
        return reason
    except (subprocess.CalledProcessError, OSError) as error:
        return [f"it was not built: {error}"], 1, "no time"
    built = time.monotonic()
    lines, status = converse(binary, command, flags, words)
    return lines, status, f"{built - began:.0f} s to build, {time.monotonic() - built:.0f} s to run"


def converse(binary, command, flags, words):
    home = tempfile.mkdtemp(prefix="pintle-client-")
    try:
        with Pintle(binary, *flags, storage="embedded") as server:
            kept = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
            told = {"KUBECONFIG": server.kubeconfig, "DEFINITION": str(CLIENTS / "boats.yaml"), **words}
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, bufsize=1, errors="replace", env={**kept, **told}, cwd=home) as program:
                watchdog = threading.Timer(SECONDS, program.kill)
                watchdog.start()
                lines = [line for line in program.stdout if not serve(line, server, program)]
                status = program.wait()
                watchdog.cancel()
        return lines, status
    finally:
        shutil.rmtree(home, ignore_errors=True)


def serve(line, server, program):
    """Does what a line asks for; answers whether it asked."""
    how = ASKED.get(line.strip())
    if how is None:
        return False
    server.restart(how)
    program.stdin.write("started\n")
    program.stdin.flush()
    return True


def count(name, outcome, report):
    lines, status, took = outcome
    passed = [line for line in lines if line.startswith("ok ")]
    failed = [found.group(1).strip() for found in (re.match("FAIL ([^:]*)", line) for line in lines) if found]
    if not failed and (status != 0 or not passed):
        last = passed[-1].strip() if passed else "none"
        failed = [f"the program ended with {status} after {len(passed)} cases, the last of them: {last}"]
    if failed:
        print("".join(lines[-400:]))
    print(f"{name}: {len(passed)} passed, {len(failed)} failed; {took}", flush=True)
    report.count(len(passed), [f"{name} {case}" for case in failed])
