"""An execution's access to the home, with the results of its commands and its trace."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from appliance.adapters.dispatch import Dispatcher, Outcome, Status
from appliance.clock import Clock
from appliance.errors import LaresError, NotFound
from appliance.home.commands import Command
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.texts import MAX_ID_CHARS
from appliance.log_buffer import own_fields
from appliance.lua.failed_calls import FailedCalls
from appliance.lua.trace import Trace, shorten

log = logging.getLogger("scripts")

MAX_RESULTS = 1_000
MAX_RESULT_BYTES = 256 << 10
"""Maximum size of an execution's stored command results. Older results are dropped."""

MAX_WARNINGS = 20

SCRIPT_LOG_LEVELS: Mapping[str, int] = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}

CtxFunction = Callable[..., Awaitable[Any]]
"""Implements a method of `ctx`: takes the context and three arguments, and returns JSON data."""


class Context:
    """The `LuaCalls` of one execution.

    - `kind`, `id_`: the scene or automation. `source` is its name in the audit log, such as `scene:evening`.
    - `results`: the newest `MAX_RESULTS` command results in call order.
    - `methods`: the implementation of each method.
    - `warnings`: the first `MAX_WARNINGS` failures.
    - `counted_secs`: the counted time of the scenes that the execution has run.
    - `chain`: the sources of the executions that led to this execution. The attribute `chain` also includes `source`.
    """

    def __init__(
        self,
        registry: Registry,
        dispatcher: Dispatcher,
        clock: Clock,
        kind: str,
        id_: str,
        methods: Mapping[str, CtxFunction],
        failed_calls: FailedCalls | None = None,
        chain: tuple[str, ...] = (),
    ) -> None:
        self._registry = registry
        self._dispatcher = dispatcher
        self._clock = clock
        self._methods = methods
        self._failed_calls = failed_calls or FailedCalls(clock)
        self.source = f"{kind}:{id_}"
        self.chain = (*chain, self.source)
        self.counted_secs = 0.0
        self.trace = Trace(clock)
        self.warnings: list[str] = []
        self._label = {kind: id_}
        self._results: deque[dict[str, Any]] = deque()
        self._result_bytes = 0

    @property
    def results(self) -> list[dict[str, Any]]:
        """Return the `{target, status, message}` of each command."""
        return list(self._results)

    async def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Execute `ctx:<operation>(…)`. Raise a `LaresError` if the method fails."""
        return await self._methods[operation](self, *arguments)

    async def send(self, devices: Sequence[Device], command: Command) -> list[dict[str, Any]]:
        """Send the command to the devices, in parallel if their addresses differ. Store and return the results in
        device order."""
        outcomes = await self._dispatcher.send(devices, command, self.source) if devices else ()
        return [self._record(outcome, command) for outcome in outcomes]

    async def send_to(self, device_id: str, command: Command) -> dict[str, Any]:
        """Send the command to the device. Store and return the result. If the id is unknown, the result is an
        error."""
        try:
            device = self._registry.get_device(device_id)
        except NotFound as error:
            refused = self._dispatcher.refuse(device_id[:MAX_ID_CHARS], command, self.source, error)
            return self._record(refused, command)
        [outcome] = await self._dispatcher.send([device], command, self.source)
        return self._record(outcome, command)

    async def invoke(self, target: str, payload: Mapping[str, Any]) -> Any:
        status = "error"
        try:
            with self.noting_failure(target):
                answer = await self._dispatcher.invoke(target, payload)
            status = "ok"
        finally:
            self.trace.add("invoke", target=target, status=status)
        return answer

    def log(self, level: str, message: str, fields: Any) -> None:
        """Log a script's line with the name of the scene or automation that runs the script."""
        self.trace.add("log", level=level, message=message)
        named = fields if isinstance(fields, dict) else {} if fields is None else {"fields": fields}
        log.log(
            SCRIPT_LOG_LEVELS[level], "%s", message, extra=own_fields({**dict(sorted(named.items())), **self._label})
        )

    @contextmanager
    def noting_failure(self, target: str) -> Iterator[None]:
        """If the block raises an error, record it as a failure, because a script with `pcall` would hide the
        error."""
        try:
            yield
        except LaresError as error:
            self.note_failure(target, str(error))
            raise

    def note_failure(self, target: str, reason: str) -> None:
        log.warning("%s: %s failed: %s", self.source, target, reason)
        self._failed_calls.add(self.source, target, reason)
        self.warn(target, reason)

    def warn(self, target: str, reason: str) -> None:
        """Add a failed call to the warnings of the execution's history entry."""
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(shorten(f"{target}: {reason}"))

    def _record(self, outcome: Outcome, command: Command) -> dict[str, Any]:
        fields = {"device_id": outcome.device_id, "status": outcome.status, "message": outcome.message}
        self.trace.add("command", capability=command.capability, action=command.action, value=command.value, **fields)
        if outcome.status is not Status.OK:
            reason = outcome.message or outcome.status
            self.note_failure(f"{command} to {outcome.device_id}", reason)
        result = {"target": outcome.device_id, "status": outcome.status, "message": outcome.message}
        self._results.append(result)
        self._result_bytes += _size_of(result)
        while len(self._results) > MAX_RESULTS or self._result_bytes > MAX_RESULT_BYTES:
            self._result_bytes -= _size_of(self._results.popleft())
        return result


def _size_of(result: Mapping[str, Any]) -> int:
    return 64 + len(result["target"]) + len(result["message"] or "")
