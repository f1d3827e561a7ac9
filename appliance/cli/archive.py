"""The archive of `lares backup`: state, all of `config/` and history in one compressed tar, with a page about it.

Members: `lares-backup.json` (format of archive and store, version, time, the configuration's name), `state.json` (the
document's keys and values), `config/…` as it lies on the box, without `auth.master_key`, and behind those the months
of history, `history/2026-11.jsonl`, which are never in memory as a whole.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

import orjson
from msgspec import Struct

from appliance.cli.owner import read_named
from appliance.config import MASTER_KEY_PATH, line_finder, parse_toml
from appliance.errors import ConfigFailed, Fault, Invalid, StartFailed
from appliance.home.texts import identifier, name
from appliance.store.file_format import STORE_FORMAT
from appliance.store.files import MIGRATIONS
from appliance.store.month_files import HISTORY_FOLDER
from appliance.store.records import (
    ALIAS_PREFIX,
    DEVICE_PREFIX,
    GROUP_PREFIX,
    PLACE_PREFIX,
    ROOM_PREFIX,
    STATE_PREFIX,
    read_devices,
    read_layout,
)
from appliance.store.stored_keys import read_keys
from appliance.tables.fields import line_at
from appliance.version import VERSION

ARCHIVE_FORMAT = 2
"""2: it may hold history."""

COMPRESSION = 6
"""The level of gzip: more would take a small box minutes for a month of history."""

PART_BYTES = 1 << 20
"""Bytes of a member that are read at once."""

MANIFEST_FILE, STATE_FILE, CONFIG_FOLDER = "lares-backup.json", "state.json", "config"
MAX_ARCHIVE_BYTES = 64 << 20
"""Bytes that an archive may have when it is unpacked, history aside; a home has far fewer."""

MAX_HISTORY_BYTES = 256 << 20
"""Bytes that its history may have when it is unpacked: months at the whole budget of a day."""

_MONTH = re.compile(re.escape(HISTORY_FOLDER) + r"/\d{4,}-\d\d\.jsonl")

UNREADABLE = (
    *(tarfile.TarError, zlib.error, OSError, EOFError),
    *(LookupError, TypeError, ValueError, ArithmeticError, AttributeError),
)
"""What reading raises where a file is no archive, or its content not of the form that ours has."""


class Archive(Struct, frozen=True, kw_only=True):
    """What an archive holds: the document's values, and the files of `config/` by their path in it.

    `main` is the name of the configuration file among them, which need not be there. `months` are the files of
    history that are to be packed; `packed` is the archive itself where it was read from a file.
    """

    created_at: str
    main: str
    values: Mapping[str, Any]
    files: Mapping[PurePosixPath, bytes]
    months: Sequence[Path] = ()
    packed: bytes = b""

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """The keys of the state that begin with the prefix, without it, and their values."""
        return [(key.removeprefix(prefix), value) for key, value in self.values.items() if key.startswith(prefix)]


def check_size(total: int) -> None:
    """Raise `StartFailed` if these are more bytes than a backup takes."""
    if total > MAX_ARCHIVE_BYTES:
        raise StartFailed(
            f"the configuration's folder holds {total >> 20} MiB, more than a backup takes "
            f"({MAX_ARCHIVE_BYTES >> 20} MiB); move what is not configuration out of it",
            os.EX_DATAERR,
        )


def pack(archive: Archive) -> bytes:
    """The archive as bytes; `StartFailed` where they would be more than a backup takes. May raise `OSError`."""
    formats = {"format": ARCHIVE_FORMAT if archive.months else 1, "store_format": STORE_FORMAT}
    page = {"kind": "lares-backup", **formats, "version": VERSION, "created_at": archive.created_at}
    members = {
        MANIFEST_FILE: orjson.dumps({**page, "main": archive.main}, option=orjson.OPT_INDENT_2),
        STATE_FILE: orjson.dumps(archive.values, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS),
        **{f"{CONFIG_FOLDER}/{path}": data for path, data in archive.files.items()},
    }
    check_size(sum(map(len, members.values())))
    return _pack(members, archive.months)


def read(file: Path) -> Archive:
    """What the archive holds; `StartFailed` says why it is none that this Lares can restore."""
    try:
        packed = read_named(file, MAX_ARCHIVE_BYTES + (1 << 20))  # what is cut off does not unpack
    except OSError as error:
        raise StartFailed(f"{file} cannot be read: {error.strerror}", os.EX_NOINPUT) from None
    try:
        return _understand(_unpack(packed), file, packed)
    except Invalid as fault:
        raise StartFailed(f"{file} holds an id or a name that {fault}", os.EX_DATAERR) from None
    except UNREADABLE:
        raise StartFailed(f"{file} is not a backup of Lares, or not all of one", os.EX_DATAERR) from None


def history_of(archive: Archive) -> Iterator[tuple[str, IO[bytes]]]:
    """The months that an archive holds, by their file names, each with its content, to be read before the next."""
    plain = gzip.GzipFile(fileobj=io.BytesIO(archive.packed))
    with plain, tarfile.open(fileobj=plain, mode="r|") as tar:
        for entry in tar:
            if _MONTH.fullmatch(entry.name) and (stream := tar.extractfile(entry)) is not None:
                yield PurePosixPath(entry.name).name, stream


def _pack(members: Mapping[str, bytes], months: Sequence[Path]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=COMPRESSION) as tar:
        for name, data in members.items():
            tar.addfile(_entry(name, len(data)), io.BytesIO(data))
        for month in months:
            with month.open("rb") as stream:  # a hub may be appending to it
                tar.addfile(_entry(f"{HISTORY_FOLDER}/{month.name}", os.fstat(stream.fileno()).st_size), stream)
    return packed.getvalue()


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry


def _unpack(packed: bytes) -> dict[str, bytes]:
    """Every member's name and bytes, history left out; what would unpack to more than any backup is not unpacked."""
    members: dict[str, bytes] = {}
    room, room_of_history = MAX_ARCHIVE_BYTES, MAX_HISTORY_BYTES
    plain = gzip.GzipFile(fileobj=io.BytesIO(packed))
    with plain, tarfile.open(fileobj=plain, mode="r|") as tar:
        for entry in tar:
            is_month = _MONTH.fullmatch(entry.name) is not None
            room -= 0 if is_month else entry.size
            room_of_history -= entry.size if is_month else 0
            if min(room, room_of_history) < 0:
                raise ValueError("too large")
            data = _read_member(tar, entry, is_month=is_month)
            if not is_month:
                members[entry.name] = data
        while room > 0 and (rest := plain.read(PART_BYTES)):  # at its end the checksum is compared
            room -= len(rest)
    if room <= 0:
        raise ValueError("too large")
    return members


