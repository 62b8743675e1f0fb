#!/usr/bin/env python3
"""Records scenarios from kube-apiserver, replays them on Pintle, and prints the steps that differ.

  tests/record [--release 1.36] [--no-record] FILE.json...

Write a scenario without answers (the format is in docs/src/reference/recordings.md) and name it here. The first run builds etcd
and kube-apiserver below target, which takes some minutes; later ones take seconds. Each file gets the recorded answers. The exit
status is 1 if Pintle's responses differ.
"""

import argparse
import pathlib
import sys

import player
import transcripts
from etcd import Etcd
from pintle import Pintle
from programs import ROOT
from upstream import Upstream


def play(binary, files, server, options, what):
    """Records or replays the files. Returns the number of steps that differ."""
    outcomes = player.play(binary, server.url, files, options)
    for outcome in outcomes:
        print(f"{outcome['file']}: {outcome['steps']} steps {what}, {len(outcome['different'])} differ")
        print(player.text(outcome["file"], outcome["different"]), end="")
    return sum(len(outcome["different"]) for outcome in outcomes)


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
            play(args.binary, args.files, server, ["--record"], "recorded")
    emulation = (f"--emulated-version={args.release}",) if args.release else ()
    with Pintle(str(args.binary), "--controllers=*,-namespace-controller", *emulation) as server:
        transcripts.wait_until_settled(server)
        return 1 if play(args.binary, args.files, server, player.EXACT, "replayed") else 0


if __name__ == "__main__":
    sys.exit(main())
