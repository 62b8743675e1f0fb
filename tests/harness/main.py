#!/usr/bin/env python3
"""Runs sections of the black-box tests. It exists for older scripts; use `tests/run` or pytest instead.

main.py --binary target/release/pintle [--only SECTION] [--filter TEXT] [--slow]
"""

import argparse
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]

# sections that have been split or renamed
MARKERS = {"cli": "cli or bad_input or store or cel or http or connections or startup or stop", "generations": "legacy or migration or crds or examples"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the pintle binary")
    parser.add_argument("--only", help="run one section")
    parser.add_argument("--filter", default="", help="run only tests whose name contains this")
    parser.add_argument("--slow", action="store_true", help="also the tests that take minutes to hours")
    args = parser.parse_args()
    binary = pathlib.Path(args.binary).resolve()
    selected = f"({MARKERS.get(args.only, args.only)}) and " if args.only else ""
    interpreter = subprocess.run([sys.executable, str(TESTS / "environment.py")], check=True, capture_output=True, text=True).stdout.split()
    status = 0
    for serial, workers in (("not serial", "4"), ("serial", "0")):
        command = [
            *interpreter,
            "-m",
            "pytest",
            "blackbox",
            "--binary",
            str(binary),
            "--numprocesses",
            workers,
            "--quiet",
            "-m",
            selected + serial,
            *(["-k", args.filter] if args.filter else []),
            *(["--slow"] if args.slow else []),
        ]
        status = max(status, {5: 0}.get(code := subprocess.run(command, cwd=TESTS).returncode, code))
    return status


if __name__ == "__main__":
    sys.exit(main())
