#!/usr/bin/env python3
"""Prints the outcome and the seconds of each section of a run, and the tests that were skipped, from the directory of its results.

Usage: summary.py DIRECTORY SECONDS, where SECONDS is how long the whole run took. Writes the seconds of the sections to times.json
in the directory. The exit status is 1 if a section failed.
"""

import collections
import json
import pathlib
import sys
from xml.etree import ElementTree

# the seconds of a quiet run on two cores
RECORDED = pathlib.Path(__file__).with_name("times.json")
# A section is marked as slow when it takes this many times the recorded seconds, and some seconds more, since short ones vary.
SLOWER, SECONDS_MORE = 1.2, 10


def outcomes(directory):
    """The (section, outcome, seconds, seconds of the processor) of each section, in the order in which they ended."""
    file = directory / "outcomes"
    lines = file.read_text().splitlines() if file.exists() else []
    split = (line.split() for line in lines)
    return [(section, outcome, int(seconds), round(sum(map(float, cpu)))) for section, outcome, seconds, *cpu in split]


def print_sections(sections, whole):
    recorded = json.loads(RECORDED.read_text())
    print(f"{'':8} {'time':>5}    {'cpu':>5}")
    for name, outcome, seconds, cpu in [*sections, ("in all", "", whole, sum(cpu for *_, cpu in sections))]:
        before = recorded.get(name)
        slow = before is not None and seconds > before * SLOWER + SECONDS_MORE
        print(f"{outcome:8} {seconds:5} s  {cpu:5} s  {name}{f'  SLOWER: {before} s are recorded' if slow else ''}")


def print_skipped(directory):
    """Prints skipped parts of sections, and the skipped tests of JUnit files by reason."""
    file = directory / "skipped"
    for line in file.read_text().splitlines() if file.exists() else []:
        print(f"SKIPPED  {line}")
    reasons = collections.defaultdict(list)
    for results in sorted(directory.glob("*.xml")):
        for case in ElementTree.parse(results).iter("testcase"):
            skipped = case.find("skipped")
            if skipped is not None:
                reasons[skipped.get("message")].append(f"{case.get('classname', '').rsplit('.', 1)[-1]}::{case.get('name')}")
    for reason, names in sorted(reasons.items()):
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        print(f"SKIPPED  {', '.join(names[:3])}{more}: {reason}")


def main():
    directory, whole = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    sections = outcomes(directory)
    print_sections(sections, whole)
    print_skipped(directory)
    seconds = {name: seconds for name, _, seconds, _ in sections} | {"in all": whole}
    (directory / "times.json").write_text(json.dumps(seconds, indent=1) + "\n")
    sys.exit(any(outcome == "FAILED" for _, outcome, *_ in sections) or not sections)


if __name__ == "__main__":
    main()
