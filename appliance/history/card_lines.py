"""Encodes and decodes the lines of a monthly history file.

Each line is a JSON object. The names in the object are short, because a home writes thousands of lines per day.

- Numbers: `{"d":"lamp","a":"temperature","u":{"unit":"celsius"},"t":1764547200,"h":[[0,3600,20.1,20.4,21],…]}`. `u`
  contains the parts of the value without the number (for example, the unit), or null. `t` is the start of the first
  hour in seconds. Each item of `h` is an hour: the hour's distance from `t` in hours, the seconds with known numbers,
  and the lowest, mean, and highest number. For a meter, the last number replaces the mean, and a sixth item is the
  counted amount. The parts of an hour can be in several lines.
- Other values: `{"d":"lamp","a":"power","t":1764547200123,"c":[[0,"on"],[90000,"off"]]}`. `t` is in milliseconds.
  Each item of `c` is a change: the milliseconds after `t`, and the new value. The value is null if the attribute is
  absent.
- Commands: `{"k":"command","d":"lamp","t":1764547200123,"s":"room","r":"attic","c":{…},"o":"ok","m":null}` contains
  source, room, command, result, and message.
- Executions: `{"k":"execution","of":"scene","id":"evening","t":1764547200123,"o":"ok","ms":41,"e":null}` contains
  result, duration, and error. For an automation, `"b":"cron"` is the type of its event. `"w":"…"` is the first
  warning about failed calls, if any.
- The end of a write: `{"k":"written","t":1764547200123,"used":40123,"days":12}` contains the number of bytes written
  on this day (UTC), and the number of days with writes so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby, islice
from typing import Any

import orjson

from appliance.clock import timestamp
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.history.hours import Hour
from appliance.history.series import ValueParts
from appliance.home.events import CommandEnded
from appliance.home.json_shapes import STATED_COMMAND
from appliance.shortening import shorten

_DAY_SECS = 86_400

WRITTEN = b'{"k":"written",'
"""The beginning of the line at the end of a write."""

COMMANDS = b'{"k":"command",'
"""The beginning of the lines for commands."""

MAX_CARD_TEXT_CHARS = 200
"""Maximum number of characters of a string value, a message, or an error on the card."""

MAX_CARD_VALUE_BYTES = 1024
"""Maximum size of a value as JSON. Larger values are not stored on the card."""

MAX_CHANGES_PER_LINE = 500
"""Maximum number of changes per line, so that a line can be decoded in about a millisecond. Files of earlier versions
contain longer lines."""

_TIME = re.compile(rb'"t":\s*(\d{1,15})')

_TIME_OF_HOURS = re.compile(rb'"t":\s*(\d{1,15}),\s*"h":[^"{}]*,"crc":"[0-9a-f]{8}"\}\Z')
"""The time and the hours at the end of a line. The field `u` before the time can also have a field `t`."""

_MIN_MS = 10**11
"""Smaller times of lines are seconds. In milliseconds, this time is in 1973; in seconds, it is in the year 5138."""

ValueChange = tuple[int, Any]
"""A time in milliseconds since 1970, and the value since that time."""

Faulty = (KeyError, IndexError, TypeError, ValueError, OverflowError)
"""Exceptions that decoding raises for an invalid line."""


def attribute_beginning(device_id: str, attribute: str) -> bytes:
    return b'{"d":%b,"a":%b,' % (orjson.dumps(device_id), orjson.dumps(attribute))


def command_beginning(device_id: str | None) -> bytes:
    """Return the beginning of the lines for commands to this device or, if `device_id` is None, to any device."""
    return COMMANDS if device_id is None else b'%b"d":%b,' % (COMMANDS, orjson.dumps(device_id))


def execution_beginning(kind: str, id_: str) -> bytes:
    return b'{"k":"execution","of":%b,"id":%b,' % (orjson.dumps(kind), orjson.dumps(id_))


def encode_hours(
    device_id: str, attribute: str, parts: ValueParts, hours: Iterable[Hour]
) -> Iterator[tuple[str, bytes]]:
    """Yield one line per month of these hours."""
    for month, found in groupby(hours, lambda hour: month_of(hour.start)):
        rows, first = [], None
        for hour in found:
            first = hour.start if first is None else first
            row = [(hour.start - first) / 3600, hour.secs, hour.low, hour.value, hour.high]
            row[0] = int(row[0]) if row[0] == int(row[0]) else row[0]
            rows.append(row if hour.gain is None else [*row, hour.gain])
        rest = orjson.dumps({"u": parts, "t": first, "h": rows})
        yield month, attribute_beginning(device_id, attribute) + rest[1:]


def encode_changes(device_id: str, attribute: str, changes: Iterable[ValueChange]) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of each month of these changes."""
    for month, found in groupby(changes, lambda change: month_of(change[0] / 1000)):
        while pairs := list(islice(found, MAX_CHANGES_PER_LINE)):
            first = pairs[0][0]
            rest = orjson.dumps({"t": first, "c": [[at - first, value] for at, value in pairs]})
            yield month, attribute_beginning(device_id, attribute) + rest[1:]


