"""Converts the messages of a broker to observations and events of its devices.

The path of a message: 1. `process` finds the entities that read the message's topic, and stores pictures. 2.
`_take_message` passes the message to each entity, which yields changes. 3. `_take_change` publishes events, and
`_take_values` filters values by the pending command. 4. `ChangedDevices` sets the values, records the changed
attributes, and publishes them.

`tick` expires values. `publish_rebuilt` restores values after a restart or a new announcement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, tzinfo

from appliance.adapters.mqtt.announcements.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.budget import Budget
from appliance.adapters.mqtt.changed_devices import ChangedDevices
from appliance.adapters.mqtt.commands import Commands
from appliance.adapters.mqtt.deadlines import Deadlines
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.messages import Message, Received
from appliance.adapters.mqtt.newest_messages import MAX_UNREAD, NewestMessages
from appliance.adapters.mqtt.picture_store import PictureStore
from appliance.adapters.mqtt.platforms.binary_sensor import BinarySensor
from appliance.adapters.mqtt.platforms.entity import Change, Entity, EntityEvent
from appliance.adapters.mqtt.platforms.payloads import Update
from appliance.adapters.mqtt.platforms.picture import StillPicture
from appliance.adapters.mqtt.presses import RecentPresses
from appliance.adapters.mqtt.refusals import Refusal
from appliance.adapters.mqtt.restored_states import RestoredStates
from appliance.adapters.mqtt.router import Route
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import Invalid


class MessageProcessor:
    """Processes the messages of one broker, and publishes the observations and events of its devices. Owns the parts
    that set the values of these devices.

    `on_work` is called when `secs_to_tick` may have become shorter for a reason other than a message.
    """

    def __init__(
        self,
        announced: AnnouncedDevices,
        newest: NewestMessages,
        budget: Budget,
        on_work: Callable[[], None],
        publish: Publisher,
        clock: Clock,
        zone: tzinfo,
        stopped_at: datetime | None,
    ) -> None:
        self.pictures = PictureStore(publish, clock)
        self._deadlines = Deadlines(clock)
        self.restored = RestoredStates(publish, self.pictures, self._deadlines, clock, stopped_at)
        self.changed = ChangedDevices(announced, self.restored, publish)
        self.commands = Commands(announced, self.changed, on_work, clock, zone)
        self._announced = announced
        self._budget = budget
        self._on_work = on_work
        self._publish = publish
        self._clock = clock
        self._zone = zone
        self._newest = newest
        self._presses = RecentPresses(clock)

    def process(self, received: Received) -> Iterator[None]:
        """Process any message except a configuration, one entity per step. Never raises."""
        routes, texts = self._announced.router.find_routes(received.topic), list[Route]()
        for each in routes:
            if isinstance(each.entity, StillPicture) and each.filter == each.entity.picture_filter:
                self._take_picture(received, each.device, each.entity)
                yield
            else:
                texts.append(each)
        if texts or not routes:
            yield from self._process_text(received, texts)

    def _take_picture(self, received: Received, device: MqttDevice, entity: StillPicture) -> None:
        try:
            shown = self.pictures.take(device.id, entity, received)
        except Invalid as fault:
            self._announced.refusals.note_message(device.id, entity, fault)
            return
        self._take_change(device, entity, {entity.custom_key: shown}, is_live=not received.is_retained)

    def _process_text(self, received: Received, routes: Sequence[Route]) -> Iterator[None]:
        try:
            message = self._message(received)
        except Invalid as fault:
            refusals = self._announced.refusals
            if received.topic not in refusals.by_key:
                device_id = self._announced.router.device_id_at(received.topic) or received.topic
                refusals.note_topic(received.topic, Refusal(device_id, "message", str(fault)))
            return
        if self._newest.is_outdated(message):
            return
        is_availability = any(
            each.filter == received.topic and each.entity.availability.reads(received.topic) for each in routes
        )
        is_exact = received.topic in self._announced.router
        for topic in self._newest.add(received, is_availability=is_availability, is_exact=is_exact):
            self._budget.forget(topic)
        for number, (filter_, device, entity) in enumerate(routes):
            if number:
                yield
            self._take_message(message, filter_, *self._announced.current(device, entity))

    def _message(self, received: Received) -> Message:
        """Convert a received message, and add the current time. Raise `Invalid`."""
        at = self._clock.now().astimezone(self._zone)
        return Message(received.topic, received.payload, at, is_retained=received.is_retained)

    def _take_message(self, message: Message, filter_: str, device: MqttDevice, entity: Entity) -> None:
        if entity.availability.reads(filter_):
            self.changed.publish_if_changed(device.id, ("state",))
        for change in entity.changes(filter_, message):
            self._take_change(device, entity, change, is_live=not message.is_retained)

    def _take_change(self, device: MqttDevice, entity: Entity, change: Change, *, is_live: bool) -> None:
        if isinstance(change, Exception):
            self._announced.refusals.note_message(device.id, entity, change)
        elif isinstance(change, EntityEvent):
            if not self._presses.is_reported_twice(device.id, change.name, type(entity).__name__):
                self._publish.event(device.id, change.name, change.data)
        elif change is not None:
            self._take_values(device, entity, change, is_live=is_live)
        else:
            self.changed.note(device, ("state",))
            if (pending := self.commands.pending(device, entity)) is not None:
                pending.check({}, entity)

    def _take_values(self, device: MqttDevice, entity: Entity, update: Update, *, is_live: bool) -> None:
        pending = self.commands.pending(device, entity)
        if pending is not None:
            update = pending.filter(update, entity.attributes, self._clock.monotonic())
        if update:
            self._deadlines.set(device, entity)
        if entity.is_expired and update:
            entity.refresh()
            self.changed.note(device, ("state",))
        self.changed.set_values(device, entity, update, is_live=is_live)
        if pending is not None:
            pending.check(update, entity)

    def end_unit(self, device: MqttDevice, entity: Entity) -> None:
        """End the values of an entity whose unit has changed. The earlier messages have the earlier unit."""
        self.changed.set_values(device, entity, entity.end_unit())
        self._end_messages(entity)

    def _end_messages(self, entity: Entity) -> None:
        self._newest.end_for(entity.announcement.key, [each.filter for each in entity.readers])

    def _end_former_units(self) -> Iterator[None]:
        """End the messages of entities that were removed, and returned with another unit."""
        for _, entity in self._announced.take_new_units():
            self._end_messages(entity)
            yield

    def tick(self) -> Iterator[None]:
        """Expire values, switch sensors off after their delay, release held-back states, and publish picture
        events, in steps."""
        self.pictures.publish_changes()
        yield from self._deadlines.end_due(self._announced, self._expire)
        yield from self.commands.release()

    def secs_to_tick(self) -> float:
        """Return the seconds after which `tick` has work."""
        if self.changed or self.commands.has_pending or self.pictures.has_changes:
            return 0.0
        return self._deadlines.secs_to_next()

    def _expire(self, device: MqttDevice, entity: Entity) -> None:
        if isinstance(entity, BinarySensor) and entity.off_delay > 0:
            self.changed.set_values(device, entity, entity.showing(is_on=False))
        else:
            self.changed.set_values(device, entity, entity.expire())
            self.changed.note(device, ("state",))
            if isinstance(entity, StillPicture):
                self.pictures.forget(device.id, entity)

    def publish_rebuilt(self, devices: Sequence[MqttDevice]) -> Iterator[None]:
        """Restore the values of rebuilt devices, process the newest messages for them again, and publish them, in
        steps.

        The pending commands of rebuilt devices then wait for the new entities.
        """
        self._deadlines.forget_replaced()
        self._on_work()
        own = self._announced.devices
        self.pictures.keep_only(lambda id_: own[id_].entities if id_ in own else ())
        self.restored.forget_removed(own)
        yield from self.changed.forget_removed(own)
        for device in devices:
            self.restored.restore(device)
            yield
        yield from self._end_former_units()
        rebuilt = {id(device) for device in devices}
        unread: list[str] = []
        for received in self._newest.list():
            readers = self._announced.router.find_routes(received.topic)
            if not readers:
                unread.append(received.topic)
            routes = [each for each in readers if id(each.device) in rebuilt]
            message = self._message(Received(received.topic, received.payload, is_retained=True)) if routes else None
            for filter_, device, entity in routes:
                if message is not None:
                    entity.has_old_unit = self._newest.is_outdated_for(entity.announcement.key, received.topic)
                    self._take_message(message, filter_, device, entity)
                    entity.has_old_unit = False
                yield
            yield
        for device in devices:
            if own.get(device.id) is device:
                self.changed.publish_device(device)
            yield
        if removed := unread[:-MAX_UNREAD]:
            yield from self._newest.forget(removed)
        yield from self._budget.forget_unknown()
