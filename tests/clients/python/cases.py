"""Runs the test cases. Exchanges lines with tests/blackbox/test_clients.py, which starts the program."""

import sys
import time

CASES = []


def case(name):
    """Registers a function as a case; cases run in the order of the file."""
    return lambda run: CASES.append((name, run)) or run


def run():
    failed = 0
    for name, each in CASES:
        try:
            each()
        except Exception as error:  # any failure is reported
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {' '.join(str(error).split())}", flush=True)
        else:
            print(f"ok {name}", flush=True)
    return min(failed, 1)


def restart_server(command):
    """Restarts the server with the same data and port: `command` is "restart" (SIGTERM) or "kill" (SIGKILL)."""
    print(command, flush=True)
    assert sys.stdin.readline() == "started\n"


def equal(what, got, want):
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def eventually(check, seconds=30):
    """Calls check() until its value is true. Returns the value."""
    deadline = time.monotonic() + seconds
    while not (value := check()):
        assert time.monotonic() < deadline, "timeout"
        time.sleep(0.02)
    return value


def raises(kind, call):
    """Returns the exception of this class that call() must raise."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")
