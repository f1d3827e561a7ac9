"""Deletes the hub's retained messages after a change of the settings."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from appliance.adapters.base import Secrets
from appliance.adapters.mqtt.broker import Broker, BrokerConnection
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.messages import Received, retained
from appliance.adapters.mqtt.out.topics import HubTopics
from appliance.adapters.mqtt.stored_texts import keep_published
from appliance.clock import Clock
from appliance.errors import Unreachable
from appliance.tasks import Tasks, back_off

RETAINED_QUIET_SECS = 1.0
"""Seconds without a retained message after which all retained messages are assumed to have arrived."""

log = logging.getLogger("adapters")


@asynccontextmanager
async def withdrawal(
    settings: Mqtt, topics: HubTopics, after: HubTopics | None, secrets: Secrets, clock: Clock, client_id: str
) -> AsyncIterator[None]:
    """Inside the `async with` block, delete a hub's retained messages once. Retry until the broker responds.

    `after` contains the topics that the hub will use. Messages at these topics are not deleted. `after` is stored
    once the old topics are cleared.
    """
    kept = () if after is None else after.leftovers
    filters = [each for each in topics.leftovers if each not in kept]
    found: dict[str, None] = {}

    def receive(received: Received) -> None:
        if received.is_retained and received.payload:
            found[received.topic] = None

    async def withdraw() -> None:
        broker, failures = Broker(settings, client_id, None, receive), 0
        while True:
            try:
                async with broker.connect() as connection:
                    await _clear(connection, filters, found, clock)
                if found:
                    log.info(
                        "publishing: removed %d announcements and states of the hub %s", len(found), topics.hub_id
                    )
                await keep_published(secrets, after)
                return
            except Unreachable as error:
                log.debug("publishing: %s", error)
            failures += 1
            await clock.sleep(back_off(failures))

    async with Tasks() as tasks:
        tasks.start(withdraw(), "removal of published topics")
        yield


async def _clear(
    connection: BrokerConnection, filters: Sequence[str], found: Mapping[str, None], clock: Clock
) -> None:
    """Collect the topics of the retained messages in `found`. Once all have arrived, delete the messages."""
    await connection.subscribe(filters)
    count = -1
    while count != len(found):
        count = len(found)
        await clock.sleep(RETAINED_QUIET_SECS)
    for topic in list(found):
        await connection.publish(retained(topic, ""))
