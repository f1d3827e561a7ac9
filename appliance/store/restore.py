"""Reads or replaces the document while no hub runs.

A restore replaces both the document and the configuration folder, or neither. A restore first stages the new document
as a pending file. The document takes effect when the configuration folder contains a marker with the same token.
After a power cut, the next start finishes the restore if the marker exists, and otherwise discards the pending file.

A single pending file for document and configuration would not be enough: if root owns the configuration, the hub runs
as another user and could not replace the folder at the next start. Therefore, the replacement of the folder decides
whether the restore takes effect.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote_to_bytes

import msgspec
import orjson
from msgspec import Struct

from appliance.errors import StartFailed
from appliance.home.values import to_bytes
from appliance.store.disk import MAX_STORE_FILE_BYTES, Disk, naming, sync_folder, write_file
from appliance.store.document_files import MIGRATIONS, DocumentFiles
from appliance.store.file_format import generations_of, leftovers
from appliance.store.month_files import HISTORY_FOLDER
from appliance.store.recovery import Recovered, recover, unreadable
from appliance.tables.plain_files import read_plain

log = logging.getLogger("store")

PENDING = "restore-pending.json"
"""The pending file."""

HISTORY_STAGE = f"{HISTORY_FOLDER}.restore-part"
"""The folder with the staged history files."""

TRIES = 50
"""Maximum number of attempts to read a document while a running hub replaces its files."""


class _Pending(Struct, frozen=True, gc=False):
    """The pending file: the content of the marker, the marker's percent-encoded path, the keys whose values the
    restore keeps, and the new document. Its values remain encoded, because decoded values need ten times the
    memory."""

    token: str
    marker: str
    own: list[str]
    values: dict[str, msgspec.Raw]


def stage_document(folder: Path, values: Mapping[str, Any], marker: Path, token: str, *, own: Iterable[str]) -> None:
    """Stage the values durably. They have no effect until `place_staged_document`. Raise `OSError` on failure."""
    pending = {"token": token, "marker": quote(os.fsencode(marker)), "own": list(own), "values": dict(values)}
    write_file(folder / PENDING, orjson.dumps(pending))


def forget_document(folder: Path) -> None:
    """Remove the staged values. Raise `OSError` on failure."""
    if (folder / PENDING).exists():
        (folder / PENDING).unlink()
        sync_folder(folder)


def finish_interrupted(folder: Path, stamp: str) -> list[Path]:
    """Install the staged document and history if their marker exists; otherwise, remove them. The caller must hold
    the lock.

    Return the paths of the old files. Raise `OSError` on failure; the caller can retry.
    """
    kept = place_staged_document(folder, stamp)
    if kept is not None:
        kept += place_history(folder, stamp)
    forget_document(folder)
    forget_history(folder)
    return kept or []


def place_staged_document(folder: Path, stamp: str) -> list[Path] | None:
    """Install the staged document. Return the kept old files, or None if there is no marker. Raise `OSError` on
    failure."""
    pending = _read_marked(folder)
    if pending is None:
        return None
    return replace_document(folder, pending.values, stamp, own=pending.own)


def stage_history(folder: Path, months: Iterable[tuple[str, IO[bytes]]]) -> int:
    """Write the months, given by file name and stream, next to the current months, and sync them to storage.

    Return the number of written months. After an exception, nothing is staged.
    """
    stage, count = folder / HISTORY_STAGE, 0
    forget_history(folder)
    try:
        for name, stream in months:
            stage.mkdir(mode=0o700, exist_ok=True)
            target = stage / name
            target.touch(mode=0o600)
            with naming(target), target.open("wb") as written:
                shutil.copyfileobj(stream, written)
                written.flush()
                os.fsync(written.fileno())
            count += 1
        if count:
            sync_folder(stage)
    except Exception:
        forget_history(folder)
        raise
    return count


def place_history(folder: Path, stamp: str) -> list[Path]:
    """Replace the current history with the staged history, if any. Return the kept old folder. Raise `OSError` on
    failure."""
    stage, present = folder / HISTORY_STAGE, folder / HISTORY_FOLDER
    kept = folder / f"{HISTORY_FOLDER}.before-restore-{stamp}"
    if not stage.exists():
        return []
    has_present = present.exists()
    if has_present:
        present.rename(kept)
    stage.rename(present)
    sync_folder(folder)
    return [kept] if has_present else []


def present_history(folder: Path) -> Path:
    """Return the folder with the valid history. If there is a marker of an interrupted restore, the valid history
    is in the staged folder. Raise `OSError` on failure."""
    stage = folder / HISTORY_STAGE
    return stage if stage.exists() and _read_marked(folder) else folder / HISTORY_FOLDER


def forget_history(folder: Path) -> None:
    shutil.rmtree(folder / HISTORY_STAGE, ignore_errors=True)


def finish_at_start(folder: Path, now: datetime) -> None:
    """Call `finish_interrupted` for a starting hub. Raise `StartFailed` on failure."""
    try:
        kept = finish_interrupted(folder, now.strftime("%Y%m%dT%H%M%SZ"))
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise StartFailed(f"an interrupted restore cannot be finished: {reason}", os.EX_IOERR) from None
    if kept:
        log.warning("an interrupted restore is now complete; the old files are kept as %s", kept[0])


def read_present(folder: Path) -> Recovered:
    """Return the valid document without writing. If there is a marker of an interrupted restore, the staged
    document is the valid one. Raise `StartFailed` if the document is unreadable."""
    try:
        pending = _read_marked(folder)
        if pending is None:
            return read_document(folder)
        found = _read_leniently(folder)
    except OSError as error:
        raise unreadable(error) from None
    found.values = _combine(pending.values, found.values, pending.own)
    found.notes = [
        *found.notes,
        "a restore was interrupted; the next start of the hub completes it",
    ]
    return found


def _read_marked(folder: Path) -> _Pending | None:
    """Return the staged document if its marker exists, otherwise None. A staged file is always complete."""
    try:
        pending = msgspec.json.decode(read_plain(folder / PENDING, MAX_STORE_FILE_BYTES), type=_Pending)
        marker = Path(os.fsdecode(unquote_to_bytes(pending.marker)))
        is_marked = read_plain(marker, MAX_STORE_FILE_BYTES).decode() == pending.token
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return pending if is_marked else None


def read_document(folder: Path) -> Recovered:
    """Return the document in the files, without writing. Read again if a running hub compacts the files meanwhile."""
    for _ in range(TRIES - 1):
        try:
            return recover(Disk(folder), MIGRATIONS)
        except FileNotFoundError:
            if not folder.is_dir():
                return Recovered()
    return recover(Disk(folder), MIGRATIONS)


def replace_document(folder: Path, values: Mapping[str, Any], stamp: str, *, own: Iterable[str] = ()) -> list[Path]:
    """Replace the folder's document. Return the paths of the kept old files.

    Keys in `own` keep their current values. The caller must hold the folder's lock. A power cut or a failure leaves
    either the old or the new document.
    """
    disk, present = Disk(folder), _read_leniently(folder)
    old = [name for name in disk.list_names() if generations_of([name])]
    kept = {name: f"{name}.before-restore-{stamp}" for name in old}
    for name in old:
        disk.link(name, kept[name])
    encoded = _combine(values, present.values, own)
    files = DocumentFiles(disk, stamp)
    try:
        files.begin(encoded, above=max(generations_of(old), default=0), sequence=present.sequence)
    except OSError:
        _undo(disk, kept)
        raise
    files.close()
    _remove_old(disk, old)
    return [folder / name for name in kept.values()]


def _combine(values: Mapping[str, Any], present: Mapping[str, bytes], own: Iterable[str]) -> dict[str, bytes]:
    """Return the encoded values. Keys in `own` keep their values from `present`."""
    every = ((key, _encode(value)) for key, value in values.items() if key not in own)
    encoded = {key: value for key, value in every if value != b"null"}
    return encoded | {key: present[key] for key in own if key in present}


def _encode(value: Any) -> bytes:
    return bytes(value) if isinstance(value, msgspec.Raw) else to_bytes(value)


def _read_leniently(folder: Path) -> Recovered:
    """Return the folder's document, or an empty document if it is unreadable."""
    try:
        return read_document(folder)
    except (StartFailed, OSError):
        return Recovered()


def _remove_old(disk: Disk, old: Iterable[str]) -> None:
    """Remove the old document's files. The new document is valid even if some old files remain."""
    with contextlib.suppress(OSError):
        for name in old:
            disk.remove(name)
        disk.sync_folder()


def _undo(disk: Disk, kept: Mapping[str, str]) -> None:
    """Remove the incomplete new generation, beginning with its snapshot, and the copies of the old files."""
    with contextlib.suppress(OSError):
        there = disk.list_names()
        begun = [name for name in there if generations_of([name]) and name not in kept]
        for name in [*sorted(begun, reverse=True), *leftovers(there, 0), *kept.values()]:
            disk.remove(name)
