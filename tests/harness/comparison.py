"""What the testers share that send the same requests to two servers: their tables, arguments, counts and report."""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import pathlib
import sys
import time
import traceback

import yaml

from classes import KNOWN, Known, signature
from pair import Pair
from steps import Server

HERE = pathlib.Path(__file__).resolve().parent
WORKERS = 4
# how often a request with a difference is repeated, since kube-apiserver's order of maps is random
REPEATED = 4
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
OPERATIONS = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
DRY = "dryRun=All"


class Tables(yaml.CSafeLoader):
    """YAML, in which `!long 64` is a text of 64 letters."""


Tables.add_constructor("!long", lambda loader, node: "a" * int(node.value))


def tables(name):
    """The tables of a YAML file beside the testers."""
    return yaml.load((HERE / f"{name}.yaml").read_text(), Tables)


def step(method, path, body=None, headers=None, query=(), **more):
    """A request. Without a content type, the body is JSON, or a merge patch."""
    query = "&".join(filter(None, query))
    made = {"id": "", "method": method, "path": path + ("?" + query if query else ""), **({"headers": headers} if headers else {}), **more}
    return made if body is None else {**made, "body": body}


def request(step):
    """A request in one line, for the patterns of known differences."""
    parts = (step.get("method", ""), step.get("path", ""), json.dumps(step.get("headers", {})), step.get("text") or json.dumps(step.get("body")))
    return " ".join(parts)[:4000]


def arguments(about, **options):
    """A parser of the command line, which prints the documentation of a tester."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, how in options.items():
        parser.add_argument("--" + name, **how)
    return parser


class Comparison:
    """A run of a tester: two servers, of which --reference is kube-apiserver, and what differs. `seconds` is how long it takes if the
    command line does not say."""

    def __init__(self, about, seconds, **options):
        needed = dict.fromkeys(("reference", "server", "token"), {"required": True})
        common = {"seed": {"type": int, "default": 1}, "seconds": {"type": float, "default": seconds}, "report": {}}
        self.args = arguments(about, **needed, **common, **options).parse_args()
        self.servers = [Server(url, self.args.token) for url in (self.args.reference, self.args.server)]
        self.end, self.known = time.time() + self.args.seconds, Known(KNOWN)
        self.counts, self.found = collections.Counter(asked=0), []

    def is_over(self):
        return time.time() > self.end

    @contextlib.contextmanager
    def pair(self):
        with contextlib.closing(Pair(self.servers, {"steps": []})) as pair:
            yield pair

    def status(self, pair, step, **about):
        """Sends a request to both servers. Returns the status, or None if they have different objects from there on."""
        reference, got = pair.send(step)
        self.counts["asked"] += 1
        if reference == got:
            return reference.get("status")
        changes = "dryRun" not in step["path"] and min(reference.get("status", 0), got.get("status", 0)) < 300
        text = signature(reference, got)
        if "error" in reference or not changes and is_chance(pair, step, reference):
            # kube-apiserver has panicked, or its order of maps was another
            self.counts["by chance"] += 1
        elif self.known.find(text, request(step)):
            self.counts["as listed"] += 1
        else:
            self.add(**about, signature=text, want=reference, got=got, step=step)
        return None if changes else reference.get("status")

    def add(self, **difference):
        self.found.append(difference)

    def run(self, ask, cases):
        """Calls `ask` with the cases of round after round, until there are none or the time is over. Exits with the verdict."""
        number = 0
        while not self.is_over() and (waiting := list(cases(number))):
            with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
                list(pool.map(lambda case: self.guarded(ask, case), waiting))
            number += 1
            if self.args.report:
                pathlib.Path(self.args.report).write_text(json.dumps(self.found), encoding="utf-8")
            print(", ".join(f"{count} {what}" for what, count in self.counts.items()) + f", {len(self.found)} differ otherwise", flush=True)
        sys.exit(bool(self.found) or self.counts["failed"] > 0)

    def guarded(self, ask, case):
        try:
            if not self.is_over():
                ask(case)
        except Exception as error:
            self.counts["failed"] += 1
            print(f"!! {str(case)[:100]}: {''.join(traceback.format_exception(error))}", flush=True)


def is_chance(pair, step, reference):
    """Whether kube-apiserver itself responds differently when a request is repeated, or Pintle does not."""
    return any(again != reference or again == ours for again, ours in (pair.send(step) for _ in range(REPEATED)))
