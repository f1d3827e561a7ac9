"""Recovery: from whatever files there are to the document, with notes about what was wrong with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from appliance.errors import StartFailed
from appliance.home.values import to_bytes
from appliance.store.disk import Disk
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
"""Makes the values of one format those of the next."""

Migrations = Mapping[int, Migration]
"""The migration from each older format."""


def unreadable(error: OSError) -> StartFailed:
    """What to say of a store whose files cannot be read."""
    return StartFailed(f"the store cannot be read: {error.filename}: {error.strerror}", os.EX_IOERR)


class Recovered(Struct, kw_only=True):
    """The document as the files hold it.

    `base` is the generation whose snapshot it starts from, `generation` the newest of which there is a file.
    `is_clean` says that the two are one, that it is whole, and that its journal can be continued at `journal_end`,
    behind the line `last`. `notes` are sentences about what was found. `damaged` names the files to keep aside,
    `missing` the journals that are gone (a power cut may have kept one from being named, which held nothing then),
    `outdated` those of an older format; `lost` counts good records behind damage, `torn` the bytes of a write that
    the power cut.
    """

    values: dict[str, bytes] = field(default_factory=dict)
    base: int = 0
    generation: int = 0
    sequence: int = 0
    format: int = STORE_FORMAT
    records: int = 0
    snapshot_size: int = 0
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
        """The notes, where files were damaged or are gone; a write that the power cut is no damage."""
        return self.notes if self.damaged or self.missing or self.lost else []


def recover(disk: Disk, migrations: Migrations) -> Recovered:
    """Read the newest document that the files hold, in the present format; writes nothing.

    It starts from the newest snapshot that is whole and replays each journal from there on. Raises `StartFailed`
    where files exist and none of them can be the base (the hub never starts empty then), or where a newer Lares wrote
    them, and `OSError` where they cannot be read.
    """
    found = disk.list_names()
    generations = generations_of(found)
    result = Recovered()
    if not generations:
        return result
    newest = result.generation = generations[0]
    base = _newest_whole(disk, found, generations, result)
    journals = _read_journals(disk, found, range(0 if base is None else base.generation, newest + 1))
    if base is None:
        _check_cut_start(disk, found, journals)
        return result
    _start_from(base, result)
    for generation in range(base.generation, newest + 1):
        _replay(journals, generation, result, migrations)
    _migrate(result, STORE_FORMAT, migrations)
    result.is_clean = result.is_clean and base.generation == newest and not (result.damaged or result.outdated)
    return result


def _newest_whole(disk: Disk, found: Sequence[str], generations: Sequence[int], result: Recovered) -> Snapshot | None:
    for generation in generations:
        if (base := _read_snapshot(disk, found, generation, result)) is not None:
            return base
    return None


def _check_cut_start(disk: Disk, found: Sequence[str], journals: Mapping[int, JournalContents]) -> None:
    """Let the document be empty where a first start was cut short: no more than journals' beginnings are there."""
    snapshots = [name for each in generations_of(found) if (name := snapshot_name(each)) in found]
    for name in snapshots:
        _refuse_newer(disk.read(name), disk, name, has_crc=False)
    if snapshots or any(each.is_damaged or each.torn or each.sequence for each in journals.values()):
        raise StartFailed(
            f"the store in {disk.folder} cannot be read: no snapshot in it is whole. Restore a backup, or move its "
            "snapshot and journal files away to start empty",
            os.EX_DATAERR,
        )


def _start_from(base: Snapshot, result: Recovered) -> None:
    result.values = dict(base.values)
    result.base = base.generation
    result.sequence = base.sequence
    result.format = base.format
    result.snapshot_size = base.size
    if base.format < STORE_FORMAT:
        result.outdated.append(snapshot_name(base.generation))


