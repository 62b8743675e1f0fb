"""`pintle cel eval`: the value of an expression and of its parts."""

import pytest

from documentation import Shell, command_cases

pytestmark = pytest.mark.cel

CASES = command_cases("cel_eval")


@pytest.mark.parametrize("name", CASES)
def test_commands(launch, name):
    with Shell(launch.binary) as shell:
        shell.check(CASES[name])
