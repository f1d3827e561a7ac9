"""Crashes: how often the hub ended by a fault lately, counted on the card."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from appliance.clock import Clock
from appliance.errors import StoreFailed
from appliance.store.document import Document
from appliance.store.lock import read_boot_id
from appliance.store.records import CRASHES

WINDOW_SECS = 300.0
MAX_CRASHES = 3
"""With so many crashes within `WINDOW_SECS` the hub starts without automations."""

CRASHED_OFTEN = (
    "safe mode: the hub crashed three times within five minutes, so that no automation runs; "
    "a reload of the automations ends it (POST /automations/reload, SIGHUP, or Lua files on the page's Automations)"
)
"""Why no automation runs after such a series of crashes."""

STARTED_SAFE = "the hub was started with --safe, so that no automation runs; start it without to have them"
"""Why none runs then, which is what a reload of the automations answers, too."""


class CrashCounter:
    """Counts the runs that did not stop in order since the machine was started.

    Times are seconds since then, on a clock that is never set. The card is written only
    after a crash, and once more when the series is over.
    """

    def __init__(
        self, document: Document, clock: Clock, remember: Callable[[str, dict[str, Any] | None], None]
    ) -> None:
        self._document = document
        self._clock = clock
        self._remember = remember

    async def note_start(self, *, has_crashed: bool) -> bool:
        """Count the crash of the run before, if it was one; true where there were `MAX_CRASHES` of late."""
        if not has_crashed:
            return False
        now, boot = self._clock.monotonic(), read_boot_id()
        crashes = [*self._list_recent(now, boot), now]
        with suppress(StoreFailed):  # the hub starts although the card takes nothing now
            await self._document.put_many({CRASHES: {"boot": boot, "crashes": crashes}})
        return len(crashes) >= MAX_CRASHES

    def end_series(self) -> None:
        """Begin to count anew: the hub stopped in order, or the automations were reloaded."""
        if self._document.get(CRASHES) is not None:
            self._remember(CRASHES, None)

    def _list_recent(self, now: float, boot: str) -> list[float]:
        """The crashes within the window; of a record that cannot be understood, none."""
        try:
            stored = orjson.loads(self._document.get(CRASHES) or b"{}")
            return [float(at) for at in stored["crashes"] if stored["boot"] == boot and 0 <= now - at <= WINDOW_SECS]
        except (KeyError, TypeError, ValueError):
            return []
