#!/usr/bin/env python3
"""Prints a Python command that has the packages of tests/requirements.txt, and of further files that are named, after installing
them below target if they are not there.

A virtual environment needs the module ensurepip, which some distributions package separately. Without it, pip installs the
packages into a directory. Without pip as well, the script prints what to install and fails.
"""

import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
REQUIREMENTS = [ROOT / "tests" / "requirements.txt", *(pathlib.Path(file).resolve() for file in sys.argv[1:])]
MISSING = """\
The tests need pytest, and this Python can neither make a virtual environment nor run pip.
Install one of them, for example: apt-get install python3-venv"""


def location():
    """The directory of the environment; its name depends on the requirements and the version of Python."""
    key = hashlib.sha256(b"".join(file.read_bytes() for file in REQUIREMENTS) + sys.version.encode()).hexdigest()[:12]
    return ROOT / "target" / "python" / key


def install(directory):
    """Installs the requirements into `directory`, which is created only when the installation is complete."""
    unfinished = directory.with_suffix(f".{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    options = ["install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    options += [f"--requirement={file}" for file in REQUIREMENTS]
    if importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv"):
        subprocess.run([sys.executable, "-m", "venv", str(unfinished)], check=True)
        subprocess.run([str(unfinished / "bin" / "python"), "-m", "pip", *options], check=True)
    elif importlib.util.find_spec("pip"):
        subprocess.run([sys.executable, "-m", "pip", *options, "--target", str(unfinished / "packages")], check=True)
    else:
        sys.exit(MISSING)
    unfinished.rename(directory)


def command():
    """The command as a list: the interpreter of the virtual environment, or the current one with PYTHONPATH."""
    directory = location()
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        install(directory)
    interpreter = directory / "bin" / "python"
    if interpreter.exists():
        return [str(interpreter)]
    return ["env", f"PYTHONPATH={directory / 'packages'}", sys.executable]


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        sys.exit("The tests need Python 3.11 or newer.")
    print(" ".join(command()))