def _read_member(tar: tarfile.TarFile, entry: tarfile.TarInfo, *, is_month: bool) -> bytes:
    """The member's bytes, none of a month's. One that is no plain file of an archive of ours ends the reading."""
    path = PurePosixPath(entry.name)
    is_config = path.parts[:1] == (CONFIG_FOLDER,) and len(path.parts) > 1
    is_ours = is_config or is_month or entry.name in (MANIFEST_FILE, STATE_FILE)
    stream = tar.extractfile(entry) if entry.isreg() else None
    if stream is None or not is_ours or ".." in path.parts or "\0" in entry.name:
        raise ValueError(entry.name)
    data, count = b"", 0
    while part := stream.read(PART_BYTES):
        count += len(part)
        data += b"" if is_month else part
    if count != entry.size:
        raise EOFError
    return data


def _understand(members: dict[str, bytes], file: Path, packed: bytes) -> Archive:
    """The archive that the members are; raises what the missing and the wrong raise."""
    page = orjson.loads(members.pop(MANIFEST_FILE))
    if page["kind"] != "lares-backup" or page["format"] < 1:
        raise ValueError(MANIFEST_FILE)
    store_format = page.get("store_format", 1)
    if page["format"] > ARCHIVE_FORMAT or store_format > STORE_FORMAT:
        raise StartFailed(
            f"{file} was made by a newer Lares, {page['version']}; restore it with that version or a later one",
            os.EX_CONFIG,
        )
    files = {
        PurePosixPath(name).relative_to(CONFIG_FOLDER): data for name, data in members.items() if name != STATE_FILE
    }
    main, values = page["main"], _migrated(orjson.loads(members[STATE_FILE]), store_format)
    if any(parent in files for path in files for parent in path.parents) or not isinstance(main, str):
        raise ValueError(CONFIG_FOLDER)
    found = Archive(created_at=str(page["created_at"]), main=main, values=values, files=files, packed=packed)
    _check_texts(found)
    read_devices(found, read_layout(found))
    read_keys(found)
    return found


