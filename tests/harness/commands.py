"""Commands of Pintle that end by themselves."""

import os
import subprocess
import tempfile


class Output(str):
    """What a command has written to stdout and then to stderr, both by themselves, and its exit status."""

    stdout, stderr, status = "", "", 0


def run(binary, *arguments, status=0, lines=1, timeout=60, env=None, **options):
    """Runs a command, which must exit with `status`. Returns its output. An error with status 1 has `lines` lines. None allows any
    status, or any number of lines."""
    command = [str(word) for word in (binary, *arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **(env or {})}, **options)
    assert status in (None, done.returncode), done
    assert status != 1 or lines in (None, len(done.stderr.splitlines())), done.stderr
    output = Output(done.stdout + done.stderr)
    output.stdout, output.stderr, output.status = done.stdout, done.stderr, done.returncode
    return output


def refused(launch, *flags, status=1, **options):
    """Runs `pintle serve`, in memory and on a free port unless flags say otherwise, which must not start. Returns the error."""
    with tempfile.TemporaryDirectory(prefix="pintle-test-") as directory:
        places = {"PINTLE_STORAGE": "memory", "PINTLE_SECURE_PORT": "0", "PINTLE_DATA_DIR": f"{directory}/data"}
        return run(launch.binary, "serve", *flags, status=status, env={**places, **options.pop("env", {})}, **options)
