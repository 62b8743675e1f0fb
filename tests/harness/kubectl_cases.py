"""kubectl against pintle: the current release, built from its Go module, and the one that the machine has.

Every case is a function of tests/kubectl that takes a `Kubectl`, runs in a namespace and a home directory of its own
and finds the definitions of tests/kubectl/manifests/{boats,lighthouses}.yaml in the server.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from kubectl import control, crontab, discovery, reads, writes
from kubectl.client import MANIFESTS, Kubectl, located
from pintle import Pintle


def run(args, report):
    cases = [case for module in (discovery, reads, writes, control, crontab) for case in module.CASES]
    for label, (version, binary) in located().items():
        wanted = [case for case in cases if args.filter in name(label, case)]
        if wanted:
            print(f"kubectl {version} ({binary})", flush=True)
            run_version(args, report, label, binary, wanted)


def name(label, case):
    return f"kubectl {label} " + case.__name__.replace("_", " ")


def run_version(args, report, label, binary, cases):
    with Pintle(args.binary) as server:
        with Kubectl(binary, server, "default") as kubectl:
            kubectl("apply", "-f", MANIFESTS / "boats.yaml", "-f", MANIFESTS / "lighthouses.yaml")
        for number, case in enumerate(cases):
            report.case(name(label, case), lambda: in_namespace(server, binary, f"case-{number}", case))


def in_namespace(server, binary, namespace, case):
    server.ok("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    with Kubectl(binary, server, namespace) as kubectl:
        case(kubectl)
