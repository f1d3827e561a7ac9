"""The bytes and syncs that all runs have written to the card."""

from __future__ import annotations

from msgspec import Struct, ValidationError, convert

from appliance.store.record_keys import (
    CARD,
)
from appliance.store.storage import DocumentReader


class CardDay(Struct, frozen=True):
    """A date in UTC, and the number of bytes written before that day."""

    date: str = ""
    began_at_bytes: int = 0


class CardCounts(Struct, frozen=True, kw_only=True):
    """The number of writes to the card in all runs, and the newest trusted time."""

    bytes_written: int
    syncs: int
    since: str
    day: CardDay = CardDay()
    at: str | None = None


def read_card_counts(document: DocumentReader) -> CardCounts | None:
    """Return the stored counts, or None if they are missing or malformed."""
    stored = next((value for key, value in document.items(CARD) if key == ""), None)
    try:
        return convert(stored, CardCounts)
    except ValidationError:
        return None
