#!/usr/bin/env python3
"""Tests that need a running server: transcripts of a real kube-apiserver, the command line, crashes, histories
of concurrent clients, the older generations of custom resources, kubectl, the client libraries.

  main.py --binary target/release/pintle [--only SECTION] [--filter TEXT] [--slow]

Every section counts cases; the last line is "N passed, N failed". Servers are started on free ports with data in
temporary directories and ended by their process ids.
"""
import argparse
import faulthandler
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import aggregation_cases
import audit_cases
import cli_cases
import clients
import control_cases
import crash_cases
import encryption_cases
import etcd_cases
import flow_cases
import generation_cases
import identity_cases
import kubectl_cases
import linear_cases
import move_cases
import mutation_cases
import soak_cases
import trace_cases
import transcripts
import webhook_cases
from report import Report, Skipped

SECTIONS = {"transcripts": transcripts.run, "cli": cli_cases.run, "webhooks": webhook_cases.run, "crash": crash_cases.run,
            "identity": identity_cases.run, "audit": audit_cases.run, "mutations": mutation_cases.run, "flow": flow_cases.run, "traces": trace_cases.run, "control": control_cases.run, "aggregation": aggregation_cases.run,
            "linear": linear_cases.run, "soak": soak_cases.run, "encryption": encryption_cases.run,
            "etcd": etcd_cases.run, "move": move_cases.run,
            "generations": generation_cases.run, "kubectl": kubectl_cases.run, "clients": clients.run}

# no section is as slow as this: one that takes longer hangs, which ends the run and tells where
SECTION_SECONDS = 1800


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the pintle binary")
    parser.add_argument("--only", choices=SECTIONS, help="run one section")
    parser.add_argument("--filter", default="", help="run only cases whose name contains this")
    parser.add_argument("--slow", action="store_true", help="also the long exhaustive cases")
    args = parser.parse_args()
    args.binary = str(pathlib.Path(args.binary).resolve())
    report = Report()
    for name, run in SECTIONS.items():
        if args.only in (None, name):
            print(f"\n== {name}", flush=True)
            if not args.slow:
                faulthandler.dump_traceback_later(SECTION_SECONDS, exit=True)
            try:
                run(args, report)
            except Skipped as reason:
                report.skip(f"the section {name}", reason)
    faulthandler.cancel_dump_traceback_later()
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
