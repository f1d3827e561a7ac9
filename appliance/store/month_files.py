"""The history files, one per month: `history/YYYY-MM.jsonl`. A file only grows until it is removed.

Each line of a file is a JSON object. The last field of a line, `crc`, is the CRC-32 of the preceding bytes, as in the
journal. The first line is the header `{"format":1,"kind":"history","month":"2026-11"}`; `history/card_lines.py`
describes the other lines. Lines are appended and synced, and never changed. Damage affects only the damaged line,
because the next append begins a new line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from errno import EINVAL, ENOSPC
from typing import Any

import orjson
from msgspec import Struct

from appliance.store.disk import Disk
from appliance.store.file_format import check_crc, with_crc

HISTORY_FOLDER = "history"
HISTORY_FORMAT = 1
"""The format version. Lares never appends to a file in a newer format."""

READ_PART_BYTES = 1 << 17
"""Maximum number of bytes per read, so that reading a large month needs little memory."""

MAX_LINE_BYTES = 1 << 20
"""Maximum length of a line. Lares never writes longer lines, and skips them when it reads."""

MIN_FREE_BYTES = 2 << 20
"""Free space in bytes that is reserved for the home's state."""

TAIL_BYTES = 256 << 10
"""A search for the latest line first reads this number of bytes at the end of the file."""

_NAME = re.compile(r"([0-9]{4,}-(?:0[1-9]|1[0-2]))\.jsonl")


class FoundLine(Struct, frozen=True, kw_only=True):
    """A line with its offset. `fields` is None if the checksum is wrong."""

    offset: int
    fields: Mapping[str, Any] | None


