#!/usr/bin/env python3
"""Records scenarios from kube-apiserver, replays them on Pintle, and prints the steps that differ.

  tests/record [--release 1.36] [--no-record] FILE.json...

Write a scenario without answers (the format is at the top of tests/harness/replay.py) and name it here. The first run builds etcd
and kube-apiserver below target, which takes some minutes; later ones take seconds. Each file gets the recorded answers. The exit
status is 1 if Pintle's responses differ.
"""

import argparse
import pathlib
import sys

import replay
import transcripts
from etcd import Etcd
from pintle import TOKEN, Pintle
from programs import ROOT
from upstream import Upstream


def run(files, server, record):
    """Records or replays the files. Returns the number of steps that failed."""
    failed = 0
    for file in files:
        outcome = replay.run(file, replay.Server(server.url, TOKEN), record=record, fast=not record)
        failed += len(outcome.failures)
        print(f"{file}: {outcome.steps} steps {'recorded' if record else 'replayed'}, {len(outcome.failures)} {'failed' if record else 'differ'}")
        if outcome.failures:
            print(outcome.text())
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target" / "debug" / "pintle", help="the pintle to replay on")
    parser.add_argument("--release", help="an earlier release, such as 1.36, which Pintle then emulates")
    parser.add_argument("--no-record", action="store_true", help="only replay")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    if not args.binary.exists():
        parser.error(f"{args.binary} does not exist: cargo build")
    if not args.no_record:
        with Etcd() as store, Upstream(store, release=args.release) as server:
            if run(args.files, server, record=True):
                return 1
    emulation = (f"--emulated-version={args.release}",) if args.release else ()
    with Pintle(str(args.binary), "--controllers=*,-namespace-controller", *emulation) as server:
        transcripts.wait_until_settled(server)
        return 1 if run(args.files, server, record=False) else 0


if __name__ == "__main__":
    sys.exit(main())
