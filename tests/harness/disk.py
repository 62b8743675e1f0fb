"""Faults of the disk: a library that is preloaded into the server replaces fdatasync and write, and delays them or lets them fail
(no space left, input/output error)."""

import pathlib
import subprocess
import tempfile


class Disk:
    """`with Disk() as disk:` controls the disk of a server that has been started with `disk.environment`."""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="pintle-test-")
        directory = pathlib.Path(self.directory.name)
        library, self.mode = directory / "disk.so", directory / "mode"
        source = pathlib.Path(__file__).with_name("disk.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        self.environment = {"LD_PRELOAD": str(library), "TEST_DISK": str(self.mode)}
        self.recover()
        return self

    def __exit__(self, *_):
        self.directory.cleanup()

    def set_mode(self, mode):
        # replaced atomically, so that the library never reads a part of it
        new = self.mode.with_suffix(".new")
        new.write_text(mode)
        new.rename(self.mode)

    def recover(self):
        self.set_mode("well")

    def delay_syncs(self, milliseconds):
        self.set_mode(f"slow {milliseconds}")

    def fail_syncs(self):
        self.set_mode("fail")

    def fill(self):
        self.set_mode("full")
