"""The registry holds the state of devices, rooms, and groups in memory. Every change is published after it is
applied.

For changes by people (rooms, groups, names), `preview` checks the change, the store saves it, and `commit` applies
it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from appliance.clock import Clock
from appliance.errors import Invalid, NotFound
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.dropped_values import DroppedValues
from appliance.home.first_reports import NO_ATTRIBUTES, NOTHING_NOTED, NOTHING_SENT, FirstReports, Sent
from appliance.home.layout import Change, Layout, LayoutChange, compare_layouts, missing_device
from appliance.home.model import (
    ONLINE,
    UNAVAILABLE,
    Device,
    DeviceKind,
    Group,
    Metadata,
    Observation,
    Report,
    Room,
    changed_attributes,
    last_values,
)
from appliance.home.observations import Dropped, check_attributes, check_device_id, check_event, device_after
from appliance.home.values import Value
from appliance.shrinking import shrunk
from appliance.tables.checks import format_value

T = TypeVar("T")

NOTHING_DOUBTFUL: Mapping[str, Iterable[str]] = {}

log = logging.getLogger("adapters")


class Registry:
    """Devices, rooms, and groups. Use a registry in one event loop only. Methods raise `NotFound` for an unknown id.

    `layout` contains rooms, groups, and people's choices for devices.
    """

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._devices: dict[str, Device] = {}
        self._listed: tuple[Device, ...] | None = None
        self._by_adapter: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._unavailable: set[str] = set()
        self._first_reports = FirstReports()
        self._dropped = DroppedValues(bus)
        self.layout = Layout()

    def ids_of(self, adapter: str) -> Mapping[str, None]:
        """Return the ids of the adapter's devices. The result is valid only until the next change."""
        return self._by_adapter.get(adapter, {})

    def list_devices(self) -> tuple[Device, ...]:
        """Return all devices, sorted by id. Return the same tuple object until a device changes."""
        if self._listed is None:
            self._listed = tuple(_by_id(self._devices))
        return self._listed

    def list_rooms(self) -> list[Room]:
        return _by_id(self.layout.rooms)

    def list_groups(self) -> list[Group]:
        return _by_id(self.layout.groups)

    def id_of(self, word: str) -> str:
        """Return the id of the device with this alias. If the word is not an alias, return it unchanged."""
        return self.layout.id_of(word, self._devices)

    def with_id(self, payload: Mapping[str, Value]) -> Mapping[str, Value]:
        """Replace an alias in the payload's field `device_id` with the device's id."""
        word = payload.get("device_id")
        return {**payload, "device_id": self.id_of(word)} if isinstance(word, str) else payload

    def find_devices(self, ids: Iterable[str]) -> list[Device]:
        """Return the present devices with these ids or aliases, in this order and without duplicates."""
        if self.layout.aliases:
            ids = map(self.id_of, ids)
        return [self._devices[id_] for id_ in dict.fromkeys(ids) if id_ in self._devices]

    def find_device(self, word: str) -> Device | None:
        """Return the device with this id or alias, or None."""
        return self._devices.get(self.layout.id_of(word, self._devices))

    def get_device(self, device_id: str) -> Device:
        """Return the device with this id or alias."""
        device = self.find_device(device_id)
        if device is None:
            raise self.no_device(device_id)
        return device

    def no_device(self, word: str) -> NotFound:
        """Return the error for an unknown device id or alias."""
        return missing_device(word, self._devices)

    def get_kept(self, device_id: str) -> Device:
        """Return the device with this id. If the device is absent but part of the layout, return a device without
        attributes."""
        if (device := self._devices.get(device_id)) is not None:
            return device
        if not self.layout.keeps(device_id):
            raise self.no_device(device_id)
        return self._device_or_new(device_id, device_id.partition(":")[0], self._clock.now())

    def get_room(self, room_id: str) -> Room:
        return self.layout.get_room(room_id)

    def get_group(self, group_id: str) -> Group:
        return self.layout.get_group(group_id)

    def list_room_devices(self, room_id: str) -> list[Device]:
        """Return the present devices in the room, sorted by id."""
        self.get_room(room_id)
        return self.find_devices(self.layout.devices_in(room_id))

    def list_group_devices(self, group_id: str) -> list[Device]:
        """Return the present devices of the group in membership order."""
        return self.find_devices(self.get_group(group_id).members)

    def apply(self, report: Report) -> None:
        """Apply the observations of an adapter's report.

        If the catalog does not allow a value, drop it and publish `ObservationDropped`. Its attribute is unknown.
        """
        now = self._clock.now()
        for observation in report.observations:
            self._observe(observation, report.adapter, now)

    def update_attributes(
        self, adapter: str, device_id: str, attributes: Mapping[str, Value], at: datetime | None = None
    ) -> None:
        """Apply attributes that a device sent by itself, now or at the given time, and leave its other attributes
        unchanged.

        The value None and an invalid value remove an attribute. The device becomes online. Unknown devices are
        ignored, because they need a complete observation first.
        """
        if device_id not in self.ids_of(adapter):
            return
        device = self._devices[device_id]
        dropped: Dropped = {}
        stated = {name: value for name, value in attributes.items() if value is not None}
        valid = check_attributes(stated, device.attributes, dropped)
        unread = attributes.keys() - valid.keys() - {"state"}
        gone = [name for name in unread if name in device.attributes or attributes[name] is None]
        self._dropped.publish(adapter, device_id, dropped)
        self._unavailable.discard(device_id)
        now = at or self._clock.now()
        shown = {**device.attributes, **valid, "state": ONLINE}
        for name in gone:
            shown.pop(name, None)
        pushed = frozenset([*valid, *gone])
        self._set_attributes(device, shown, now, now, Sent(pushed | {"state"}, pushed))

    def remove(self, adapter: str, device_id: str, *, is_kept: bool = False) -> None:
        """Remove a device of the adapter. Ignore unknown devices. If `is_kept` is true, the device's values remain
        stored."""
        if device_id in self.ids_of(adapter):
            del self._by_adapter[adapter][device_id]
            self._by_adapter[adapter] = shrunk(self._by_adapter[adapter])
            if not self._by_adapter[adapter]:
                del self._by_adapter[adapter]
            if device_id in self._unavailable:
                self._unavailable.remove(device_id)
                self._unavailable = shrunk(self._unavailable)
            self._first_reports.forget(device_id, is_kept=is_kept)
            device = self._devices.pop(device_id)
            self._devices = shrunk(self._devices)
            self._listed = None
            self._dropped.forget(adapter, device_id)
            if not is_kept:
                log.info("%s: device '%s' no longer exists; its room, name, and groups are kept", adapter, device_id)
            self._bus.publish(events.DeviceRemoved(device_id=device_id, name=device.name, is_kept=is_kept))

    def set_state(self, adapter: str, state: str, ids: Iterable[str] | None = None) -> None:
        """Set the `state` of the adapter's devices with these ids to `online` or `offline`. If `ids` is None, set the
        state of all the adapter's devices.

        If the bridge has reported a device as unavailable, the device becomes `unavailable` instead of `online`.
        """
        own = self.ids_of(adapter)
        for device_id in tuple(own) if ids is None else [each for each in ids if each in own]:
            is_missing = state == ONLINE and device_id in self._unavailable
            self._mark(device_id, UNAVAILABLE if is_missing else state)

    def set_availability(self, adapter: str, device_id: str, *, is_available: bool) -> None:
        """Record whether the bridge or broker reaches the device."""
        if device_id in self.ids_of(adapter):
            (self._unavailable.discard if is_available else self._unavailable.add)(device_id)
            self._mark(device_id, ONLINE if is_available else UNAVAILABLE)

    def publish_event(self, adapter: str, device_id: str, event: str, data: Mapping[str, Value]) -> None:
        """Publish an event of a device, such as a pressed button. Drop invalid events."""
        if device_id not in self.ids_of(adapter):
            return
        try:
            event, valid = check_event(event, data)
        except Invalid as fault:
            self._dropped.publish(adapter, device_id, {"event": str(fault)})
            return
        alias = self._devices[device_id].alias
        self._bus.publish(events.DeviceEvent(device_id=device_id, event=event, data=valid, alias=alias))

    def restore(
        self,
        layout: Layout,
        devices: Iterable[Device],
        *,
        are_doubtful: bool = False,
        doubtful: Mapping[str, Iterable[str]] = NOTHING_DOUBTFUL,
    ) -> None:
        """Restore the stored state at the start without publishing events. If `are_doubtful` is true, the devices may
        have changed after their values were stored, and before the previous hub ended. `doubtful` is the result of
        the previous hub's `list_doubtful`."""
        self.layout = layout
        self._devices.clear()
        self._by_adapter.clear()
        self._first_reports.begin(doubtful)
        for device in devices:
            self._restore(device, is_doubtful=are_doubtful)

    def list_doubtful(self) -> dict[str, list[str]]:
        """Return the attributes, by device, whose stored value may be outdated since a power cut or a kill, or whose
        value changed while no automation could run."""
        return self._first_reports.list_doubtful()

    def doubt(self, device_id: str, attributes: frozenset[str]) -> None:
        """Make the values of these attributes doubtful, because no automation could react to their change."""
        self._first_reports.doubt(device_id, attributes)

    def repeat_doubtful(self) -> Iterator[None]:
        """Publish the doubtful values that devices have sent since the hub's start, one device per step."""
        for device_id in [*self._devices]:
            device = self._devices.get(device_id)
            if device is not None and (sent := self._first_reports.end_doubt(device)):
                self._bus.publish(events.DoubtfulValuesRepeated(device=device, attributes=sent))
            yield

    def restore_section(self, devices: Iterable[Device]) -> Iterator[None]:
        """Restore the stored devices of a section that starts while the hub runs, and publish them, one per step."""
        state, now = frozenset({"state"}), self._clock.now()
        for stored in devices:
            if stored.id not in self._devices:
                device = self.layout.apply_to(replace(stored, updated_at=now))
                self._restore(device, is_doubtful=False)
                self._bus.publish(events.DeviceStateChanged(device=device, previous=None, changed=state))
            yield

    def remove_section(self, adapter: str) -> Iterator[None]:
        """Remove all devices of the adapter, one per step. Their values remain stored."""
        for device_id in [*self.ids_of(adapter)]:
            self.remove(adapter, device_id, is_kept=True)
            yield

    def _restore(self, device: Device, *, is_doubtful: bool) -> None:
        self._put(device)
        names = [*device.attributes, *device.last]
        self._first_reports.expect(device.id, names, are_doubtful=is_doubtful and not device.is_virtual)
        self._by_adapter[device.metadata.source][device.id] = None

    def preview(self, change: Change, layout: Layout) -> LayoutChange:
        """Return the result of a layout change without applying the change. Raise `NotFound`, `AliasTaken`, or
        `Invalid` on failure."""
        return compare_layouts(layout, change(layout, self._devices))

    def commit(self, made: LayoutChange) -> Iterator[None]:
        """Apply the changed layout. The returned iterator publishes the differences, one per step. Finish this
        iterator before the iterator of the next change."""
        before, self.layout = self.layout, made.layout
        moved = [(id_, self._move(id_, place)) for id_, place in sorted(made.room_assignments.items())]
        changed = [id_ for id_, name in sorted(made.names.items()) if self._rename(id_, name)]
        changed += [id_ for id_, alias in sorted(made.aliases.items()) if self._set_alias(id_, alias)]
        return self._publish_layout(before, made, [each for _, each in moved if each is not None], changed)

    def _publish_layout(
        self, before: Layout, made: LayoutChange, moved: list[events.DeviceRoomChanged], changed: list[str]
    ) -> Iterator[None]:
        """Publish the changes of rooms, devices, and groups. Skip devices that disappear meanwhile."""
        for room_id, room in made.rooms.items():
            if room is not None:
                self._bus.publish((events.RoomUpdated if room_id in before.rooms else events.RoomAdded)(room=room))
            yield
        for event in moved:
            if event.device_id in self._devices:
                self._bus.publish(event)
            yield
        for device_id in changed:
            if (device := self._devices.get(device_id)) is not None:
                self._bus.publish(events.DeviceUpdated(device=device))
            yield
        for room_id in [room_id for room_id, room in made.rooms.items() if room is None]:
            self._bus.publish(events.RoomRemoved(room_id=room_id))
            yield
        for group_id, group in made.groups.items():
            self._publish_group(group_id, before.groups.get(group_id), group)
            yield

    def _observe(self, seen: Observation, adapter: str, now: datetime) -> None:
        device_id = seen.device_id
        dropped: Dropped = {}
        try:
            before = self._device_or_new(device_id, adapter, now)
            after = device_after(before, seen, ONLINE if seen.is_available else UNAVAILABLE, now, dropped)
        except Invalid as fault:
            self._dropped.publish(adapter, format_value(device_id), {"device": str(fault)})
            return
        if dropped:
            self._dropped.publish(adapter, device_id, dropped)
        (self._unavailable.discard if seen.is_available else self._unavailable.add)(device_id)
        is_new = device_id not in self._devices
        changed, after = _with_last_values(before, after)
        self._put(after)
        if is_new:
            self._first_reports.forget(device_id)
            self._by_adapter[adapter][device_id] = None
        elif after.info is not before.info or (
            after.vendor_name is not before.vendor_name and after.name != before.name
        ):
            self._bus.publish(events.DeviceUpdated(device=after))
        elif (has_new_commands := after.commands is not before.commands) or (
            after.metadata is not before.metadata
            or after.vendor_name is not before.vendor_name
            or after.kind is not before.kind
        ):
            self._bus.publish(events.DeviceDetailsChanged(device=after, has_new_commands=has_new_commands))
        self._publish_change(None if is_new else before, after, changed, self._first_reports.read(seen))

    def _device_or_new(self, device_id: str, adapter: str, now: datetime) -> Device:
        """Return the device, or a new device without attributes. Raise `Invalid` if the id is invalid, or if the
        device belongs to another adapter."""
        device = self._devices.get(device_id) if isinstance(device_id, str) else None
        if device is None:
            check_device_id(device_id)
            device = Device(
                id=device_id,
                room_id=None,
                kind=DeviceKind.VIRTUAL,
                attributes={},
                metadata=Metadata(source=adapter),
                updated_at=now,
                last_seen=now,
            )
            return self.layout.apply_to(device)
        if device.metadata.source != adapter:
            raise Invalid(f"is a device of {device.metadata.source}")
        return device

    def _mark(self, device_id: str, state: str) -> None:
        device = self._devices[device_id]
        attributes = {**device.attributes, "state": state}
        self._set_attributes(device, attributes, self._clock.now(), device.last_seen, NOTHING_SENT)

    def _set_attributes(
        self,
        device: Device,
        attributes: dict[str, Value],
        now: datetime,
        last_seen: datetime,
        sent: Sent,
    ) -> None:
        """Set the device's attributes, and publish the change."""
        after, changed = device, NO_ATTRIBUTES
        if attributes != device.attributes:
            after = replace(device, attributes=attributes, updated_at=now, last_seen=last_seen)
            changed, after = _with_last_values(device, after)
        elif last_seen is not device.last_seen:
            after = replace(device, last_seen=last_seen)
        if after is not device:
            self._put(after)
        self._publish_change(device, after, changed, sent)

    def _publish_change(self, before: Device | None, after: Device, changed: frozenset[str], sent: Sent) -> None:
        """Publish the attributes that the device reports for the first time since the hub's start, then all
        changed attributes, and the unchanged attributes whose stored value is doubtful."""
        noted = NOTHING_NOTED
        if before is not None:
            noted = self._first_reports.note(before, after, changed, sent)
        if noted.first:
            self._bus.publish(events.AttributesFirstReported(device=after, attributes=noted.first))
        if changed:
            event = events.DeviceStateChanged(
                device=after,
                previous=before,
                changed=changed,
                baseline=noted.baseline,
                doubtful=noted.doubtful & changed,
            )
            self._bus.publish(event)
        if unchanged := noted.doubtful - changed:
            self._bus.publish(events.DoubtfulValuesRepeated(device=after, attributes=unchanged))

    def _put(self, device: Device) -> Device:
        self._devices[device.id] = device
        self._listed = None
        return device

    def _move(self, device_id: str, room_id: str | None) -> events.DeviceRoomChanged | None:
        """Return the event to publish, if any."""
        device = self._devices.get(device_id)
        if device is None or device.room_id == room_id:
            return None
        self._put(replace(device, room_id=room_id))
        return events.DeviceRoomChanged(device_id=device_id, room_id=room_id, previous=device.room_id)

    def _rename(self, device_id: str, name: str | None) -> bool:
        """Return whether the present device's name has changed."""
        device = self._devices.get(device_id)
        return device is not None and self._put(replace(device, person_name=name)).name != device.name

    def _set_alias(self, device_id: str, alias: str | None) -> bool:
        """Return whether the present device's alias has changed."""
        device = self._devices.get(device_id)
        return device is not None and self._put(replace(device, alias=alias)).alias != device.alias

    def _publish_group(self, group_id: str, previous: Group | None, group: Group | None) -> None:
        if group is None:
            self._bus.publish(events.GroupRemoved(group_id=group_id))
        elif previous is None:
            self._bus.publish(events.GroupAdded(group=group))
        else:
            if group.name != previous.name:
                self._bus.publish(events.GroupUpdated(group=group))
            if group.members != previous.members:
                self._bus.publish(events.GroupMembersChanged(group_id=group_id, members=group.members))


def _with_last_values(before: Device, after: Device) -> tuple[frozenset[str], Device]:
    """Return the changed attributes, and the device `after` with the last values of missing attributes."""
    if after.attributes is before.attributes:
        return NO_ATTRIBUTES, after
    changed = changed_attributes(before, after)
    last = last_values(before, after.attributes, changed)
    return changed, after if last is before.last else replace(after, last=last)


def _by_id(things: Mapping[str, T]) -> list[T]:
    return [things[id_] for id_ in sorted(things)]
