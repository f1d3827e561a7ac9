"""`lares history export`: exports the stored history as a table or JSON lines, even while the hub runs."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from appliance.cli.owner import become_owner, need_access
from appliance.cli.paths import HubPaths
from appliance.cli.terminal import say
from appliance.clock import from_millis, timestamp, to_millis
from appliance.errors import StartFailed
from appliance.history.card_lines import (
    Faulty,
    decode_changes,
    decode_command,
    decode_execution,
    decode_hours,
    find_beginning,
    month_at,
)
from appliance.history.hours import Hour, join_all
from appliance.history.series import ValueParts
from appliance.store.disk import Disk
from appliance.store.file_format import check_crc
from appliance.store.lock import holder_of
from appliance.store.month_files import MonthFiles, lines_of

COLUMNS = ("at", "kind", "device_id", "attribute", "value", "unit", "min", "max", "increase", "secs")
"""The columns of the table. A row of type `hour` has `min`, `max`, and `secs` (the seconds with known values). The
row of a meter also has `increase`."""

LINES_AT_ONCE = 500

_MAX_MS = to_millis(datetime.max.replace(tzinfo=UTC))

Row = dict[str, Any]


def history(arguments: argparse.Namespace) -> int:
    """Print the export on standard output, and the export's gaps on standard error."""
    start, end = _instant(arguments.start, "--start"), _instant(arguments.end, "--end")
    if start is not None and end is not None and end < start:
        raise StartFailed("--end is before --start", os.EX_USAGE)
    data_dir = HubPaths.of_process(arguments).need_data_dir()
    need_access(data_dir)
    become_owner(data_dir)
    export = _Export(MonthFiles(Disk(data_dir)), start, end)
    show: Callable[[Row], str] = json.dumps if arguments.json else _as_csv
    try:
        if not arguments.json:
            say(",".join(COLUMNS))
        for rows in export.parts():
            lines = sorted(map(show, rows))  # each line begins with its time
            for first in range(0, len(lines), LINES_AT_ONCE):
                say(*lines[first : first + LINES_AT_ONCE])
    except OSError as error:
        if isinstance(error, BrokenPipeError | PermissionError):
            raise
        file = error.filename or "the history"
        raise StartFailed(f"{file} cannot be read: {error.strerror or error}", os.EX_IOERR) from None
    if export.bad:
        say(f"{export.bad} damaged lines were skipped", to=sys.stderr)
    if holder_of(data_dir) is not None:
        say(
            "the hub writes its history four times per day; values since the last write are not included",
            to=sys.stderr,
        )
    return os.EX_OK


