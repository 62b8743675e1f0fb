"""`pintle cel eval`: the value of an expression and of its parts."""

import pytest

from documentation import command_tests

pytestmark = pytest.mark.cel


test_commands = command_tests("cel_eval")
