"""The simulated home of `lares simulate`: devices show at once what they are commanded, vendors do nothing."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from appliance.adapters.dispatch import Dispatcher, Outcome, Status
from appliance.cli.device_events import EVENT, STATE, FileEvent
from appliance.clock import Clock
from appliance.errors import LaresError, Unreachable, Unsupported
from appliance.history.execution_history import ExecutionEntry
from appliance.home.bus import Bus
from appliance.home.capabilities import CAPABILITIES, STATES_AFTER
from appliance.home.command_specs import CommandSpec, check_offered
from appliance.home.commands import Command
from appliance.home.model import Device, DeviceKind, Observation, Report
from appliance.home.registry import ONLINE, UNAVAILABLE, Registry
from appliance.home.values import Value
from appliance.lua.context import Context
from appliance.lua.execution import UNCOUNTED
from appliance.lua.executor import Execution, ExecutionRequest, Executor
from appliance.lua.worker_pool import WorkerPool
from appliance.tables.checks import is_number

T = TypeVar("T")

EVERY_COMMAND = tuple(
    CommandSpec(capability=each.key, actions=each.actions) for each in CAPABILITIES.values() if not each.read_only
)
"""What a device takes that the home does not have."""

OnAction = Callable[[str, str, Mapping[str, Any]], None]
"""Called with the source of an action, `automation:evening`, a sentence about it, and its JSON."""


class Turns:
    """Lets the Lua of one execution run at a time, in the order in which they ask: every simulation is the same.

    `count_running` is how many executions have begun and not ended; `waiting` is how many of those only wait: they
    sleep, or for others, or for their turn.
    """

    def __init__(self, count_running: Callable[[], int]) -> None:
        self.waiting = 0
        self._count_running = count_running
        self._queue: deque[Callable[[], None]] = deque()

    @property
    def is_busy(self) -> bool:
        """Whether Lua runs, or is to run before any time passes."""
        return bool(self._queue) or self._count_running() > self.waiting

    def ask(self, begin: Callable[[], None]) -> None:
        """Call `begin`, which lets Lua run, when its turn has come; never before this has returned."""
        self._queue.append(begin)
        self.look()

    def look(self) -> None:
        """Begin what is next, if nothing runs once the present step of the loop is over."""
        asyncio.get_running_loop().call_soon(self._begin_next)

    def _begin_next(self) -> None:
        while self._queue and self._count_running() <= self.waiting:
            self._queue.popleft()()

    async def wait(self, work: Awaitable[T]) -> T:
        """What the work, during which its execution only waits, returns or raises, once its turn has come again.

        An execution that is cancelled ends at once.
        """
        self.waiting += 1
        self.look()
        is_cancelled = False
        try:
            return await work
        except asyncio.CancelledError:
            is_cancelled = True
            raise
        finally:
            if is_cancelled:
                self.waiting -= 1
            else:
                turn = asyncio.Event()
                self.ask(partial(self._resume, turn))
                await turn.wait()

    def _resume(self, turn: asyncio.Event) -> None:
        self.waiting -= 1
        turn.set()


class SimulatedExecutor(Executor):
    """An `Executor` whose executions begin when their turn has come, in the order in which they were admitted."""

    def __init__(
        self,
        turns: Turns,
        pool: WorkerPool,
        new_context: Callable[[str], Context],
        clock: Clock,
        on_end: Callable[[ExecutionRequest, ExecutionEntry], None],
    ) -> None:
        def end(request: ExecutionRequest, result: ExecutionEntry) -> None:
            on_end(request, result)
            turns.look()

        super().__init__(pool, new_context, clock, end)
        self._turns = turns

    def _start(self, execution: Execution) -> None:
        self._turns.ask(partial(self._start_in_turn, execution))

    def _start_in_turn(self, execution: Execution) -> None:
        if not execution.ended.done():
            super()._start(execution)


class SimulatedDispatcher(Dispatcher):
    """Sends nothing: what a device offers comes true at once, and every operation of an adapter is done."""

    def __init__(self, registry: Registry, bus: Bus, clock: Clock, sections: Iterable[str]) -> None:
        super().__init__((), bus, clock)
        self._registry = registry
        self._sections = frozenset(sections)

    async def send(self, devices: Sequence[Device], command: Command, source: str) -> list[Outcome]:
        """Let each device show what it is commanded; the outcomes come in the order given."""
        return [self._send_to(device, command, source) for device in devices]

    async def invoke(self, target: str, payload: Mapping[str, Value]) -> Value:
        """Do nothing and answer nothing; `Unsupported` where there is no such section."""
        if target.partition(":")[0] not in self._sections:
            raise Unsupported(f"invoke target '{target}' is not supported")
        return None

    def _send_to(self, device: Device, command: Command, source: str) -> Outcome:
        outcome = Outcome(device_id=device.id, status=Status.OK)
        try:
            if device.attributes.get("state") == UNAVAILABLE:
                raise Unreachable(f"{device.id} is unavailable")
            check_offered(device.id, EVERY_COMMAND if device.commands is None else device.commands, command)
        except LaresError as error:
            status = Status.UNSUPPORTED if isinstance(error, Unsupported) else Status.ERROR
            outcome = Outcome(device_id=device.id, status=status, message=str(error), error=error)
        self._publish(outcome, device.room_id, command, source)
        if outcome.status is Status.OK:
            value = _after(command, device.attributes.get(command.capability))
            shown = {} if value is None else {command.capability: value}
            self._registry.update_attributes(device.metadata.source, device.id, shown)
        return outcome


def _after(command: Command, before: Value) -> Value:
    """What the attribute of the command's capability is afterwards; None where that is unknown."""
    match command.action:
        case "set":
            return command.value
        case "toggle":
            return "off" if before == "on" else "on"
        case "increase" | "decrease" if is_number(before) and is_number(command.value):
            value = before + command.value if command.action == "increase" else before - command.value
            return min(100, max(0, value)) if CAPABILITIES[command.capability].type == "percentage" else value
    return STATES_AFTER.get((command.capability, command.action))