class MonthFiles:
    """The files of the stored months. All methods block, and can raise `OSError`. Only one thread at a time may
    append or remove; other threads may read concurrently."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._is_folder_durable = False
        self._ends: dict[str, int] = {}
        """The offset after the valid lines of each file with a failed append."""

    def list_months(self) -> dict[str, int]:
        """Return the sizes of the stored months (`2026-11`) in bytes, oldest month first."""
        try:
            names = self._disk.list_names(HISTORY_FOLDER)
        except FileNotFoundError:
            return {}
        months = [month for name in names if (month := month_in(name)) is not None]
        return {month: self._disk.size(_path(month)) for month in months}

    def append(self, month: str, bodies: Sequence[bytes]) -> int:
        """Append the JSON objects as lines. After the lines are durable, return the number of bytes. If the append
        fails, none of the lines is valid, and the caller can retry."""
        name, lines = _path(month), b"".join(map(with_crc, bodies))
        if self._disk.free_bytes() - len(lines) < MIN_FREE_BYTES:
            raise OSError(ENOSPC, "the remaining space is reserved for the home's state")
        self._make_folder()
        end, is_new = self._find_end(name)
        data = self._lead(month, end) + lines
        descriptor = self._disk.create(name) if is_new else self._disk.open(name)
        try:
            try:
                if name in self._ends:
                    self._disk.truncate(descriptor, end)
                self._ends[name] = end
                self._disk.write(descriptor, data, end)
                self._disk.sync(descriptor)
            finally:
                self._disk.close(descriptor)
            if end == 0:
                self._disk.sync_folder(HISTORY_FOLDER)
        except OSError:
            with suppress(OSError):
                self._take_back(name)
            raise
        del self._ends[name]
        return len(data)

    def remove(self, months: Collection[str]) -> None:
        for month in months:
            self._disk.remove(_path(month))
        if months:
            self._disk.sync_folder(HISTORY_FOLDER)

    def find(self, month: str, beginning: bytes, start: int = 0, end: int | None = None) -> Iterator[FoundLine]:
        """Yield the lines that begin with these bytes, such as `{"d":"lamp","a":`, in file order.

        The search begins at `start`, and ends before `end` or at the end of the file. Both must be offsets of lines.
        """
        for offset, part in self._parts(month, start, end):
            at = part.find(beginning)
            while at != -1:
                line_end = part.find(b"\n", at)
                fields = check_crc(part[at:line_end])
                if fields is None:  # a damaged newline joins this line and the next line
                    line_end = at + 1
                if fields is not None or at == 0 or part[at - 1] == ord("\n"):
                    yield FoundLine(offset=offset + at, fields=fields)
                at = part.find(beginning, line_end)

    def find_last(self, month: str, beginning: bytes) -> Mapping[str, Any] | None:
        """Return the latest valid line that begins with the given bytes, or None."""
        name = _path(month)
        start = max(0, self._disk.size(name) - TAIL_BYTES)
        tail = self._disk.read_part(name, start, TAIL_BYTES)
        at = tail.rfind(beginning)
        while at != -1:
            if (found := check_crc(tail[at : tail.find(b"\n", at)])) is not None:
                return found
            at = tail.rfind(beginning, 0, at)
        last = None
        for line in self.find(month, beginning) if start else ():
            last = last if line.fields is None else line.fields
        return last

    def read_all(self, month: str) -> Iterator[Mapping[str, Any] | None]:
        """Yield each line of the file, including the header. Yield None for a line with a wrong checksum."""
        for part in self.read_parts(month):
            yield from map(check_crc, lines_of(part))

    def read_parts(self, month: str, end: int | None = None) -> Iterator[bytes]:
        """Yield the file up to `end` in parts of whole lines. The parts are the same each time, even if the file has
        grown."""
        for _, part in self._parts(month, stop=end):
            yield part

    def _parts(self, month: str, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield parts of the file from `start` to `stop` with their offsets. Each part consists of whole lines."""
        name, offset, rest = _path(month), start, b""

        def read() -> bytes:
            at = offset + len(rest)
            length = READ_PART_BYTES if stop is None else min(READ_PART_BYTES, stop - at)
            return self._disk.read_part(name, at, length) if length > 0 else b""

        with suppress(FileNotFoundError):  # the file was removed in the meantime
            while data := read():
                data = rest + data if rest else data
                end = data.rfind(b"\n") + 1
                if end:
                    yield offset, data if end == len(data) else data[:end]
                    offset += end
                rest = data[end:]
                if len(rest) > MAX_LINE_BYTES:
                    yield offset, b"?\n"  # treat a line that is too long as one invalid line
                    offset, rest = offset + len(rest), b""
            if rest:
                yield offset, rest + b"\n"

    def _make_folder(self) -> None:
        if not self._is_folder_durable:
            self._disk.make_folder(HISTORY_FOLDER)
            self._disk.sync_folder()
            self._is_folder_durable = True

    def _find_end(self, name: str) -> tuple[int, bool]:
        """Return the offset for the next append, and whether the file must be created."""
        try:
            size = self._disk.size(name)
            if self._ends.get(name) == 0:
                self._disk.remove(name)
                raise FileNotFoundError
        except FileNotFoundError:
            self._ends.pop(name, None)
            return 0, True
        return self._ends.get(name, size), False

    def _lead(self, month: str, end: int) -> bytes:
        """Return the bytes to write before new lines: a new file's header, or a newline after an incomplete line.

        Raise `OSError` if the file is in a newer format.
        """
        if end == 0:
            return with_crc(orjson.dumps({"format": HISTORY_FORMAT, "kind": "history", "month": month}))
        name = _path(month)
        first = check_crc(self._disk.read_part(name, 0, 256).partition(b"\n")[0])
        stated = None if first is None else first.get("format")
        if isinstance(stated, int) and stated > HISTORY_FORMAT:
            raise OSError(EINVAL, f"{name} was written by a newer Lares")
        return b"" if self._disk.read_part(name, end - 1, 1) == b"\n" else b"\n"

    def _take_back(self, name: str) -> None:
        """Truncate the file before the failed append. If truncating fails, the next append retries.

        If the file has no other content, delete it, because its name may never become durable after a failed sync.
        """
        if self._ends[name] == 0:
            self._disk.remove(name)
            del self._ends[name]
            return
        descriptor = self._disk.open(name)
        try:
            self._disk.truncate(descriptor, self._ends[name])
            self._disk.sync(descriptor)
        finally:
            self._disk.close(descriptor)
        del self._ends[name]


def month_in(name: str) -> str | None:
    """Return the month in the name of a history file, or None for another name."""
    found = _NAME.fullmatch(name)
    return None if found is None else found[1]


def lines_of(part: bytes) -> Iterator[bytes]:
    """Yield the lines of a part, without the zeros that an interrupted write can leave."""
    for line in part.split(b"\n"):
        if kept := line.lstrip(b"\0"):
            yield kept


def _path(month: str) -> str:
    return f"{HISTORY_FOLDER}/{month}.jsonl"
