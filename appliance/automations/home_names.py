"""Home names: a warning for each device, attribute, event, variable, timer, scene or adapter that is named and that
the home does not have, or that the device has never shown; with the nearest name.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from appliance.automations.automations import Automations
from appliance.automations.conditions import Combination, Condition, DeviceState, VariableState
from appliance.automations.definition import AutomationDefinition
from appliance.automations.device_triggers import DeviceEventTrigger, DeviceTrigger
from appliance.automations.environment import Environment
from appliance.automations.timers import Timers
from appliance.automations.triggers import AdapterLifecycle, TimerTrigger, Trigger, VariableTrigger
from appliance.errors import Fault
from appliance.home.events import AdapterAnswered, CatalogReloaded, DeviceEvent, DeviceStateChanged, Event
from appliance.lua.lua_catalog import Asset
from appliance.lua.names import called_names
from appliance.lua.source import Source
from appliance.tables.checks import nearest
from appliance.tasks import Tasks

log = logging.getLogger("automations")

SETTLING_SECS = 60.0
"""How long after a start names are not judged: devices are not known yet."""

MAX_EVENT_NAMES = 100
"""Names of events that are remembered of a device."""

_GIVEN = re.compile(r""":\s*(set|start_timer)\s*\(\s*(?:(["'])([^"'\\]*)\2\s*[,)])?""")
"""A call that sets a variable or starts a timer; its name, where it is a plain text."""

NamedThing = tuple[str, str, str]
"""The field that names, the kind of what it names, and the name; of an attribute or event, `device name`."""


class HomeNames(Struct, frozen=True, kw_only=True):
    """What there is to be named. `devices` are the attributes that each shows, `events` those that it sent, by id.

    `sources` are the files that may set variables and start timers; `called` are those of them whose calls count.
    """

    adapters: Collection[str]
    devices: Mapping[str, Collection[str]]
    variables: Collection[str]
    timers: Collection[str]
    scenes: Collection[str]
    sources: Collection[Source]
    called: Collection[Source]
    events: Mapping[str, Collection[str]] = {}
    notify_targets: Collection[str] = ()

    def list_faults(self, automations: Iterable[Asset[AutomationDefinition]]) -> list[Fault]:
        """Every wrong name: in these automations, in the calls of all files, and in `[notify] targets`."""
        found = [fault for asset in automations for fault in self.faults_of(asset)]
        found += [fault for source in self.called for fault in self._in_calls(source)]
        for target in self.notify_targets:
            if (message := self._missing("adapter", target.partition(":")[0])) is not None:
                found.append(Fault("[notify] targets", 0, f"{target}: {message}"))
        return sorted(dict.fromkeys(found))

    def faults_of(self, asset: Asset[AutomationDefinition]) -> Iterator[Fault]:
        """The wrong names in the triggers and conditions of one automation."""
        source, definition = asset.source, asset.definition
        for number, trigger in enumerate(definition.triggers, 1):
            path = ("trigger",) if len(definition.triggers) == 1 else ("triggers", str(number))
            yield from self._faults(source, path, names_in_trigger(trigger))
        yield from self._in_conditions(source, ("conditions",), definition.conditions)

    def _in_conditions(
        self, source: Source, path: tuple[str, ...], conditions: Iterable[Condition]
    ) -> Iterator[Fault]:
        for number, condition in enumerate(conditions, 1):
            place = (*path, str(number))
            yield from self._faults(source, place, names_in_condition(condition))
            if isinstance(condition, Combination):
                yield from self._in_conditions(source, (*place, "conditions"), condition.conditions)

    def _faults(self, source: Source, path: tuple[str, ...], names: Iterable[NamedThing]) -> Iterator[Fault]:
        for field, kind, name in names:
            if (message := self._missing(kind, name)) is not None:
                where = "".join(f"[{each}]" if each.isdigit() else f".{each}" for each in (*path, field)).lstrip(".")
                yield Fault(source.name, source.line_of(*path, field) or source.line_of_return, f"{where} {message}")

    def _in_calls(self, source: Source) -> Iterator[Fault]:
        for called in called_names(source):
            message = self._missing(called.kind, called.name) if called.kind in ("device", "scene") else None
            if message is not None:
                yield Fault(source.name, called.line, f"ctx:{called.call} {message}")

    def _missing(self, kind: str, name: str) -> str | None:
        """What is wrong with the name of a thing of this kind; None where there is one, or that is not known."""
        if kind in ("attribute", "event"):
            return self._never_shown(kind, *name.split(" ", 1))
        there = self._there(kind, name)
        if there is None or name in there:
            return None
        near = nearest(name, there)
        return f"names {name!r}, and there is no such {kind}" + ("" if near is None else f"; did you mean {near}")

    def _there(self, kind: str, name: str) -> Collection[str] | None:
        if kind == "device":
            return self.devices if self.devices and name.partition(":")[0] in self.adapters else None
        if kind in ("variable", "timer"):
            call, known = ("set", self.variables) if kind == "variable" else ("start_timer", self.timers)
            given = [match[3] for source in self.sources for match in _given(source) if match[1] == call]
            return None if None in given else {*known, *given}
        return {"adapter": self.adapters, "scene": self.scenes}[kind]

    def _never_shown(self, kind: str, device_id: str, name: str) -> str | None:
        known = self.devices if kind == "attribute" else self.events
        shown = [each for each in known.get(device_id, ()) if each != "state"]
        if not shown or name in known[device_id]:
            return None
        near = nearest(name, shown) or nearest(name.rpartition(".")[2], shown)
        verb = "shown" if kind == "attribute" else "sent"
        hint = f"; did you mean {near}" if near is not None else f"; it has {verb} {', '.join(sorted(shown)[:10])}"
        return f"names {name!r}, which device {device_id!r} has never {verb}{hint}"


class NameWatcher:
    """Warns of wrong names a minute after the start, once every adapter `has_answered`, and after each reload then.

    It does so with the first answer of an adapter after that, so that nothing wakes for it.

    `list_others` gives the ids of the scenes, and the files of scenes and scripts; it may read the disk.
    """

    def __init__(
        self,
        environment: Environment,
        automations: Automations,
        timers: Timers,
        list_others: Callable[[], tuple[Collection[str], Collection[Source]]],
        *,
        adapters: Collection[str],
        notify_targets: Collection[str],
        has_answered: Callable[[], bool],
    ) -> None:
        self._registry, self._bus = environment.registry, environment.bus
        self._clock, self._variables = environment.clock, environment.variables
        self._automations = automations
        self._timers = timers
        self._list_others = list_others
        self._adapters = adapters
        self._notify_targets = notify_targets
        self._has_answered = has_answered
        self._tasks = Tasks()
        self._is_due = True
        self._sent: defaultdict[str, set[str]] = defaultdict(set)

    def known(self) -> HomeNames:
        """The names that the home has now; it reads the scripts' folder."""
        scenes, others = self._list_others()
        return HomeNames(
            adapters=self._adapters,
            devices={device.id: device.attributes for device in self._registry.list_devices()},
            events=self._sent,
            variables=[each.name for each in self._variables.list_all()],
            timers=[each.name for each in self._timers.list_all()],
            scenes=scenes,
            sources=[*others, *(asset.source for asset in self._automations.catalog.list_assets())],
            called=[*others, *(asset.source for asset in self._armed())],
            notify_targets=self._notify_targets,
        )

    def _armed(self) -> list[Asset[AutomationDefinition]]:
        automations = self._automations
        return [each for each in automations.catalog.list_assets() if automations.view(each.definition.id).is_enabled]

    def _find(self) -> list[Fault]:
        return self.known().list_faults(self._armed())

    async def __aenter__(self) -> NameWatcher:
        self._settles_at = self._clock.monotonic() + SETTLING_SECS
        kinds = (AdapterAnswered, CatalogReloaded, DeviceEvent, DeviceStateChanged)
        self._forget = self._bus.listen(self._on_event, *kinds)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._forget()
        await self._tasks.__aexit__()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, DeviceEvent) and len(self._sent[event.device_id]) < MAX_EVENT_NAMES:
            self._sent[event.device_id].add(event.event)
        self._is_due = self._is_due or isinstance(event, CatalogReloaded)
        if self._is_due and self._clock.monotonic() >= self._settles_at and self._has_answered():
            self._is_due = False
            self._tasks.start(self._report(), "check of names")

    async def _report(self) -> None:
        for fault in await asyncio.to_thread(self._find):
            log.warning("%s", fault)


def _given(source: Source) -> Iterator[re.Match[str]]:
    return _GIVEN.finditer(source.text.decode(errors="replace"))


def names_in_trigger(trigger: Trigger) -> list[NamedThing]:
    """What a trigger names; rooms and groups are checked when its file is read."""
    if isinstance(trigger, DeviceTrigger | DeviceEventTrigger):
        ids = trigger.devices.ids
        part = ("attribute", trigger.attribute) if isinstance(trigger, DeviceTrigger) else ("event", trigger.event)
        parts = [(part[0], part[0], f"{id_} {part[1]}") for id_ in ids if part[1] is not None]
        return [*(("device_id", "device", id_) for id_ in ids), *parts]
    if isinstance(trigger, VariableTrigger):
        return [("name", "variable", trigger.name)]
    if isinstance(trigger, TimerTrigger):
        return [("name", "timer", trigger.name)]
    if isinstance(trigger, AdapterLifecycle) and trigger.adapter is not None:
        return [("adapter", "adapter", trigger.adapter)]
    return []


def names_in_condition(condition: Condition) -> list[NamedThing]:
    """What a condition names; rooms and groups are checked when its file is read."""
    if isinstance(condition, DeviceState):
        device_id, attribute = condition.device_id, condition.attribute
        return [("device_id", "device", device_id), ("attribute", "attribute", f"{device_id} {attribute}")]
    return [("name", "variable", condition.name)] if isinstance(condition, VariableState) else []