def encode_command(event: CommandEnded, at: int) -> bytes:
    line = {
        "t": at,
        "s": event.source,
        "r": event.room_id,
        "c": STATED_COMMAND(event.command),
        "o": event.status,
        "m": _cut(event.message),
    }
    return command_beginning(event.device_id) + orjson.dumps(line, default=str)[1:]


def encode_execution(kind: str, entry: ExecutionEntry, at: int) -> bytes:
    line = {"t": at, "o": entry.status, "ms": entry.duration_ms, "e": _cut(entry.error)}
    if (because := (entry.trigger_payload or {}).get("type")) is not None:
        line["b"] = _cut(str(because))
    if entry.warnings:
        line["w"] = _cut(entry.warnings[0])
    return execution_beginning(kind, entry.subject) + orjson.dumps(line)[1:]


def encode_written(at: int, used: int, days: int) -> bytes:
    return orjson.dumps({"k": "written", "t": at, "used": used, "days": days})


def find_beginning(line: bytes) -> int | None:
    """Return the time of the line's first entry in milliseconds since 1970, without decoding or checking the line.
    Return None if the line has no time."""
    found = _TIME_OF_HOURS.search(line) or _TIME.search(line)
    if found is None:
        return None
    time = int(found[1])
    return time if time >= _MIN_MS else time * 1000


def decode_hours(line: Mapping[str, Any]) -> list[tuple[ValueParts, Hour]]:
    """Return the hours in a line, each with the parts of the value without the number (for example, the unit). If the
    line is of another type, it contains no hours. Raise `Faulty` if the line is invalid."""
    if "h" not in line:
        return []
    parts, first = line["u"], line["t"]
    return [
        (
            parts,
            Hour(
                start=int(first + 3600 * row[0]),
                secs=row[1],
                low=row[2],
                value=row[3],
                high=row[4],
                gain=row[5] if len(row) > 5 else None,
            ),
        )
        for row in line["h"]
    ]


def decode_changes(line: Mapping[str, Any]) -> list[ValueChange]:
    """Return the changes in a line. If the line is of another type, it contains no changes. Raise `Faulty` if the
    line is invalid."""
    return [(line["t"] + after, value) for after, value in line.get("c", ())]


def decode_command(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the command in the format of `CommandAudit`. Raise `Faulty` if the line is invalid."""
    return {
        "recorded_at": timestamp(datetime.fromtimestamp(line["t"] / 1000, UTC)),
        "source": line["s"],
        "room_id": line["r"],
        "device_id": line["d"],
        "command": line["c"],
        "status": line["o"],
        "message": line["m"],
    }


def decode_execution(line: Mapping[str, Any]) -> ExecutionEntry:
    """Return the execution with its event type and first warning, but without results and trace. Raise `Faulty` if
    the line is invalid."""
    return ExecutionEntry(
        subject=line["id"],
        executed_at=datetime.fromtimestamp(line["t"] / 1000, UTC),
        status=ExecutionStatus(line["o"]),
        error=line["e"],
        results=(),
        duration_ms=line["ms"],
        trigger_payload={"type": line["b"]} if "b" in line else {},
        warnings=(line["w"],) if "w" in line else (),
    )


def fit_for_card(value: Any) -> Any:
    """Return the value to store: shorten long texts, and replace other large values with None."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, bool):
        return value
    try:
        return value if len(orjson.dumps(value)) <= MAX_CARD_VALUE_BYTES else None
    except TypeError:
        return None


def month_of(secs: float) -> str:
    """Return the UTC month of a time in seconds since 1970: `2026-11`."""
    return _month_of_day(int(secs // _DAY_SECS))


@lru_cache(maxsize=64)
def _month_of_day(day: int) -> str:
    return month_at(datetime.fromtimestamp(day * _DAY_SECS, UTC))


def month_at(moment: datetime) -> str:
    """Return the UTC month. `month_of` would round the last instant of the year 9999 up to the next year."""
    return moment.isoformat()[:7]  # strftime would write the year 999 with three digits


def _cut(text: str | None) -> str | None:
    return None if text is None else shorten(text, MAX_CARD_TEXT_CHARS)
