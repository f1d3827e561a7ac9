"""The adapter for a broker: maintains the connection, processes messages, and sends commands."""

from __future__ import annotations

import contextlib
import logging
import math
import sys
from collections.abc import Iterable, Iterator, Mapping

from appliance.adapters.base import Adapter, AdapterContext, CommandResult, Operation, Picture
from appliance.adapters.mqtt.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.budget import Budget
from appliance.adapters.mqtt.client import Broker, BrokerConnection, keep_connected
from appliance.adapters.mqtt.discovery import Discovery
from appliance.adapters.mqtt.inbox import Inbox, Received
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.message_processor import MessageProcessor
from appliance.adapters.mqtt.messages import outgoing_of
from appliance.adapters.mqtt.picture_store import PictureStore
from appliance.adapters.mqtt.refusals import Reports
from appliance.adapters.mqtt.retained_messages import RetainedMessages
from appliance.adapters.mqtt.stored_texts import client_id_of, hub_id_of, keep_stop, stopped_at
from appliance.adapters.mqtt.templates.template import SIMPLE_TEMPLATES
from appliance.adapters.pushed_results import RESULT_SECS
from appliance.errors import StoreFailed, Unreachable
from appliance.event_loop import in_steps
from appliance.home.commands import Command
from appliance.home.values import Value
from appliance.imports import import_ahead
from appliance.tasks import run_together

TICK_SECS = 0.25
"""Seconds between two checks while messages are parked or values are about to expire."""

MAX_TICK_SECS = 3600.0
"""Maximum seconds between two checks for expired values."""

ANSWERED_SECS = 5.0
"""Minimum seconds between two reports that the broker responds. Each arriving message can cause a report."""

BATCH = 10
"""Maximum number of messages that are taken from the inbox at once. A message that arrives during a batch waits for
the batch, so a batch of slow messages must be short."""

CONFIGS = ""
"""The queue of the configurations in the inbox."""

COSTS_TOO_MUCH = "the messages take too much processor time, so they wait; each topic keeps only its newest message"

DROPPED_SECS = 60.0
"""Minimum seconds between two log lines about dropped messages."""

MAX_COSTLY = 1_000
"""Maximum number of devices and topics that are reported as too costly."""

COMPILER = "appliance.adapters.mqtt.templates.evaluator"
"""The module that the first complex template imports. The import takes a fifth of a second."""

log = logging.getLogger("adapters")


