"""The clock of a workspace, which tests stop and advance."""

from __future__ import annotations

import datetime
import re
from typing import Any, Protocol

from .errors import ResponseError

VERSION = "testing.pintle.dev/v1alpha1"
CLOCKS = f"/apis/{VERSION}/clocks"
NAME = "clock"
# the units of durations in milliseconds
UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
PART = re.compile(r"([\d.]+)(ms|s|m|h)")


class Api(Protocol):
    """What the clock needs of its workspace."""

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any: ...


class Clock:
    """The clock of a workspace; see https://github.com/pintle/pintle/blob/main/docs/src/guides/control-time.md."""

    def __init__(self, workspace: Api) -> None:
        self._workspace = workspace

    def stop(self, time: datetime.datetime | str | None = None, seed: int | None = None) -> None:
        """Stops it, at a `time` if one is given. A `seed` makes uids and generated names repeatable, if the clock has not been changed
        before."""
        given = {"time": time and shown(time), "seed": seed}
        self._change({"stopped": True, **{field: value for field, value in given.items() if value is not None}})

    def advance(self, by: datetime.timedelta | str) -> None:
        """Advances it by a `timedelta`, or a text such as `90s` or `72h`. What becomes due is done when `settle` returns."""
        self._change({"advance": f"{self._advanced() + milliseconds(by)}ms"})

    def set(self, time: datetime.datetime | str) -> None:
        """Sets it to a `datetime`, or a text such as `2030-01-01T00:00:00Z`, which is not before what it shows."""
        self._change({"time": shown(time)})

    def resume(self) -> None:
        """Lets it go on from what it shows."""
        self._change({"stopped": False})

    def delete(self) -> None:
        """The time is that of the machine again."""
        self._workspace.request("DELETE", f"{CLOCKS}/{NAME}")

    def _advanced(self) -> int:
        """By how much it has been advanced in all."""
        try:
            return milliseconds(self._workspace.request("GET", f"{CLOCKS}/{NAME}")["spec"].get("advance", "0s"))
        except ResponseError as error:
            if error.code != 404:
                raise
            return 0

    def _change(self, spec: dict[str, Any]) -> None:
        try:
            self._workspace.request("PATCH", f"{CLOCKS}/{NAME}", {"spec": spec}, "application/merge-patch+json")
        except ResponseError as error:
            if error.code != 404:
                raise
            self._workspace.request("POST", CLOCKS, {"apiVersion": VERSION, "kind": "Clock", "metadata": {"name": NAME}, "spec": spec})


def milliseconds(by: datetime.timedelta | str) -> int:
    if isinstance(by, datetime.timedelta):
        return by // datetime.timedelta(milliseconds=1)
    if not re.fullmatch(f"({PART.pattern})+", by):
        raise ValueError(f"{by!r} is no duration such as 90s or 1h30m")
    return round(sum(float(number) * UNITS[unit] for number, unit in PART.findall(by)))


def shown(time: datetime.datetime | str) -> str:
    """A time as the API writes it; a `datetime` without a zone is in UTC."""
    if not isinstance(time, datetime.datetime):
        return time
    zoned = time if time.tzinfo else time.replace(tzinfo=datetime.timezone.utc)
    return zoned.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
