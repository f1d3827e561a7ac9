"""Context: an execution's access to the home, the results of its commands, and its trace."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from appliance.adapters.dispatch import Dispatcher, Outcome, Status
from appliance.clock import Clock
from appliance.errors import LaresError, NotFound
from appliance.home.commands import Command
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.texts import MAX_ID_CHARS
from appliance.log_buffer import own_fields

log = logging.getLogger("scripts")

MAX_RESULTS = 1_000
MAX_RESULT_BYTES = 256 << 10
"""Maximum size of an execution's stored command results. Older results are dropped."""

MAX_WARNINGS = 20

MAX_FAILED_CALLS = 100
"""Maximum number of rows in `FailedCalls`."""

MAX_TRACE_STEPS = 200
MAX_LOG_STEPS = 50
MAX_STEP_CHARS = 200
"""Maximum length of a text in a trace step."""

SCRIPT_LOG_LEVELS: Mapping[str, int] = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}

CtxCall = Callable[..., Awaitable[Any]]
"""Implements a method of `ctx`: takes the context and three arguments, and returns JSON data."""


class FailedCall(Struct, frozen=True, kw_only=True):
    """The newest failure of a request to a target, and the number of failures since the start."""

    source: str
    target: str
    reason: str
    at: datetime
    count: int


class FailedCalls:
    """The failed commands and calls of executions, with one row per source and target."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[tuple[str, str], FailedCall] = {}

    def add(self, source: str, target: str, reason: str) -> None:
        """Count a failure. Beyond `MAX_FAILED_CALLS` rows, drop the oldest."""
        before = self._rows.pop((source, target), None)
        count = 1 if before is None else before.count + 1
        self._rows[source, target] = FailedCall(
            source=source, target=target, reason=_short(reason), at=self._clock.now(), count=count
        )
        if len(self._rows) > MAX_FAILED_CALLS:
            del self._rows[next(iter(self._rows))]

    def list_newest(self) -> list[FailedCall]:
        return [*reversed(self._rows.values())]


class Trace:
    """Stores an execution's newest steps, with at most `MAX_LOG_STEPS` log lines. The `at_ms` of a step is the time
    since the trace was created."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._steps: deque[Mapping[str, Any]] = deque(maxlen=MAX_TRACE_STEPS)

    def add(self, step: str, **fields: Any) -> None:
        """Add a step: `command`, `invoke`, `sleep`, `log`, `scene`, or `wait`."""
        at_ms = round((self._clock.monotonic() - self._began) * 1000)
        self._steps.append({"at_ms": at_ms, "step": step, **{key: _short(value) for key, value in fields.items()}})
        if step == "log":
            logged = [index for index, each in enumerate(self._steps) if each["step"] == "log"]
            if len(logged) > MAX_LOG_STEPS:
                del self._steps[logged[0]]

    def list_steps(self) -> tuple[Mapping[str, Any], ...]:
        """Oldest first."""
        return tuple(self._steps)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    return f"{value[: MAX_STEP_CHARS - 1]}…" if isinstance(value, str) and len(value) > MAX_STEP_CHARS else value


class Context:
    """The `LuaCalls` of one execution. `source`, such as `scene:evening`, is the execution's name in the audit log.

    `results` are the newest `MAX_RESULTS` command results in the order of the calls. `calls` implements each method.
    `warnings` are the first `MAX_WARNINGS` failures. `chain` contains the sources of the executions that led to this
    execution, then the execution's own source.
    """

    def __init__(
        self,
        registry: Registry,
        dispatcher: Dispatcher,
        clock: Clock,
        source: str,
        calls: Mapping[str, CtxCall],
        failed_calls: FailedCalls | None = None,
    ) -> None:
        self._registry = registry
        self._dispatcher = dispatcher
        self._clock = clock
        self._calls = calls
        self._failed_calls = failed_calls or FailedCalls(clock)
        self.source = source
        self.chain: tuple[str, ...] = (source,)
        self.counted_secs = 0.0
        self.trace = Trace(clock)
        self.warnings: list[str] = []
        kind, _, name = source.partition(":")
        self._label = {kind: name}
        self._results: deque[dict[str, Any]] = deque()
        self._result_bytes = 0

    @property
    def results(self) -> list[dict[str, Any]]:
        """The `{target, status, message}` of each command."""
        return list(self._results)

    async def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Execute `ctx:<operation>(…)`. Raise a `LaresError` if it fails."""
        return await self._calls[operation](self, *arguments)

    async def send(self, devices: Sequence[Device], command: Command) -> list[dict[str, Any]]:
        """Send the command to the devices, in parallel if their addresses differ. Store and return the results in the
        order of the devices."""
        outcomes = await self._dispatcher.send(devices, command, self.source) if devices else ()
        return [self._record(outcome, command) for outcome in outcomes]

    async def send_to(self, device_id: str, command: Command) -> dict[str, Any]:
        """Send the command to the device. Store and return the result. For an unknown id, the result is an error."""
        try:
            device = self._registry.get_device(device_id)
        except NotFound as error:
            refused = self._dispatcher.refuse(device_id[:MAX_ID_CHARS], command, self.source, error)
            return self._record(refused, command)
        [result] = await self.send([device], command)
        return result

    async def invoke(self, target: str, payload: Mapping[str, Any]) -> Any:
        status = "error"
        try:
            answer = await self._dispatcher.invoke(target, payload)
            status = "ok"
        except LaresError as error:
            self.note_failure(target, str(error))
            raise
        finally:
            self.trace.add("invoke", target=target, status=status)
        return answer

    def log(self, level: str, message: str, fields: Any) -> None:
        """Log a script's line with the name of its scene or automation."""
        self.trace.add("log", level=level, message=message)
        named = fields if isinstance(fields, dict) else {} if fields is None else {"fields": fields}
        log.log(
            SCRIPT_LOG_LEVELS[level], "%s", message, extra=own_fields({**dict(sorted(named.items())), **self._label})
        )

    def note_failure(self, target: str, reason: str) -> None:
        log.warning("%s: %s failed: %s", self.source, target, reason)
        self._failed_calls.add(self.source, target, reason)
        self.warn(target, reason)

    def warn(self, target: str, reason: str) -> None:
        """Add a failed call to the warnings of the execution's history entry."""
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(_short(f"{target}: {reason}"))

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
