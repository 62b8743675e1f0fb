"""`pintle test`: suites of cases, without a server."""

import pytest

from documentation import Shell, command_cases

pytestmark = pytest.mark.cli

CASES = command_cases("suites")


@pytest.mark.parametrize("name", CASES)
def test_commands(launch, name):
    with Shell(launch.binary) as shell:
        shell.check(CASES[name])
