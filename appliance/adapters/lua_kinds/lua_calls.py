"""The answers to the requests of Lua. Executions in `lua` and functions of kinds use the same interface."""

from __future__ import annotations

from typing import Any, Protocol


class LuaCalls(Protocol):
    """Answers the calls of a Lua function. `counted_secs` is the time of nested executions that is added to the
    function's time limit."""

    counted_secs: float

    async def call(self, operation: str, arguments: Any) -> Any:
        """Run `ctx:<operation>` and return JSON data. A `LaresError` is raised at the user's line."""

    def log(self, level: str, message: str, fields: Any) -> None:
        """Write a log line of Lua."""
