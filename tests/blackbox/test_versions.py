"""Upgrade and rollback: this version and the former one serve the same data directory in turn.

The former version is the binary that PINTLE_FORMER names. Otherwise, with --slow, it is built from the newest tag, or from the
commit in tests/former while there is no tag.
"""

import os
import subprocess
import tempfile

import pytest

from commands import run
from objects import CORE
from pintle import Pintle
from programs import ROOT, locked

pytestmark = pytest.mark.store

COUNT = 20


def git(*arguments):
    return subprocess.run(["git", *map(str, arguments)], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def former():
    """The binary of the former version."""
    if "PINTLE_FORMER" in os.environ:
        return os.environ["PINTLE_FORMER"]
    tags = git("tag", "--list", "v*", "--sort=-v:refname").split()
    commit = tags[0] if tags else (ROOT / "tests" / "former").read_text().strip()
    binary = ROOT / "target" / "former" / commit / "pintle"
    with locked(binary):
        if not binary.exists():
            with tempfile.TemporaryDirectory(prefix="pintle-former-") as source:
                git("worktree", "add", "--detach", source, commit)
                try:
                    subprocess.run(["cargo", "build", "--target-dir", ROOT / "target" / "former" / "build"], cwd=source, check=True)
                finally:
                    git("worktree", "remove", "--force", source)
            binary.parent.mkdir(parents=True, exist_ok=True)
            (ROOT / "target" / "former" / "build" / "debug" / "pintle").rename(binary)
    return binary


def objects(server):
    return {kind: server.ok("GET", f"{CORE}/{kind}")["items"] for kind in ("configmaps", "secrets", "serviceaccounts")}


def change(server, tag):
    """Creates, updates and deletes objects."""
    for number in range(COUNT):
        server.ok("POST", f"{CORE}/configmaps", {"metadata": {"name": f"{tag}-{number}"}, "data": {"k": "v" * 100}})
        server.ok("PATCH", f"{CORE}/configmaps/{tag}-{number}", {"metadata": {"labels": {"changed": tag}}})
    server.ok("DELETE", f"{CORE}/configmaps/{tag}-0")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_store_is_upgraded_and_rolled_back(launch, former, tmp_path):
    want = None
    for turn, binary in enumerate((former, launch.binary, former, launch.binary)):
        with Pintle(str(binary), storage="embedded", data_dir=tmp_path / "data") as server:
            assert want is None or objects(server) == want, f"turn {turn}"
            change(server, f"turn{turn}")
            want = objects(server)
    for writer, reader, name in ((former, launch.binary, "older"), (launch.binary, former, "newer")):
        file, backup, restored = (tmp_path / f"{name}.{kind}" for kind in ("json", "backup", "restored"))
        run(writer, "export", file, "--data-dir", tmp_path / "data", timeout=120)
        run(reader, "import", file, "--data-dir", tmp_path / f"{name}.imported", timeout=120)
        run(writer, "store", "backup", backup, "--data-dir", tmp_path / "data", timeout=120)
        run(reader, "store", "restore", backup, "--data-dir", restored, timeout=120)
        with Pintle(str(reader), storage="embedded", data_dir=restored) as server:
            assert objects(server)["configmaps"] == want["configmaps"]