class MqttAdapter(Adapter):
    """One broker. Reconnects after each loss of the connection.

    Commands to different devices run concurrently, because the broker forwards all of them.
    """

    concurrency = 1_000
    command_secs = 3 * RESULT_SECS
    """The timeouts inside a command are far shorter, so that they expire first even on a busy event loop."""

    def __init__(self, context: AdapterContext, settings: Mqtt) -> None:
        super().__init__(context)
        self.inbox = Inbox(self._queue_of, self._has_events)
        self.connection: BrokerConnection | None = None
        self.announced: AnnouncedDevices
        self.processor: MessageProcessor
        self._settings = settings.located(context.root)
        self._secrets = context.secrets
        self._locale = context.locale
        self._broker: Broker
        self._hub_id = ""
        self._discovery: Discovery
        self._budget = Budget(self.clock, self._report_parked)
        self._costly: set[str] = set()
        self._answered_at = -math.inf
        self._tick_at = math.inf
        self._dropped, self._dropped_at = 0, -math.inf
        self._status: str | None = None
        self._retained = RetainedMessages(self.name, self.clock)
        self._pictures: PictureStore | None = None
        self._reports = Reports(self.publish, self.clock)

    async def run(self) -> None:
        """Keep the connection and publish changes until cancelled."""
        hub_id = self._hub_id = await hub_id_of(self._settings, self._secrets)
        is_full, prefix = self._settings.include_config_entities, self._settings.discovery_prefix
        self.announced = AnnouncedDevices(
            self.name, prefix, hub_id, includes_config_entities=is_full, locale=self._locale
        )
        self.processor = MessageProcessor(
            self.announced, self.publish, self.clock, self._locale.timezone, stopped_at(self._secrets)
        )
        self._discovery = Discovery(
            self._settings, self.announced, self.processor, self.inbox, self.publish, self.clock
        )
        self._pictures = self.processor.pictures
        # If this hub publishes its own devices, the publisher's connection has the status topic and the last will.
        self._status = None if self._settings.publish else f"lares/{hub_id}/status"
        client_id = await client_id_of(self.name, self._secrets)
        self._broker = Broker(self._settings, client_id, self._status, self.inbox.put)
        connecting = keep_connected(self._broker, self.clock, self._session, self._publish_loss)
        await run_together(connecting, self._keep_reading(), self._keep_time())

    async def __aexit__(self, *_: object) -> None:
        """Store the stop time. After a restart, a retained value that had not yet expired at that time is newer than
        the stored state."""
        with contextlib.suppress(StoreFailed):
            await keep_stop(self._secrets, self.clock)

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Publish a command. Return when the device reports the result. If there is no state topic, return
        immediately."""
        connection = self._connected("command")
        await self.processor.commands.run(connection, device_id, command)
        return CommandResult()

    async def picture(self, device_id: str, attribute: str | None = None) -> Picture | None:
        """Return the newest still picture of a camera or an image, or None."""
        return None if self._pictures is None else self._pictures.find(device_id, attribute)

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`publish` sends a message to the broker. `notify` displays a message on devices."""
        return {"publish": self._publish_message, "notify": self._notify}

    async def _publish_message(self, payload: Mapping[str, Value]) -> Value:
        """Publish `{topic, payload, retain?, qos?}`. With QoS 1 or 2, return when the broker has acknowledged the
        message."""
        own = (self._settings.discovery_prefix, f"lares/{self._hub_id}")
        message = outgoing_of(payload, own)
        await self._connected("message").publish(message)
        return {"topic": message.topic}

    async def _notify(self, payload: Mapping[str, Value]) -> Value:
        """Send `{message, title?, device_id?}` to the devices that display messages. Return once the message is
        sent."""
        connection = self._connected("message")
        return {"status": "sent", "devices": await self.processor.commands.notify(connection, payload)}

    def _connected(self, what: str) -> BrokerConnection:
        """Return the connection. Raise `Unreachable` if the broker is not connected."""
        if self.connection is None:
            raise Unreachable(f"the broker {self._settings.host} is not connected; the {what} was not sent")
        return self.connection

    def _publish_loss(self, error: Unreachable) -> None:
        self.publish.lost(error)
        self.publish.started()

    async def _session(self, connection: BrokerConnection) -> None:
        """Build devices and process messages until the connection is lost."""
        self.inbox.clear()
        self._retained.clear()
        self._budget.clear()
        # Publish before subscribing. Otherwise, the broker would acknowledge the status only after it has sent all
        # retained messages.
        await connection.publish_online()
        if self._status is not None:
            self._retained.note_published(self._status, "online")
        self.connection = connection
        try:
            await self._discovery.run(connection, () if self._status is None else (self._status,))
        finally:
            self.connection = None

    async def _keep_reading(self) -> None:
        while True:
            await self.inbox.wait()
            batch = self.inbox.take(BATCH)
            if COMPILER not in sys.modules and any(map(self._needs_compiler, batch)):
                await import_ahead([COMPILER])
            await in_steps(self.clock, self._process_all(batch))
            self._report_dropped()
            await in_steps(self.clock, self.processor.changed.flush())
            if self.connection is not None and (now := self.clock.monotonic()) - self._answered_at >= ANSWERED_SECS:
                self._answered_at = now
                self.publish.answered()
            if self.clock.monotonic() + self._secs_to_tick() < self._tick_at:
                self.processor.has_work.set()
            if len(self.inbox):
                await self.clock.sleep(0)

    def _queue_of(self, topic: str) -> str:
        announced = self.processor.announced
        return CONFIGS if announced.store.is_config(topic) else announced.router.device_id_at(topic)

    def _has_events(self, topic: str) -> bool:
        return self.processor.announced.router.has_events(topic)

    def _process_all(self, batch: Iterable[Received]) -> Iterator[None]:
        for received in batch:
            is_config = self.announced.store.is_config(received.topic)
            yield from self._budget.run(received.topic, self._process(received, is_config=is_config))
            if is_config:
                self._budget.forget(received.topic)  # any client can publish announcements at any number of topics
            yield

    def _needs_compiler(self, received: Received) -> bool:
        """Return whether a message may contain a template that is more complex than a path."""
        if b"{%" in received.payload:
            return True
        count = received.payload.count(b"{{")
        return count > 0 and count > len(SIMPLE_TEMPLATES.findall(received.payload))

    def _process(self, received: Received, *, is_config: bool) -> Iterator[None]:
        if received.topic == self._status:
            self._retained.note_received(received)
            return
        yield from (self._discovery if is_config else self.processor).process(received)

    def _report_parked(self, topic: str) -> None:
        """Report once that a device or a configuration topic sends too many costly messages."""
        announcer = self.announced.router.device_id_at(topic)
        if announcer not in self._costly and len(self._costly) < MAX_COSTLY:
            self._costly.add(announcer)
            self.publish.dropped(announcer[:200], "messages", COSTS_TOO_MUCH)

    async def _keep_time(self) -> None:
        """Expire values, continue parked messages, and report faults. Sleep while there is nothing to do."""
        while True:
            secs = self._secs_to_tick()
            self._tick_at = self.clock.monotonic() + secs
            if await self.clock.wait(self.processor.has_work, secs):
                self.processor.has_work.clear()
                continue
            self.processor.tick()
            await in_steps(self.clock, self._budget.resume())
            if self.connection is not None:
                with contextlib.suppress(Unreachable):
                    await self._retained.restore_overwritten(self.connection)
            self._reports.report(self.announced.refusals)
            await in_steps(self.clock, self.processor.changed.flush())

    def _secs_to_tick(self) -> float:
        """Return the seconds until `_keep_time` has work."""
        is_idle = self._budget.is_idle and self._reports.is_current(self.announced.refusals)
        secs = self.processor.secs_to_tick() if is_idle and not self._retained.has_overwritten else 0.0
        return min(max(secs, TICK_SECS), MAX_TICK_SECS)

    def _report_dropped(self) -> None:
        """Log the number of dropped messages, at most once per minute."""
        dropped, now = self.inbox.dropped + self._budget.dropped, self.clock.monotonic()
        if dropped > self._dropped and now - self._dropped_at >= DROPPED_SECS:
            log.warning(
                "%s: %d messages were dropped because they arrive faster than the hub can process them; each topic "
                "keeps its newest message",
                *(self.name, dropped - self._dropped),
            )
            self._dropped, self._dropped_at = dropped, now


def build(settings: Mqtt, context: AdapterContext) -> Adapter:
    return MqttAdapter(context, settings)
