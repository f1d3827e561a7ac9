"""Known names: a warning for each device, room or group that a definition names and that there is not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from msgspec import Struct

from appliance.automations.conditions import Combination, Condition, DeviceState, PlaceState
from appliance.automations.device_triggers import DeviceEventTrigger, DeviceTrigger
from appliance.automations.triggers import Trigger
from appliance.errors import Fault
from appliance.home.registry import Registry
from appliance.lua.names import called_names
from appliance.lua.source import Source
from appliance.tables.checks import nearest
from appliance.tables.fields import Path, Problem

Names = Callable[[], Collection[str]]


class KnownNames(Struct, frozen=True, kw_only=True):
    """The names of adapters' sections, of rooms and of groups as they are when asked; None if not known."""

    adapters: Collection[str]
    rooms: Names | None = None
    groups: Names | None = None

    @staticmethod
    def of(adapters: Collection[str], registry: Registry) -> KnownNames:
        """The names as the registry has them, and the adapters' sections."""
        return KnownNames(
            adapters=adapters, rooms=lambda: registry.layout.rooms, groups=lambda: registry.layout.groups
        )

    def inspect(self, source: Source) -> Iterator[Fault]:
        """A sentence for each name in a call of `ctx` that is not there."""
        for called in called_names(source):
            if called.kind in ("device", "operation"):
                message = self._section_missing(called.name)
            else:
                message = None if called.kind == "scene" else self._place_missing(called.kind, called.name)
            if message is not None:
                yield Fault(source.name, called.line, f"ctx:{called.call} {message}")

    def warnings_of(self, triggers: tuple[Trigger, ...], conditions: tuple[Condition, ...]) -> Iterator[Problem]:
        """Each name that is not there, with the nearest that is."""
        for number, trigger in enumerate(triggers, 1):
            path: Path = ("trigger",) if len(triggers) == 1 else ("triggers", number)
            if isinstance(trigger, DeviceTrigger | DeviceEventTrigger):
                devices = trigger.devices
                for device_id in devices.ids:
                    yield from self._device(path, device_id)
                yield from self._place(path, "room", devices.room_id)
                yield from self._place(path, "group", devices.group_id)
        yield from self._of_conditions(("conditions",), conditions)

    def _of_conditions(self, path: Path, conditions: tuple[Condition, ...]) -> Iterator[Problem]:
        for number, condition in enumerate(conditions, 1):
            place = (*path, number)
            if isinstance(condition, DeviceState):
                yield from self._device(place, condition.device_id)
            elif isinstance(condition, PlaceState):
                yield from self._place(place, condition.kind, condition.place_id)
            elif isinstance(condition, Combination):
                yield from self._of_conditions((*place, "conditions"), condition.conditions)

    def _device(self, path: Path, device_id: str) -> Iterator[Problem]:
        if (message := self._section_missing(device_id)) is not None:
            yield Problem((*path, "device_id"), message)

    def _place(self, path: Path, kind: str, id_: str | None) -> Iterator[Problem]:
        if id_ is not None and (message := self._place_missing(kind, id_)) is not None:
            yield Problem((*path, f"{kind}_id"), message)

    def _section_missing(self, name: str) -> str | None:
        """What is wrong with `<section>:…`; None where there is such a section."""
        section = name.partition(":")[0]
        if section in self.adapters:
            return None
        near = nearest(section, self.adapters)
        hint = "" if near is None else f"; did you mean {near}{name[len(section) :]}"
        return f"names {name!r}, and there is no section [adapters.{section}]{hint}"

    def _place_missing(self, kind: str, id_: str) -> str | None:
        """What is wrong with the id of a room or group; None where there is one, or the names are not known."""
        names = self.rooms if kind == "room" else self.groups
        if names is None or id_ in (there := names()):
            return None
        near = nearest(id_, there)
        hint = "" if near is None else f"; did you mean {near}"
        return f"names {id_!r}, and there is no such {kind}{hint}"
