"""`pintle test`: suites of cases, without a server."""

import pytest

from documentation import command_tests

pytestmark = pytest.mark.cli


test_commands = command_tests("suites")
