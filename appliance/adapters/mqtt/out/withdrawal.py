"""Takes back what a hub announced: its retained configurations and states, once it publishes no longer."""

from __future__ import annotations

import logging

import orjson

from appliance.adapters.base import Secrets
from appliance.adapters.mqtt.broker import MAX_PAUSE_SECS, MIN_PAUSE_SECS, Broker, BrokerConnection
from appliance.adapters.mqtt.inbox import Received
from appliance.adapters.mqtt.mqtt_settings import Mqtt
from appliance.adapters.mqtt.out.out_topics import HubTopics
from appliance.adapters.mqtt.payloads import Outgoing
from appliance.clock import Clock
from appliance.errors import Unreachable
from appliance.tasks import Tasks

RETAINED_QUIET_SECS = 1.0
"""Seconds without a retained message after which all of them have come."""

log = logging.getLogger("adapters")


def published_topics(secrets: Secrets) -> HubTopics | None:
    """The topics that a former run published at and that were not taken back; None where there are none."""
    kept = secrets.get("published")
    hub_id, prefix = orjson.loads(kept) if kept else ("", "")
    return HubTopics(hub_id, prefix) if hub_id else None


async def keep_published(secrets: Secrets, topics: HubTopics | None) -> None:
    """Store that a hub publishes at these topics, or at none. Raises `StoreFailed`."""
    if published_topics(secrets) != topics:
        await secrets.put(
            "published", "" if topics is None else orjson.dumps([topics.hub_id, topics.prefix]).decode()
        )


class Withdrawal:
    """While entered, clears what stands retained at the topics of a hub, once; it tries until the broker is there.

    `after` are the topics that the hub publishes at from now on, which is stored when the old ones are cleared; what
    stands at those is left alone.
    """

    def __init__(
        self,
        settings: Mqtt,
        topics: HubTopics,
        after: HubTopics | None,
        secrets: Secrets,
        clock: Clock,
        client_id: str,
    ) -> None:
        self._topics = topics
        self._after = after
        self._secrets = secrets
        self._clock = clock
        self._found: list[str] = []
        self._broker = Broker(settings, client_id, None, self._receive)
        self._tasks = Tasks()

    async def __aenter__(self) -> Withdrawal:
        self._tasks.start(self._withdraw(), "taking back what was published")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def _receive(self, received: Received) -> None:
        if received.is_retained and received.payload:
            self._found.append(received.topic)

    async def _withdraw(self) -> None:
        pause = MIN_PAUSE_SECS
        while True:
            try:
                async with self._broker.connect() as connection:
                    await self._clear(connection)
                await keep_published(self._secrets, self._after)
                return
            except Unreachable as error:
                log.debug("out: %s", error)
            await self._clock.sleep(pause)
            pause = min(pause * 2, MAX_PAUSE_SECS)

    async def _clear(self, connection: BrokerConnection) -> None:
        kept = () if self._after is None else self._after.leftovers
        await connection.subscribe([each for each in self._topics.leftovers if each not in kept])
        count = -1
        while count != len(self._found):
            count = len(self._found)
            await self._clock.sleep(RETAINED_QUIET_SECS)
        found, self._found = dict.fromkeys(self._found), []
        for topic in found:
            await connection.publish(Outgoing(topic, "", qos=1, retain=True))
        if found:
            log.info("out: took back %d announcements and states of %s", len(found), self._topics.hub_id)
