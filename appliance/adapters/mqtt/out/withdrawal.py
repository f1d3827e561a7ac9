"""Takes back what a hub announced: its retained configurations and states, once it publishes no longer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

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


@asynccontextmanager
async def withdrawal(
    settings: Mqtt, topics: HubTopics, after: HubTopics | None, secrets: Secrets, clock: Clock, client_id: str
) -> AsyncIterator[None]:
    """While entered, clear what stands retained at the topics of a hub, once; it tries until the broker is there.

    `after` are the topics that the hub publishes at from now on, which is stored when the old ones are cleared; what
    stands at those is left alone.
    """
    kept = () if after is None else after.leftovers
    filters = [each for each in topics.leftovers if each not in kept]

    async def withdraw() -> None:
        found: dict[str, None] = {}

        def receive(received: Received) -> None:
            if received.is_retained and received.payload:
                found[received.topic] = None

        broker, pause = Broker(settings, client_id, None, receive), MIN_PAUSE_SECS
        while True:
            try:
                async with broker.connect() as connection:
                    await _clear(connection, filters, found, clock)
                if found:
                    log.info("out: took back %d announcements and states of %s", len(found), topics.hub_id)
                await keep_published(secrets, after)
                return
            except Unreachable as error:
                log.debug("out: %s", error)
            await clock.sleep(pause)
            pause = min(pause * 2, MAX_PAUSE_SECS)

    async with Tasks() as tasks:
        tasks.start(withdraw(), "taking back what was published")
        yield


async def _clear(
    connection: BrokerConnection, filters: Sequence[str], found: Mapping[str, None], clock: Clock
) -> None:
    """Clear the topics that are found once their messages have come."""
    await connection.subscribe(filters)
    count = -1
    while count != len(found):
        count = len(found)
        await clock.sleep(RETAINED_QUIET_SECS)
    for topic in list(found):
        await connection.publish(Outgoing(topic, "", qos=1, retain=True))
