"""Runs the cases of a client program, and exchanges lines with tests/blackbox/test_clients.py, which started it."""
import sys
import time

CASES = []


def case(name):
    """Enters a function as a case of this name; they run in the order of the file."""
    return lambda run: CASES.append((name, run)) or run


def run():
    failed = 0
    for name, each in CASES:
        try:
            each()
        except Exception as error:  # every failure is printed, whatever it is
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {' '.join(str(error).split())}", flush=True)
        else:
            print(f"ok {name}", flush=True)
    return min(failed, 1)


def end(how):
    """Has the server end, by "restart" or by "kill", and start again with its data and its port."""
    print(how, flush=True)
    assert sys.stdin.readline() == "started\n"


def equal(what, got, want):
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def eventually(check, seconds=30):
    """Waits until check() is true. Returns its value."""
    over = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < over, "it did not come about"
        time.sleep(0.02)
    return found


def raises(kind, call):
    """Returns the error of this kind that call() must raise."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")
