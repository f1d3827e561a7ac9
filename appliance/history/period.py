"""The period and the maximum number of entries in a history request."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from appliance.clock import EPOCH, to_millis
from appliance.version import MADE_AT

DEFAULT_LIMIT = 200
"""The default number of returned entries."""

MILLISECOND = timedelta(milliseconds=1)

FIRST_DATED_MS = to_millis(MADE_AT.replace(day=1))
"""The earliest plausible time. Entries with earlier times are never written to the card, because the clock was
wrong."""


class Period(Struct, frozen=True, kw_only=True):
    """Selects at most `limit` entries from `start` to `end` inclusive. None means no bound."""

    start: datetime | None = None
    end: datetime | None = None
    limit: int | None = None

    @property
    def max_entries(self) -> int:
        return self.limit or DEFAULT_LIMIT

    def bounds_ms(self) -> tuple[int, int]:
        """Return the first and the last time of the period in milliseconds since 1970."""
        first = -(1 << 62) if self.start is None else -(-(self.start - EPOCH) // MILLISECOND)
        last = 1 << 62 if self.end is None else to_millis(self.end)
        return first, last
