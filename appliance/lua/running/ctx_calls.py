"""Answers and describes the `ctx` calls of an execution."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from math import inf

import orjson

from appliance.adapters.lua_calls import LuaCalls
from appliance.errors import Invalid, LaresError, NotFound
from appliance.event_loop import wait_for_short_turn
from appliance.lua_worker.ctx_methods import CTX_METHODS, KIND_READING
from appliance.tables.checks import nearest

log = logging.getLogger("scripts")

UNCOUNTED = frozenset(name for name, method in CTX_METHODS.items() if method.waits)
"""Methods of `ctx` whose duration the backstop does not count. For `run_scene`, the backstop adds the time that the
scene's own backstop has counted."""

READING = KIND_READING.union(name for name, method in CTX_METHODS.items() if method.reads)
"""Requests that the hub answers from memory. Requests of these types do not interrupt Lua's running time."""

MAX_ANSWER_BYTES = 4 << 20
"""Maximum size of the JSON that one call returns to Lua."""

MAX_DOING_CHARS = 200
MAX_WAIT_SECS = 3600
"""The longest wait of `ctx:sleep` and `ctx:wait_for`."""


def seconds_of_sleep(operation: str, arguments: bytes) -> float:
    """Return the duration of `ctx:sleep`, or infinity for other methods."""
    secs = orjson.loads(arguments)[0] if operation == "sleep" else inf
    return secs if isinstance(secs, int | float) else inf


def describe_call(operation: str, arguments: bytes, began: datetime) -> str:
    """Describe the call that Lua is waiting for, in at most `MAX_DOING_CHARS` characters. `began` is in the home's
    time zone."""
    first, second, *_ = orjson.loads(arguments)
    words = [operation, first if isinstance(first, str) else None]
    wait = first if operation == "sleep" else None
    if isinstance(second, dict):
        words += [second.get(name) for name in ("attribute", "capability", "action", "value")]
        wait = second.get("timeout_secs")
    if isinstance(wait, int | float) and 0 <= wait <= MAX_WAIT_SECS:
        words.append(f"until {began + timedelta(seconds=wait):%H:%M:%S}")
    return " ".join(str(each) for each in words if each is not None)[:MAX_DOING_CHARS]


async def answer_call(calls: LuaCalls, operation: str, arguments: bytes) -> tuple[bytes, ...]:
    """Return the result or the error message of a `ctx` call. Arguments and result are JSON. Never raise."""
    await wait_for_short_turn()
    try:
        result = await calls.call(operation, orjson.loads(arguments))
        await wait_for_short_turn()
        answer = orjson.dumps(result)
        if len(answer) > MAX_ANSWER_BYTES:
            raise Invalid(f"ctx:{operation}: the answer is larger than 4 MiB")
        return b"1", answer
    except LaresError as error:
        near = None
        if isinstance(error, NotFound) and (known := [*error.known]):
            near = await asyncio.to_thread(nearest, error.name, known)
        hint = "" if near is None else f" (did you mean {near}?)"
        return b"", f"{error}{hint}".encode(errors="replace")
    except Exception as error:  # a fault of the hub ends only this execution
        log.error("ctx:%s failed: %s: %s", operation, type(error).__name__, error, exc_info=error)
        return b"", f"ctx:{operation} failed inside the hub ({type(error).__name__})".encode()
