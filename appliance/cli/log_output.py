"""Writes the log on standard error, one line per entry: as text, for journald, or as JSON."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
from collections.abc import Mapping
from typing import TextIO

import orjson

from appliance.log_buffer import fields_of, fields_text
from appliance.log_limit import RepetitionLimit
from appliance.settings import Logging

_INVISIBLE = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0\U000e0100-\U000e01ef]"
"""Invisible characters that Python treats as printable: fillers, joiners, and variation selectors except the emoji
selector."""

_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


def start_logging(settings: Logging, environment: Mapping[str, str]) -> None:
    """Send every log entry to standard error in the configured form."""
    handler = UnflushedHandler(sys.stderr)
    if settings.format == "json":
        handler.setFormatter(JsonLines())
    elif is_journal(sys.stderr, environment):
        handler.setFormatter(JournalLines())
    else:
        handler.setFormatter(TextLines())
    handler.addFilter(RepetitionLimit())
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    for chatty in ("sanic", "asyncio", "websockets", "aiohttp", "watchfiles"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.getLogger().level))


class UnflushedHandler(logging.StreamHandler[TextIO]):
    """Writes entries to a stream that needs no flush after each line."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.stream.write(self.format(record) + self.terminator)
        except Exception:  # logging must not raise
            self.handleError(record)


def is_journal(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether the stream is connected to journald. JOURNAL_STREAM contains the device and inode of journald's
    stream; see systemd.exec(5)."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class TextLines(logging.Formatter):
    """Lines of the form `time level part: message key=value`, in local time."""

    def format(self, record: logging.LogRecord) -> str:
        time = f"{self.formatTime(record, '%Y-%m-%d %H:%M:%S')}.{int(record.msecs):03d}"
        return f"{time} {record.levelname.lower():<7} {_entry(record)}"


class JournalLines(logging.Formatter):
    """Lines of the form `<N>part: message key=value`. journald adds the time, and reads the priority from `<N>`."""

    def format(self, record: logging.LogRecord) -> str:
        return f"<{_PRIORITIES.get(record.levelno, 6)}>{_entry(record)}"


class JsonLines(logging.Formatter):
    """One JSON object per line: `time` (UTC seconds), `level`, `part`, `message`, and the entry's additional fields.

    An additional field with a reserved name gets the suffix `_`, so that a script cannot imitate another part.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "part": record.name,
            "message": record.getMessage(),
        }
        fields = {f"{key}_" if key in entry else key: value for key, value in fields_of(record).items()}
        try:
            line = orjson.dumps({**entry, **fields}, default=str).decode()
        except TypeError:  # JSON must escape a name that is not valid UTF-8
            return json.dumps({**entry, **fields}, default=str)
        return line if is_harmless(line) else json.dumps({**entry, **fields}, default=str)


def _entry(record: logging.LogRecord) -> str:
    return one_line(f"{record.name}: {record.getMessage()}{fields_text(fields_of(record))}")


def one_line(text: str) -> str:
    """Escape line breaks, control characters, and invisible characters, so that a text cannot imitate a log line."""
    if is_harmless(text):
        return text
    return "".join(each if is_harmless(each) else each.encode("unicode_escape").decode() for each in text)


def is_harmless(text: str) -> bool:
    """Return whether the text contains no control, bidirectional, or other invisible characters."""
    return text.isprintable() and (text.isascii() or not re.search(_INVISIBLE, text))


class _Escaped(logging.Formatter):
    """Formats a command's log entries. Tracebacks keep their line breaks."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(one_line, super().format(record).split("\n")))


def make_streams_safe() -> None:
    """Make standard output and error safe to write, even if they are closed or cannot encode a character. Standard
    output gets a buffer even if PYTHONUNBUFFERED is set, because only a buffer reports incomplete writes."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Escaped())
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 - it lives as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
            if name == "stdout" and isinstance(stream.buffer, io.RawIOBase):
                buffer = io.BufferedWriter(io.FileIO(stream.fileno(), "w", closefd=False))
                sys.stdout = io.TextIOWrapper(buffer, stream.encoding, errors="backslashreplace")


def discard(stream: TextIO) -> None:
    """Discard buffered and further output of a stream without a reader."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
