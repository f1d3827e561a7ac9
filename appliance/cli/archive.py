"""The archive of `lares backup`: a compressed tar file with the state, the folder `config/`, and the history.

The archive contains `lares-backup.json` (formats, version, time, name of the configuration, number of other files),
`state.json` (the document's keys and values), `config/…` without `auth.master_key`, previous texts of these files
(`VERSIONS_FOLDER`), and the months of history (`history/2026-11.jsonl`). Memory contains the history only in
compressed form.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from typing import IO, Any, Self

import orjson
from msgspec import Struct

from appliance.cli.json_members import split_members
from appliance.cli.log_output import one_line
from appliance.cli.named_files import open_named, reading
from appliance.cli.record_checks import (
    MAX_SHOWN_CHARS,
    check_record_counts,
    check_record_values,
    check_totals,
    check_value_count,
    describe,
    find_invalid,
)
from appliance.errors import Invalid, StartFailed
from appliance.files.file_locations import has_control_characters
from appliance.home.values import to_bytes
from appliance.shortening import shorten
from appliance.store.document_files import MIGRATIONS
from appliance.store.file_format import STORE_FORMAT
from appliance.store.month_files import HISTORY_FOLDER, month_in
from appliance.store.saved_files import VERSIONS_FOLDER, is_version
from appliance.version import VERSION

ARCHIVE_FORMAT = 3
"""The version of the archive's format. Format 2 added the history. Format 3 added previous texts of files."""

COMPRESSION = 6
"""The gzip compression level. At a higher level, a small machine needs minutes to compress a month of history."""

PART_BYTES = 1 << 20

MANIFEST_FILE, STATE_FILE, CONFIG_FOLDER = "lares-backup.json", "state.json", "config"
MAX_ARCHIVE_BYTES = 64 << 20
"""Maximum size of an unpacked archive without its history."""

MAX_HISTORY_BYTES = 256 << 20
"""Maximum size of an archive's unpacked history."""

MAX_FILES = 10_000
"""Maximum number of files and folders in an archive."""

MAX_HEADER_BYTES = 64 << 10

MAX_MEMBER_DEPTH, MAX_MEMBER_NAME_BYTES, MAX_MEMBER_PATH_BYTES = 20, 255, 1000
"""Limits for a path in an archive: the number of parts, the length of each part, and the total length."""

_GZIP = b"\x1f\x8b"
_OF_MACOS = ("._", ".DS_Store")
"""File name prefixes of the files that macOS adds to archives."""

UNREADABLE = (
    *(tarfile.TarError, zlib.error, OSError, EOFError),
    *(LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError),
)
"""The exceptions that can be raised while a damaged or foreign file is read."""


class Archive(Struct, frozen=True, kw_only=True):
    """The content of an archive: the document's values, and the files of `config/` by relative path.

    - `months`: the history files to pack.
    - `packed`: the open archive, if the content was read from an archive.
    - `versions`: previous texts of configuration files by version file name.
    """

    created_at: str
    main: str
    values: Mapping[str, Any]
    files: Mapping[PurePosixPath, bytes]
    months: Sequence[Path] = ()
    versions: Mapping[str, bytes] = {}
    packed: IO[bytes] | None = None


def check_size(total: int) -> None:
    """Raise `StartFailed` if the files exceed the size limit of a backup."""
    if total > MAX_ARCHIVE_BYTES:
        raise StartFailed(
            f"the configuration folder has {total >> 20} MiB, but a backup can contain at most "
            f"{MAX_ARCHIVE_BYTES >> 20} MiB; move other files out of it",
            os.EX_DATAERR,
        )


def pack(archive: Archive) -> bytes:
    """Return the archive as bytes. Raise `StartFailed` if a restore would refuse the archive because of its size, or
    if the history cannot be read."""
    archive_format = ARCHIVE_FORMAT if archive.versions else 2 if archive.months else 1
    formats = {"format": archive_format, "store_format": STORE_FORMAT}
    page = {"kind": "lares-backup", **formats, "version": VERSION, "created_at": archive.created_at}
    count = 1 + len(archive.files) + len(archive.versions) + len(archive.months)
    members = {
        MANIFEST_FILE: orjson.dumps({**page, "main": archive.main, "files": count}, option=orjson.OPT_INDENT_2),
        STATE_FILE: orjson.dumps(archive.values, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS),
        **{f"{CONFIG_FOLDER}/{path}": data for path, data in archive.files.items()},
        **{f"{VERSIONS_FOLDER}/{name}": data for name, data in archive.versions.items()},
    }
    check_size(sum(map(len, members.values())))
    try:
        check_value_count(members[STATE_FILE], archive.values)
        check_record_counts(archive.values)
        check_totals(archive.values)
    except Invalid as fault:
        raise StartFailed(f"the home has {fault}; remove some", os.EX_DATAERR) from None
    with reading(otherwise="history"):
        return _compress(members, archive.months)


