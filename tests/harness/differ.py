#!/usr/bin/env python3
"""Sends the same random requests to kube-apiserver and Pintle, and groups the differences of their responses into classes.

  tests/harness/differ.py --binary target/release/pintle [--minutes N | --passes N] [--seed N] [--only PATTERN] [--report FILE]

The recorded scenarios and the real CRDs of modules.txt are performed on both servers at the same time. Before each request,
random mutations of it are sent to both as dry runs, so that the states of the servers stay the same. In every third scenario
one mutated write is sent without dryRun, and the scenario continues until a response differs. A difference that disappears
when the request is repeated is transient. The others are shrunk and grouped by class; known.toml lists the classes that are
accepted. Every pass starts new servers. kube-apiserver and etcd are built from tests/upstream and tests/etcd.
"""

import collections
import concurrent.futures
import contextlib
import copy
import json
import pathlib
import random
import re
import sys
import threading
import time
import traceback

import etcd
import manifests
import mutate
import shrink
import transcripts
from classes import KNOWN, Known, signature
from comparison import HERE, WORKERS, arguments, request
from pair import Pair
from pintle import TOKEN, Pintle
from steps import Server
from upstream import Upstream

# when a request with a difference is repeated, in seconds after the first one
REPEAT_AFTER = (0.3, 1.5, 4)
# the number of steps between two lines of progress
PROGRESS = 2000
# Pintle runs without the controllers of kube-controller-manager, as kube-apiserver does
CONTROLLERS = (
    "clusterrole-aggregation",
    "garbage-collector",
    "namespace",
    "validatingadmissionpolicy-status",
    "resourcequota",
    "storage-version-migrator",
    "serviceaccount-token",
)
FLAGS = ("--service-account-issuer", "https://kubernetes.default.svc", "--controllers=" + ",".join(f"-{name}-controller" for name in CONTROLLERS))
# no controller creates the ServiceAccounts that the admission plugin requires; Pintle allows privileged containers
REFERENCE_FLAGS = ("--disable-admission-plugins", "ServiceAccount", "--allow-privileged")
# scenarios whose steps depend on the state of the whole server
EXCLUDED = (*transcripts.ALONE, "control-namespace")


class Report:
    """The number of requests, and the classes of differences."""

    def __init__(self, known, path=None):
        self.known, self.path, self.lock = known, path, threading.Lock()
        self.steps, self.transient, self.base = collections.Counter(), collections.Counter(), collections.Counter()
        self.classes = {}

    def count(self, area, counter):
        with self.lock:
            counter[area] += 1
            if counter is self.steps and sum(counter.values()) % PROGRESS == 0:
                print(self.summary(), flush=True)
                self.write()

    def is_new(self, text):
        with self.lock:
            return text not in self.classes

    def add(self, area, text, request, case):
        """Counts a difference; `case` returns an example, and is called for the first difference of a class."""
        entry = self.known.find(text, request)
        new = self.is_new(text)
        example = case() if new and entry is None else None
        with self.lock:
            found = self.classes.setdefault(
                text, {"count": 0, "areas": collections.Counter(), "known": entry and entry["kind"], "request": request, "example": example}
            )
            found["count"] += 1
            found["areas"][area] += 1
            if new and entry is None:
                print(f"NEW {text}\n    {json.dumps((example or {}).get('step'), ensure_ascii=False)[:600]}", flush=True)

    def total(self, kind):
        return sum(found["count"] for found in self.classes.values() if found["known"] == kind)

    def summary(self):
        steps, unlisted = sum(self.steps.values()), self.total(None)
        return (
            f"{steps} mutated steps, {self.total('chance')} differ by chance, {self.total('listed')} as listed, "
            f"{sum(self.transient.values())} transiently, {unlisted} otherwise ({unlisted * 10000 / max(steps, 1):.1f} in 10,000)"
        )

    def text(self):
        lines = [self.summary()]
        lines += [f"  {area}: {count} steps" for area, count in sorted(self.steps.items())]
        every = sorted(self.classes.items(), key=lambda item: -item[1]["count"])
        lines += [f"{found['count']:6} {found['known'] or 'UNLISTED'} {text}" for text, found in every]
        return "\n".join(lines)

    def write(self):
        if self.path:
            value = {"steps": self.steps, "transient": self.transient, "classes": self.classes}
            self.path.write_text(json.dumps(value, indent=1, ensure_ascii=False))


