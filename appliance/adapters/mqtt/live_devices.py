"""The live devices of a broker: converts messages to observations.

The path of a message: 1. `process` finds the entities that read the message's topic, and stores pictures. 2.
`_take_message` passes the message to each entity, which yields changes. 3. `_take_change` publishes events, and
filters values by the pending command. 4. `_set_and_note` sets the values, and records the changed attributes. 5.
`flush` publishes the changed devices.

`tick` expires values. `replay` restores values after a restart or a new announcement.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo

from msgspec import Struct, field

from appliance.adapters.mqtt.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.commands import Commands
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.duplicates import Duplicates
from appliance.adapters.mqtt.inbox import Received
from appliance.adapters.mqtt.messages import Message
from appliance.adapters.mqtt.picture_store import PictureStore
from appliance.adapters.mqtt.platforms.entity import Change, Entity, EntityEvent
from appliance.adapters.mqtt.platforms.payloads import Update
from appliance.adapters.mqtt.platforms.picture import StillPicture
from appliance.adapters.mqtt.platforms.sensor import BinarySensor
from appliance.adapters.mqtt.refusals import Refusal
from appliance.adapters.mqtt.router import Reader
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import Invalid
from appliance.home.model import Device

MAX_REMEMBERED_BYTES = 16 * 1024 * 1024
"""Maximum total size of the stored messages, one per topic. A device that is announced again gets its state
from these messages."""


log = logging.getLogger("adapters")


class Changes(Struct, kw_only=True):
    """The unpublished changes of one device.

    `attributes` contains the changed attributes. `pushed` contains the attributes from messages that were not
    retained.
    """

    device: MqttDevice
    attributes: set[str] = field(default_factory=set)
    pushed: set[str] = field(default_factory=set)

    @property
    def are_pushed_values(self) -> bool:
        """Whether only values changed, and all of them came from messages that were not retained."""
        return bool(self.attributes) and self.attributes <= self.pushed


class LiveDevices:
    """The devices of one broker: processes messages, and publishes observations and events.

    `stopped_at` is the stop time of the last run. Values that were known at that time had not expired, but their age
    is unknown. `has_work` is set when `secs_to_tick` may have become shorter for a reason other than a message.
    """

    def __init__(
        self,
        announced: AnnouncedDevices,
        publish: Publisher,
        clock: Clock,
        zone: tzinfo = UTC,
        stopped_at: datetime | None = None,
    ) -> None:
        self.announced = announced
        self.duplicates = Duplicates(clock)
        self.pictures = PictureStore(publish, clock)
        self._publish = publish
        self._clock = clock
        self._zone = zone
        self._stopped_at = stopped_at
        self._changed: dict[str, Changes] = {}
        self.has_work = asyncio.Event()
        self.commands = Commands(announced, self._set_and_publish, self.has_work.set, clock, zone)
        self._due: dict[int, tuple[float, MqttDevice, Entity]] = {}
        self._next_due = math.inf
        self._remembered: dict[str, Received] = {}
        self._shown_before: dict[str, Device] = {}
        self._restored: dict[str, MqttDevice] = {}  # devices whose stored state has been restored
        self._published: dict[str, MqttDevice] = {}  # devices that were published with a complete observation
        self._remembered_bytes = 0

    def process(self, received: Received) -> Iterator[None]:
        """Process any message except a configuration, one entity per step. Never raises."""
        readers, texts = self.announced.router.readers(received.topic), list[Reader]()
        for each in readers:
            pattern, device, entity = each
            if isinstance(entity, StillPicture) and pattern == entity.picture_filter:
                self._take_picture(received, device, entity)
                yield
            else:
                texts.append(each)
        if texts or not readers:
            yield from self._process_text(received, texts)

    def _take_picture(self, received: Received, device: MqttDevice, entity: StillPicture) -> None:
        try:
            shown = self.pictures.take(device.id, entity, received)
        except Invalid as fault:
            self.announced.refusals.note_message(device.id, entity, fault)
            return
        self._take_change(device, entity, {entity.custom: shown}, is_live=not received.is_retained)

    def _process_text(self, received: Received, readers: Sequence[Reader]) -> Iterator[None]:
        try:
            message = self._message(received)
        except Invalid as fault:
            refusals = self.announced.refusals
            if received.topic not in refusals.by_key:
                device_id = self.announced.router.device_id_at(received.topic)
                refusals.note_topic(received.topic, Refusal(device_id, "message", str(fault)))
            return
        if self.duplicates.is_outdated(message):
            return
        self._remember(received)
        for number, (pattern, device, entity) in enumerate(readers):
            if number:
                yield
            newest = self.announced.devices.get(device.id, device)  # a new announcement may have replaced the device
            same = entity if newest is device else newest.find(entity.announcement.key) or entity
            self._take_message(message, pattern, newest, same)

    def _message(self, received: Received) -> Message:
        """Convert a received message, and add the current time. Raise `Invalid`."""
        at = self._clock.now().astimezone(self._zone)
        return Message(received.topic, received.payload, at, is_retained=received.is_retained)

    def _remember(self, received: Received) -> None:
        older = self._remembered.pop(received.topic, None)
        self._remembered_bytes += received.size - (0 if older is None else older.size)
        self._remembered[received.topic] = received
        while self._remembered_bytes > MAX_REMEMBERED_BYTES:
            oldest = next(iter(self._remembered))
            self._remembered_bytes -= self._remembered.pop(oldest).size

    def _take_message(self, message: Message, pattern: str, device: MqttDevice, entity: Entity) -> None:
        changes = self._changed.get(device.id)
        if changes is not None and "state" in changes.attributes and pattern in entity.availability.topics:
            self._publish_changes(device.id)
        for change in entity.changes(pattern, message):
            self._take_change(device, entity, change, is_live=not message.is_retained)

    def _take_change(self, device: MqttDevice, entity: Entity, change: Change, *, is_live: bool) -> None:
        if isinstance(change, Exception):
            self.announced.refusals.note_message(device.id, entity, change)
            return
        if isinstance(change, EntityEvent):
            if not self.duplicates.is_reported_twice(device.id, change.name, type(entity).__name__):
                self._publish.event(device.id, change.name, change.data)
            return
        pending = self.commands.pending(device, entity)
        if change is None:
            self._note(device, ("state",))
            if pending is not None:
                pending.check({}, entity)
            return
        update = change
        if pending is not None:
            update = pending.filter(update, self._clock.monotonic())
            pending.refuse(update, entity.attributes)
        if update:
            self._set_due(device, entity)
        if entity.is_expired and update:
            entity.refresh()
            self._note(device, ("state",))
        self._set_and_note(device, entity, update, is_live=is_live)
        if pending is not None:
            pending.check(update, entity)

    def _set_and_note(self, device: MqttDevice, entity: Entity, update: Update, *, is_live: bool = True) -> None:
        """Set new values. If the new values would replace an unpublished change, publish that change first.

        Values that are not live come from retained messages, so their age is unknown.
        """
        changed = entity.changed_by(update)
        if (changes := self._changed.get(device.id)) is not None and not changes.attributes.isdisjoint(changed):
            self._publish_changes(device.id)
        entity.apply(update, changed)
        if changed or any(each in update for each in entity.unconfirmed):
            entity.confirm(update)
            self._note(device, changed, update if is_live else ())

    def _note(self, device: MqttDevice, attributes: Iterable[str], pushed: Iterable[str] = ()) -> None:
        """Record changed attributes of a device for `flush`."""
        changes = self._changed.get(device.id)
        if changes is None or changes.device is not device:
            changes = self._changed[device.id] = Changes(device=device)
        changes.attributes.update(attributes)
        changes.pushed.update(pushed)

    def _set_and_publish(self, device: MqttDevice, entity: Entity, update: Update) -> None:
        self._set_and_note(device, entity, update)
        self._publish_changes(device.id)

    def flush(self) -> Iterator[None]:
        """Publish the changed devices, one per step, because one message can affect thousands of devices."""
        for device_id in list(self._changed):
            self._publish_changes(device_id)
            yield

    def _publish_changes(self, device_id: str) -> None:
        changes = self._changed.get(device_id)
        if changes is not None and self.announced.devices.get(device_id) is changes.device:
            self.show(changes.device)
        else:
            self._changed.pop(device_id, None)

    def show(self, device: MqttDevice) -> None:
        """Publish a device with its remembered values.

        While the broker is unreachable, the device stays offline, and the change is published later.
        """
        self._restore(device)
        if self._publish.is_lost:
            self._note(device, ())
            return
        changes = self._changed.pop(device.id, None)
        if changes is None or changes.device is not device:
            changes = Changes(device=device)
        if self._published.get(device.id) is device and changes.are_pushed_values and device.is_available:
            self._publish.attributes(device.id, {name: device.value_of(name) for name in changes.attributes})
        else:
            self._published[device.id] = device
            self._publish.device(device.observation(changes.pushed))

    def tick(self) -> None:
        """Expire values, switch sensors off after their delay, release held-back states, and publish picture
        events."""
        now = self._clock.monotonic()
        self.pictures.publish_changes()
        if now >= self._next_due:
            for key, (due, device, entity) in list(self._due.items()):
                is_replaced = self.announced.devices.get(device.id) is not device
                if is_replaced or now >= due:
                    del self._due[key]
                    if not is_replaced:
                        self._expire(device, entity)
            self._next_due = min((due for due, _, _ in self._due.values()), default=math.inf)
        for device, entity, kept in self.commands.released():
            self._set_and_note(device, entity, kept)

    def secs_to_tick(self) -> float:
        """Return the seconds after which `tick` has work."""
        if self._changed or self.commands.has_pending or self.pictures.has_changes:
            return 0.0
        return max(0.0, self._next_due - self._clock.monotonic())

    def _set_due(self, device: MqttDevice, entity: Entity, age: float = 0.0) -> None:
        """Schedule the time at which the value expires, or at which the sensor switches off. `age` is the value's age
        in seconds."""
        if entity.off_delay <= 0 and entity.expire_after <= 0:
            return
        due = self._clock.monotonic() + (entity.off_delay if entity.off_delay > 0 else entity.expire_after - age)
        self._due[id(entity)] = due, device, entity
        self._next_due = min(self._next_due, due)

    def _expire(self, device: MqttDevice, entity: Entity) -> None:
        if isinstance(entity, BinarySensor) and entity.off_delay > 0:
            self._set_and_note(device, entity, entity.showing(is_on=False))
        else:
            self._set_and_note(device, entity, entity.expire())
            self._note(device, ("state",))
            if isinstance(entity, StillPicture):
                self.pictures.forget(device.id, entity)

    def remember_devices(self) -> None:
        """Store the hub's current state of all devices, to restore it when the devices are announced."""
        self._shown_before |= self._publish.devices()

    def forget_restored(self) -> None:
        """Delete the stored state of announced devices, because all of their entities have arrived."""
        built = self.announced.devices
        self._shown_before = {id_: each for id_, each in self._shown_before.items() if id_ not in built}

    def replay(self, devices: Sequence[MqttDevice]) -> Iterator[None]:
        """Restore the values of rebuilt devices, and process the newest messages for them again, in steps.

        The pending commands of rebuilt devices then wait for the new entities.
        """
        self._next_due = 0.0  # forget the replaced entities
        self.has_work.set()
        own = self.announced.devices
        self.pictures.keep_only(lambda id_: own[id_].entities if id_ in own else ())
        for table in self._restored, self._published:
            for id_ in table.keys() - own.keys():
                del table[id_]
        for device in devices:
            self._restore(device)
            yield
        rebuilt = {id(device) for device in devices}
        for received in list(self._remembered.values()):
            readers = [each for each in self.announced.router.readers(received.topic) if id(each[1]) in rebuilt]
            message = self._message(Received(received.topic, received.payload, is_retained=True)) if readers else None
            for pattern, device, entity in readers:
                if message is not None and not entity.reports_events:
                    self._take_message(message, pattern, device, entity)
                yield
            yield

    def _restore(self, device: MqttDevice) -> None:
        """Restore the stored values that have not expired, once per device."""
        if self._restored.get(device.id) is device:
            return
        self._restored[device.id] = device
        for entity in device.entities:
            if isinstance(entity, StillPicture):
                update = {entity.custom: self.pictures.media_type(device.id, entity)}
                entity.apply(update, entity.changed_by(update))
        shown = self._publish.find(device.id)
        if (known := self._shown_before.get(device.id, shown)) is None:
            return
        attributes = {**known.attributes, **(shown.attributes if shown is not None else {})}
        seen_at = known.last_seen if self._stopped_at is None else max(known.last_seen, self._stopped_at)
        age = (self._clock.now() - seen_at).total_seconds()
        for entity in device.entities:
            if not 0 < entity.expire_after <= age and entity.restore(attributes):
                self._set_due(device, entity, age)
            if entity.attributes:
                entity.refresh()
