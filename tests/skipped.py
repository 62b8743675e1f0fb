#!/usr/bin/env python3
"""Prints the tests that were skipped, by reason, from the JUnit files of a directory."""

import collections
import pathlib
import sys
from xml.etree import ElementTree


def main():
    reasons = collections.defaultdict(list)
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.xml")):
        for case in ElementTree.parse(file).iter("testcase"):
            skipped = case.find("skipped")
            if skipped is not None:
                reasons[skipped.get("message")].append(f"{case.get('classname').rsplit('.', 1)[-1]}::{case.get('name')}")
    for reason, names in sorted(reasons.items()):
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        print(f"SKIPPED  {', '.join(names[:3])}{more}: {reason}")


if __name__ == "__main__":
    main()
