"""Faults of the disk: a library that is preloaded into the server replaces fdatasync and write, and delays them or lets them fail
(no space left, input/output error), or ends the process."""

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

    def kill_at(self, call):
        """Kills the process at this call that changes files; the first one has the number 1."""
        self.set_mode(f"kill {call}")

    def break_at(self, call):
        self.set_mode(f"break {call}")

    def fill_at(self, call):
        self.set_mode(f"fill {call}")

    def calls(self):
        """The number of calls that the last process made which ended by itself."""
        return int(self.mode.with_name(self.mode.name + ".calls").read_text())
