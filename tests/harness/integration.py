#!/usr/bin/env python3
"""Runs the integration tests of k8s.io/apiextensions-apiserver on Pintle and an etcd. Arguments after `--` are passed to `go test`.

The module is copied from the Go module cache to target; testserver.go replaces its package that starts a server. Without
--binary the tests start upstream's own server, for comparison."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from etcd import Etcd
from programs import ROOT

HERE = ROOT / "tests" / "upstream" / "integration"

MODULE = "k8s.io/apiextensions-apiserver"
REPLACED = pathlib.Path("pkg/cmd/server/testing/testserver.go")


def copy_module(with_pintle):
    """Copies the module, in the version that tests/upstream builds, and replaces its test server if `with_pintle`.

    Returns the path of the copy."""
    version = re.search(rf"{MODULE} => {MODULE} (\S+)", (HERE.parent / "go.mod").read_text()).group(1)
    found = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@{version}"], check=True, capture_output=True, cwd=HERE).stdout
    source = pathlib.Path(json.loads(found)["Dir"])
    copy = ROOT / "target" / "integration" / version
    if not copy.exists():
        unfinished = copy.with_name(f"{version}.{os.getpid()}")
        shutil.copytree(source, unfinished, copy_function=shutil.copyfile)
        subprocess.run(["chmod", "-R", "u+w", unfinished], check=True)
        unfinished.rename(copy)
    shutil.copyfile(HERE / "testserver.go" if with_pintle else source / REPLACED, copy / REPLACED)
    return copy


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=pathlib.Path, help="the pintle to test")
    parser.add_argument("arguments", nargs="*", help="for go test, such as -run TestPruning -v")
    options = parser.parse_args()
    module = copy_module(with_pintle=options.binary is not None)
    environment = dict(os.environ)
    if options.binary is not None:
        environment["PINTLE"] = str(options.binary.resolve())
    with Etcd() as etcd:
        environment["KUBE_INTEGRATION_ETCD_URL"] = etcd.urls
        command = ["go", "test", "-count=1", "-timeout=60m", *options.arguments, "./test/integration/..."]
        sys.exit(subprocess.run(command, cwd=module, env=environment).returncode)


if __name__ == "__main__":
    main()