class _Export:
    """Reads all months of history. `bad` is the number of damaged lines."""

    def __init__(self, months: MonthFiles, start: datetime | None, end: datetime | None) -> None:
        self._months = months
        self._start = start
        self._end = end
        self._open: dict[tuple[str, str], tuple[ValueParts, Hour]] = {}
        """The latest hour of each attribute. The hour is kept because a later line may add a part to it."""
        self.bad = 0

    def parts(self) -> Iterator[Iterator[Row]]:
        """Yield the rows in parts. No row is older than a row of an earlier part."""
        first = "" if self._start is None else month_at(self._start)
        last = "~" if self._end is None else month_at(self._end)
        for month, size in self._months.list_months().items():
            if first <= month <= last:
                yield from map(self._within, self._parts_in(month, size))

    def _parts_in(self, month: str, size: int) -> Iterator[list[Row]]:
        """Yield the rows of the month. Hold back each row while an unread part of the file can have an older row."""
        waiting: list[Row] = []
        done_until = datetime.min.replace(tzinfo=UTC)
        for part, until in zip(self._months.read_parts(month, size), self._list_limits(month, size), strict=False):
            for line in lines_of(part):
                if not self._is_too_late(line):
                    waiting += self._rows_of(check_crc(line))
            if until > done_until:
                waiting += self._close_hours(until)
                yield [row for row in waiting if row["at"] < until]
                waiting, done_until = [row for row in waiting if row["at"] >= until], until
        yield [*waiting, *self._close_hours(None)]

    def _list_limits(self, month: str, size: int) -> list[datetime]:
        """Return, for each part of the file, the earliest time in the later parts."""
        beginnings = [
            min(filter(None, map(find_beginning, lines_of(part))), default=_MAX_MS)
            for part in self._months.read_parts(month, size)
        ]
        limits = accumulate(reversed(beginnings[1:]), min, initial=_MAX_MS)
        return [*map(from_millis, limits)][::-1]

    def _is_too_late(self, line: bytes) -> bool:
        """Return whether all entries of the line are after the end of the export."""
        if self._end is None:
            return False
        beginning = find_beginning(line)
        return beginning is not None and beginning > to_millis(self._end)

    def _rows_of(self, line: Mapping[str, Any] | None) -> list[Row]:
        if line is None:
            self.bad += 1
            return []
        try:
            if line.get("k") == "command":
                return [_command_row(decode_command(line))]
            if line.get("k") == "execution":
                return [_execution_row(line)]
            changes = [_row(at / 1000, "change", line, value=value) for at, value in decode_changes(line)]
            return [*changes, *self._hour_rows(line)]
        except Faulty:
            self.bad += 1
            return []

    def _hour_rows(self, line: Mapping[str, Any]) -> Iterator[Row]:
        for parts, hour in decode_hours(line):
            key = (line["d"], line["a"])
            before = self._open.get(key)
            if before is not None and before[0] == parts and before[1].start == hour.start:
                self._open[key] = (parts, join_all(hour.start, (before[1], hour)))
                continue
            if before is not None:
                yield _hour_row(key, *before)
            self._open[key] = (parts, hour)

    def _close_hours(self, until: datetime | None) -> list[Row]:
        """Return the rows of the latest hours that began before `until`. No later line can add a part to them."""
        closed = {key: each for key, each in self._open.items() if until is None or each[1].start < until.timestamp()}
        for key in closed:
            del self._open[key]
        return [_hour_row(key, *each) for key, each in closed.items()]

    def _within(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            is_late_enough = self._start is None or self._start <= row["at"]
            if is_late_enough and (self._end is None or row["at"] <= self._end):
                yield {**row, "at": timestamp(row["at"])}


def _row(at: float, kind: str, line: Mapping[str, Any], **fields: Any) -> Row:
    return {
        "at": datetime.fromtimestamp(at, UTC),
        "kind": kind,
        "device_id": line["d"],
        "attribute": line["a"],
        **fields,
    }


def _hour_row(key: tuple[str, str], parts: ValueParts, hour: Hour) -> Row:
    fields = {"value": hour.value, "min": hour.low, "max": hour.high, "secs": hour.secs}
    unit = {"unit": parts["unit"]} if parts is not None and "unit" in parts else {}
    gain = {} if hour.gain is None else {"increase": hour.gain}
    return _row(hour.start, "hour", {"d": key[0], "a": key[1]}, **fields, **unit, **gain)


def _command_row(command: Row) -> Row:
    at = datetime.fromisoformat(command.pop("recorded_at"))
    return {"at": at, "kind": "command", **command}


def _execution_row(line: Mapping[str, Any]) -> Row:
    entry = decode_execution(line)
    return {
        "at": entry.executed_at,
        "kind": "execution",
        "of": f"{line['of']}:{entry.subject}",
        "status": entry.status,
        "duration_ms": entry.duration_ms,
        "error": entry.error,
    }


def _as_csv(row: Row) -> str:
    """Return the row as a line of the table. For a command or execution, the value column contains the action."""
    if row["kind"] == "command":
        command = row["command"]
        words = [command["action"], *([] if "value" not in command else [json.dumps(command["value"])])]
        row = {**row, "attribute": command["capability"], "value": " ".join([*words, row["status"]])}
    elif row["kind"] == "execution":
        row = {**row, "device_id": row["of"], "value": row["status"]}
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([_cell(row.get(name)) for name in COLUMNS])
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Format a cell so that no spreadsheet interprets it as a formula."""
    if isinstance(value, bool | dict | list):
        return json.dumps(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")) else value


def _instant(text: str | None, flag: str) -> datetime | None:
    """Parse an instant, by default in the machine's time zone. Raise `StartFailed` if the text is invalid."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        example = "a time, such as 2026-11-01, 2026-11-01T18:00 (local time), or 2026-11-01T17:00:00Z"
        raise StartFailed(f"{flag} must be {example}, not {text!r}", os.EX_USAGE) from None
