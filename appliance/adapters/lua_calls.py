"""The interface for the requests of Lua. The executions in `lua` and the functions of kinds use this interface."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from appliance.log_buffer import own_fields

SCRIPT_LOG_LEVELS: Mapping[str, int] = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


class LuaCalls(Protocol):
    """Answers the calls of a Lua function. `counted_secs` is the time of nested executions. The function's time limit
    is extended by this time."""

    counted_secs: float

    async def call(self, operation: str, arguments: Any) -> Any:
        """Run `ctx:<operation>` and return JSON. A `LaresError` is raised in Lua at the calling line."""

    def log(self, level: str, message: str, fields: Any) -> None: ...


class LuaCancelled(asyncio.CancelledError):
    """The cancellation of a Lua function. `place` is the file and, if known, the line: `file:line`."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


def write_script_line(log: logging.Logger, level: str, message: str, fields: Any, **of: str) -> None:
    """Write a log line of a Lua file. `of` names the file. `fields` can be any value of Lua."""
    named = fields if isinstance(fields, dict) else {} if fields is None else {"fields": fields}
    log.log(SCRIPT_LOG_LEVELS[level], "%s", message, extra=own_fields({**dict(sorted(named.items())), **of}))
