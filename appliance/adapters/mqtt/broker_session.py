"""Devices of a broker as they live: what it sends becomes observations, what is asked of them is sent and awaited."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Iterable

from appliance.adapters.mqtt.announced_devices import Member, MqttDevice
from appliance.adapters.mqtt.broker import BrokerConnection
from appliance.adapters.mqtt.entities.entity import Intent
from appliance.adapters.mqtt.entities.sensors import BinarySensor
from appliance.adapters.mqtt.entity_catalog import DeviceCatalog, EntityChange, apply
from appliance.adapters.mqtt.holds import Hold
from appliance.adapters.mqtt.inbox import Received
from appliance.adapters.mqtt.payloads import Message
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import BadAnswer, Invalid, Unreachable, Unsupported
from appliance.home.commands import Command

RESULT_SECS = 4.75
"""Seconds within which a device has to show what it was told; the hub gives a command 5 in all."""

FLUSHED_AT_ONCE = 50
"""Devices that the home is told of at a stretch: one message may concern thousands."""

MAX_REMEMBERED_BYTES = 16 * 1024 * 1024
"""Bytes of newest payloads that are kept, so that a changed announcement finds its states."""

_HUB_STATE = re.compile(r"lares/[^/]+/devices/[^/]+/state")

log = logging.getLogger("adapters")


class LiveDevices:
    """The devices of one broker's catalog, alive: messages in, observations out, commands answered."""

    def __init__(self, catalog: DeviceCatalog, publish: Publisher, clock: Clock) -> None:
        self.catalog = catalog
        self.unreadable = 0
        self.outdated = 0
        self._sequences: dict[str, tuple[int, int]] = {}
        self._publish = publish
        self._clock = clock
        self._changed: dict[str, MqttDevice] = {}
        self._holds: dict[int, tuple[Hold, MqttDevice, Member]] = {}
        self._due: dict[int, tuple[float, MqttDevice, Member]] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._remembered: dict[str, Received] = {}
        self._remembered_bytes = 0

    def take(self, received: Received) -> None:
        """Take in a message that is no configuration. Never raises."""
        try:
            message = Message(received.topic, received.payload, self._clock.now(), is_retained=received.is_retained)
        except Invalid as fault:
            self.unreadable += 1
            self.catalog.refused.setdefault(received.topic, str(fault))
            return
        if self._is_outdated(message):
            return
        self._remember(received)
        for change in self.catalog.changes(message):
            self._take(change)

    def replay(self, devices: Iterable[MqttDevice]) -> None:
        """Show devices that were made anew what was last heard for them."""
        fresh = {id(device) for device in devices}
        for received in list(self._remembered.values()):
            if self.catalog.listens(received.topic, fresh):
                message = Message(received.topic, received.payload, self._clock.now(), is_retained=True)
                for change in self.catalog.changes(message):
                    if id(change.device) in fresh:
                        self._take(change)

    def flush(self) -> bool:
        """Tell the home of devices that changed, of `FLUSHED_AT_ONCE` at most; whether others are left."""
        for device_id in list(self._changed)[:FLUSHED_AT_ONCE]:
            device = self._changed.pop(device_id)
            if self.catalog.devices.get(device_id) is device:
                self._publish.device(device.observation())
        return bool(self._changed)

    def tick(self) -> None:
        """Do what time brings: values that expire, sensors that go off, states that were held back."""
        now = self._clock.monotonic()
        for key, (due, device, member) in list(self._due.items()):
            if now >= due:
                del self._due[key]
                self._expire(device, member)
        for key, (hold, device, member) in list(self._holds.items()):
            if hold.is_over(now) and (kept := hold.release()):
                self._changed[device.id] = device
                apply(member.entity, kept)
            if hold.is_over(now) and hold.done.is_set():
                self._holds.pop(key, None)

    async def command(self, connection: BrokerConnection | None, device_id: str, command: Command) -> None:
        """Publish what a command means and wait for its result.

        Raises `Unreachable` where there is no connection, `BadAnswer` where the result is not shown in time.
        """
        async with self._locks[device_id]:
            device = self.catalog.devices.get(device_id)
            if device is None or command.capability not in device.offers:
                raise Unsupported(f"device '{device_id}' does not offer {command}")
            if connection is None:
                raise Unreachable("the broker is not connected")
            entity, _ = device.offers[command.capability]
            member = next(each for each in device.members if each.entity is entity)
            try:
                intent = entity.write(command)
            except TemplateFailed as fault:
                raise BadAnswer(f"{device_id} announces a template for {command.capability} that {fault}") from None
            hold = Hold(intent, self._clock.monotonic(), command.transition_secs)
            if intent.shows:
                self._holds[id(entity)] = hold, device, member
            for message in intent.messages:
                await connection.publish(message)
            await self._await_result(device, member, intent, hold, command)

    async def _await_result(
        self, device: MqttDevice, member: Member, intent: Intent, hold: Hold, command: Command
    ) -> None:
        if not intent.shows:
            return
        if member.entity.is_optimistic:
            hold.done.set()
            if apply(member.entity, intent.shows):
                self._publish.device(device.observation())
            return
        hold.judge(intent.shows, member.entity.attributes if intent.begins is None else {})
        is_done = hold.done.is_set() or await self._clock.wait(hold.done, RESULT_SECS)
        shown = hold.shown(member.entity.attributes)
        hold.done.set()
        if (changed := self._changed.pop(device.id, None)) is not None:
            self._publish.device(changed.observation())
        if not is_done and (command.transition_secs or 0) < RESULT_SECS - 1:
            raise BadAnswer(f"{device.id} was told {command} and shows {shown} after 5 s")

    def _take(self, change: EntityChange) -> None:
        device, member = change.device, change.member
        entity = member.entity
        if change.event is not None:
            self._publish.event(device.id, change.event.name, change.event.data)
            return
        update = change.update
        if (held := self._holds.get(id(entity))) is not None:
            update = held[0].sift(update, self._clock.monotonic())
        if update:
            self._set_due(device, member)
        was_expired, member.is_expired = member.is_expired, member.is_expired and not update
        if apply(entity, update) or not change.update or was_expired != member.is_expired:
            self._changed[device.id] = device
        if held is not None:
            held[0].judge(update, entity.attributes)

    def _is_outdated(self, message: Message) -> bool:
        """Whether another hub has told something newer: a cluster of brokers may bring the older one later."""
        if _HUB_STATE.fullmatch(message.topic) is None or not message.text:
            return False
        try:
            told = message.json["boot"], message.json["seq"]
        except (Invalid, TypeError, LookupError):
            return False
        if not all(isinstance(each, int) for each in told):
            return False
        known = self._sequences.get(message.topic)
        if known is not None and told < known:
            self.outdated += 1
            return True
        self._sequences[message.topic] = told
        return False

    def _set_due(self, device: MqttDevice, member: Member) -> None:
        entity, now = member.entity, self._clock.monotonic()
        if entity.off_delay > 0:
            self._due[id(entity)] = now + entity.off_delay, device, member
        elif entity.expire_after > 0:
            self._due[id(entity)] = now + entity.expire_after, device, member

    def _expire(self, device: MqttDevice, member: Member) -> None:
        entity = member.entity
        if isinstance(entity, BinarySensor) and entity.off_delay > 0:
            changed = apply(entity, entity.when_off())
        else:
            member.is_expired = True
            changed = True
            entity.attributes.clear()
        if changed:
            self._changed[device.id] = device

    def _remember(self, received: Received) -> None:
        older = self._remembered.pop(received.topic, None)
        self._remembered_bytes += len(received.payload) - (0 if older is None else len(older.payload))
        self._remembered[received.topic] = received
        while self._remembered_bytes > MAX_REMEMBERED_BYTES:
            oldest = next(iter(self._remembered))
            self._remembered_bytes -= len(self._remembered.pop(oldest).payload)
