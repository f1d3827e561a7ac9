"""Automations without Lua. Files contain JSON, the test decides when runs end, and time is virtual."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from appliance.automations.automation_states import AutomationStates
from appliance.automations.automations import Automations
from appliance.automations.brake import Brake
from appliance.automations.definition import AutomationDefinition, automation_parser
from appliance.automations.environment import Environment
from appliance.automations.safe_mode import SafeMode
from appliance.automations.schedule.clock_watch import ClockWatch
from appliance.automations.variables import Variables
from appliance.errors import ExecutionCancelled, Fault, ScriptFailed, StoreFailed
from appliance.history.execution_history import ExecutionEntry, ExecutionHistory
from appliance.history.period import Period
from appliance.home.bus import Bus
from appliance.home.events import AdapterAnswered
from appliance.home.model import Device, DeviceKind, Observation, Report
from appliance.lua.files.catalog import Catalog
from appliance.lua.files.folder import Folder
from appliance.lua.running.executor import Executor
from appliance.lua.running.lua_run import Failure, Priority
from appliance.lua.running.packed_rows import RowMemory
from appliance.lua.running.trace import Trace
from appliance.lua.text.source import Source
from appliance.store.clock_trust import ClockTrust
from appliance.store.storage import Prepare
from appliance.tables.checks import Function
from tests.automations.homes import BERLIN, NOW
from tests.fakes.clock import VirtualClock
from tests.fakes.registry import PromptRegistry

FOREVER = 1e9
"""Seconds of a timer that never expires in a test. While such a timer runs, the scheduler sleeps after all other
work, so a test can wait until the scheduler sleeps."""

LAMP, TV = "desk:light:0", "tv:tv"
LONG_AGO = datetime.fromisoformat("2020-01-01T00:00:00Z")

ON = {"type": "device_state_change", "device_id": LAMP, "attribute": "power", "equals": "on"}


class Play:
    counted_secs = 0.0
    queued_secs = 0.0

    def __init__(self, name: str, source: Source, event: Mapping[str, Any]) -> None:
        self.name = name.removeprefix("automation:")
        self.source = source
        self.event = event
        self.over: asyncio.Future[Failure] = asyncio.get_running_loop().create_future()

    async def finish(self) -> Failure:
        return await self.over

    def end(self, failure: Failure = None) -> None:
        if not self.over.done():
            self.over.set_result(failure)

    def fail(self, status: str = "error") -> None:
        """End the run with an error."""
        self.end(ScriptFailed(Fault("x.lua", 1, "no"), status))

    def cancel(self) -> None:
        """End the run as cancelled."""
        self.end(ExecutionCancelled())

    stop_after_call = cancel

    def describe_activity(self) -> tuple[str, str]:
        """Return the status and the current step."""
        return "running", "plays"


class Stage:
    def __init__(self) -> None:
        self.plays: list[Play] = []
        self.ends_at_once = True
        self.breaks: set[str] = set()
        self.room = asyncio.Event()
        self.room.set()
        self.waits_for_room = 0
        self.has_room_for_alarms = True
        self.alarms: list[str] = []

    def has_room(self, *, is_alarm: bool) -> bool:
        return self.room.is_set() or (is_alarm and self.has_room_for_alarms)

    is_half_used = False
    unended = 0

    async def wait_for_change(self) -> None:
        self.waits_for_room += 1
        await self.room.wait()

    def begin(
        self,
        source: Source,
        context: Any,
        event: Mapping[str, Any],
        *,
        name: str,
        priority: Priority = Priority.NORMAL,
        client: str = "",
    ) -> Play:
        play = Play(name, source, event)
        if play.name in self.breaks:
            raise ZeroDivisionError("by mistake")
        self.plays.append(play)
        self.alarms += [play.name] if priority is Priority.ALARM else []
        if self.ends_at_once:
            play.end()
        return play


class FailingHistory(ExecutionHistory):
    fails = False

    def add(self, entry: ExecutionEntry) -> None:
        if self.fails:
            raise RuntimeError("the history takes nothing")
        super().add(entry)


class _Context:
    results: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()

    def __init__(self, clock: VirtualClock) -> None:
        self.trace = Trace(clock, RowMemory())


@dataclass
class Card:
    """Stored values, which survive a restart. `was_cut_off` means that the devices may have changed afterwards. If it
    is false, only the attributes in `doubtful` may have changed."""

    values: dict[str, Any] = field(default_factory=dict)
    devices: list[Device] = field(default_factory=list)
    was_cut_off: bool = False
    doubtful: dict[str, list[str]] = field(default_factory=dict)
    is_bad: bool = False
    recorded: dict[str, Device] = field(default_factory=dict)

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """Like the document, return the values with this prefix."""
        return [(key.removeprefix(prefix), value) for key, value in self.values.items() if key.startswith(prefix)]

    def get(self, key: str) -> bytes | None:
        return json.dumps(self.values[key]).encode() if key in self.values else None

    def put_later(self, key: str, value: Any, *, is_minor: bool = False) -> None:
        """Store at once. A value that is not JSON raises an error."""
        self.values.pop(key, None)
        if value is not None:
            self.values[key] = json.loads(json.dumps(value))

    async def put_many(self, values: Mapping[str, Any]) -> None:
        """Like the recorder, store the values. If `is_bad` is set, store nothing."""
        if not self.is_bad:
            for key, value in values.items():
                self.put_later(key, value)
        await asyncio.sleep(0)
        if self.is_bad:
            raise StoreFailed("the card is full")

    async def record(self, devices: Iterable[Device], more: Mapping[str, Any]) -> None:
        """Store the devices in `recorded`, and `more` values."""
        self.recorded |= {each.id: each for each in devices}
        await self.put_many(more)

    async def change(
        self, prepare: Prepare, commit: Callable[[], None] | None = None, *, replaces: Iterable[str] = ()
    ) -> None:
        changes = prepare({})
        await self.put_many({key: None if value is None else json.loads(value) for key, value in changes.items()})
        if commit is not None:
            commit()

    def is_being_flushed(self, _: str) -> bool:
        """Return False, because a flush takes no time."""
        return False


@dataclass(kw_only=True)
class Bench:
    """Automations on a virtual clock, and their environment."""

    clock: VirtualClock
    registry: PromptRegistry
    bus: Bus
    stage: Stage
    history: FailingHistory
    states: AutomationStates
    parts: Automations
    folder: Path
    card: Card
    brake: Brake
    variables: Variables
    vendor_specific: dict[str, Any] = field(default_factory=dict)

    @property
    def fired(self) -> list[str]:
        return [play.name for play in self.stage.plays]

    @property
    def events(self) -> list[Any]:
        """The events of all runs."""
        return [play.event for play in self.stage.plays]

    @property
    def instants(self) -> list[str]:
        """Return the due times of all fired occurrences."""
        return [event["scheduled_at"] for event in self.events]

    def show(self, device_id: str = LAMP, **attributes: Any) -> None:
        """Make the device report these attributes, in addition to earlier ones."""
        adapter = device_id.split(":", maxsplit=1)[0]
        known = self.registry.find_devices([device_id])
        shown = {**(known[0].attributes if known else {}), **attributes}
        shown.pop("state", None)
        seen = Observation(
            device_id=device_id, kind=DeviceKind.LIGHT, attributes=shown, vendor_specific=self.vendor_specific
        )
        self.registry.apply(Report(adapter=adapter, observations=(seen,)))
        self.bus.publish(AdapterAnswered(adapter=adapter, at=self.clock.now()))

    def remove(self, device_id: str = LAMP) -> None:
        """Remove the device at its vendor."""
        self.registry.remove(device_id.split(":", maxsplit=1)[0], device_id)

    async def pass_by(self, seconds: float) -> None:
        """Advance the clock."""
        await self.drain()
        await self.clock.advance(seconds, sleepers=1)
        await self.drain()

    async def set(self, instant: datetime) -> None:
        self.clock.set(instant)
        await self.pass_by(15)

    async def drain(self) -> None:
        """Let other tasks run for ten iterations of the event loop, so that runs can finish."""
        for _ in range(10):
            await asyncio.sleep(0)

    async def reload(self, *definitions: Mapping[str, Any]) -> None:
        write(self.folder, definitions)
        assert (await self.parts.reload())[1] == []

    def outcomes(self, id_: str = "a") -> list[tuple[str, str | None]]:
        """Return the status and the error of each result of the automation's triggers, oldest first."""
        return [(entry.status.value, entry.error) for entry in self.entries(id_)]

    def entries(self, id_: str = "a") -> list[ExecutionEntry]:
        """Return the results of an automation's triggers, oldest first."""
        return self.parts.list_runs(id_, Period(limit=1000))[::-1]


