"""The commands in the documentation, and a shell that executes them.

A fenced `console` block is executed if the line before it is `<!-- run -->`. Lines that begin with `$ ` are commands; a command
continues on the next line after a backslash, and up to a line EOF after `<<EOF`. All other lines are the expected output of the
command above them. After `<!-- run: serve -->` the block starts a server in the background, on any free port. A block after
`<!-- file: NAME -->` is the content of a file.
"""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ROOT / "tests" / "commands"
BLOCK = re.compile(r"^<!-- run(: serve)? -->\n+```console\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"^<!-- file: (\S+) -->\n+```\w+\n(.*?)^```$", re.M | re.S)
# blocks of commands, executed or not, and the program's commands in them
PRINTED = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.M | re.S)
# what differs between two runs: ports, times, ages in tables
VARYING = [
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\b\d+ ms\b"), "N ms"),
    (re.compile(r"(?<= )((\d+[smh])+|<invalid>)$", re.M), "AGE"),
    (re.compile(r" +$", re.M), ""),
    (re.compile(r"  +"), "  "),
]
SECONDS = 60


@dataclass
class Command:
    """A documented command and its documented output."""

    text: str
    output: list = field(default_factory=list)
    serves: bool = False


def commands(page):
    """The commands of a page, in order."""
    return [command for serves, block in BLOCK.findall(page.read_text()) for command in commands_of(block, bool(serves))]


def commands_of(block, serves=False):
    """The commands of a block; lines before the first one are comments."""
    found, continued, within = [], False, False
    for line in block.splitlines():
        if continued or within:
            found[-1].text += "\n" + line
        elif line.startswith("$ "):
            found.append(Command(line[2:], serves=serves))
        elif found:
            found[-1].output.append(line)
        continued, within = line.endswith("\\"), ("<<EOF" in line or within) and line != "EOF"
    return found


def cases(path):
    """The cases of a file by their headings: what stands before the first one is run before each. `...` in an output stands for any
    text, and `[1]` for an exit status."""
    first, *parts = re.split(r"^## (\w+)\n", path.read_text(), flags=re.M)
    return {name: [*commands_of(first), *commands_of(text)] for name, text in zip(parts[::2], parts[1::2])}


def command_tests(name):
    """A test for each case of a file in tests/commands."""
    found = cases(COMMANDS / f"{name}.txt")

    @pytest.mark.parametrize("case", found)
    def test_commands(launch, kubectl_binary, case):
        with Shell(launch.binary, kubectl_binary) as shell:
            shell.check(found[case])

    return test_commands


def files(page):
    """The files that a page shows, by name."""
    return dict(FILE.findall(page.read_text()))


def printed(text):
    """The commands of `pintle` in a text, as words, whether they are executed or not."""
    found = []
    for block in PRINTED.findall(text):
        for line in re.sub(r"\\\n", " ", block).splitlines():
            command = re.match(r"(?:\$ )?(?:docker exec pintle /|kubectl exec pintle-0 -- /)?(pintle (?!is ready).*)", line)
            if command:
                words = shlex.split(re.sub(r"\$\([^)]*\)", "x", command[1]), comments=True)
                stop = [i for i, word in enumerate(words) if word in ("|", ">", "2>", "2>&1", "--", "&") or word.startswith(">")]
                found.append(words[: min(stop, default=len(words))])
    return found


def comparable(text):
    """The text with placeholders for ports, times and ages, which differ between two runs."""
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    return text.strip()


class Shell:
    """`with Shell(binary, kubectl) as shell:` is bash in a new directory that has `pintle`, `kubectl`, the examples and the tests."""

    def __init__(self, binary, kubectl="/bin/false", port=0):
        self.directory = tempfile.TemporaryDirectory(prefix="pintle-docs-")
        self.home = pathlib.Path(self.directory.name)
        programs = self.home / "bin"
        programs.mkdir()
        for name, target in (("pintle", binary), ("kubectl", kubectl)):
            (programs / name).symlink_to(pathlib.Path(target).resolve())
        work = self.home / "work"
        work.mkdir()
        for name in ("examples", "tests"):
            (work / name).symlink_to(ROOT / name)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("KUBE", "PINTLE"))}
        environment |= {"PATH": f"{programs}:{environment['PATH']}", "HOME": str(self.home), "PINTLE_SECURE_PORT": str(port), "LC_ALL": "C.UTF-8"}
        self.bash = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=work, env=environment, start_new_session=True
        )
        self.watchdog = None

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if failure is None:
            # servers write to the directory until they have ended
            self.execute("kill $(jobs -p) 2> /dev/null; wait")
        # what the commands have started belongs to bash's group of processes
        os.killpg(self.bash.pid, signal.SIGTERM)
        self.bash.stdin.close()
        self.bash.stdout.read()
        self.bash.wait(timeout=SECONDS)
        self.directory.cleanup()

    def run(self, command):
        """Runs one command. Returns its output and its exit status; a server is left running once it is ready."""
        if command.serves:
            return self.serve(command.text)
        return self.execute(command.text)

    def check(self, commands, shown=str):
        """Runs the commands of a case, and compares what they print; `shown` changes an output before."""
        for command in commands:
            output, status = self.run(command)
            got = comparable(shown(output).rstrip("\n") + (f"\n[{status}]" if status else ""))
            want = comparable("\n".join(command.output))
            assert re.fullmatch(re.escape(want).replace(r"\.\.\.", "(?s:.*)"), got), f"$ {command.text}\n{got}\nexpected:\n{want}"

    def execute(self, text):
        self.bash.stdin.write(f"{text}\nprintf '\\n%s %d\\n' @end@ $?\n")
        self.bash.stdin.flush()
        output = ""
        for line in self.bash.stdout:
            if line.startswith("@end@ "):
                return output.removesuffix("\n"), int(line.split()[1])
            output += line
        raise AssertionError(f"the shell has ended: {output}")

    def serve(self, text):
        text = text.replace("cargo run --release --", "pintle")
        text = re.sub(r"--secure-port \d+", "--secure-port 0", text)
        # the line of an earlier server must not be found
        (self.home / "ready").unlink(missing_ok=True)
        ready = shlex.quote(str(self.home / "ready"))
        self.execute(f"{text} > {ready} 2>&1 &")
        end = time.monotonic() + SECONDS
        while "is ready" not in (output := (self.home / "ready").read_text() if (self.home / "ready").exists() else ""):
            assert time.monotonic() < end, output
            time.sleep(0.02)
        return output, 0
