"""Starts the publishers of the home: one for each MQTT section with `publish = true`, and one that clears old
topics."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from appliance.adapters.base import Secrets
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.out.home_access import HomeAccess
from appliance.adapters.mqtt.out.topics import HubTopics
from appliance.adapters.mqtt.stored_texts import (
    client_id_of,
    hub_id_of,
    keep_published,
    next_boot,
    published_topics,
)
from appliance.clock import Clock
from appliance.errors import StoreFailed
from appliance.tasks import Tasks

log = logging.getLogger("adapters")

PUBLISH_RETRY_SECS = 60.0
"""Pause before a publisher tries again to store its ids and its run number."""

Publishers = list[AbstractAsyncContextManager[Any]]
"""Objects that publish, or clear old topics, inside their `async with` block."""


class SectionPublishers:
    """Starts the publishers of a section once their ids and the run number are stored."""

    def __init__(self, name: str, build: Callable[[], Awaitable[Publishers]], clock: Clock) -> None:
        self._name = name
        self._build = build
        self._clock = clock
        self._stack = AsyncExitStack()
        self._tasks = Tasks()

    async def __aenter__(self) -> SectionPublishers:
        try:
            await self._enter()
        except StoreFailed as error:
            log.warning("%s: publishing waits for the storage: %s", self._name, error)
            self._tasks.start(self._retry(), f"{self._name}: start of publishing")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()
        await self._stack.aclose()

    async def _enter(self) -> None:
        for each in await self._build():
            await self._stack.enter_async_context(each)

    async def _retry(self) -> None:
        while True:
            await self._clock.sleep(PUBLISH_RETRY_SECS)
            with suppress(StoreFailed):
                await self._enter()
                log.info("%s: publishing has started", self._name)
                return


async def build_publishers(
    name: str,
    settings: Mqtt,
    secrets: Secrets,
    home: HomeAccess,
    clock: Clock,
    root: Path,
    brokers: Collection[str],
) -> Publishers:
    """Return the publisher of a section with `publish = true`. If the section no longer publishes to topics of an
    earlier run, also return an object that clears these topics.

    `brokers` contains the names of all MQTT sections, and can change later. Devices of these sections are not
    published. Raise `StoreFailed` if the run number cannot be saved.
    """
    if (before := published_topics(secrets)) is None and not settings.publish:
        return []
    # Imported only if a section publishes, because this module imports the MQTT library.
    from appliance.adapters.mqtt.out.hub_publisher import HubPublisher
    from appliance.adapters.mqtt.out.withdrawal import withdrawal

    publishers: Publishers = []
    hub_id, located = await hub_id_of(settings, secrets), settings.located(root)
    client_id = await client_id_of(name, secrets)
    now = HubTopics(hub_id, settings.discovery_prefix) if settings.publish else None
    if before is not None and before != now:
        publishers.append(withdrawal(located, before, now, secrets, clock, f"{client_id}-back"))
    if settings.publish:
        await keep_published(secrets, before or now)
        boot = await next_boot(secrets, clock)
        publishers.append(HubPublisher(located, hub_id, boot, home, clock, brokers, f"{client_id}-out"))
    return publishers
