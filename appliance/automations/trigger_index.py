"""Finds the triggers that an event may match."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Collection, Iterable
from operator import attrgetter

from appliance.automations.active_triggers import ActiveTrigger
from appliance.automations.names.named_things import SubjectKind
from appliance.automations.triggers.event import SUBJECTS
from appliance.automations.waits import Waits
from appliance.home import events
from appliance.home.model import Device, Group
from appliance.home.registry import Registry

_get_id = attrgetter("id")


class TriggerIndex:
    """The triggers of all loaded automations by subject. The triggers of a subject are sorted by automation."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._by_kind: defaultdict[SubjectKind, dict[str, list[ActiveTrigger]]] = defaultdict(dict)
        self._members: dict[str, tuple[Group, frozenset[str]]] = {}

    def add(self, triggers: Iterable[ActiveTrigger]) -> None:
        for active in triggers:
            for kind, name in active.trigger.subjects():
                insort(self._by_kind[kind].setdefault(name, []), active, key=_get_id)

    def remove_all_of(self, triggers: Iterable[ActiveTrigger]) -> None:
        """Remove the triggers of one automation. `triggers` must contain all of them."""
        for active in triggers:
            for kind, name in active.trigger.subjects():
                found = self._by_kind[kind].get(name, [])
                start = bisect_left(found, active.id, key=_get_id)
                del found[start : bisect_right(found, active.id, start, key=_get_id)]
                if not found:
                    self._by_kind[kind].pop(name, None)
        self._members.clear()

    def of(self, event: events.Event, waits: Waits) -> list[ActiveTrigger]:
        """Return the triggers that may match the event, and the triggers with a wait for the event's device."""
        if isinstance(event, events.DeviceStateChanged):
            found = self.of_device(event.device, event.changed)
            return list(dict.fromkeys([*found, *waits.of(event.device.id)]))
        if isinstance(event, events.DeviceEvent):
            device = self._registry.find_device(event.device_id)
            return [] if device is None else list(dict.fromkeys(self.of_device(device, ())))
        subject = SUBJECTS.get(type(event))
        return [] if subject is None else self.of_subject(*subject(event))

    def _members_of(self, group_id: str) -> Collection[str]:
        """Return the group's members as a set, because a trigger may watch a group of thousands of devices."""
        group = self._registry.layout.groups.get(group_id)
        if group is None:
            return ()
        known = self._members.get(group_id)
        if known is None or known[0] is not group:
            known = self._members[group_id] = group, frozenset(group.members)
        return known[1]

    def of_subject(self, kind: SubjectKind, name: str) -> list[ActiveTrigger]:
        return self._by_kind[kind].get(name, [])

    def names_of(self, kind: SubjectKind) -> frozenset[str]:
        """Return the names of this kind of subject that triggers listen to."""
        return frozenset(self._by_kind[kind])

    def of_device(self, device: Device, attributes: Iterable[str]) -> list[ActiveTrigger]:
        """Return the triggers that listen to the device, its room, one of its groups, or one of these attributes."""
        found = [*self.of_subject("device", device.id)]
        if device.alias is not None:
            found += self.of_subject("device", device.alias)
        if self._by_kind["attribute"]:
            for name in attributes:
                found += self.of_subject("attribute", name)
        if device.room_id is not None:
            found += self.of_subject("room", device.room_id)
        for id_ in self._by_kind["group"]:
            if device.id in self._members_of(id_):
                found += self.of_subject("group", id_)
        return found
