"""Sends commands to the devices of a broker, waits for their results, and sends messages to devices with a
display."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, tzinfo

from appliance.adapters.confirmation import RESULT_SECS, failure, is_long_fade, wait_for_result
from appliance.adapters.mqtt.announcements.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.broker import BrokerConnection
from appliance.adapters.mqtt.changed_devices import ChangedDevices
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.pending_command import PendingCommand
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.adapters.notification import Notification
from appliance.clock import Clock
from appliance.errors import BadAnswer, Invalid, Unanswered, Unsupported
from appliance.home.commands import Command
from appliance.home.model import UNAVAILABLE
from appliance.home.values import Value
from appliance.tables.checks import format_value


class Commands:
    """Runs the commands to the devices of one broker, and stores the commands that wait for results.

    `on_pending` is called when a command begins to wait for its result. Run `release` regularly while
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
        pending = PendingCommand(intent, entity.attributes, self._clock.monotonic(), command.transition_secs)
        if intent.shows:
            self._pending[device_id, entity.announcement.key] = pending
            self._on_pending()
        try:
            for message in intent.messages:
                await connection.publish(message)
            await self._await_result(device, entity, intent, pending, command)
        finally:
            pending.ended.set()  # otherwise, `release` would never forget the command

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
            self._changed.set_values(device, entity, entity.assumed(assumed))
            self._changed.publish_changes(device.id)
            pending.end_if_already_shown(entity)
        if len(assumed) == len(intent.shows):
            is_done = was_available
        else:
            has_ended = pending.ended.is_set() or await wait_for_result(self._clock, pending.ended, RESULT_SECS)
            is_done = has_ended and not pending.has_failed
            device, entity = self._announced.current(device, entity)
            self._changed.publish_changes(device.id)
        if is_done:
            return
        if not entity.is_available:
            raise failure(device.id, command, {"state": UNAVAILABLE})
        if not is_long_fade(command):
            waited = "" if pending.has_failed else f" after {RESULT_SECS:.0f} s"
            shown = pending.shown(entity.attributes)
            raise BadAnswer(f"{device.id} was sent {command} but shows {shown}{waited}")

    def _now(self) -> datetime:
        return self._clock.now().astimezone(self._zone)

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    def pending(self, device: MqttDevice, entity: Entity) -> PendingCommand | None:
        return self._pending.get((device.id, entity.announcement.key)) if self._pending else None

    def release(self) -> Iterator[None]:
        """Set the held-back values whose time has expired, and forget completed commands, one per step. A command to
        a group can have thousands of devices."""
        now = self._clock.monotonic()
        for device_id, key in [place for place, pending in self._pending.items() if pending.is_over(now)]:
            pending = self._pending[device_id, key]  # a newer command is not over
            if pending.is_over(now):
                kept, device = pending.release(), self._announced.devices.get(device_id)
                if kept and device is not None and (entity := device.find(key)) is not None:
                    self._changed.set_values(device, entity, kept)
                if pending.ended.is_set():
                    del self._pending[device_id, key]
            yield
