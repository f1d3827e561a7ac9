"""The interface for the requests of Lua. The executions in `lua` and the functions of kinds use this interface."""

from __future__ import annotations

from typing import Any, Protocol


class LuaCalls(Protocol):
    """Answers the calls of a Lua function. `counted_secs` is the time of nested executions. The function's time limit
    is extended by this time."""

    counted_secs: float

    async def call(self, operation: str, arguments: Any) -> Any:
        """Run `ctx:<operation>` and return JSON. A `LaresError` is raised in Lua at the calling line."""

    def log(self, level: str, message: str, fields: Any) -> None: ...
