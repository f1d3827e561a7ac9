"""The simulated home for `lares simulate`. Devices report commanded values at once, and nothing is sent to a
vendor."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from appliance.adapters.dispatch import Dispatcher, Outcome
from appliance.automations.ctx import CtxMethods
from appliance.cli.simulation.device_events import EVENT, STATE, FileEvent
from appliance.clock import Clock
from appliance.errors import LaresError, Unreachable, Unsupported
from appliance.home.bus import Bus
from appliance.home.capabilities import CAPABILITIES
from appliance.home.command_effects import changes_of
from appliance.home.command_specs import CommandSpec, check_offered
from appliance.home.commands import Command
from appliance.home.model import ONLINE, UNAVAILABLE, Device, DeviceKind, Observation, Report
from appliance.home.registry import Registry
from appliance.home.values import Value
from appliance.lua.running.context import Context
from appliance.lua.running.ctx_calls import UNCOUNTED
from appliance.lua.running.executor import Execution, ExecutionRequest, Executor
from appliance.lua.running.lua_run import Priority

T = TypeVar("T")

EVERY_COMMAND = tuple(
    CommandSpec(capability=each.key, actions=each.actions) for each in CAPABILITIES.values() if not each.read_only
)
"""The capabilities of a device that exists only in the simulation. The device accepts every command."""

OnAction = Callable[[str, str, Mapping[str, Any]], None]
"""Receives an action's source (such as `automation:evening`), a sentence that describes the action, and the action as
JSON."""


class Turn:
    """A fair lock for executions: only one execution runs at a time, in the order of the requests, so that the
    simulation is deterministic.

    Without this lock, the worker would run the Lua of other executions while the hub answers a call. While an
    execution holds the lock, `is_taken` is true and simulated time does not pass.
    """

    def __init__(self) -> None:
        self.is_taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def ask(self, *, is_next: bool = False) -> asyncio.Future[None]:
        """Add the caller to the front or the end of the queue. Return a future that completes when the caller
        holds the lock. The caller must release the lock with `pass_on`."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.insert(0 if is_next else len(self._waiting), turn)
        if not self.is_taken:
            self.pass_on()
        return turn

    def pass_on(self) -> None:
        """Release the lock to the next execution in the queue."""
        while self._waiting and (turn := self._waiting.popleft()):
            if not turn.done():
                self.is_taken = True
                turn.set_result(None)
                return
        self.is_taken = False

    async def pause(self, work: Awaitable[T]) -> T:
        """Wait for the work without holding the lock, so that other executions run in the meantime."""
        asyncio.get_running_loop().call_soon(self.pass_on)  # if the work has started a scene, the scene runs first
        try:
            return await work
        finally:
            await self.ask()


class SimulatedExecutor(Executor):
    """An `Executor` that runs one execution at a time, in the order of the requests."""

    def __init__(self, turn: Turn, *parts: Any) -> None:
        super().__init__(*parts)
        self._turn = turn

    def start(self, execution: Execution) -> None:
        turn = self._turn.ask(is_next=bool(execution.request.chain))
        turn.add_done_callback(lambda _: self._start_in_turn(execution))

    def priority_of(self, request: ExecutionRequest) -> Priority:
        """Begin at once or fail, because simulated time does not pass while an execution waits for memory."""
        return Priority.NESTED

    def _start_in_turn(self, execution: Execution) -> None:
        execution.ended.add_done_callback(lambda _: self._turn.pass_on())
        if not execution.ended.done():
            super().start(execution)


