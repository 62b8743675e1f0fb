"""Plans of changes and trials of controllers: the commands `pintle plan` and `pintle trial`, which need no server."""

from __future__ import annotations

import json
import subprocess
from typing import Any, TypedDict, cast

from . import binary
from .errors import PintleError


class Plan(TypedDict):
    """What a change would do."""

    changes: list[dict[str, Any]]
    summary: dict[str, int]
    refused: list[dict[str, Any]]
    varying: list[str]
    webhooks: list[str]
    hosts: list[str]


class Finding(TypedDict):
    """Cells of a trial that show the same, with the smallest of them and the command that repeats it."""

    cell: str
    disturbance: str
    symptoms: list[str]
    shown: int
    repeated: int
    cells: list[str]
    command: str


class Trial(TypedDict):
    """What faults break. Each cell has a `verdict`: `same`, `differs` with `symptoms`, or `not-tried` with a `reason`."""

    summary: str
    findings: list[Finding]
    cells: list[dict[str, Any]]


def plan(*arguments: str) -> Plan:
    """The plan of a change, such as `plan("--from", "cluster.tar.gz", "-f", "deploy")`, with the arguments of `pintle plan`."""
    return cast(Plan, _result("plan", arguments))


def trial(*arguments: str) -> Trial:
    """The trial of a scenario, such as `trial("trial.yaml", "--budget", "1m")`, with the arguments of `pintle trial`."""
    return cast(Trial, _result("trial", arguments))


def _result(command: str, arguments: tuple[str, ...]) -> Any:
    done = subprocess.run([binary.find(), command, "--output=json", *arguments], capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode not in (0, 1):
        # what was done until then comes first
        raise PintleError((done.stderr.strip().splitlines() or [f"pintle {command} ended with {done.returncode}"])[-1].removeprefix("pintle: "))
    return json.loads(done.stdout)
