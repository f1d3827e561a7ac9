"""The files of the document: their names, and the format of snapshots and journals.

Each line is a JSON object. If a line has a checksum, its last field `crc` is the CRC-32 (as in zlib) of all preceding
bytes of the line.

A snapshot contains the whole document at one sequence number. The file never changes. The first line of a snapshot
contains the format, the generation, the sequence number, and the length and CRC-32 of the rest of the file. Each
further line is a key with its value: `{"key": …, "value": …}`.

A journal grows until the next generation begins. The first line of a journal contains the format, the generation, and
the sequence number before the first record. Each further line is a record for one batch of changes: `{"seq",
"length", "put", "crc"}`. `put` maps keys to values; null removes a key. `length` is the number of bytes of `put`.
After the last record, the file contains only zeros, or nothing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct

from appliance.home.values import to_bytes
from appliance.store.disk import PART

STORE_FORMAT = 1
"""The format version of snapshots and journals. Newer formats are rejected; older formats are migrated."""

_NAME = re.compile(r"(?:snapshot|journal)\.(\d{6,})\.json")
_HALF = re.compile(r"(?:snapshot|journal)\.\d{6,}\.json.*" + re.escape(PART))

_END = re.compile(rb',"crc":"([0-9a-f]{8})"\}\Z')
_RECORD_START = re.compile(rb'\{"seq":\d')

CRC_BYTES = len(b',"crc":"00000000"}')

EncodedChanges = Mapping[str, bytes | None]
"""JSON bytes by key. The value of a removed key is None."""


def encode_values(changes: Mapping[str, Any]) -> dict[str, bytes | None]:
    """Encode the values as JSON. NaN becomes null, which removes the key when the journal is replayed. Raise
    `TypeError` with the key if JSON cannot represent a value."""
    encoded: dict[str, bytes | None] = {}
    for key, value in changes.items():
        try:
            orjson.dumps(key)
            found = to_bytes(value)
        except TypeError as error:
            raise TypeError(f"{key!r} cannot be stored: {error}") from None
        encoded[key] = None if found == b"null" else found
    return encoded


def snapshot_name(generation: int) -> str:
    return f"snapshot.{generation:06d}.json"


def journal_name(generation: int) -> str:
    return f"journal.{generation:06d}.json"


def generations_of(names: Iterable[str]) -> list[int]:
    """Return the generations with files, newest first."""
    found = {int(match[1]) for name in names if (match := _NAME.fullmatch(name)) is not None}
    return sorted(found, reverse=True)


def leftovers(names: Iterable[str], oldest: int) -> list[str]:
    """Return the obsolete files: incomplete files, and files of generations before `oldest`."""
    names = list(names)
    old = [each for each in generations_of(names) if each < oldest]
    finished = [name for each in old for name in (snapshot_name(each), journal_name(each))]
    return [name for name in names if _HALF.fullmatch(name) is not None or name in finished]


def with_crc(body: bytes) -> bytes:
    """Return the JSON object `body` as a line with checksum and newline."""
    opened = body[:-1]
    return b'%b,"crc":"%08x"}\n' % (opened, zlib.crc32(opened))


def check_crc(line: bytes) -> dict[str, Any] | None:
    """Return the object in a line (without newline), or None if the checksum is wrong."""
    return parse_object(line) if has_crc(line) else None


def has_crc(line: bytes) -> bool:
    """Return whether a line (without newline) ends with its checksum."""
    end = _END.search(line, max(0, len(line) - CRC_BYTES))
    return end is not None and int(end[1], 16) == zlib.crc32(line[: end.start()])


def parse_object(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in the line without checking the checksum. Return None if the line is not an object."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


class Snapshot(Struct, frozen=True, kw_only=True):
    """The content of a snapshot file. `values` contains JSON bytes by key. `crc` is the CRC-32 of the whole file."""

    format: int
    generation: int
    sequence: int
    values: Mapping[str, bytes]
    size: int
    crc: int


def encode_snapshot(generation: int, sequence: int, values: Mapping[str, bytes]) -> bytes:
    body = b"".join([b'{"key":%b,"value":%b}\n' % (orjson.dumps(key), values[key]) for key in sorted(values)])
    header = {
        "format": STORE_FORMAT,
        "kind": "snapshot",
        "generation": generation,
        "sequence": sequence,
        "length": len(body),
        "body_crc": f"{zlib.crc32(body):08x}",
    }
    return with_crc(orjson.dumps(header)) + body


def decode_snapshot(data: bytes, generation: int) -> Snapshot | None:
    """Parse the snapshot of this generation. Return None if the snapshot is damaged."""
    header, body = _read_header(data, "snapshot", generation), data.partition(b"\n")[2]
    if header is None or header.get("length") != len(body) or header.get("body_crc") != f"{zlib.crc32(body):08x}":
        return None
    return Snapshot(
        format=header["format"],
        generation=header["generation"],
        sequence=header["sequence"],
        values=dict(_entry(each) for each in body.split(b"\n")[:-1]),
        size=len(data),
        crc=zlib.crc32(data),
    )


def _entry(line: bytes) -> tuple[str, bytes]:
    entry: dict[str, Any] = orjson.loads(line)
    return entry["key"], to_bytes(entry["value"])


class JournalContents(Struct, frozen=True, kw_only=True):
    """The content of a journal file.

    - `header`: the first line, or None if it is damaged or missing.
    - `sequence`: the number of the last valid record, or the number in the header.
    - `end`: the offset after the valid records.
    - `last`: the last valid line.
    - `torn`: the number of bytes after `end` that are neither zeros nor records.
    - `lost`: the number of valid records after the damage.
    """

    header: dict[str, Any] | None = None
    records: Sequence[dict[str, Any]] = ()
    sequence: int = 0
    last: bytes = b""
    end: int = 0
    torn: int
    lost: int

    @property
    def is_damaged(self) -> bool:
        """Return whether the file has damage that an interrupted write cannot explain."""
        return self.header is None or self.lost > 0


def read_journal(data: bytes, generation: int) -> JournalContents:
    """Parse the journal of this generation. Never raise."""
    header = _read_header(data, "journal", generation)
    if header is None:
        return JournalContents(torn=len(data), lost=_count_records(data))
    last, position, records, sequence = b"", data.index(b"\n") + 1, [], header["sequence"]
    while (found := _record_at(data, position)) is not None and found[0]["seq"] == sequence + 1:
        records.append(found[0])
        last, sequence, position = data[position : found[1]], sequence + 1, found[1]
    rest = data[position:]
    return JournalContents(
        header=header,
        records=records,
        sequence=sequence,
        last=last,
        end=position,
        torn=len(rest.rstrip(b"\0")),
        lost=_count_records(rest),
    )


def encode_header(generation: int, sequence: int) -> bytes:
    """Return the first line of a journal whose first record has the number after `sequence`."""
    header = {"format": STORE_FORMAT, "kind": "journal", "generation": generation, "sequence": sequence}
    return with_crc(orjson.dumps(header))


def encode_record(sequence: int, changes: EncodedChanges) -> bytes:
    """Return a record as a line with checksum and newline."""
    pairs = (b"%b:%b" % (orjson.dumps(key), b"null" if value is None else value) for key, value in changes.items())
    put = b"{%b}" % b",".join(pairs)
    return with_crc(b'{"seq":%d,"length":%d,"put":%b}' % (sequence, len(put), put))


def _read_header(data: bytes, kind: str, generation: int) -> dict[str, Any] | None:
    """Return the header of a file of this kind and generation. Return None if the header is damaged."""
    line, newline, _ = data.partition(b"\n")
    header = check_crc(line) if newline else None
    if header is None or header.get("kind") != kind or header.get("generation") != generation:
        return None
    numbers = (header.get("format"), header.get("sequence"))
    return header if all(type(each) is int for each in numbers) else None


def _record_at(data: bytes, position: int) -> tuple[dict[str, Any], int] | None:
    """Return the record at the position, and the position after it. Return None if the record is invalid."""
    end = data.find(b"\n", position)
    if end == -1 or (record := check_crc(data[position:end])) is None:
        return None
    put = data[position:end].partition(b',"put":')[2][:-CRC_BYTES]
    if (
        type(record.get("seq")) is not int
        or not isinstance(record.get("put"), dict)
        or record.get("length") != len(put)
    ):
        return None
    return record, end + 1


def _count_records(data: bytes) -> int:
    """Count the valid records anywhere in the bytes, even if the newlines between them are damaged."""
    return sum(_record_at(data, start.start()) is not None for start in _RECORD_START.finditer(data))
