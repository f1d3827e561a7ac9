"""Finds the triggers that an event may match."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter

from appliance.automations.active_triggers import ActiveTrigger
from appliance.automations.names.named_things import Subject, SubjectKind
from appliance.automations.triggers.event import SUBJECTS
from appliance.automations.waits import Waits
from appliance.home import events
from appliance.home.model import Device, Group
from appliance.home.registry import Registry


class TriggerIndex:
    """The triggers of all loaded automations by subject. The triggers of a subject are sorted by automation."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._by_subject: dict[Subject, list[ActiveTrigger]] = {}
        self._group_ids: list[str] = []
        self._members: dict[str, tuple[Group, frozenset[str]]] = {}
        self._has_attributes = False

    def replace(self, old: Iterable[ActiveTrigger], new: Iterable[ActiveTrigger]) -> None:
        """Remove the old triggers, then add the new triggers. All triggers of an automation must be replaced
        together."""
        gone, added = _group_by_subject(old), _group_by_subject(new)
        for subject in {**gone, **added}:
            removed = set(gone.get(subject, ()))
            kept = [each for each in self._by_subject.pop(subject, ()) if each not in removed]
            if left := [*kept, *added.get(subject, ())]:
                # callers may still iterate over the old list
                self._by_subject[subject] = sorted(left, key=attrgetter("id"))
        self._group_ids = [name for kind, name in self._by_subject if kind == "group"]
        self._members.clear()
        self._has_attributes = any(kind == "attribute" for kind, _ in self._by_subject)

    def of(self, event: events.Event, waits: Waits) -> list[ActiveTrigger]:
        """Return the triggers that may match the event, and the triggers with a wait for the event's device."""
        if isinstance(event, events.DeviceStateChanged):
            found = self.of_device(event.device, event.changed)
            return list(dict.fromkeys([*found, *waits.of(event.device.id)]))
        if isinstance(event, events.DeviceEvent):
            devices = self._registry.find_devices([event.device_id])
            return list(dict.fromkeys(active for device in devices for active in self.of_device(device, ())))
        subject = SUBJECTS.get(type(event))
        return [] if subject is None else self._by_subject.get(subject(event), [])

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
        return self._by_subject.get((kind, name), [])

    def names_of(self, kind: SubjectKind) -> frozenset[str]:
        """Return the names of this kind of subject that triggers listen to."""
        return frozenset(name for each, name in self._by_subject if each == kind)

    def of_device(self, device: Device, attributes: Iterable[str]) -> list[ActiveTrigger]:
        """Return the triggers that listen to the device, its room, one of its groups, or one of these attributes."""
        subjects: list[Subject] = [("device", device.id)]
        if device.alias is not None:
            subjects.append(("device", device.alias))
        if self._has_attributes:
            subjects += [("attribute", name) for name in attributes]
        if device.room_id is not None:
            subjects.append(("room", device.room_id))
        subjects += [("group", id_) for id_ in self._group_ids if device.id in self._members_of(id_)]
        return [active for subject in subjects for active in self._by_subject.get(subject, ())]


def _group_by_subject(active: Iterable[ActiveTrigger]) -> Mapping[Subject, list[ActiveTrigger]]:
    found: defaultdict[Subject, list[ActiveTrigger]] = defaultdict(list)
    for each in active:
        for subject in each.trigger.subjects():
            found[subject].append(each)
    return found
