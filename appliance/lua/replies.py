"""Answers: the results of calls of `ctx` and of `require`, as the parts of ANSWER after its timing."""

from __future__ import annotations

import logging
from typing import Any, Protocol

import orjson

from appliance.errors import Invalid, LaresError
from appliance.lua.folder import Folder, load_module
from appliance.lua.source import Source

MAX_ANSWER_BYTES = 4 << 20
"""Of JSON that one call can give to Lua."""

log = logging.getLogger("scripts")


class Calls(Protocol):
    """What Lua reaches in the hub. `counted_secs` is for how long, as their backstops count, what it ran has run."""

    counted_secs: float

    async def call(self, operation: str, arguments: Any) -> Any:
        """Do what `ctx:<operation>` asks and answer in JSON data; a `LaresError` is raised at the user's line."""

    def log(self, level: str, message: str, fields: Any) -> None:
        """Take a line that Lua logs or prints."""


async def answer_call(calls: Calls, operation: str, arguments: bytes) -> tuple[bytes, ...]:
    """The result of a call of `ctx`, or the sentence of its error; arguments and result are JSON. Raises nothing."""
    try:
        answer = orjson.dumps(await calls.call(operation, orjson.loads(arguments)))
        if len(answer) > MAX_ANSWER_BYTES:
            raise Invalid(f"ctx:{operation}: the answer is larger than 4 MiB")
        return b"1", answer
    except LaresError as error:
        return b"", str(error).encode(errors="replace")
    except Exception as error:  # a fault of the hub's is one execution's failure and not the hub's
        log.error("ctx:%s failed: %s: %s", operation, type(error).__name__, error, exc_info=error)
        return b"", f"ctx:{operation} failed inside the hub ({type(error).__name__})".encode()


def answer_require(scripts: Folder | None, module: bytes, files: list[Source]) -> tuple[bytes, ...]:
    """The module's text and name, which is added to `files`. Reads a file: not for the event loop."""
    try:
        script = load_module(scripts, module.decode(errors="replace"))
    except Invalid as error:
        return b"", str(error).encode(errors="replace")
    if script not in files:  # a module that fails is read each time
        files.append(script)
    return b"1", script.chunk, script.name.encode()
