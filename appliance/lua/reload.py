"""Reloads: one after another for each target, and each told on the bus, in the log and to whoever asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from appliance.clock import Clock
from appliance.errors import Fault
from appliance.home import events
from appliance.home.bus import Bus
from appliance.tasks import Tasks

log = logging.getLogger("lua")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """How a reload ended. With faults nothing of it counts, and `loaded_count` is 0."""

    target: str
    loaded_count: int
    faults: tuple[Fault, ...]
    duration_ms: int

    @property
    def is_ok(self) -> bool:
        """Whether what was read is in force."""
        return not self.faults


Work = Callable[[], Awaitable[tuple[int, list[Fault]]]]
"""Reads a target anew and puts it in force if all is well: how many were found, and every fault."""


class Reloader:
    """The reloads of one target: `scenes`, `automations` or `scripts`. One that was begun is finished.

    `refusal` is the fault that a target which is not enabled answers with.
    """

    def __init__(self, target: str, work: Work, bus: Bus, clock: Clock, *, refusal: Fault | None) -> None:
        self.target = target
        self.last: Reload | None = None
        self._work = work
        self._bus = bus
        self._clock = clock
        self._refusal = refusal
        self._turn = asyncio.Lock()
        self._tasks = Tasks()

    async def __aenter__(self) -> Reloader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    async def reload(self) -> Reload:
        """Reload when those asked for before have ended; also if whoever asked goes away."""
        return await self._tasks.finish(self._reload(), f"reload of {self.target}")

    async def _reload(self) -> Reload:
        async with self._turn:
            self._bus.publish(events.CatalogReloadStarted(target=self.target))
            began = self._clock.monotonic()
            count, faults = (0, [self._refusal]) if self._refusal is not None else await self._work()
            elapsed = round((self._clock.monotonic() - began) * 1000)
            found = tuple(sorted(faults))
            count = 0 if faults else count
            self.last = Reload(target=self.target, loaded_count=count, faults=found, duration_ms=elapsed)
            self._publish(self.last)
            return self.last

    def _publish(self, done: Reload) -> None:
        if done.is_ok:
            log.info("%s reloaded", self.target, extra={"loaded": done.loaded_count})
        for fault in done.faults:
            log.warning("%s not reloaded: %s", self.target, fault)
        kind = events.CatalogReloaded if done.is_ok else events.CatalogReloadFailed
        self._bus.publish(
            kind(
                target=self.target,
                loaded_count=done.loaded_count,
                faults=done.faults,
                duration_ms=done.duration_ms,
            )
        )
