"""Replays the recorded transcripts; a difference is a failure unless exceptions.toml lists it with its reason."""
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tomllib

from pintle import TOKEN, Pintle

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPLAY = ROOT / "tests" / "harness" / "replay.py"
# scenarios for corner cases, recorded with the module in tests/upstream
OWN = ROOT / "tests" / "transcripts"
# scenarios for every area, recorded from kube-apiserver of this release
RECORDED = OWN / "recorded" / "1.35"
EXCEPTIONS = OWN / "exceptions.toml"
# scenarios that look at the newest version of the whole server, which no other may move, at a namespace in passing, or at
# what would be a definition of definitions
ALONE = ("control-namespace", "crd-hello", "definition-overlaps", "definition-reads", "read-pages", "read-versions")


def exceptions():
    listed = tomllib.loads(EXCEPTIONS.read_text()).get("exception", [])
    for entry in listed:
        assert entry["reason"], entry
    return {(entry["scenario"], entry["step"]) for entry in listed}


def replay(server, path):
    command = [sys.executable, str(REPLAY), "--server", server.url, "--token", TOKEN, "--fast", str(path)]
    done = subprocess.run(command, capture_output=True, timeout=300)
    text = done.stdout.decode(errors="replace")
    total = re.search(r": (\d+) of (\d+) steps", text)
    failed = re.findall(r"^--- ([\w-]+): ([^:\n]*):", text, re.M)
    return path.stem, int(total.group(2)) if total else 0, failed, text + done.stderr.decode(errors="replace")


def run(args, report):
    with Pintle(args.binary) as server:
        replay_all(args, report, server, args.filter)


def replay_all(args, report, server, wanted):
    paths = [p for p in sorted(RECORDED.glob("*.json")) + sorted(OWN.glob("*.json")) if wanted in p.stem]
    assert paths or args.filter, "there are no transcripts"
    known = exceptions()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        together = [p for p in paths if p.stem not in ALONE]
        results = list(pool.map(lambda path: replay(server, path), together))
        results += [replay(server, path) for path in paths if path.stem in ALONE]
    for name, total, failed, text in results:
        unexpected = [step for scenario, step in failed if (name, step) not in known]
        if total == 0:
            unexpected = ["the replay did not finish"]
        if unexpected:
            print(text[:4000])
        report.count(total - len(unexpected), [f"{name}: {step}" for step in unexpected])
    print(f"{sum(r[1] for r in results)} steps of {len(results)} scenarios, {len(known)} listed exceptions")