class Run:
    """A scenario that is performed on both servers."""

    def __init__(self, scenario, servers, report, chance, variants, end):
        self.scenario, self.report, self.chance = scenario, report, chance
        self.variants, self.end = variants, end
        self.area = scenario["name"].split("-")[0]
        self.pair = Pair(servers, scenario)

    def perform(self):
        writes = [step["id"] for step in self.scenario["steps"] if step.get("method") in mutate.WRITES]
        mutated_id = self.chance.choice(writes) if writes and self.chance.random() < 1 / 3 else None
        with contextlib.closing(self.pair):
            for step in self.scenario["steps"]:
                if time.time() > self.end:
                    return
                if "method" in step and "until" not in step:
                    self.vary(step)
                if mutated_id and step.get("id") == mutated_id:
                    step = self.mutated_write(step)
                if not self.advance(step, mutated_id):
                    return
                if "until" in step:
                    self.vary(step)

    def vary(self, step):
        """Sends random mutations of a request as dry runs."""
        step = {name: value for name, value in step.items() if name not in ("answer", "until", "save", "expand")}
        for _ in range(self.variants):
            self.compare(step, mutate.dry(mutate.mutated(step, self.chance)))

    def compare(self, base, step):
        a, b = self.pair.send(step)
        self.report.count(self.area, self.report.steps)
        if "error" in a and "error" in b or not signature(a, b):
            return
        start = time.time()
        for pause in REPEAT_AFTER:
            time.sleep(max(0, start + pause - time.time()))
            a, b = self.pair.send(step)
            text = signature(a, b)
            if not text:
                self.report.count(self.area, self.report.transient)
                return
        self.report.add(self.area, text, request(step), lambda: self.case(base, step, text))

    def case(self, base, step, text):
        """The smallest request with this difference, and both responses."""

        def is_same(smaller):
            return signature(*self.pair.send(smaller)) == text

        small = shrink.shrunk(step, base, is_same)
        a, b = self.pair.send(small)
        return {"scenario": self.scenario["name"], "before": base.get("id"), "step": small, "kube-apiserver": a, "pintle": b}

    def mutated_write(self, step):
        """A mutation of a write, without dryRun."""
        kept = {name: step[name] for name in ("save", "until") if name in step}
        return {**mutate.mutated(step, self.chance), **kept}

    def advance(self, step, mutated_id):
        """Performs a step of the scenario. Returns False once the two servers may have different states."""
        step = {name: value for name, value in step.items() if name not in ("answer", "expand")}
        a, b = self.pair.perform(step)
        if mutated_id and a is not None:
            self.report.count(self.area, self.report.steps)
        text = signature(a, b)
        if not text:
            return True
        if "until" in step:
            # one of the servers did not meet the condition in time
            self.report.count(self.area, self.report.transient)
            return False
        if mutated_id and "collect" not in step:
            self.report.add(
                self.area,
                text,
                request(step),
                lambda: {"scenario": self.scenario["name"], "changed": mutated_id, "step": step, "kube-apiserver": a, "pintle": b},
            )
            return False
        self.report.count(self.area, self.report.base)
        return is_failure(a) and is_failure(b)


def is_failure(response):
    return isinstance(response, dict) and response.get("status", 0) >= 400


def sources(only):
    """The scenarios of all areas."""
    found = [json.loads(path.read_text()) for path in transcripts.scenarios() if path.stem not in EXCLUDED]
    modules = [line for line in (HERE / "modules.txt").read_text().split("\n") if line]
    found += manifests.scenarios(modules)
    return [scenario for scenario in found if re.search(only, scenario["name"])]


def one_pass(args, scenarios, report, seed, end):
    chance = random.Random(seed)
    scenarios = copy.deepcopy(scenarios)
    chance.shuffle(scenarios)
    emulation = (f"--emulated-version={args.release}",) if args.release else ()
    with etcd.Etcd() as store, Upstream(store, *REFERENCE_FLAGS, release=args.release) as reference, Pintle(args.binary, *FLAGS, *emulation) as pintle:
        servers = [Server(server.url, TOKEN) for server in (reference, pintle)]
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:

            def perform(scenario, seed):
                if time.time() < end:
                    Run(scenario, servers, report, random.Random(seed), args.variants, end).perform()

            jobs = [pool.submit(perform, scenario, chance.random()) for scenario in scenarios]
            for job, scenario in zip(jobs, scenarios):
                try:
                    job.result()
                except Exception as error:
                    print(f"!! {scenario['name']}: {''.join(traceback.format_exception(error))}", flush=True)


def main():
    args = arguments(
        __doc__,
        binary={"required": True, "help": "the pintle to compare"},
        minutes={"type": float, "default": 1e6, "help": "the time after which no more requests are sent"},
        passes={"type": int, "default": 1, "help": "how often all scenarios are performed"},
        variants={"type": int, "default": 2, "help": "random mutations of each step"},
        seed={"type": int, "default": 1, "help": "seed of the first pass"},
        only={"default": "", "help": "pattern of the names of scenarios"},
        release={"help": "an earlier release to compare, such as 1.36: Pintle emulates it"},
        report={"type": pathlib.Path, "help": "file for all classes with their cases, JSON"},
    ).parse_args()
    report, end = Report(Known(KNOWN), args.report), time.time() + 60 * args.minutes
    scenarios = sources(args.only)
    # the readers of watches end when their connections are closed
    threading.excepthook = lambda _: None
    for number in range(args.passes):
        if time.time() >= end:
            break
        one_pass(args, scenarios, report, args.seed + number, end)
        print(report.text(), flush=True)
        report.write()
    sys.exit(report.total(None) > 0)


if __name__ == "__main__":
    main()
