"""Counts cases, and prints those that failed and those that were skipped."""
import os
import shutil
import traceback

# set by .ci/run: a missing toolchain fails the run instead of skipping cases
REQUIRE_ALL = os.environ.get("PINTLE_TESTS_REQUIRE_ALL") == "1"


class Skipped(Exception):
    """Raised by a case that needs a program which this machine lacks."""


def require(*programs):
    """Skips the case unless all of these programs are installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise Skipped(f"{', '.join(missing)} not installed")


class Report:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def case(self, name, run):
        """Runs one case. It fails if it raises an exception other than `Skipped`."""
        try:
            run()
        except Skipped as reason:
            self.skip(name, reason)
        except Exception as error:
            self.failed.append(name)
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
            if not isinstance(error, AssertionError):
                traceback.print_exc()
        else:
            self.passed += 1

    def skip(self, name, reason):
        """Records a case, or a whole section, that cannot run on this machine."""
        print(f"skipped {name}: {reason}", flush=True)
        (self.failed if REQUIRE_ALL else self.skipped).append(f"{name} ({reason})")

    def count(self, passed, failures):
        """Adds the results of cases that something else has run."""
        self.passed += passed
        self.failed += failures

    def close(self):
        """Prints the totals. Returns the exit status."""
        for name in self.skipped:
            print(f"SKIPPED {name}")
        for name in self.failed:
            print(f"FAILED {name}")
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {len(self.failed)} failed{skipped}")
        return 1 if self.failed else 0
