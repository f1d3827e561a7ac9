"""Reloads Lua files, one reload at a time per target. The result is returned, logged, and published on the bus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from appliance.clock import Clock
from appliance.errors import Fault
from appliance.home import events
from appliance.home.bus import Bus
from appliance.lua.files.catalog import list_first
from appliance.settings import LuaFolder
from appliance.tasks import Tasks
from appliance.watch import Target

log = logging.getLogger("lua")

Reloaded = events.CatalogReloaded | events.CatalogReloadFailed

LoadTarget = Callable[[], Awaitable[tuple[int, list[Fault]]]]
"""Loads a target again. Returns the number of loaded files (0 if a fault prevents the reload), and every fault."""


class Reloader:
    """Reloads one target: `scenes`, `automations`, `scripts`, or `adapters`. A reload finishes even if its caller is
    cancelled.

    `load_valid`, by default `load`, loads the valid files even if other files have faults, and returns the number of
    loaded files. `more` returns further fields of the result. `refusal` prevents each reload and is its only fault.
    """

    def __init__(
        self,
        target: str,
        load: LoadTarget,
        bus: Bus,
        clock: Clock,
        load_valid: Callable[[], Awaitable[int]] | None = None,
        more: Callable[[], Mapping[str, Any]] = dict,
        refusal: Fault | None = None,
    ) -> None:
        self.target = target
        self.last: Reloaded | None = None
        self._more = more
        self.refusal = refusal
        self._load = load
        self._load_valid = load if load_valid is None else _without_faults(load_valid)
        self._bus = bus
        self._clock = clock
        self._lock = asyncio.Lock()
        self._tasks = Tasks()

    async def __aenter__(self) -> Reloader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    async def reload(self) -> Reloaded:
        """Reload after all earlier requests have finished."""
        return await self._tasks.finish(self._reload(self._load), f"reload of {self.target}")

    async def reload_valid(self) -> Reloaded:
        """Like `reload`, but a fault in one file does not prevent the reload of other files. The API calls this
        method after it has saved a file."""
        return await self._tasks.finish(self._reload(self._load_valid), f"reload of {self.target}")

    async def _reload(self, load: LoadTarget) -> Reloaded:
        async with self._lock:
            self._bus.publish(events.CatalogReloadStarted(target=self.target))
            began = self._clock.monotonic()
            try:
                count, faults = (0, [self.refusal]) if self.refusal is not None else await load()
            except Exception as error:  # the caller needs a result, so report every exception as a fault
                log.error("reload of %s: %s: %s", self.target, type(error).__name__, error, exc_info=error)
                message = f"the reload failed ({type(error).__name__}); see the log"
                count, faults = 0, [Fault(self.target, 0, message)]
            kind = events.CatalogReloadFailed if faults else events.CatalogReloaded
            self.last = kind(
                target=self.target,
                loaded_count=count,
                faults=list_first(sorted(faults)),
                duration_ms=round((self._clock.monotonic() - began) * 1000),
                **self._more(),
            )
            if not faults:
                log.info("%s reloaded", self.target, extra={"loaded": count})
            for fault in self.last.faults:
                log.warning("%s %s: %s", self.target, "reloaded, except" if count else "not reloaded", fault)
            self._bus.publish(self.last)
            return self.last


def _without_faults(load: Callable[[], Awaitable[int]]) -> LoadTarget:
    async def load_all() -> tuple[int, list[Fault]]:
        return await load(), []

    return load_all


def targets_of(
    sections: Mapping[str, LuaFolder],
    root: Path,
    reloads: Mapping[str, Callable[[], Awaitable[object]]],
    kinds: Path | None,
) -> list[Target]:
    """Return the folders to watch, including the folder of `kinds`. Each folder is paired with the function that
    reloads it."""
    targets = [
        Target(folder=root / section.directory, is_deep=target == "scripts", on_change=reloads[target])
        for target, section in sections.items()
        if section.watch and section.enabled
    ]
    if kinds is not None:
        targets.append(Target(folder=kinds, is_deep=False, on_change=reloads["adapters"]))
    return targets