@contextmanager
def opened(file: Path) -> Iterator[Archive]:
    """Open the archive for the context. Raise `StartFailed` if this version of Lares cannot restore the archive."""
    with ExitStack() as stack:
        with reading(file):
            packed = stack.enter_context(open_named(file))
        yield _read(packed, file)


def begins_like_archive(file: Path) -> bool:
    """Return whether the first member is the manifest, even if the rest is damaged. Raise `OSError` on failure."""
    with open_named(file) as packed:
        try:
            with _open_plain(packed) as plain:
                first = tarfile.TarInfo.frombuf(plain.read(tarfile.BLOCKSIZE), "utf-8", "surrogateescape")
        except UNREADABLE:
            return False
    return first.name == MANIFEST_FILE


def _read(packed: IO[bytes], file: Path) -> Archive:
    try:
        return _parse(_unpack(packed), file, packed)
    except _Refused as fault:
        raise StartFailed(f"{file} {fault}; nothing was restored", os.EX_DATAERR) from None
    except UNREADABLE:
        raise StartFailed(f"{file} is not a backup of Lares, or is incomplete", os.EX_DATAERR) from None


def history_of(archive: Archive) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the file name and stream of each month in the archive. The caller must read each stream before it
    requests the next one."""
    if archive.packed is None:
        return
    with _open_plain(archive.packed) as plain, tarfile.open(fileobj=plain, mode="r|") as tar:
        for entry in tar:
            path = PurePosixPath(entry.name)
            if _is_month_path(path) and (stream := tar.extractfile(entry)) is not None:
                yield path.name, stream


def _open_plain(packed: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    """Return the tar as a decompressed stream. Accept an uncompressed tar, because browsers or users may have
    unpacked the gzip file."""
    packed.seek(0)
    is_compressed = packed.read(len(_GZIP)) == _GZIP
    packed.seek(0)
    return gzip.GzipFile(fileobj=packed) if is_compressed else nullcontext(packed)  # type: ignore[return-value]


def _compress(members: Mapping[str, bytes], months: Sequence[Path]) -> bytes:
    packed = io.BytesIO()
    with (
        # `mtime` is 0, because gzip cannot store a time after 2106
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=COMPRESSION, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for name, data in members.items():
            tar.addfile(_entry(name, len(data)), io.BytesIO(data))
        for month in months:
            with month.open("rb") as stream:  # a hub may be appending to the file
                tar.addfile(_entry(f"{HISTORY_FOLDER}/{month.name}", os.fstat(stream.fileno()).st_size), stream)
    return packed.getvalue()


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry


class _Refused(Exception):
    """Raised for a damaged archive. The message completes a sentence that begins with the archive's name."""


