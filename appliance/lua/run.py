"""Run: one execution of a Lua file, from its start to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import orjson

from appliance.errors import Invalid, LaresError
from appliance.lua.failures import failure_of
from appliance.lua.limits import Limits, Reason
from appliance.lua.state import Asks, Failed, State, Step, Stopped
from appliance.lua.stepper import Stepper
from appliance.tasks import Tasks

log = logging.getLogger("scripts")

LARGEST_ANSWER = 4 << 20
"""Bytes of JSON that one call can give to Lua."""


class Calls(Protocol):
    """What `ctx` reaches in the hub."""

    async def call(self, operation: str, arguments: Any) -> Any:
        """Do what `ctx:<operation>` asks and answer in JSON data; a `LaresError` is raised at the user's line."""

    def log(self, level: str, message: str, fields: Any) -> None:
        """Take a line that Lua logs or prints. Called on Lua's thread, so it must be quick and safe there."""


class Run:
    """One execution. It goes on whether or not anybody waits for it."""

    def __init__(self, stepper: Stepper, state: State, calls: Calls, limits: Limits) -> None:
        self._stepper = stepper
        self._state = state
        self._calls = calls
        self._limits = limits
        self._is_asleep = False
        self._task: asyncio.Task[Step] | None = None

    def begin(self, tasks: Tasks, first: Callable[[], Step], name: str, at_end: Callable[[Run], None]) -> None:
        """For the runner: start with this step; `at_end` is called when all is over."""
        self._task = tasks.start(self._drive(first), f"run of {name}")
        self._task.add_done_callback(lambda _: at_end(self))

    async def wait(self) -> None:
        """Return when the execution has ended well; else raise `ScriptFailed` or `RunCancelled`."""
        assert self._task is not None
        try:
            last = await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._task.cancelled():
                raise  # it is the waiter that was cancelled
            last = Stopped(Reason.CANCELLED, "")
        if isinstance(last, Stopped | Failed):  # an error for each waiter: one that is kept holds all that it passed
            raise failure_of(last, self._state.files, self._limits)

    def cancel(self) -> None:
        """End it at the next `ctx` call; a sleep or a command under way returns first. Running Lua ends at once."""
        self._stepper.watch.is_cancelled = True
        if self._is_asleep:
            self._stepper.leave()  # Lua will not go on: its memory need not wait for the sleep's end

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked for its end."""
        return self._stepper.watch.is_cancelled

    async def _drive(self, first: Callable[[], Step]) -> Step:
        """The last step."""
        try:
            step = await self._stepper.step(first)
            while isinstance(step, Asks):
                step = await self._stepper.step(await self._next(step))
        finally:
            self._stepper.leave()
        return step

    async def _next(self, asks: Asks) -> Callable[[], Step]:
        """What Lua is to be given now that it has asked: an answer, or its end."""
        watch = self._stepper.watch
        if watch.is_cancelled:
            return partial(self._state.stop, Reason.CANCELLED)
        try:
            answer = await self._within_backstop(asks)
        except TimeoutError:
            return partial(self._state.stop, Reason.BACKSTOP)
        return partial(self._state.answer, *answer)

    async def _within_backstop(self, asks: Asks) -> tuple[bool, bytes]:
        watch, arguments = self._stepper.watch, orjson.loads(asks.arguments)
        before = watch.left
        if asks.operation == "sleep":
            self._is_asleep = True
            answer = await self._call(asks.operation, arguments)
            self._is_asleep = False
            watch.extend(before - watch.left)
            return answer
        async with asyncio.timeout(max(0.0, before)):
            return await self._call(asks.operation, arguments)

    async def _call(self, operation: str, arguments: Any) -> tuple[bool, bytes]:
        try:
            answer = orjson.dumps(await self._calls.call(operation, arguments))
            if len(answer) > LARGEST_ANSWER:
                raise Invalid(f"ctx:{operation}: the answer is larger than 4 MiB")
            return True, answer
        except LaresError as error:
            return False, str(error).encode(errors="replace")
        except Exception as error:  # a fault of the hub's is one execution's failure and not the hub's
            log.error("ctx:%s failed: %s: %s", operation, type(error).__name__, error)
            log.debug("ctx:%s", operation, exc_info=error)
            return False, f"ctx:{operation} failed inside the hub ({type(error).__name__})".encode()
