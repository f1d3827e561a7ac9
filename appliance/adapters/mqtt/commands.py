"""Sends commands to the devices of a broker, waits for their results, and sends messages to devices with a
display."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, tzinfo

from appliance.adapters.confirmation import RESULT_SECS, describe_value, equals_rounded, failure, is_long_fade
from appliance.adapters.mqtt.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.changed_devices import ChangedDevices
from appliance.adapters.mqtt.client import BrokerConnection
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.payloads import Update
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.adapters.notification import Notification
from appliance.clock import Clock
from appliance.errors import BadAnswer, Invalid, Unanswered, Unsupported
from appliance.home.commands import Command
from appliance.home.model import UNAVAILABLE
from appliance.home.values import Value
from appliance.tables.checks import format_value

SUPPRESS_SECS = 1.0
"""Seconds after a command during which contradicting states are held back. A longer fade extends this time."""

_COLORS = ("color_xy", "color_hs", "color_rgb")


class Commands:
    """Runs the commands to the devices of one broker, and stores the commands that wait for results.

    `on_pending` is called when a command begins to wait for its result. Call `released` regularly while
    `has_pending` is true.
    """

    def __init__(
        self,
        announced: AnnouncedDevices,
        changed: ChangedDevices,
        on_pending: Callable[[], None],
        clock: Clock,
        zone: tzinfo,
    ) -> None:
        self._announced = announced
        self._changed = changed
        self._on_pending = on_pending
        self._clock = clock
        self._zone = zone
        self._pending: dict[tuple[str, str], PendingCommand] = {}  # by device id and announcement key

    async def run(self, connection: BrokerConnection, device_id: str, command: Command) -> None:
        """Publish a command, and wait for the result. Only one command per device runs at a time.

        Raise `Unreachable` if the connection is lost, `Unanswered` if the device is not announced or not available,
        and `BadAnswer` if the result does not arrive in time.
        """
        device = self._announced.devices.get(device_id)
        if device is None:
            raise Unanswered(f"{device_id} is not announced at the broker; the command was not sent")
        entity = device.handlers.get(command.capability)
        if entity is None:
            raise Unsupported(f"device '{device_id}' does not offer {command}")
        try:
            intent = entity.write(command, self._now())
        except TemplateFailed as fault:
            raise BadAnswer(f"the template for {command.capability} of {device_id} {fault}") from None
        pending = PendingCommand(intent, self._clock.monotonic(), command.transition_secs)
        if intent.shows:
            self._pending[device_id, entity.announcement.key] = pending
            self._on_pending()
        try:
            for message in intent.messages:
                await connection.publish(message)
            await self._await_result(device, entity, intent, pending, command)
        finally:
            pending.ended.set()  # otherwise, `released` would never forget the command

    async def notify(self, connection: BrokerConnection, payload: Mapping[str, Value]) -> list[Value]:
        """Send `{message, title?, device_id?}` to each device that displays messages, and return the ids of these
        devices.

        `device_id` selects one device. Raise `Invalid` if no device displays messages, `BadAnswer` if a template
        fails, and `Unreachable` if the connection is lost.
        """
        text, device_id = Notification.parse(payload).text, payload.get("device_id")
        devices = [each for each in self._announced.devices.values() if device_id in (None, each.id)]
        found = [
            (device, entity)
            for device in devices
            for entity in device.entities
            if entity.announcement.component == "notify" and entity.offers
        ]
        if not found and device_id is not None:
            raise Invalid(
                f"device_id must be the id of a device that can display messages, not {format_value(device_id)}"
            )
        if not found:
            raise Invalid("no device of this broker can display messages")
        messages: list[Outgoing] = []
        for device, entity in found:
            try:
                intent = entity.write(Command(capability=entity.custom_key, action="set", value=text), self._now())
            except TemplateFailed as fault:
                raise BadAnswer(f"the template for messages of {device.id} {fault}") from None
            messages += intent.messages
        for message in messages:
            await connection.publish(message)
        return sorted({device.id for device, _ in found})

    async def _await_result(
        self, device: MqttDevice, entity: Entity, intent: Intent, pending: PendingCommand, command: Command
    ) -> None:
        """Wait until the device reports the result. The earlier state of an unavailable device does not confirm the
        result."""
        device, entity = self._announced.current(device, entity)
        was_available = entity.is_available
        assumed = {key: value for key, value in intent.shows.items() if entity.is_assumed(key)}
        if was_available:
            self._show(device, entity, entity.assumed(assumed))
            pending.check(intent.shows, entity)
        if len(assumed) == len(intent.shows):
            is_done = was_available
        else:
            has_ended = pending.ended.is_set() or await self._clock.wait(pending.ended, RESULT_SECS)
            is_done = has_ended and not pending.has_failed
        device, entity = self._announced.current(device, entity)
        shown = pending.shown(entity.attributes)
        self._show(device, entity, {})
        if is_done:
            return
        if not entity.is_available:
            raise failure(device.id, command, {"state": UNAVAILABLE})
        if not is_long_fade(command):
            waited = "" if pending.has_failed else f" after {RESULT_SECS:.0f} s"
            raise BadAnswer(f"{device.id} was sent {command} but shows {shown}{waited}")

    def _show(self, device: MqttDevice, entity: Entity, update: Update) -> None:
        """Set values of an entity, and publish the entity's device."""
        self._changed.set_values(device, entity, update)
        self._changed.publish_changes(device.id)

    def _now(self) -> datetime:
        return self._clock.now().astimezone(self._zone)

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    def pending(self, device: MqttDevice, entity: Entity) -> PendingCommand | None:
        return self._pending.get((device.id, entity.announcement.key)) if self._pending else None

    def released(self) -> Iterator[tuple[MqttDevice, Entity, Update]]:
        """Yield the held-back values whose time has expired. Forget completed commands."""
        now = self._clock.monotonic()
        for (device_id, key), pending in [each for each in self._pending.items() if each[1].is_over(now)]:
            kept, device = pending.release(), self._announced.devices.get(device_id)
            if kept and device is not None and (entity := device.find(key)) is not None:
                yield device, entity, kept
            if pending.ended.is_set():
                self._pending.pop((device_id, key), None)


