"""Counts cases and prints what failed."""
import traceback


class Report:
    def __init__(self):
        self.passed, self.failed = 0, []

    def case(self, name, run):
        """Runs one case; an exception is its failure."""
        try:
            run()
        except Exception as error:  # every failure is told, whatever it is
            self.failed.append(name)
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
            if not isinstance(error, AssertionError):
                traceback.print_exc()
        else:
            self.passed += 1

    def count(self, passed, failures):
        """Takes over cases that something else has run."""
        self.passed += passed
        self.failed += failures

    def close(self):
        for name in self.failed:
            print(f"FAILED {name}")
        print(f"{self.passed} passed, {len(self.failed)} failed")
        return 1 if self.failed else 0