def _replay(
    journals: Mapping[int, JournalContents], generation: int, result: Recovered, migrations: Migrations
) -> None:
    """Replay a generation's journal as far as the next one begins; what lies behind that was never acknowledged."""
    name = journal_name(generation)
    reading = journals.get(generation)
    if reading is None:
        result.notes.append(f"{name} is missing; what it held, if anything, is lost")
        result.missing.append(name)
        return
    _note_damage(reading, name, result)
    if reading.header is None:
        return
    _note_begin(reading, name, result)
    _migrate(result, reading.header["format"], migrations)
    _apply(reading, _begin_of_next(journals, generation), result)
    if generation == result.generation:
        _note_end(reading, name, result)


def _begin_of_next(journals: Mapping[int, JournalContents], generation: int) -> int | None:
    headers = (journals[each].header for each in sorted(journals) if each > generation)
    return next((header["sequence"] for header in headers if header is not None), None)


def _note_begin(reading: JournalContents, name: str, result: Recovered) -> None:
    """Note an older format, and a gap in front of the journal.

    A gap in front of one without records may be no damage: nothing that is missing there was ever acknowledged if the
    power was cut between a failed sync and the next generation.
    """
    assert reading.header is not None
    if reading.header["format"] < STORE_FORMAT:
        result.outdated.append(name)
    if reading.header["sequence"] != result.sequence:
        result.notes.append(f"{name} begins at record {reading.header['sequence']}, not at {result.sequence}")
        result.damaged += [name] if reading.records else []


def _note_end(reading: JournalContents, name: str, result: Recovered) -> None:
    """Note how the newest journal ends, and whether it can be continued.

    One without records may have a name that is not on the device yet: its first record is what proves the name.
    """
    result.journal_end, result.last, result.torn = reading.end, reading.last, reading.torn
    if reading.torn and not reading.is_damaged:
        result.notes.append(f"{name}: {reading.torn} bytes of a write that the power cut are left out")
    result.is_clean = bool(reading.records)


def _migrate(result: Recovered, format_: int, migrations: Migrations) -> None:
    """Migrate the values to this format; `StartFailed` where a migration is missing."""
    for each in range(result.format, format_):
        if each not in migrations:
            raise StartFailed(f"the store is of format {each}, which this Lares cannot read any more", os.EX_CONFIG)
        result.values = migrations[each](result.values)
    result.format = max(result.format, format_)


def _apply(reading: JournalContents, upto: int | None, result: Recovered) -> None:
    """Replay the records, those up to a sequence number if one is given."""
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


def _note_damage(reading: JournalContents, name: str, result: Recovered) -> None:
    if not reading.is_damaged:
        return
    where = "in its first line" if reading.header is None else f"behind record {reading.sequence}"
    lost = f"{reading.lost} whole records lie behind the damage and are left out"
    result.notes.append(f"{name} is damaged {where}; {lost}")
    result.damaged.append(name)
    result.lost += reading.lost


def _read_snapshot(disk: Disk, found: Iterable[str], generation: int, result: Recovered) -> Snapshot | None:
    name = snapshot_name(generation)
    if name not in found:
        result.notes.append(f"{name} is missing")
        return None
    data = disk.read(name)
    _refuse_newer(data, disk, name)
    decoded = decode_snapshot(data, generation)
    if decoded is None:
        result.notes.append(f"{name} is damaged")
        result.damaged.append(name)
    return decoded


def _read_journals(disk: Disk, found: Sequence[str], generations: Iterable[int]) -> dict[int, JournalContents]:
    result = {}
    for generation in generations:
        if (name := journal_name(generation)) in found:
            data = disk.read(name)
            _refuse_newer(data, disk, name)
            result[generation] = read_journal(data, generation)
    return result


def _refuse_newer(data: bytes, disk: Disk, name: str, *, has_crc: bool = True) -> None:
    """Raise `StartFailed` where the file's first line states a newer format.

    A checksum that is not ours may be a newer format's, or damage: unless `has_crc`, it is not checked.
    """
    line = data.partition(b"\n")[0]
    header = check_crc(line) if has_crc else parse_object(line)
    if header is not None and isinstance(header.get("format"), int) and header["format"] > STORE_FORMAT:
        raise StartFailed(
            f"{disk.folder / name} was written by a newer Lares (format {header['format']}, this one reads "
            f"{STORE_FORMAT}); run that version, or restore a backup made by this one",
            os.EX_CONFIG,
        )