def _check_texts(found: Archive) -> None:
    """Raise `Invalid`, a sentence, for an id or a name that the API would refuse."""
    for prefix in (ROOM_PREFIX, GROUP_PREFIX, PLACE_PREFIX, ALIAS_PREFIX, DEVICE_PREFIX, STATE_PREFIX):
        for id_, value in found.items(prefix):
            identifier(id_)
            if value is not None and prefix in (ROOM_PREFIX, GROUP_PREFIX):
                name(value["name"])
            for each in value["members"] if prefix == GROUP_PREFIX and value is not None else ():
                identifier(each)
            if value is not None and prefix == PLACE_PREFIX:
                identifier(value)


def _migrated(values: dict[str, Any], store_format: int) -> dict[str, Any]:
    """The values as the store of this Lares keeps them, made from those of an older format."""
    encoded = {key: orjson.dumps(value) for key, value in values.items()}
    for each in range(store_format, STORE_FORMAT):
        encoded = MIGRATIONS[each](encoded)
    return {key: orjson.loads(value) for key, value in encoded.items()}


LEFT_OUT = "# master_key: left out of the backup; restoring keeps the one on the box"

_SECTION = re.compile(r"\s*\[\s*auth\s*\]\s*(#.*)?")


def decode(data: bytes, file: Path) -> str:
    """The text of a configuration file; `StartFailed` where it is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StartFailed(f"{file} is not UTF-8 text; `lares check` tells where", os.EX_CONFIG) from None


def key_of(text: str, name: str) -> str | None:
    """The master key that a configuration states, or None."""
    section = parse_toml(text, name).get("auth")
    key = section.get("master_key") if isinstance(section, dict) else None
    return key if isinstance(key, str) else None


def without_key(text: str, name: str) -> str:
    """The configuration without its master key; `ConfigFailed` where the key cannot be taken out line by line."""
    key = key_of(text, name)
    if key is None:
        return text
    number, lines = line_at(MASTER_KEY_PATH, line_finder(text)), text.split("\n")
    lines[number - 1] = LEFT_OUT
    changed = "\n".join(lines)
    if not _differ_only_in_key(changed, text) or key_of(changed, name) is not None:
        message = 'auth.master_key cannot be left out; write it as a line of its own, master_key = "…" below [auth]'
        raise ConfigFailed([Fault(name, number, message)])
    return changed


def with_key(text: str, key: str, name: str) -> str:
    """The configuration with this master key, whether or not it states one."""
    bare = without_key(text, name)
    for changed in _with_line(bare.split("\n"), json.dumps(key)):
        if _differ_only_in_key(changed, bare) and key_of(changed, name) == key:
            return changed
    raise ConfigFailed([Fault(name, 0, "has no place for auth.master_key; give it a section [auth]")])


def _with_line(lines: list[str], value: str) -> list[str]:
    """The text with the key in each place where it could be; not all of them need be TOML."""
    texts: list[list[str]] = []
    for number, line in enumerate(lines):
        if line.strip() == LEFT_OUT:
            texts.append([*lines[:number], f"master_key = {value}", *lines[number + 1 :]])
            texts.append([*lines[:number], f"auth.master_key = {value}", *lines[number + 1 :]])
        elif _SECTION.fullmatch(line):
            texts.append([*lines[: number + 1], f"master_key = {value}", *lines[number + 1 :]])
    texts.append([f"auth.master_key = {value}", *lines])
    return ["\n".join(each) for each in texts]


def _differ_only_in_key(one: str, other: str) -> bool:
    """Whether both are sound and differ in nothing but the master key."""
    try:
        return _bare(one) == _bare(other)
    except ConfigFailed:
        return False


def _bare(text: str) -> dict[str, Any]:
    raw = parse_toml(text, "")
    section = raw.setdefault("auth", {})
    if isinstance(section, dict):
        section.pop("master_key", None)
    return raw
