"""Builds kubectl and runs it against a server, with a home directory of its own."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading

from documentation import Shell, cases
from programs import go_build

HERE = pathlib.Path(__file__).resolve().parent
MANIFESTS = HERE / "manifests"
CACHE = HERE.parent.parent / "target" / "kubectl"
SECONDS = 60
AGE = re.compile(r"(\d+[smhd])+|<invalid>")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def built():
    """Builds kubectl in the version that build/go.mod names. Returns the path of the binary."""
    minor, patch = re.search(r"k8s\.io/kubectl v0\.(\d+)\.(\d+)", (HERE / "build" / "go.mod").read_text()).groups()
    version = f"v1.{minor}.{patch}"
    stamp = {"gitVersion": version, "gitMajor": "1", "gitMinor": minor, "gitTreeState": "clean"}
    flags = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in stamp.items())
    return go_build(HERE / "build", CACHE / version / "kubectl", flags)


class Out(str):
    """The stdout of kubectl; `errors` is its stderr."""

    errors = ""


class Kubectl:
    """`kubectl("get", "boats")` runs the command in the case's namespace and returns its output."""

    def __init__(self, binary, server, namespace):
        self.binary, self.server, self.namespace = binary, server, namespace
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pintle-kubectl-"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.home, ignore_errors=True)

    def environment(self, more):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("KUBE", "HOME"))}
        return {**kept, "HOME": str(self.home), "KUBECONFIG": self.server.kubeconfig, "LC_ALL": "C", **(more or {})}

    def __call__(self, *arguments, code=0, input=None, env=None):
        command = [self.binary, *map(str, arguments)]
        if not {"-A", "--raw", "config"} & set(arguments):
            command[1:1] = ["-n", self.namespace]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                input=input,
                env=self.environment(env),
                cwd=self.home,
                stdin=None if input else subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"`kubectl {' '.join(arguments)}` hung; output {error.stdout} errors {error.stderr}") from None
        message = f"\n  $ kubectl {' '.join(map(str, arguments))}\n  exit {done.returncode}, expected {code}\n"
        message += f"  output: {done.stdout}\n  errors: {done.stderr}"
        assert done.returncode == code, message
        out = Out(COLOUR.sub("", done.stdout))
        out.errors = done.stderr
        return out

    def json(self, *arguments, **options):
        return json.loads(self(*arguments, "-o", "json", **options))

    def file(self, name, text):
        """Writes a file to the home directory, and returns its path."""
        path = self.home / name
        path.write_text(text)
        return path

    def editor(self, *lines):
        """The environment variables of an editor that is a shell script of these lines; `$1` is the edited file."""
        script = self.file("editor.sh", "\n".join(["#!/bin/sh", *lines]) + "\n")
        script.chmod(0o755)
        return {"EDITOR": str(script), "KUBE_EDITOR": str(script)}

    def lines(self, *arguments):
        return Lines([self.binary, "-n", self.namespace, *arguments], self.environment(None), self.home)


class Lines:
    """A command that runs in the background, such as a watch, and whose lines are read one by one."""

    def __init__(self, command, environment, directory):
        self.command, self.seen = " ".join(command[3:]), []
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=directory, stdin=subprocess.DEVNULL
        )
        self.changed, self.ended = threading.Condition(), False
        self.thread = threading.Thread(target=self.pump, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()

    def pump(self):
        for line in self.process.stdout:
            with self.changed:
                self.seen.append(line.rstrip())
                self.changed.notify()
        with self.changed:
            self.ended = True
            self.changed.notify()

    def expect(self, number):
        """Waits until there are `number` lines, and returns all lines."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.seen) >= number or self.ended, timeout=SECONDS)
            assert len(self.seen) >= number, f"`kubectl {self.command}` wrote only {self.seen}"
            return list(self.seen)

    def until(self, part):
        """Waits for a line that contains `part`."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended or any(part in line for line in self.seen), timeout=SECONDS)
            assert any(part in line for line in self.seen), f"`kubectl {self.command}` wrote no {part!r} but {self.seen}"


def table(text):
    """A printed table as rows of cells, with AGE in place of ages."""
    return [["AGE" if AGE.fullmatch(cell) else cell for cell in re.split(r"\s{2,}", line.strip())] for line in text.splitlines() if line.strip()]


def same(got, want):
    assert got == want, f"\n  got  {got!r}\n  want {want!r}"


def has(text, *parts):
    """Checks that the text contains all parts, with any amount of whitespace between words."""
    flat = " ".join(text.split())
    for part in parts:
        assert " ".join(part.split()) in flat, f"\n  missing {part!r}\n  in {text}"


def console(name):
    """The cases of a file in `cases`."""
    return cases(HERE / "cases" / f"{name}.txt")


def check_console(pintle, kubectl, server, namespace, commands, manifests=MANIFESTS, without="(?!)"):
    """Runs the commands of a case in a namespace, and compares what they print. Lines that match `without` do not count."""

    def shown(output):
        return "\n".join(line for line in output.replace(namespace, "NAMESPACE").splitlines() if not re.match(without, line))

    with Shell(pintle, kubectl) as shell:
        shell.execute(f"cp {manifests}/*.yaml . && cp {server.kubeconfig} kubeconfig && . {HERE}/functions.sh")
        shell.execute(f"export KUBECONFIG=$PWD/kubeconfig NAMESPACE={namespace}; kubectl config set-context --current --namespace={namespace}")
        shell.check(commands, shown)