def automation(trigger: Mapping[str, Any] | None = None, id_: str = "a", **more: Any) -> dict[str, Any]:
    """Return the file of an automation. By default, the automation is triggered when the lamp is switched on."""
    return {"id": id_, "name": id_.upper(), "trigger": dict(ON if trigger is None else trigger), **more}


def write(folder: Path, definitions: Any) -> None:
    """Write the files of these automations, and delete all other files."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.lua"):
        old.unlink()
    for number, each in enumerate(definitions):
        (folder / f"{number:03}.lua").write_text(json.dumps(each))


async def _describe(source: Source) -> Mapping[str, Any]:
    return {**json.loads(source.text), "execute": Function(1)}


@asynccontextmanager
async def bench(
    folder: Path,
    *definitions: Mapping[str, Any],
    start: datetime = NOW,
    believed_after: datetime = LONG_AGO,
    card: Card | None = None,
    locale: Any = BERLIN,
    stopped_at: datetime | None = None,
    stage: Stage | None = None,
    is_idle: bool = False,
    clock: VirtualClock | None = None,
    safe_mode: SafeMode | None = None,
) -> AsyncIterator[Bench]:
    """Run these automations. The home has a lamp that is off, unless the card contains devices. Data that must
    survive a restart is written to the given card."""
    write(folder, definitions)
    clock, bus, kept = clock or VirtualClock(start), Bus(), card or Card()
    registry = PromptRegistry(bus, clock)
    registry.restore(registry.layout, kept.devices, are_doubtful=kept.was_cut_off, doubtful=kept.doubtful)
    history, stage = FailingHistory(), stage or Stage()
    watch = ClockWatch(clock, ClockTrust(clock, believed_after), stopped_at=stopped_at)
    environment = Environment(registry, bus, watch, kept, record=kept.record)
    catalog: Catalog[AutomationDefinition] = Catalog(
        "automation", Folder(path=folder, name="config/automations"), _describe, automation_parser(locale, clock, 3)
    )
    executor = Executor(cast("Any", stage), cast("Any", lambda *_: _Context(clock)), clock, history)
    async with Automations(catalog, environment, executor, safe_mode) as parts:
        if not is_idle:
            parts.scheduler.after("the end of time", FOREVER, lambda late: None)
        it = Bench(
            clock=clock,
            registry=registry,
            bus=bus,
            stage=stage,
            history=history,
            states=parts.states,
            variables=environment.variables,
            parts=parts,
            folder=folder,
            card=kept,
            brake=environment.brake,
        )
        if not kept.devices:
            it.show(power="off", brightness=20)
        await it.drain()
        yield it
        kept.devices, kept.doubtful = [*registry.list_devices()], registry.list_doubtful()


def secs(**span: float) -> float:
    return timedelta(**span).total_seconds()
