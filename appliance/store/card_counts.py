"""Counts the bytes and syncs that all runs of the hub have written to the card."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, convert

from appliance.clock import Clock, timestamp
from appliance.store.document import Document
from appliance.store.record_keys import CARD
from appliance.store.records import read_one
from appliance.store.storage import DocumentReader


class CardDay(Struct, frozen=True):
    """A date in UTC, and the number of bytes written before that date."""

    date: str = ""
    began_at_bytes: int = 0


class CardCounts(Struct, frozen=True, kw_only=True):
    """The number of writes in all runs, and the newest trusted time."""

    bytes_written: int
    syncs: int
    since: str
    day: CardDay = CardDay()
    at: str | None = None


class CardCounter:
    """Adds the writes of this run to the stored counts of all earlier runs."""

    def __init__(self, document: Document, clock: Clock) -> None:
        self._document = document
        self._clock = clock
        nothing = CardCounts(bytes_written=0, syncs=0, since=timestamp(clock.now()))
        self._before = read_card_counts(document) or nothing
        self._day = self._before.day
        self._day = self._day_of(self._before.bytes_written)

    def check_day(self) -> None:
        """If a new day has begun, count its bytes from now on."""
        self._day = self._day_of(self._written())

    def count(self, newest_time: datetime) -> CardCounts:
        """Return the counts of all runs, with the newest trusted time."""
        written = self._written()
        return CardCounts(
            bytes_written=written,
            syncs=self._before.syncs + self._document.figures()["syncs"],
            since=self._before.since,
            day=self._day_of(written),
            at=timestamp(newest_time),
        )

    def figures(self) -> dict[str, Any]:
        """Return the number of bytes written today (UTC) and in all recorded runs."""
        written, syncs = self._written(), self._before.syncs + self._document.figures()["syncs"]
        today = written - self._day_of(written).began_at_bytes
        return {"today_bytes": today, "bytes_written": written, "syncs": syncs, "since": self._before.since}

    def _written(self) -> int:
        """Return the number of bytes that all runs have written."""
        return int(self._before.bytes_written + self._document.figures()["bytes_written"])

    def _day_of(self, written: int) -> CardDay:
        """Return today's date, with the number of bytes written before today."""
        today = self._clock.now().date().isoformat()
        return self._day if self._day.date == today else CardDay(date=today, began_at_bytes=written)


def read_card_counts(document: DocumentReader) -> CardCounts | None:
    """Return the stored counts, or None if they are missing or malformed."""
    return read_one(document, CARD, lambda value: convert(value, CardCounts), lambda *_: None)
