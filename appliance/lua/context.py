"""Context: what `ctx` of one execution does in the home, the results of its commands, and its trace."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec import Struct

from appliance.adapters.dispatch import Dispatcher, Outcome, Status
from appliance.clock import Clock
from appliance.errors import Invalid, LaresError, NotFound, UnfitValue
from appliance.home.commands import Command, check_stated
from appliance.home.json_shapes import DEVICE, GROUP, ROOM
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.texts import MAX_ID_CHARS
from appliance.log_buffer import own_fields
from appliance.tables.json_schema import Shape
from appliance.tasks import in_steps

log = logging.getLogger("scripts")

MAX_SLEEP_SECS = 3600
MAX_RESULTS = 1_000
MAX_RESULT_BYTES = 256 << 10
"""Results of commands that are kept of an execution; older ones are dropped."""

MAX_FAILED_CALLS = 100
"""Names and targets of which failures are counted."""

MAX_TRACE_STEPS = 200
MAX_LOG_STEPS = 50
MAX_STEP_CHARS = 200
"""Characters that are kept of a text in a step."""

SCRIPT_LOG_LEVELS: Mapping[str, int] = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}

MoreCall = Callable[..., Awaitable[Any]]
"""A call of another room: it is given the context and the three arguments, and answers in JSON data."""


class FailedCall(Struct, frozen=True, kw_only=True):
    """What an execution asked for and did not get: the newest reason, when, and how often since the start."""

    source: str
    target: str
    reason: str
    at: datetime
    count: int


class FailedCalls:
    """The commands and calls of executions that failed, one row for each execution's name and target."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[tuple[str, str], FailedCall] = {}

    def add(self, source: str, target: str, reason: str) -> None:
        """Count one more; beyond `MAX_FAILED_CALLS` rows the one that is longest ago is forgotten."""
        before = self._rows.pop((source, target), None)
        count = 1 if before is None else before.count + 1
        self._rows[source, target] = FailedCall(
            source=source, target=target, reason=_short(reason), at=self._clock.now(), count=count
        )
        if len(self._rows) > MAX_FAILED_CALLS:
            del self._rows[next(iter(self._rows))]

    def list_newest(self) -> list[FailedCall]:
        """The rows, the newest failure first."""
        return [*reversed(self._rows.values())]


