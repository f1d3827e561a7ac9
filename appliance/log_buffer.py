"""Keeps the latest log entries in memory, for `lares log` and the API, and formats log entries as text."""

from __future__ import annotations

import json
import logging
import traceback
from collections import Counter, deque
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from msgspec import Struct

from appliance.log_limit import IS_MUTED, RepetitionLimit

MAX_LOG_ENTRIES = 2000
MAX_LOG_BUFFER_BYTES = 2 << 20
"""Maximum total size of all entries. A script can log lines of 8 KiB."""

LOG_ENTRY_BYTES = 400
"""Memory overhead per entry, in addition to its texts."""

LOG_LEVELS: Mapping[str, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
"""The levels that a query can select. Each level includes the more severe levels."""

_OWN = "own_fields"
"""The attribute of a log record that holds the extra fields. The fields are not separate attributes, because
Python reserves some names."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", _OWN}

MAX_FIELD_DEPTH = 32
"""Maximum nesting of a field's value. Deeper values become text."""


class LogEntry(Struct, frozen=True, kw_only=True):
    """A log entry. `number` starts at 1; `part` is the logger's name; `fields` contains JSON values."""

    number: int
    at: datetime
    level: str
    part: str
    message: str
    fields: Mapping[str, Any]


class LogQuery(Struct, frozen=True, kw_only=True):
    """A filter for log entries. `level` is the lowest level; `contains` ignores case; `after` is the number of the
    last known entry."""

    level: str = "debug"
    part: str | None = None
    contains: str | None = None
    limit: int = 200
    after: int = 0

    def matches(self, entry: LogEntry) -> bool:
        return (
            entry.number > self.after
            and logging.getLevelName(entry.level.upper()) >= LOG_LEVELS[self.level]
            and self.part in (None, entry.part)
            and (self.contains is None or self.contains.casefold() in text_of(entry).casefold())
        )


class LogBuffer(logging.Handler):
    """Keeps the latest entries of the root logger while the context is open. All threads may use the buffer.

    Consecutive equal lines are counted, not stored again. If the buffer is full, it drops the oldest entry of the
    part and level that use the most bytes. Errors therefore survive a flood of lines from a script.
    """

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[tuple[str, str], deque[LogEntry]] = {}
        self._bytes: Counter[tuple[str, str]] = Counter()
        self._limit = RepetitionLimit()
        self._count = 0
        self._by_level: Counter[str] = Counter()

    def __enter__(self) -> LogBuffer:
        logging.getLogger().addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if IS_MUTED.get():
            return
        try:
            self._count += 1
            self._by_level[record.levelname.lower()] += 1
            limited = self._limit.limit(record)
            if limited is None:
                return
            entry = _entry_of(limited, self._count)
        except Exception:  # logging must not raise
            self.handleError(record)
            return
        kind = entry.part, entry.level
        self._entries.setdefault(kind, deque()).append(entry)
        self._bytes[kind] += _size(entry)
        while (count := sum(map(len, self._entries.values()))) > MAX_LOG_ENTRIES or (
            count > 1 and self._bytes.total() > MAX_LOG_BUFFER_BYTES
        ):
            [(largest, _)] = self._bytes.most_common(1)
            self._bytes[largest] -= _size(self._entries[largest].popleft())

    def count_by_level(self) -> dict[str, int]:
        """Return the number of entries per level since the hub's start."""
        return {level: self._by_level[level] for level in LOG_LEVELS}

    def list_entries(self, query: LogQuery) -> list[LogEntry]:
        """Return the matching entries, newest first."""
        self.acquire()
        try:
            entries = sorted((each for kind in self._entries.values() for each in kind), key=lambda each: each.number)
        finally:
            self.release()
        return list(islice(filter(query.matches, reversed(entries)), query.limit))


def own_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `extra` argument of a log call. Fields can have any name, even `name`, which every log record
    already has."""
    return {_OWN: fields}


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the record's fields. `error` is the exception; at level error and above, the traceback is included."""
    fields: dict[str, Any] = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    fields |= vars(record).get(_OWN, {})
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        is_shown = record.levelno >= logging.ERROR or logging.getLogger().level <= logging.DEBUG
        text = "".join(traceback.format_exception(error)) if is_shown else f"{type(error).__name__}: {error}"
        fields["error"] = text.strip()
    return fields


def text_of(entry: LogEntry) -> str:
    """Return the entry as text: `message key=value`."""
    return entry.message + fields_text(entry.fields)


def fields_text(fields: Mapping[str, Any]) -> str:
    """Return ` key=value` for each field."""
    return "".join(f" {key}={value_text(value)}" for key, value in fields.items())


def value_text(value: Any) -> str:
    """Return the value as text. Lists, dictionaries, booleans, and null become JSON."""
    is_json = isinstance(value, dict | list | bool | None)
    return json.dumps(value, ensure_ascii=False, default=str) if is_json else str(value)


def _entry_of(record: logging.LogRecord, number: int) -> LogEntry:
    return LogEntry(
        number=number,
        at=datetime.fromtimestamp(record.created, UTC),
        level=record.levelname.lower(),
        part=record.name,
        message=_replace_surrogates(record.getMessage()),
        fields={_replace_surrogates(key): _as_json(value) for key, value in fields_of(record).items()},
    )


def _as_json(value: Any, levels: int = MAX_FIELD_DEPTH) -> Any:
    if isinstance(value, list) and levels:
        return [_as_json(each, levels - 1) for each in value]
    if isinstance(value, dict) and levels:
        return {_replace_surrogates(str(key)): _as_json(each, levels - 1) for key, each in value.items()}
    is_kept = value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 1 << 53)
    return value if is_kept else _replace_surrogates(str(value))


def _replace_surrogates(text: str) -> str:
    return text.encode(errors="replace").decode()


def _size(entry: LogEntry) -> int:
    return (
        LOG_ENTRY_BYTES + len(entry.message) + sum(len(key) + len(str(value)) for key, value in entry.fields.items())
    )