class SimulatedContext(Context):
    """A `Context` that reports log lines, messages and operations; while it waits, others take their turn."""

    on_action: OnAction
    turns: Turns

    async def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """As in `Context`; a message to people is reported."""
        if operation == "notify":
            self.on_action(self.source, f"notifies: {arguments[0]}", {"notify": arguments[0], "fields": arguments[1]})
        call = super().call(operation, arguments)
        return await (self.turns.wait(call) if operation in UNCOUNTED else call)

    async def invoke(self, target: str, payload: Mapping[str, Any]) -> Any:
        """As in `Context`; it is reported."""
        words = f"invokes {target} {json.dumps(payload)}"
        self.on_action(self.source, words, {"invoke": target, "payload": payload})
        return await super().invoke(target, payload)

    def log(self, level: str, message: str, fields: Any) -> None:
        """Report the line."""
        self.on_action(self.source, f"logs {level}: {message}", {"log": message, "level": level, "fields": fields})


def add_missing_devices(registry: Registry, events: Iterable[FileEvent]) -> dict[str, int]:
    """Make the devices that only the events know; which, with the line that names each first."""
    made: dict[str, int] = {}
    for event in events:
        if event.device_id not in made and not registry.find_devices([event.device_id]):
            made[event.device_id] = event.line
            seen = Observation(
                device_id=event.device_id,
                kind=DeviceKind.VIRTUAL,
                attributes={},
                commands=EVERY_COMMAND,
                is_available=True,
            )
            registry.apply(Report(adapter=event.device_id.partition(":")[0], observations=(seen,)))
    return made


def mark_all_observed(registry: Registry) -> None:
    """Let every device be online as it was last seen, so that what it shows from now on is a change."""
    for device in registry.list_devices():
        registry.update_attributes(device.metadata.source, device.id, {})


def apply_event(registry: Registry, event: FileEvent) -> None:
    """Make the event happen in the simulated home."""
    [device] = registry.find_devices([event.device_id])
    source = device.metadata.source
    if event.attribute == EVENT:
        registry.publish_event(source, device.id, event.value, {})
    elif event.attribute == STATE:
        registry.set_availability(source, device.id, is_available=event.value == ONLINE)
    else:
        shown = _in_unit(event.value, device.attributes.get(event.attribute))
        registry.update_attributes(source, device.id, {event.attribute: shown})


def _in_unit(value: Value, before: Value) -> Value:
    """The measurement in the unit of the one before it, where it states none."""
    is_without = isinstance(value, dict) and value.get("unit") == ""
    return {**value, "unit": before["unit"]} if is_without and isinstance(before, dict) else value