class Trace:
    """Keeps the newest steps, of lines of the log fewer. `at_ms` counts from when the trace was made."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._steps: deque[Mapping[str, Any]] = deque(maxlen=MAX_TRACE_STEPS)

    def add(self, step: str, **fields: Any) -> None:
        """Add a step, `command`, `invoke`, `sleep`, `log`, `scene` or `wait`, with its fields."""
        at_ms = round((self._clock.monotonic() - self._began) * 1000)
        self._steps.append({"at_ms": at_ms, "step": step, **{key: _short(value) for key, value in fields.items()}})
        if step == "log":
            logged = [index for index, each in enumerate(self._steps) if each["step"] == "log"]
            if len(logged) > MAX_LOG_STEPS:
                del self._steps[logged[0]]

    def list_steps(self) -> tuple[Mapping[str, Any], ...]:
        """The steps that are kept, the oldest first."""
        return tuple(self._steps)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    return f"{value[: MAX_STEP_CHARS - 1]}…" if isinstance(value, str) and len(value) > MAX_STEP_CHARS else value


class Context:
    """The `Calls` of one execution. `source` is what its commands are recorded under, `scene:evening`.

    `results` are those of its commands in call order, the newest `MAX_RESULTS`. `more` are calls of other rooms.
    `chain` are the scenes and automations that led to the execution, its own last. No call is done before `after` is
    set, where there is such an event.
    """

    def __init__(
        self,
        registry: Registry,
        dispatcher: Dispatcher,
        clock: Clock,
        source: str,
        more: Mapping[str, MoreCall] | None = None,
        failed_calls: FailedCalls | None = None,
    ) -> None:
        self._registry = registry
        self._dispatcher = dispatcher
        self._clock = clock
        self._more = more or {}
        self._failed_calls = failed_calls or FailedCalls(clock)
        self.source = source
        self.chain: tuple[str, ...] = (source,)
        self.after: asyncio.Event | None = None
        self.counted_secs = 0.0
        self.trace = Trace(clock)
        kind, _, name = source.partition(":")
        self._label = {kind: name}
        self._results: deque[dict[str, Any]] = deque()
        self._result_bytes = 0

    @property
    def results(self) -> list[dict[str, Any]]:
        """`{target, status, message}` of each command."""
        return list(self._results)

    async def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Do what `ctx:<operation>(…)` asks; raises a `LaresError` where it cannot be done."""
        if self.after is not None:
            await self.after.wait()
        do = _DOES.get(operation) or self._more[operation]
        return await do(self, *arguments)

    async def send(self, devices: Sequence[Device], command: Command) -> list[dict[str, Any]]:
        """Command the devices, those at different addresses at once; their results, which are kept, in order."""
        outcomes = await self._dispatcher.send(devices, command, self.source)
        return [self._record(outcome, command) for outcome in outcomes]

    async def send_to(self, device_id: str, command: Command) -> dict[str, Any]:
        """Command the device of the id; its result, which is kept: an error where there is no such device."""
        try:
            device = self._registry.get_device(device_id)
        except NotFound as error:
            refused = self._dispatcher.refuse(device_id[:MAX_ID_CHARS], command, self.source, str(error))
            return self._record(refused, command)
        [result] = await self.send([device], command)
        return result

    async def invoke(self, target: str, payload: Mapping[str, Any]) -> Any:
        """Call an operation of an adapter; see `Dispatcher.invoke`."""
        status = "error"
        try:
            answer = await self._dispatcher.invoke(target, payload)
            status = "ok"
        except LaresError as error:
            self._note_failure(target, str(error))
            raise
        finally:
            self.trace.add("invoke", target=target, status=status)
        return answer

    def log(self, level: str, message: str, fields: Any) -> None:
        """Write a line of the script's to the log, with its name."""
        self.trace.add("log", level=level, message=message)
        named = fields if isinstance(fields, dict) else {} if fields is None else {"fields": fields}
        log.log(
            SCRIPT_LOG_LEVELS[level], "%s", message, extra=own_fields({**dict(sorted(named.items())), **self._label})
        )

    def _note_failure(self, target: str, reason: str) -> None:
        log.warning("%s: %s failed: %s", self.source, target, reason)
        self._failed_calls.add(self.source, target, reason)

    async def _command(self, device_id: str, raw: Any) -> dict[str, Any]:
        try:
            command = Command.parse(raw)
        except UnfitValue as unfit:
            for device in self._registry.find_devices([device_id]):
                check_stated(device.commands or (), unfit)
            raise
        result = await self.send_to(device_id, command)
        return {"status": result["status"], "message": result["message"]}

    async def _command_group(self, group_id: str, raw: Any) -> list[dict[str, Any]]:
        return await self.send(self._registry.list_group_devices(group_id), Command.parse(raw))

    async def _command_room(self, room_id: str, raw: Any) -> list[dict[str, Any]]:
        return await self.send(self._registry.list_room_devices(room_id), Command.parse(raw))

    async def _invoke(self, target: str, payload: Any, *_: None) -> Any:
        if payload is not None and not isinstance(payload, dict):
            raise Invalid("ctx:invoke: the payload must be a table with named fields")
        return await self.invoke(target, payload or {})

    async def _sleep(self, seconds: float, *_: None) -> None:
        if not 0 <= seconds <= MAX_SLEEP_SECS:
            raise Invalid(f"ctx:sleep takes 0 to {MAX_SLEEP_SECS} seconds, not {seconds:g}")
        self.trace.add("sleep", secs=seconds)
        await self._clock.sleep(seconds)

    def _record(self, outcome: Outcome, command: Command) -> dict[str, Any]:
        fields = {"device_id": outcome.device_id, "status": outcome.status, "message": outcome.message}
        self.trace.add("command", capability=command.capability, action=command.action, value=command.value, **fields)
        if outcome.status is not Status.OK:
            reason = outcome.message or outcome.status
            self._note_failure(f"{command} to {outcome.device_id}", reason)
        result = {"target": outcome.device_id, "status": outcome.status, "message": outcome.message}
        self._results.append(result)
        self._result_bytes += _size_of(result)
        while len(self._results) > MAX_RESULTS or self._result_bytes > MAX_RESULT_BYTES:
            self._result_bytes -= _size_of(self._results.popleft())
        return result


def _size_of(result: Mapping[str, Any]) -> int:
    return 64 + len(result["target"]) + len(result["message"] or "")


_Find = Callable[[Registry, str], Any]


def _getting(shape: Shape, find: _Find) -> MoreCall:
    """A call that answers one thing from memory; None where there is no such thing."""

    async def get(context: Context, name: str, *_: None) -> Any:
        with suppress(NotFound):
            return shape(find(context._registry, name))
        return None

    return get


def _listing(shape: Shape, find: _Find) -> MoreCall:
    """A call that answers things from memory, each as it is then; raises `NotFound` for no such room or group."""

    async def list_(context: Context, name: str, *_: None) -> list[Any]:
        shown: list[Any] = []
        await in_steps(context._clock, map(shown.append, map(shape, find(context._registry, name))))
        return shown

    return list_


def _commanding(send: Callable[[Context, str, Any], Awaitable[Any]]) -> MoreCall:
    async def command(context: Context, name: str, raw: Any, *_: None) -> Any:
        try:
            return await send(context, name, raw)
        except LaresError as error:  # nothing was sent; a `pcall` would leave no word of it
            context._note_failure(f"command to {name[:MAX_ID_CHARS]}", str(error))
            raise

    return command


_DOES: Mapping[str, MoreCall] = {
    "command": _commanding(Context._command),
    "command_room": _commanding(Context._command_room),
    "command_group": _commanding(Context._command_group),
    "invoke": Context._invoke,
    "sleep": Context._sleep,
    "get_device": _getting(DEVICE, Registry.get_device),
    "get_room": _getting(ROOM, Registry.get_room),
    "get_group": _getting(GROUP, Registry.get_group),
    "list_devices": _listing(DEVICE, lambda registry, _: registry.list_devices()),
    "list_rooms": _listing(ROOM, lambda registry, _: registry.list_rooms()),
    "list_room_devices": _listing(DEVICE, Registry.list_room_devices),
    "list_groups": _listing(GROUP, lambda registry, _: registry.list_groups()),
    "list_group_devices": _listing(DEVICE, Registry.list_group_devices),
}
"""What each method of `ctx` does, but for those that other rooms do; `lua_worker/ctx_methods.py` lists all."""
