"""The supervisor: one task for each adapter, which polls it for as long as the hub runs."""

from __future__ import annotations

import random

from appliance.adapters.link import Link
from appliance.clock import Clock
from appliance.home import events
from appliance.home.bus import Bus
from appliance.tasks import Tasks

LONGEST_BACK_OFF = 60.0
"""Seconds between polls of a device that stays away, unless its own interval is longer."""

JITTER = 0.25
"""The share of a back-off that chance may take away, so that devices lost together are not polled together."""


class Supervisor:
    """Polls every link from entering the context to leaving it."""

    def __init__(self, links: list[Link], bus: Bus, clock: Clock) -> None:
        self._links = links
        self._bus = bus
        self._clock = clock
        self._tasks = Tasks()

    async def __aenter__(self) -> Supervisor:
        for link in self._links:
            self._tasks.start(self._keep_polling(link), f"polling of {link.adapter.name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    async def _keep_polling(self, link: Link) -> None:
        began = self._clock.monotonic()
        await link.poll()
        self._bus.publish(events.AdapterStarted(adapter=link.adapter.name))
        while True:
            link.recovered.clear()
            pause = began + delay_after(link.misses, link.adapter.poll_interval) - self._clock.monotonic()
            await self._clock.wait(link.recovered, max(pause, 0.0))
            began = self._clock.monotonic()
            await link.poll()


def delay_after(misses: int, interval: float) -> float:
    """Seconds from one poll to the next: the interval, and after two unanswered polls ever more, with jitter."""
    if misses < 2:
        return interval
    grown = min(interval * 2.0 ** min(misses - 1, 16), LONGEST_BACK_OFF)
    return max(interval, grown * (1 - JITTER * random.random()))
