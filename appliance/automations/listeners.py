"""Listeners: which triggers an event is for, looked up by what they listen to; and which events are for none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from appliance.automations.active import ActiveTrigger
from appliance.automations.triggers import SUBJECTS, Subject
from appliance.automations.waits import Waits
from appliance.home import events
from appliance.home.model import Device
from appliance.home.registry import Registry


class Listeners:
    """The triggers of all automations in force, by what they listen to; a reload makes a new one."""

    def __init__(self, active: Iterable[ActiveTrigger], registry: Registry) -> None:
        self._registry = registry
        self._by_subject: defaultdict[Subject, list[ActiveTrigger]] = defaultdict(list)
        for each in active:
            for subject in each.trigger.subjects():
                self._by_subject[subject].append(each)
        self._group_ids = [name for kind, name in self._by_subject if kind == "group"]

    def of(self, event: events.Event, waits: Waits) -> list[ActiveTrigger]:
        """The triggers that the event may be for; those that wait for its device are among them."""
        if isinstance(event, events.DeviceStateChanged):
            return list(dict.fromkeys([*self.of_device(event.device), *waits.of(event.device.id)]))
        if isinstance(event, events.DeviceEvent):
            found = self._registry.find_devices([event.device_id])
            return list(dict.fromkeys(active for device in found for active in self.of_device(device)))
        subject = SUBJECTS.get(type(event))
        return [] if subject is None else self._by_subject.get(subject(event), [])

    def of_subject(self, kind: str, name: str) -> list[ActiveTrigger]:
        """The triggers that listen to the thing of this kind and name."""
        return self._by_subject.get((kind, name), [])

    def of_device(self, device: Device) -> list[ActiveTrigger]:
        """The triggers that listen to the device, to its room, or to a group to which it belongs."""
        groups = self._registry.layout.groups
        subjects: list[Subject] = [("device", device.id)]
        if device.room_id is not None:
            subjects.append(("room", device.room_id))
        subjects += [("group", id_) for id_ in self._group_ids if id_ in groups and device.id in groups[id_].members]
        return [active for subject in subjects for active in self._by_subject.get(subject, ())]


class Baseline:
    """Knows which restored devices were not observed since the start; made from the registry as it was restored.

    What a device first shows after a start is compared with nothing: its change was not observed.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._unseen = {device.id: device.last_seen for device in registry.list_devices()}

    def observe(self, event: events.Event) -> tuple[bool, list[str]]:
        """Whether the event is the first observation of a restored device, so that no trigger may match it;
        and the restored devices that were observed for the first time by now.

        It must be asked of every event, once and in order: sightings that change nothing end the waiting too.
        """
        observed: list[str] = []
        if isinstance(event, events.AdapterAnswered):
            observed = [device.id for device in self._registry.find_devices(self._unseen) if self._was_seen(device)]
        elif isinstance(event, events.DeviceStateChanged) and event.device.id in self._unseen:
            observed = [event.device.id] if self._was_seen(event.device) else []
        else:
            return False, []
        for device_id in observed:
            del self._unseen[device_id]
        return isinstance(event, events.DeviceStateChanged), observed

    def _was_seen(self, device: Device) -> bool:
        return device.last_seen != self._unseen[device.id]
