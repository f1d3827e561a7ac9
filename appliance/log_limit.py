"""Repeated log lines: beyond a number a minute they are counted instead of written."""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict

from msgspec import Struct

INTERVAL_SECS = 60.0

MAX_SAME_LINES = 20
"""Lines of the same text in one interval."""

MAX_SAME_KIND = 100
"""Lines of one place in the code in one interval, whatever they name."""

MAX_KINDS = 2048
"""Texts and places that are remembered; those that were not seen for the longest time are forgotten first."""

MAX_TEXT_CHARS = 10_000
"""Of a line; a script may log one of 8 KiB."""


class _Window(Struct):
    """How many lines of one kind came since the interval began, and how many of them were held back."""

    began: float
    written: int = 0
    held_back: int = 0


class RepetitionLimit(logging.Filter):
    """Lets the first lines of a kind through; of the others, one a minute says how many there were.

    A line is limited twice: by its text, and by the place in the code that wrote it. What scripts write, all of it at
    one place, is limited by its text alone, and may repeat itself more often.
    """

    def __init__(self) -> None:
        super().__init__()
        self._windows: OrderedDict[object, _Window] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write the line; the first after lines held back says how many those were."""
        limited = self.limit(record)
        if limited is None:
            return False
        record.msg, record.args = limited.msg, limited.args
        return True

    def limit(self, record: logging.LogRecord) -> logging.LogRecord | None:
        """The record as it is to be written, another one where its text changes; None to hold it back."""
        text, is_any_text, now = record.getMessage(), record.msg == "%s", record.created
        if len(text) > MAX_TEXT_CHARS:
            text = text[: MAX_TEXT_CHARS - 1] + "…"
            record = _with_text(record, text)
        kind, limit = hash((record.name, record.levelno, text)), MAX_SAME_KIND if is_any_text else MAX_SAME_LINES
        held_back = [
            self._take(kind, limit, now),
            0 if is_any_text else self._take((record.pathname, record.lineno), MAX_SAME_KIND, now),
        ]
        if None in held_back:
            return None
        count = max(each or 0 for each in held_back)
        return _with_text(record, f"{text} (and {count} more like it before)") if count else record

    def _take(self, kind: object, limit: int, now: float) -> int | None:
        """None to hold the line back; else how many of its kind were held back in the interval before."""
        window = self._windows.get(kind)
        if window is None or not 0 <= now - window.began < INTERVAL_SECS:
            held_back = 0 if window is None else window.held_back
            self._windows[kind] = _Window(began=now, written=limit if held_back else 1)
            self._windows.move_to_end(kind)
            if len(self._windows) > MAX_KINDS:
                self._windows.popitem(last=False)
            return held_back
        self._windows.move_to_end(kind)
        if window.written >= limit:
            window.held_back += 1
            return None
        window.written += 1
        return 0


def _with_text(record: logging.LogRecord, text: str) -> logging.LogRecord:
    changed = copy.copy(record)
    changed.msg, changed.args = "%s", (text,)
    return changed
