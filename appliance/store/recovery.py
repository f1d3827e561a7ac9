"""Recovers the document from its files, and describes any damage."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from appliance.errors import StartFailed
from appliance.home.values import to_bytes
from appliance.store.disk import Disk, for_its_user
from appliance.store.file_format import (
    STORE_FORMAT,
    JournalContents,
    Snapshot,
    check_crc,
    decode_snapshot,
    generations_of,
    journal_name,
    parse_object,
    read_journal,
    snapshot_name,
)

Migration = Callable[[dict[str, bytes]], dict[str, bytes]]
"""Converts the values of an older format to the next format."""

Migrations = Mapping[int, Migration]
"""Maps a format to the migration from this format."""


def unreadable(error: OSError) -> StartFailed:
    if isinstance(error, PermissionError):
        return for_its_user(error.filename)
    return StartFailed(f"the store cannot be read: {error.filename}: {error.strerror}", os.EX_IOERR)


class Recovered(Struct, kw_only=True):
    """The document as recovered from the files.

    - `base`: the generation of the snapshot that was used.
    - `generation`: the newest generation with a file.
    - `is_clean`: whether `base` is complete and equal to `generation`. If `is_clean` is true, the journal can
      continue at `journal_end`, after the line `last`.
    - `notes`: sentences about the findings.
    - `damaged`: files to keep for inspection.
    - `missing`: missing journals. A power cut can remove the name of an empty journal.
    - `outdated`: files in an older format.
    - `lost`: the number of valid records after damage.
    - `torn`: the number of bytes of an interrupted write.
    """

    values: dict[str, bytes] = field(default_factory=dict)
    base: int = 0
    generation: int = 0
    sequence: int = 0
    format: int = STORE_FORMAT
    records: int = 0
    snapshot_size: int = 0
    snapshot_crc: int = 0
    journal_end: int = 0
    last: bytes = b""
    is_clean: bool = False
    lost: int = 0
    torn: int = 0
    damaged: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def damage(self) -> list[str]:
        """Return the notes about damaged and missing files. An interrupted write is not damage."""
        return self.notes if self.damaged or self.missing or self.lost else []


def recover(disk: Disk, migrations: Migrations) -> Recovered:
    """Read the newest document from the files, and convert it to the current format. Write nothing.

    Start from the newest intact snapshot, and replay all later journals. Raise `StartFailed` if a newer Lares wrote
    the files, or if files exist without a usable snapshot; otherwise, the hub would start with an empty home by
    mistake. Raise `OSError` if the files are unreadable.
    """
    return _Recovery(disk, migrations).run()


class _Recovery:
    def __init__(self, disk: Disk, migrations: Migrations) -> None:
        self._disk = disk
        self._migrations = migrations
        self._names = disk.list_names()
        self._generations = generations_of(self._names)
        self._journals: dict[int, JournalContents] = {}
        self._result = Recovered()

    def run(self) -> Recovered:
        result = self._result
        if not self._generations:
            return result
        newest = result.generation = self._generations[0]
        snapshots = (self._read_snapshot(each) for each in self._generations)
        base = next((each for each in snapshots if each is not None), None)
        span = range(0 if base is None else base.generation, newest + 1)
        for generation in span:
            if (name := journal_name(generation)) in self._names:
                self._journals[generation] = read_journal(self._read(name), generation)
        if base is None:
            self._check_cut_start()
            return result
        self._start_from(base)
        for generation in span:
            self._replay(generation)
        self._migrate(STORE_FORMAT)
        result.is_clean = result.is_clean and base.generation == newest and not (result.damaged or result.outdated)
        return result

    def _read_snapshot(self, generation: int) -> Snapshot | None:
        name = snapshot_name(generation)
        if name not in self._names:
            self._result.notes.append(f"{name} is missing")
            return None
        decoded = decode_snapshot(self._read(name), generation)
        if decoded is None:
            self._result.notes.append(f"{name} is damaged")
            self._result.damaged.append(name)
        return decoded

    def _check_cut_start(self) -> None:
        """Accept an empty document if the first start was interrupted. In this case, the files are only the
        beginnings of journals."""
        snapshots = [name for each in self._generations if (name := snapshot_name(each)) in self._names]
        if snapshots or any(each.is_damaged or each.torn or each.sequence for each in self._journals.values()):
            raise StartFailed(
                f"the store in {self._disk.folder} has no intact snapshot. Restore a backup, or "
                f"to start empty, move the snapshot and journal files out of this folder",
                os.EX_DATAERR,
            )

    def _start_from(self, base: Snapshot) -> None:
        result = self._result
        result.values, result.base, result.sequence = dict(base.values), base.generation, base.sequence
        result.format, result.snapshot_size, result.snapshot_crc = base.format, base.size, base.crc
        if base.format < STORE_FORMAT:
            result.outdated.append(snapshot_name(base.generation))

    def _replay(self, generation: int) -> None:
        """Replay a generation's journal up to the start of the next generation. Later records were never
        acknowledged."""
        result, name, reading = self._result, journal_name(generation), self._journals.get(generation)
        if reading is None:
            result.notes.append(f"{name} is missing; its content, if any, is lost")
            result.missing.append(name)
            return
        self._note_damage(reading, name)
        if reading.header is None:
            return
        self._note_begin(reading, name, reading.header)
        self._migrate(reading.header["format"])
        later = (each.header for number, each in sorted(self._journals.items()) if number > generation)
        self._apply(reading, next((header["sequence"] for header in later if header is not None), None))
        if generation == result.generation:
            self._note_end(reading, name)

    def _note_damage(self, reading: JournalContents, name: str) -> None:
        if reading.is_damaged:
            where = "in its first line" if reading.header is None else f"after record {reading.sequence}"
            lost = f"{reading.lost} intact records after the damage are ignored"
            self._result.notes.append(f"{name} is damaged {where}; {lost}")
            self._result.damaged.append(name)
            self._result.lost += reading.lost

    def _note_begin(self, reading: JournalContents, name: str, header: Mapping[str, Any]) -> None:
        """Record whether the journal has an older format, and whether records are missing before it.

        A gap before an empty journal can be harmless: a power cut between a failed sync and the next generation loses
        only changes that were never acknowledged.
        """
        result = self._result
        if header["format"] < STORE_FORMAT:
            result.outdated.append(name)
        if header["sequence"] != result.sequence:
            result.notes.append(f"{name} begins at record {header['sequence']} instead of record {result.sequence}")
            result.damaged += [name] if reading.records else []

    def _note_end(self, reading: JournalContents, name: str) -> None:
        """Record the end of the newest journal, and whether the journal can continue. If the journal is empty, its
        name may not be durable. If the journal contains a record, its name is durable."""
        result = self._result
        result.journal_end, result.last, result.torn = reading.end, reading.last, reading.torn
        if reading.torn and not reading.is_damaged:
            result.notes.append(f"{name}: {reading.torn} bytes of an interrupted write are ignored")
        result.is_clean = bool(reading.records)

    def _apply(self, reading: JournalContents, upto: int | None) -> None:
        """Replay the records up to and including the sequence number `upto`."""
        result = self._result
        for record in reading.records:
            if record["seq"] <= result.sequence:
                continue
            if upto is not None and record["seq"] > upto:
                return
            for key, value in record["put"].items():
                if value is None:
                    result.values.pop(key, None)
                else:
                    result.values[key] = to_bytes(value)
            result.sequence = record["seq"]
            result.records += 1

    def _migrate(self, format_: int) -> None:
        """Migrate the values to the format `format_`. Raise `StartFailed` if a migration is missing."""
        result = self._result
        for each in range(result.format, format_):
            if each not in self._migrations:
                raise StartFailed(f"the store has format {each}, which this Lares can no longer read", os.EX_CONFIG)
            result.values = self._migrations[each](result.values)
        result.format = max(result.format, format_)

    def _read(self, name: str) -> bytes:
        """Return the file's content. Raise `StartFailed` if the first line has a newer format.

        The first line's checksum is not checked, because a newer format may use another kind of checksum.
        """
        data = self._disk.read(name)
        line = data.partition(b"\n")[0]
        header = parse_object(line)
        format_ = None if header is None else header.get("format")
        if isinstance(format_, int) and format_ > STORE_FORMAT and not _is_flipped(line, format_):
            raise StartFailed(
                f"{self._disk.folder / name} was written by a newer Lares (format {format_}; this version "
                f"reads {STORE_FORMAT}); run the newer version, or restore a backup of this version",
                os.EX_CONFIG,
            )
        return data


def _is_flipped(line: bytes, format_: int) -> bool:
    """Return whether the newer format number is probably caused by a flipped bit in a header of the current
    format."""
    own = line.replace(b'"format":%d' % format_, b'"format":%d' % STORE_FORMAT, 1)
    flips = int.from_bytes(own, "big") ^ int.from_bytes(line, "big")
    return len(own) == len(line) and flips.bit_count() == 1 and check_crc(own) is not None