class _Entry(tarfile.TarInfo):
    """A member of the archive. The size of the member's extended headers is limited, because `tarfile` reads each
    header as a whole. A damaged header, or an end without the end-of-archive marker, is an error, because `tarfile`
    accepts both as the end of the archive."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tar)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # the marker
            raise
        except tarfile.HeaderError:
            if tar.offset == 0:
                raise
            raise _Refused("is incomplete or damaged") from None

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if not found.isreg() and found.size > MAX_HEADER_BYTES:
            raise _Refused(f"contains a header of more than {MAX_HEADER_BYTES >> 10} KiB")
        return found


def _unpack(packed: IO[bytes]) -> dict[str, bytes]:
    """Return the content of each member by path. The content of a month of history is empty. Raise `_Refused` if the
    members exceed the size limit."""
    members: dict[str, bytes] = {}
    largest: tarfile.TarInfo | None = None  # the history is not included
    room, room_of_history, count = MAX_ARCHIVE_BYTES, MAX_HISTORY_BYTES, 0
    with _open_plain(packed) as plain, tarfile.open(fileobj=plain, mode="r|", tarinfo=_Entry) as tar:
        for entry in tar:
            path, count = PurePosixPath(entry.name), count + 1
            if count > MAX_FILES:
                raise _Refused(f"contains more than {MAX_FILES:,} files and folders")
            if entry.isdir() or path.name.startswith(_OF_MACOS):
                continue
            if is_month := _is_month_path(path):
                room_of_history -= entry.size
            else:
                room -= entry.size
                largest = entry if largest is None or entry.size > largest.size else largest
            if room_of_history < 0:
                raise _Refused(f"has more than {MAX_HISTORY_BYTES >> 20} MiB of history (up to {_shown(entry)})")
            if room < 0:
                raise _too_large(largest)
            members[str(path)] = _read_member(tar, entry, path, is_month=is_month)
        # verify the checksum, which `tarfile` compares at the end
        while room > 0 and (rest := plain.read(PART_BYTES)):
            room -= len(rest)
    if room <= 0 and members:
        raise _too_large(largest)
    return members


def _too_large(largest: tarfile.TarInfo | None) -> _Refused:
    reason = f"has more than {MAX_ARCHIVE_BYTES >> 20} MiB without its history"
    return _Refused(f"{reason} (the largest file is {_shown(largest)})" if largest is not None else reason)


def _shown(entry: tarfile.TarInfo) -> str:
    return one_line(shorten(entry.name, MAX_SHOWN_CHARS))


def find_path_fault(path: PurePosixPath) -> str | None:
    """Return the reason why an archive may not contain the path, or None. The reason completes a sentence that begins
    with the path."""
    sizes = [len(os.fsencode(part)) for part in path.parts]
    is_long = max(sizes, default=0) > MAX_MEMBER_NAME_BYTES or sum(sizes) > MAX_MEMBER_PATH_BYTES
    if is_long or len(sizes) > MAX_MEMBER_DEPTH:
        return "is too long or too deep"
    return "contains control characters" if has_control_characters(str(path)) else None


def _is_month_path(path: PurePosixPath) -> bool:
    return path.parts[:-1] == (HISTORY_FOLDER,) and month_in(path.name) is not None


def _is_inside(path: PurePosixPath) -> bool:
    """Return whether the path stays inside the folder into which it is unpacked."""
    return not path.is_absolute() and ".." not in path.parts


def _read_member(tar: tarfile.TarFile, entry: tarfile.TarInfo, path: PurePosixPath, *, is_month: bool) -> bytes:
    """Return a member's content. For a month of history, return empty bytes. Raise `_Refused` if the member is not
    a plain file of a backup."""
    is_config = path.parts[:1] == (CONFIG_FOLDER,) and len(path.parts) > 1
    shown = _shown(entry)
    if (path_fault := find_path_fault(path)) is not None:
        raise _Refused(f"contains a file whose path {path_fault} ({shown})")
    if not _is_inside(path):
        raise _Refused(f"contains a path outside its folder ({shown})")
    is_text = len(path.parts) == 2 and path.parts[0] == VERSIONS_FOLDER and is_version(path.name)
    is_ours = is_config or is_month or is_text or str(path) in (MANIFEST_FILE, STATE_FILE)
    if not is_ours:
        raise _Refused(f"contains a file that is not part of a backup ({shown})")
    stream = tar.extractfile(entry) if entry.isreg() else None
    if stream is None:
        raise _Refused(f"contains a link or a special file ({shown})")
    data, count = b"", 0
    while part := stream.read(PART_BYTES):
        count += len(part)
        data += b"" if is_month else part
    if count != entry.size:
        raise EOFError
    return data


def _parse(members: dict[str, bytes], file: Path, packed: IO[bytes]) -> Archive:
    page = orjson.loads(members.pop(MANIFEST_FILE))
    if page["kind"] != "lares-backup" or page["format"] < 1:
        raise ValueError(MANIFEST_FILE)
    store_format = page.get("store_format", 1)
    if page["format"] > ARCHIVE_FORMAT or store_format > STORE_FORMAT:
        raise StartFailed(
            f"{file} was made by a newer Lares, {page['version']}; restore it with that version or a later one",
            os.EX_CONFIG,
        )
    if len(members) < (count := page.get("files", 0)):
        raise _Refused(f"is incomplete: it contains {len(members)} of {count} files")
    texts = {name: data for name, data in members.items() if name.startswith(f"{VERSIONS_FOLDER}/")}
    files = {
        PurePosixPath(name).relative_to(CONFIG_FOLDER): data
        for name, data in members.items()
        if name.startswith(f"{CONFIG_FOLDER}/")
    }
    main, values = page["main"], _decode_state(members[STATE_FILE], store_format)
    if any(parent in files for path in files for parent in path.parents) or not isinstance(main, str):
        raise ValueError(CONFIG_FOLDER)
    return Archive(
        created_at=str(page["created_at"]),
        main=main,
        values=values,
        files=files,
        versions={PurePosixPath(name).name: data for name, data in texts.items()},
        packed=packed,
    )


def _decode_state(state: bytes, store_format: int) -> dict[str, Any]:
    """Return the values in the store's current format. Raise `_Refused` for a home that is too large for the API, and
    for an invalid record."""
    try:
        check_value_count(state)
        check_record_counts(key for key, _ in split_members(state))
        values = _migrated({key: _decode_record(key, record) for key, record in split_members(state)}, store_format)
        for fault in find_invalid(values).values():
            raise _Refused(f"contains an invalid record ({fault})")
        check_totals(values)
    except Invalid as error:
        raise _Refused(f"contains {error}") from None
    except ValueError:
        raise _Refused(f"contains an invalid {STATE_FILE}") from None
    return values


def _decode_record(key: str, record: bytes) -> Any:
    try:
        check_record_values(record)
    except Invalid as error:
        raise _Refused(f"contains an invalid record ({describe(key, error)})") from None
    return orjson.loads(record)


def _migrated(values: dict[str, Any], store_format: int) -> dict[str, Any]:
    """Convert the values to the store's current format."""
    if store_format == STORE_FORMAT:
        return values
    encoded = {key: to_bytes(value) for key, value in values.items()}
    for each in range(store_format, STORE_FORMAT):
        encoded = MIGRATIONS[each](encoded)
    return {key: orjson.loads(value) for key, value in encoded.items()}
