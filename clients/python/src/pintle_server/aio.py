"""The methods of a workspace for programs with asyncio."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any


class AsyncWorkspace:
    """The methods of a workspace as coroutines, which run in threads: `await workspace.aio.settle()`."""

    def __init__(self, workspace: object) -> None:
        self._workspace = workspace

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._workspace, name)
        if name.startswith("_") or not callable(method):
            raise AttributeError(f"{name} is no method of a workspace")

        @functools.wraps(method)
        async def call(*arguments: Any, **options: Any) -> Any:
            return await asyncio.to_thread(method, *arguments, **options)

        return call
