"""Faults of the disk: a library that is preloaded into the server replaces fdatasync and write, and can make them slow or fail
(no space left, input/output error)."""
import pathlib
import subprocess
import tempfile


class Disk:
    """`with Disk() as disk:` gives the `environment` of a server whose disk the methods make slow, failing, full or healthy again."""

    def __enter__(self):
        self.place = tempfile.TemporaryDirectory(prefix="pintle-test-")
        place = pathlib.Path(self.place.name)
        library, self.says = place / "disk.so", place / "says"
        source = pathlib.Path(__file__).with_name("disk.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        self.environment = {"LD_PRELOAD": str(library), "TEST_DISK": str(self.says)}
        self.is_well()
        return self

    def __exit__(self, *_):
        self.place.cleanup()

    def say(self, what):
        # replaced atomically, so that the library never reads half of it
        told = self.says.with_suffix(".new")
        told.write_text(what)
        told.rename(self.says)

    def is_well(self):
        self.say("well")

    def is_slow(self, milliseconds):
        self.say(f"slow {milliseconds}")

    def fails(self):
        self.say("fail")

    def is_full(self):
        self.say("full")
