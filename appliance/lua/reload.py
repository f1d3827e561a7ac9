"""Reloads: one after another for each target; the result is returned, logged and published on the bus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from appliance.clock import Clock
from appliance.errors import Fault
from appliance.home import events
from appliance.home.bus import Bus
from appliance.settings import LuaFolder
from appliance.tasks import Tasks
from appliance.watch import Target

log = logging.getLogger("lua")

Reloaded = events.CatalogReloaded | events.CatalogReloadFailed
"""How a reload ended. With faults nothing of it counts, and `loaded_count` is 0, unless it keeps what is sound."""

LoadWork = Callable[[], Awaitable[tuple[int, list[Fault]]]]
"""Reads a target again, and uses it if there is no fault: how many were found, and every fault."""


class Reloader:
    """The reloads of one target: `scenes`, `automations`, `scripts` or `adapters`. One that was begun is finished.

    `refusal` is the fault that a target which is not enabled answers with. Where it `keeps_sound`, files without
    fault are in force though others have some.
    """

    def __init__(
        self,
        target: str,
        work: LoadWork,
        bus: Bus,
        clock: Clock,
        *,
        refusal: Fault | None = None,
        keeps_sound: bool = False,
    ) -> None:
        self.target = target
        self.last: Reloaded | None = None
        self._work = work
        self._bus = bus
        self._clock = clock
        self._refusal = refusal
        self._keeps_sound = keeps_sound
        self._lock = asyncio.Lock()
        self._tasks = Tasks()

    async def __aenter__(self) -> Reloader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    async def reload(self) -> Reloaded:
        """Reload after those that were requested before; it is finished though the caller is cancelled."""
        return await self._tasks.finish(self._reload(), f"reload of {self.target}")

    async def _read(self) -> tuple[int, list[Fault]]:
        try:
            return await self._work()
        except Exception as error:  # who waits is to be told how it ended
            log.error("reload of %s: %s: %s", self.target, type(error).__name__, error, exc_info=error)
            return 0, [Fault(self.target, 0, f"the reload failed ({type(error).__name__}); the log says why")]

    async def _reload(self) -> Reloaded:
        async with self._lock:
            self._bus.publish(events.CatalogReloadStarted(target=self.target))
            began = self._clock.monotonic()
            count, faults = (0, [self._refusal]) if self._refusal is not None else await self._read()
            elapsed = round((self._clock.monotonic() - began) * 1000)
            kind = events.CatalogReloadFailed if faults else events.CatalogReloaded
            self.last = kind(
                target=self.target,
                loaded_count=0 if faults and not self._keeps_sound else count,
                faults=tuple(sorted(faults)),
                duration_ms=elapsed,
            )
            if not faults:
                log.info("%s reloaded", self.target, extra={"loaded": count})
            outcome = "reloaded but for" if self._keeps_sound else "not reloaded"
            for fault in self.last.faults:
                log.warning("%s %s: %s", self.target, outcome, fault)
            self._bus.publish(self.last)
            return self.last


def refusal_of(target: str, section: LuaFolder) -> Fault | None:
    """What a reload of a target that is not enabled answers with."""
    return None if section.enabled else Fault(section.directory, 0, f"{target}.enabled is false in the configuration")


def targets_of(
    sections: Mapping[str, LuaFolder],
    root: Path,
    reloads: Mapping[str, Callable[[], Awaitable[object]]],
    kinds: Path | None,
) -> list[Target]:
    """What is to be watched of these folders and of that of `kinds`, and what to do then, by target."""
    targets = [
        Target(folder=root / section.directory, is_deep=target == "scripts", on_change=reloads[target])
        for target, section in sections.items()
        if section.watch and section.enabled
    ]
    if kinds is not None:
        targets.append(Target(folder=kinds, is_deep=False, on_change=reloads["adapters"]))
    return targets