class PendingCommand:
    """A running command to one entity. For each update of the entity, call `filter` before the values are set, and
    `check` after that.

    `ended` is set once the entity has reported the result, or that the command has failed. Only in the second case is
    `has_failed` true.
    """

    def __init__(self, intent: Intent, now: float, transition_secs: float | None) -> None:
        self.ended = asyncio.Event()
        self._expected = dict(intent.shows)
        self._begins = intent.begins
        self._until = now + max(SUPPRESS_SECS, transition_secs or 0.0)
        self._kept: dict[str, Value] = {}
        self._fails = intent.fails
        self._is_reported = False
        self.has_failed = False

    def filter(self, update: Update, shown: Mapping[str, Value], now: float) -> Update:
        """Return the update without the values that contradict the command. Hold those values back.

        If the update means that the command has failed, end the command. `shown` contains the values before the
        update.
        """
        passed = self._hold_back(update, now)
        fails = (passed.get(key) in self._fails and shown.get(key) not in self._fails for key in self._expected)
        if not self.ended.is_set() and any(fails):
            self.has_failed = True
            self.ended.set()
        return passed

    def _hold_back(self, update: Update, now: float) -> Update:
        if self._begins is not None or now >= self._until:
            return update
        passed: dict[str, Value] = {}
        for key, value in update.items():
            if key in self._expected and value not in self._fails and not equals_rounded(self._expected[key], value):
                self._kept[key] = value
            else:
                self._kept.pop(key, None)
                passed[key] = value
        return passed

    def check(self, update: Update, entity: Entity) -> None:
        """End the command if the entity has the expected values, and has reported one of them since the command.

        An entity that was reported unavailable does not confirm a result.
        """
        self._is_reported |= not update.keys().isdisjoint(self._expected)
        if self._begins is not None:
            is_done = self._begins(entity)
        else:
            is_done = self._is_reported and all(
                self._is_shown(key, value, entity.attributes) for key, value in self._expected.items()
            )
        if is_done and not entity.availability.is_denied:
            self.ended.set()

    def is_over(self, now: float) -> bool:
        """Return whether states are no longer held back."""
        return now >= self._until

    def release(self) -> Update:
        """Return the values that are still held back. These values are the device's true state."""
        kept, self._kept = self._kept, {}
        return kept

    def shown(self, attributes: Mapping[str, Value]) -> str:
        """Format the reported values of the expected attributes for an error message."""
        shown = [f"{key} {describe_value(self._kept.get(key, attributes.get(key)))}" for key in self._expected]
        return ", ".join(shown) or "nothing"

    def _is_shown(self, key: str, expected: Value, attributes: Mapping[str, Value]) -> bool:
        if key in _COLORS and key not in attributes and "color_mode" in attributes:
            return True  # the colour is reported in another notation
        return key in attributes and equals_rounded(expected, attributes[key])
