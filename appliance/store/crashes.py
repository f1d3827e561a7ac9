"""Counts recent crashes. After several crashes in a short time, the hub starts without automations."""

from __future__ import annotations

import contextlib

import orjson

from appliance.clock import Clock
from appliance.errors import StoreFailed
from appliance.store.document import Document
from appliance.store.record_keys import CRASHES

WINDOW_SECS = 300.0

MAX_CRASHES = 3
"""After this number of crashes within `WINDOW_SECS`, the hub starts without automations."""


class CrashCounter:
    """Counts the hub's crashes since the machine booted. `boot` identifies this boot.

    Times are in seconds since the boot. The counter writes to the card only after a crash, and when a series of
    crashes ends.
    """

    def __init__(self, document: Document, clock: Clock, boot: str) -> None:
        self._boot = boot
        self._document = document
        self._clock = clock

    async def note_start(self, *, has_crashed: bool) -> bool:
        """Count the previous run if it crashed. Return whether `MAX_CRASHES` recent crashes were counted."""
        if not has_crashed:
            return False
        now = self._clock.monotonic()
        crashes = [*self._list_recent(now), now]
        with contextlib.suppress(StoreFailed):  # the hub must start even if the card is not writable
            await self._document.put_many({CRASHES: {"boot": self._boot, "crashes": crashes}})
        return len(crashes) >= MAX_CRASHES

    def end_series(self) -> None:
        """Delete the recorded crashes after a clean stop of the hub or a reload of the automations."""
        if self._document.get(CRASHES) is not None:
            self._document.put_later(CRASHES, None)

    def _list_recent(self, now: float) -> list[float]:
        """Return the times of recent crashes, or an empty list if the record is malformed."""
        try:
            stored = orjson.loads(self._document.get(CRASHES) or b"{}")
            return [
                float(at) for at in stored["crashes"] if stored["boot"] == self._boot and 0 <= now - at <= WINDOW_SECS
            ]
        except (KeyError, TypeError, ValueError):
            return []
