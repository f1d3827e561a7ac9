"""MQTT discovery: when the devices of a broker are built, requested to announce themselves, and forgotten.

The path of an announcement: 1. `process` passes a configuration to `AnnouncementStore.take_config`, which stores its
announcements. 2. `_keep_building` waits until no further configuration arrives, and calls `_rebuild`. 3.
`AnnouncedDevices.rebuild` groups the announcements, and builds the changed devices. 4. `_rebuild` subscribes to the
topics of these devices. 5. `MessageProcessor.publish_rebuilt` restores their values, and publishes the devices.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Iterable, Iterator
from enum import IntEnum

from appliance.adapters.mqtt.announcements.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.announcements.announcement import parse_config
from appliance.adapters.mqtt.broker import BrokerConnection
from appliance.adapters.mqtt.fields import MAX_QUICK_CHARS, parse_templates
from appliance.adapters.mqtt.inbox import Inbox
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.message_processor import MessageProcessor
from appliance.adapters.mqtt.messages import Outgoing, Received
from appliance.adapters.mqtt.subscriptions import Subscriptions
from appliance.adapters.mqtt.tasmota import announcements as tasmota
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import Invalid
from appliance.event_loop import in_steps
from appliance.home.model import Device
from appliance.tasks import run_together

QUIET_SECS = 0.1
"""Seconds without a new configuration after which devices are built."""

SETTLE_SECS = 1.0
"""Seconds without a new configuration after which all retained configurations are assumed to have arrived."""

MAX_GATHER_SECS = 0.5
"""Seconds after which devices are built even if more configurations arrive."""

RETURN_SECS = 10.0
"""Seconds after a birth message during which devices without retained configurations can announce themselves again.
"""

BIRTH_SECS = 300.0
"""Minimum seconds between two birth messages, because each one makes all devices publish their states again."""

log = logging.getLogger("adapters")


class Phase(IntEnum):
    """The phases of a connection."""

    GATHERING = 1
    """The retained configurations arrive."""
    SETTLED = 2
    """All retained configurations have arrived, and a birth message is due."""
    BORN = 3
    """Devices without retained configurations announce themselves again."""
    COMPLETE = 4
    """The known devices that did not announce themselves are forgotten."""


class Discovery:
    """Builds the devices of one broker from their configurations. Also subscribes to `more_topics`."""

    def __init__(
        self,
        settings: Mqtt,
        announced: AnnouncedDevices,
        processor: MessageProcessor,
        inbox: Inbox,
        publish: Publisher,
        clock: Clock,
        more_topics: Iterable[str] = (),
    ) -> None:
        self._settings = settings
        self._announced = announced
        self._processor = processor
        self._inbox = inbox
        self._publish = publish
        self._clock = clock
        topics = [f"{settings.discovery_prefix}/{levels}/config" for levels in ("+/+", "+/+/+")]
        topics += tasmota.DISCOVERY_FILTERS if settings.tasmota else ()
        self.subscriptions = Subscriptions([*topics, *more_topics], announced.router)
        self._seen: set[str] = set()
        self._requested: set[str] = set()
        self._config_at = 0.0
        self._has_new = asyncio.Event()
        self._phase = Phase.GATHERING
        self._born_at = -math.inf
        self._is_silent = True  # no announcement has arrived in this process, and no line was logged about it

    async def prepare(self) -> None:
        """Forget the previous connection. After an outage, also mark the devices that are not built as unavailable,
        because none of their messages has arrived yet. Call this method before `run`, while nothing reports an answer
        of the broker."""
        self._begin()
        if self._publish.is_lost:
            absent = self._publish.list_devices().keys() - self._announced.devices
            await in_steps(self._clock, self._publish.availability_parts(absent, is_available=False))

    async def run(self, connection: BrokerConnection) -> None:
        """Subscribe, and build devices until the connection is lost."""
        self._publish.answered()
        await run_together(self.subscriptions.keep(connection), self._keep_building(connection))

    def _begin(self) -> None:
        """Forget the previous connection, and expect the known devices to be announced again."""
        self._phase = Phase.GATHERING
        self._seen.clear()
        self._requested.clear()
        known = self._publish.list_devices()
        identifiers = {id_: each.metadata.vendor_specific.get("identifier") for id_, each in known.items()}
        self._announced.expect({id_: each if isinstance(each, str) else "" for id_, each in identifiers.items()})
        self._processor.restored.remember()
        self.subscriptions.clear()

    def process(self, received: Received) -> Iterator[None]:
        """Process a configuration in steps."""
        self._config_at = self._clock.monotonic()
        if len(received.payload) > MAX_QUICK_CHARS:
            with contextlib.suppress(Invalid):
                yield from parse_templates(parse_config(received.payload))
                yield
        if self._announced.store.take_config(received.topic, received.payload):
            self._has_new.set()
            for device, entity in self._announced.take_new_units():
                self._processor.end_unit(device, entity)
                yield
        if not self._announced.store.has_config(received.topic):
            self._seen.discard(received.topic)
        else:
            self._is_silent = False
            if self._phase < Phase.COMPLETE:
                self._seen.add(received.topic)

    async def _keep_building(self, connection: BrokerConnection) -> None:
        """Build devices from configurations until cancelled."""
        began = self._config_at = self._clock.monotonic()
        gather_secs = MAX_GATHER_SECS
        while True:
            if self._phase is Phase.COMPLETE and not self._has_new.is_set():
                await self._has_new.wait()
            now = self._clock.monotonic()
            await self._clock.sleep(QUIET_SECS)
            if self._has_new.is_set() and (now - self._config_at >= QUIET_SECS or now - began >= gather_secs):
                self._has_new.clear()
                await self._rebuild()
                if self._phase > Phase.GATHERING:
                    await self._request_states(connection)
                # Building many devices takes long. If many messages arrive, reserve most of the time for reading
                # them.
                began = self._clock.monotonic()
                gather_secs = max(MAX_GATHER_SECS, 4 * (began - now))
            if self._phase is Phase.GATHERING:
                self._report_progress()
                if self._is_settled(now):
                    await self._settle(connection)
            else:
                await self._find_missing(connection)

    def _is_settled(self, now: float) -> bool:
        """Return whether the broker has acknowledged the subscriptions, and no configurations or messages are
        waiting."""
        return self.subscriptions.is_current and now - self._config_at >= SETTLE_SECS and not len(self._inbox)

    def _report_progress(self) -> None:
        """Publish the progress of the adapter's start for `GET /adapters/{id}`."""
        if self._publish.has_started.is_set():
            return
        seen, waiting, built = len(self._seen), len(self._inbox), len(self._announced.devices)
        self._publish.progressed(
            f"{seen} announcements accepted, {waiting} messages waiting, {built} devices created"
        )

    async def _settle(self, connection: BrokerConnection) -> None:
        """Request configurations and states that are not retained. All retained configurations must have arrived
        before the call."""
        self._phase = Phase.SETTLED
        await self._rebuild()
        if self._is_silent:
            self._is_silent = False
            log.warning(
                "%s: the broker %s has no announcement below %s/; check discovery_prefix and the access list",
                *(self._publish.name, self._settings.host, self._settings.discovery_prefix),
            )
        self._publish.started()
        self._publish.answered()
        await self._find_missing(connection)
        await self._request_states(connection)

    async def _request_states(self, connection: BrokerConnection) -> None:
        """Request the states of devices without retained states, once per device and connection."""
        store = self._announced.store
        for request in await in_steps(self._clock, store.list_state_requests(self._requested)):
            await connection.publish(request)

    async def _find_missing(self, connection: BrokerConnection) -> None:
        """Send a birth message, at most once in `BIRTH_SECS`. Forget the devices that do not announce themselves
        again within `RETURN_SECS`."""
        now = self._clock.monotonic()
        if self._phase is Phase.SETTLED and now - self._born_at >= BIRTH_SECS:
            self._phase, self._born_at = Phase.BORN, now
            await connection.publish(Outgoing(f"{self._settings.discovery_prefix}/status", "online"))
        elif self._phase is Phase.BORN and now - self._born_at >= RETURN_SECS:
            await self._forget_missing()

    async def _forget_missing(self) -> None:
        """Forget devices that are no longer announced. If nothing at all is announced, keep all devices, because the
        broker has lost its messages."""
        self._phase = Phase.COMPLETE
        if self._seen:
            await in_steps(self._clock, self._announced.store.forget_configs_except(self._seen))
            self._seen.clear()
        self._announced.end_waiting()
        await self._rebuild()

    async def _rebuild(self) -> None:
        """Rebuild devices whose announcements have changed, publish them in steps, and subscribe to their topics.

        A known device without an announcement becomes unavailable once all retained configurations have arrived.
        The device is removed if it does not announce itself within `RETURN_SECS` after a birth message.
        """
        rebuilt = await in_steps(self._clock, self._announced.rebuild())
        await self.subscriptions.renew()
        await in_steps(self._clock, self._processor.publish_rebuilt(rebuilt))
        if self._phase > Phase.GATHERING:
            built, known = self._announced.devices, self._publish.list_devices()
            absent, refused = known.keys() - built, self._announced.refusals.by_key
            kept = [id_ for id_ in absent if self._phase < Phase.COMPLETE or _topics_of(known[id_]) & refused.keys()]
            self._processor.restored.forget_known(built)
            await self._publish.full_list((), present=(*built, *kept))
            await in_steps(self._clock, self._publish.availability_parts(kept, is_available=False))


def _topics_of(device: Device) -> set[str]:
    topics = device.metadata.vendor_specific.get("config_topics")
    return {each for each in topics if isinstance(each, str)} if isinstance(topics, list) else set()
