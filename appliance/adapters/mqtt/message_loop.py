"""Connects the parts of one broker, and decides when waiting messages are processed.

`keep_reading` processes the messages in the inbox, in batches. `keep_time` continues messages that were parked
because they take too much processor time, and expires values.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

from appliance.adapters.mqtt.announcements.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.announcements.discovery import Discovery
from appliance.adapters.mqtt.broker import BrokerConnection
from appliance.adapters.mqtt.budget import Budget
from appliance.adapters.mqtt.inbox import Inbox
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.message_processor import MessageProcessor
from appliance.adapters.mqtt.messages import Received
from appliance.adapters.mqtt.newest_messages import NewestMessages
from appliance.adapters.mqtt.reports import CostReports, FaultReports
from appliance.adapters.mqtt.retained_messages import RetainedMessages
from appliance.adapters.mqtt.templates.template import EVALUATOR, needs_evaluator
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import Unreachable
from appliance.event_loop import in_steps
from appliance.home_locale import Locale
from appliance.imports import import_ahead

TICK_SECS = 0.25
"""Seconds between two checks while messages are parked or values are about to expire."""

MAX_TICK_SECS = 3600.0
"""Maximum seconds between two checks for expired values."""

ANSWERED_SECS = 5.0
"""Minimum seconds between two reports that the broker responds. Each arriving message can cause a report."""

BATCH = 10
"""Maximum number of messages that are taken from the inbox at once. A message that arrives during a batch waits for
the batch, so a batch of slow messages must be short."""

CONFIGS, UNREAD = "", "\0"
"""The queues in the inbox for the configurations, and for the messages that no device reads. A queue per topic would
need four times the memory of its message."""

DROPPED_SECS = 60.0
"""Minimum seconds between two log lines about dropped messages."""

log = logging.getLogger("adapters")


class MessageLoop:
    """The processing of one broker's messages. Messages are processed while `keep_reading` and `keep_time` run.

    Without a connection to the broker, `connection` has the value None. `status` is the topic of the hub's status, if
    the adapter publishes it.
    """

    def __init__(
        self,
        settings: Mqtt,
        hub_id: str,
        status: str | None,
        publish: Publisher,
        clock: Clock,
        locale: Locale,
        stopped_at: datetime | None,
    ) -> None:
        self.hub_id = hub_id
        self.connection: BrokerConnection | None = None
        self.announced = AnnouncedDevices(publish.name, settings, hub_id, locale)
        self._has_work = asyncio.Event()
        router, newest = self.announced.router, NewestMessages()
        self._budget = Budget(
            clock, CostReports(publish, router, clock).report, lambda topic: topic in router or topic in newest
        )
        self.processor = MessageProcessor(
            self.announced, newest, self._budget, self._has_work.set, publish, clock, locale.timezone, stopped_at
        )
        self._queue_of = partial(_queue_of, self.announced, status)
        self.inbox = Inbox(self._queue_of, router.has_events)
        own_topics = () if status is None else (status,)
        self.discovery = Discovery(settings, self.announced, self.processor, self.inbox, publish, clock, own_topics)
        self._status = status
        self._publish = publish
        self._clock = clock
        self._answered_at = -math.inf
        self._tick_at = math.inf
        self._dropped, self._dropped_at = 0, -math.inf
        self._retained = RetainedMessages(publish.name, clock)
        self._reports = FaultReports(publish, clock)

    async def run_session(self, connection: BrokerConnection) -> None:
        """Announce the hub, and build the announced devices, until the connection is lost."""
        await in_steps(self._clock, self.inbox.discard_all())
        self._retained.clear()
        self._budget.clear()
        # Publish before subscribing. Otherwise, the broker would acknowledge the status only after it has sent all
        # retained messages.
        await connection.publish_online()
        if self._status is not None:
            self._retained.note_published(self._status, "online")
        await self.discovery.prepare()
        self.connection = connection
        try:
            await self.discovery.run(connection)
        finally:
            self.connection = None

    async def keep_reading(self) -> None:
        while True:
            await self.inbox.wait()
            batch = self.inbox.take(BATCH)
            if EVALUATOR not in sys.modules and any(needs_evaluator(each.payload) for each in batch):
                await import_ahead([EVALUATOR])
            await in_steps(self._clock, self._process_all(batch))
            self._report_dropped()
            await in_steps(self._clock, self.processor.changed.flush())
            if self.connection is not None and (now := self._clock.monotonic()) - self._answered_at >= ANSWERED_SECS:
                self._answered_at = now
                self._publish.answered()
            if self._clock.monotonic() + self._secs_to_tick() < self._tick_at:
                self._has_work.set()
            if len(self.inbox):
                await self._clock.sleep(0)

    def _process_all(self, batch: Iterable[Received]) -> Iterator[None]:
        for received in batch:
            queue = self._queue_of(received.topic)
            work = self._process(received, is_config=queue == CONFIGS)
            yield from work if queue == UNREAD else self._budget.run(received.topic, work, received.size)
            yield

    def _process(self, received: Received, *, is_config: bool) -> Iterator[None]:
        if received.topic == self._status:
            self._retained.note_received(received)
            return
        if is_config and self.connection is None:
            return  # the broker sends it again to the next subscription; a flood would stay in memory until then
        yield from (self.discovery if is_config else self.processor).process(received)

    async def keep_time(self) -> None:
        """Expire values, continue parked messages, and report faults. Sleep while there is nothing to do."""
        while True:
            secs = self._secs_to_tick()
            self._tick_at = self._clock.monotonic() + secs
            if await self._clock.wait(self._has_work, secs):
                self._has_work.clear()
                continue
            await in_steps(self._clock, self.processor.tick())
            await in_steps(self._clock, self._budget.resume())
            if self.connection is not None:
                with contextlib.suppress(Unreachable):
                    await self._retained.restore_overwritten(self.connection)
            self._reports.report(self.announced.refusals)
            await in_steps(self._clock, self.processor.changed.flush())

    def _secs_to_tick(self) -> float:
        """Return the seconds until `keep_time` has work."""
        is_idle = self._budget.is_idle and self._reports.is_current(self.announced.refusals)
        secs = self.processor.secs_to_tick() if is_idle and not self._retained.has_overwritten else 0.0
        return min(max(secs, TICK_SECS), MAX_TICK_SECS)

    def _report_dropped(self) -> None:
        """Log the number of dropped messages, at most once per minute."""
        dropped, now = self.inbox.dropped + self._budget.dropped, self._clock.monotonic()
        if dropped > self._dropped and now - self._dropped_at >= DROPPED_SECS:
            log.warning(
                "%s: %d messages were dropped because they arrive faster than the hub can process them; each topic "
                "keeps its newest message",
                *(self._publish.name, dropped - self._dropped),
            )
            self._dropped, self._dropped_at = dropped, now


def _queue_of(announced: AnnouncedDevices, status: str | None, topic: str) -> str:
    if topic == status:
        return topic
    return CONFIGS if announced.store.is_config(topic) else announced.router.device_id_at(topic) or UNREAD