class SimulatedDispatcher(Dispatcher):
    """Applies each valid command at once without an adapter. Every operation succeeds."""

    def __init__(
        self, registry: Registry, bus: Bus, clock: Clock, operations: Mapping[str, Collection[str] | None]
    ) -> None:
        super().__init__((), bus, clock)
        self._registry = registry
        self._operations = operations

    async def send(self, devices: Sequence[Device], command: Command, source: str) -> list[Outcome]:
        """Apply the command to each device. Return the outcomes in device order."""
        return [self._send_to(device, command, source) for device in devices]

    async def invoke(self, target: str, payload: Mapping[str, Value]) -> Value:
        """Raise `Unsupported` for an unknown section or operation. Otherwise, do nothing."""
        section, _, operation = target.partition(":")
        known = self._operations.get(section)
        if section not in self._operations or (known is not None and operation not in known):
            raise Unsupported(f"invoke target '{target}' is not supported")
        return None

    def _send_to(self, device: Device, command: Command, source: str) -> Outcome:
        outcome = Outcome(device_id=device.id)
        try:
            if device.attributes.get("state") == UNAVAILABLE:
                raise Unreachable(f"{device.id} is unavailable")
            specs = EVERY_COMMAND if device.commands is None else device.commands
            command = check_offered(device.id, specs, command)
        except LaresError as error:
            outcome = Outcome(device_id=device.id, error=error)
        self.publish_outcome(outcome, device.room_id, command, source)
        if outcome.error is None:
            changes = changes_of(command, device.attributes)
            self._registry.update_attributes(device.metadata.source, device.id, changes)
        return outcome


class SimulatedContext(Context):
    """A `Context` that reports log lines and messages. While this execution waits, other executions run."""

    def __init__(self, on_action: OnAction, turn: Turn, *parts: Any) -> None:
        super().__init__(*parts)
        self._on_action = on_action
        self._turn = turn

    async def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Handle the call like `Context`, and report messages to users."""
        if operation == "notify":
            self._on_action(
                self.source, f"notifies: {arguments[0]}", {"notify": arguments[0], "fields": arguments[1]}
            )
        call = super().call(operation, arguments)
        return await (self._turn.pause(call) if operation in UNCOUNTED else call)

    def log(self, level: str, message: str, fields: Any) -> None:
        self._on_action(self.source, f"logs {level}: {message}", {"log": message, "level": level, "fields": fields})


class SimulatedCtxMethods(CtxMethods):
    """`CtxMethods` that report operations."""

    def __init__(self, on_action: OnAction, *parts: Any) -> None:
        super().__init__(*parts)
        self._on_action = on_action

    async def invoke(self, context: Context, target: str, payload: Mapping[str, Any]) -> Any:
        words = f"invokes {target} {json.dumps(payload)}"
        self._on_action(context.source, words, {"invoke": target, "payload": payload})
        return await super().invoke(context, target, payload)


def add_missing_devices(registry: Registry, events: Iterable[FileEvent]) -> dict[str, int]:
    """Create the devices that appear only in the events. Return each new device's id with the first line that
    contains it."""
    made: dict[str, int] = {}
    for event in events:
        device_id = registry.id_of(event.device_id)
        if device_id not in made and registry.find_device(device_id) is None:
            made[device_id] = event.line
            seen = Observation(
                device_id=device_id,
                kind=DeviceKind.VIRTUAL,
                attributes={},
                commands=EVERY_COMMAND,
                is_available=True,
            )
            registry.apply(Report(adapter=device_id.partition(":")[0], observations=(seen,)))
    return made


def mark_all_observed(registry: Registry) -> None:
    """Set every device online with its last values, so that new values are treated as changes."""
    for device in registry.list_devices():
        registry.update_attributes(device.metadata.source, device.id, {})


def apply_event(registry: Registry, event: FileEvent) -> None:
    """Apply the event to the simulated home."""
    device = registry.get_device(event.device_id)
    source = device.metadata.source
    if event.attribute == EVENT:
        registry.publish_event(source, device.id, event.value, {})
    elif event.attribute == STATE:
        registry.set_availability(source, device.id, is_available=event.value == ONLINE)
    else:
        shown = _in_unit(event.value, device.attributes.get(event.attribute))
        registry.update_attributes(source, device.id, {event.attribute: shown})


def _in_unit(value: Value, before: Value) -> Value:
    """Return the measurement. If the number has no unit, add the unit of the previous value."""
    is_without = isinstance(value, dict) and value.get("unit") == ""
    return {**value, "unit": before["unit"]} if is_without and isinstance(before, dict) else value
