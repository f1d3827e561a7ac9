"""The limit on repeated log lines."""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from collections.abc import Iterable
from contextvars import ContextVar
from itertools import islice

from msgspec import Struct

from appliance.shortening import shorten

IS_MUTED = ContextVar("is_muted", default=False)
"""Whether log lines of the current task are discarded, because the task simulates the home."""

INTERVAL_SECS = 60.0

MAX_SAME_LINES = 20
"""Maximum number of lines with equal text per interval."""

MAX_SAME_KIND = 100
"""Maximum number of lines per interval from one logger and one place in the code, regardless of their text."""

MAX_KINDS = 2048
"""Maximum number of tracked texts and places. The oldest are removed first."""

MAX_TEXT_CHARS = 10_000
"""Maximum length of a line. A longer line is shortened. A script can log a line of 8 KiB."""


MAX_LISTED = 100
"""Maximum number of warnings that one check logs."""


def log_warnings(log: logging.Logger, warnings: Iterable[object], count: int) -> None:
    """Log the first `MAX_LISTED` of these warnings, and the number of the others."""
    for warning in islice(warnings, MAX_LISTED):
        log.warning("%s", warning)
    if count > MAX_LISTED:
        log.warning("%d further warnings are not listed", count - MAX_LISTED)


class _Window(Struct):
    """The number of written and suppressed lines of one kind in the current interval."""

    began: float
    written: int = 0
    held_back: int = 0


class RepetitionLimit(logging.Filter):
    """Passes the first lines of a kind; then one line per minute reports the number of suppressed lines.

    One limit applies to lines with the same text, and a second limit applies to lines from the same logger and place
    in the code. The second limit prevents failing scenes from hiding a failing automation. All lines of scripts come
    from one place in the code, so only a text limit applies to these lines. That limit is higher.
    """

    def __init__(self) -> None:
        super().__init__()
        self._windows: OrderedDict[object, _Window] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the line. The first line after suppressed lines reports their number."""
        limited = None if IS_MUTED.get() else self.limit(record)
        if limited is None:
            return False
        record.msg, record.args = limited.msg, limited.args
        return True

    def limit(self, record: logging.LogRecord) -> logging.LogRecord | None:
        """Return the record to write, or None to suppress the line. If the text changes, the record is a copy."""
        text, is_any_text, now = record.getMessage(), record.msg == "%s", record.created
        if len(text) > MAX_TEXT_CHARS:
            text = shorten(text, MAX_TEXT_CHARS)
            record = _with_text(record, text)
        kind, limit = hash((record.name, record.levelno, text)), MAX_SAME_KIND if is_any_text else MAX_SAME_LINES
        # Suppressed lines create no window for their text, because thousands of windows would stay in memory.
        place = 0 if is_any_text else self._take((record.name, record.pathname, record.lineno), MAX_SAME_KIND, now)
        same = None if place is None and kind not in self._windows else self._take(kind, limit, now)
        if place is None or same is None:
            return None
        count = max(place, same)
        return _with_text(record, f"{text} (and {count} similar lines before)") if count else record

    def _take(self, kind: object, limit: int, now: float) -> int | None:
        """Count the line. Return None to suppress the line; otherwise, return the number of lines of this kind that
        were suppressed in the previous interval."""
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
