"""Answers: the results of calls of `ctx` and of `require`, as the parts of ANSWER after its timing."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any, Protocol

import orjson

from appliance.errors import Invalid, LaresError
from appliance.lua.folder import Folder, load_module
from appliance.lua.source import Source

MAX_ANSWER_BYTES = 4 << 20
"""Of JSON that one call can give to Lua."""

MAX_DOING_CHARS = 200
MAX_WAIT_SECS = 3600

log = logging.getLogger("scripts")


class Calls(Protocol):
    """What Lua reaches in the hub. `counted_secs` is for how long, as their backstops count, what it ran has run."""

    counted_secs: float

    async def call(self, operation: str, arguments: Any) -> Any:
        """Do what `ctx:<operation>` asks and answer in JSON data; a `LaresError` is raised at the user's line."""

    def log(self, level: str, message: str, fields: Any) -> None:
        """Take a line that Lua logs or prints."""


def describe_call(operation: str, arguments: bytes, began: datetime) -> str:
    """What a call waits for, in words and at most `MAX_DOING_CHARS`; `began` is in the home's time zone."""
    first, second, *_ = orjson.loads(arguments)
    words = [operation, first if isinstance(first, str) else None]
    wait = first if operation == "sleep" else None
    if isinstance(second, dict):
        words += [second.get(name) for name in ("attribute", "capability", "action", "value")]
        wait = second.get("timeout_secs")
    if isinstance(wait, int | float) and 0 <= wait <= MAX_WAIT_SECS:
        words.append(f"until {began + timedelta(seconds=wait):%H:%M:%S}")
    return " ".join(str(each) for each in words if each is not None)[:MAX_DOING_CHARS]


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
