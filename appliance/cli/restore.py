"""`lares restore`: restores a backup, and keeps the replaced files."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from appliance.cli import archive
from appliance.cli.archive import UNREADABLE, Archive, history_of
from appliance.cli.config_swap import MARKER, swap, swap_back, write_stage
from appliance.cli.configured_master_key import decode, key_of, with_key, without_key
from appliance.cli.named_files import reading
from appliance.cli.owner import as_owner, become_owner_of_both
from appliance.cli.paths import HubPaths, config_folder, make_data_dir
from appliance.cli.terminal import counted, progress, say
from appliance.clock import Clock
from appliance.config import MAX_CONFIG_BYTES
from appliance.errors import ConfigFailed, StartFailed
from appliance.store.disk import Disk, reason_of
from appliance.store.lock import DirectoryLock
from appliance.store.month_files import HISTORY_FOLDER
from appliance.store.record_keys import CARD, MASTER_KEY
from appliance.store.restore import (
    HISTORY_STAGE,
    finish_interrupted,
    forget_document,
    forget_history,
    place_history,
    place_staged_document,
    replace_document,
    stage_document,
    stage_history,
)
from appliance.store.saved_files import merge_versions
from appliance.tables.plain_files import read_plain

OWN = (CARD, MASTER_KEY)
"""Keys of this machine that a restore preserves."""


def restore(arguments: argparse.Namespace) -> int:
    """Restore the archive. Raise `StartFailed` while a hub uses the data directory."""
    with archive.opened(Path(arguments.file)) as found:
        return _restore(arguments, found)


def _restore(arguments: argparse.Namespace, found: Archive) -> int:
    paths = HubPaths.of_process(arguments)
    file, data_dir = paths.find_config(is_new=True), paths.find_data_dir()
    become_owner_of_both(file, data_dir)
    files = _files_for(file, found)
    with as_owner(data_dir):
        make_data_dir(data_dir)
        lock = DirectoryLock(data_dir, is_brief=True)
    try:
        with progress(f"restoring {arguments.file}"):
            kept, months = _restore_all(file, files, data_dir, found)
    finally:
        lock.release()
    say(f"restored the backup of {found.created_at}: {len(found.values)} entries, {len(found.files)} files{months}")
    for path in kept:
        say(f"the replaced files are kept as {path}")
    return os.EX_OK


def _restore_all(
    file: Path, files: dict[PurePosixPath, bytes], data_dir: Path, found: Archive
) -> tuple[list[Path], str]:
    """Replace the configuration, the document and, if the archive contains it, the history.

    1. Finish an earlier restore that was interrupted.
    2. Stage the history and the document.
    3. Swap the configuration folder. From this commit on, the next start completes an interrupted restore.
    4. Place the document and the history.
    5. Remove the marker.

    If no configuration file is restored, there is no folder to swap, and placing the document commits the restore.
    Return the paths of the replaced files, and a sentence about the history.
    """
    stamp = _free_stamp(data_dir, file.parent.parent)
    with _filesystem_errors(data_dir), as_owner(data_dir):
        finish_interrupted(data_dir, stamp)
    with _filesystem_errors(file.parent):
        # a start that finishes a restore leaves the marker; with the marker, the old files would look like new ones
        (file.parent / MARKER).unlink(missing_ok=True)
    with as_owner(data_dir):
        count = _stage_history(data_dir, found)
    try:
        kept = _replace(file, files, data_dir, found, stamp)
    except Exception:
        with as_owner(data_dir):
            forget_history(data_dir)
        raise
    with as_owner(data_dir):
        kept += _place_history(data_dir, stamp)
        forget_document(data_dir)
    (file.parent / MARKER).unlink(missing_ok=True)
    with as_owner(data_dir):
        _merge_versions(data_dir, found.versions)
    return kept, f", {counted(count, 'month')} of history" if count else ""


def _files_for(file: Path, found: Archive) -> dict[PurePosixPath, bytes]:
    """Return the new configuration files. The main file gets the name that it has on this machine. If the archive
    has no main file, keep this machine's main file."""
    config_folder(file)
    files, main = dict(found.files), PurePosixPath(file.name)
    restored = files.pop(PurePosixPath(found.main), None)
    present = _read_present(file)
    if restored is None:
        return files if present is None else {**files, main: present}
    key = _present_key(file, present)
    name = f"{found.main} in the backup"
    try:
        text = restored.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StartFailed(f"{name} is not UTF-8 text; nothing was restored", os.EX_DATAERR) from None
    return {**files, main: (without_key(text, name) if key is None else with_key(text, key, name)).encode()}


def _read_present(file: Path) -> bytes | None:
    with reading(file), contextlib.suppress(FileNotFoundError):
        return read_plain(file, MAX_CONFIG_BYTES)
    return None


def _present_key(file: Path, present: bytes | None) -> str | None:
    if present is None:
        return None
    try:
        return key_of(decode(present, file), str(file))
    except ConfigFailed as failed:
        raise StartFailed(
            failed.lines[0],
            os.EX_CONFIG,
            *failed.lines[1:],
            "nothing was restored, because the master key in this file is unreadable; correct or move the file",
        ) from None


def _replace(file: Path, files: dict[PurePosixPath, bytes], data_dir: Path, found: Archive, stamp: str) -> list[Path]:
    """Replace configuration and document together. Return the paths of the replaced files."""
    with _filesystem_errors(data_dir):
        if files:
            return _replace_both(file.parent, files, data_dir, found.values, stamp)
        with as_owner(data_dir):
            return replace_document(data_dir, found.values, stamp, own=OWN)


def _free_stamp(*folders: Path) -> str:
    """Return the current time in the form for file names. If an earlier restore used the same time, append a
    number."""
    now = Clock().now().strftime("%Y%m%dT%H%M%SZ")
    stamps = itertools.chain([now], (f"{now}-{number}" for number in itertools.count(2)))
    return next(
        stamp for stamp in stamps if not any(any(each.glob(f"*.before-restore-{stamp}*")) for each in folders)
    )


def _replace_both(
    folder: Path, files: dict[PurePosixPath, bytes], data_dir: Path, values: Mapping[str, Any], stamp: str
) -> list[Path]:
    """Replace the configuration folder, then the document. As soon as the folder is replaced, the new document and
    history are valid."""
    old, token = folder.with_name(f"{folder.name}.before-restore-{stamp}"), secrets.token_hex(16)
    kept = [old] if folder.exists() else []
    marker = PurePosixPath(MARKER)
    # The marker is the first file, so that the next restore recognizes an incomplete stage and removes it.
    staged = {marker: token.encode()} | {path: data for path, data in files.items() if path != marker}
    write_stage(folder, staged, stamp, data_dir.stat().st_gid)
    try:
        with as_owner(data_dir):
            stage_document(data_dir, values, folder / MARKER, token, own=OWN)
        swap(folder, old)
        with as_owner(data_dir):
            kept += place_staged_document(data_dir, stamp) or []
    # Ctrl-C has the same effect as a kill. The next start finishes the restore if the folder was replaced, and
    # otherwise discards it.
    except Exception:
        swap_back(folder, old)
        with as_owner(data_dir):
            forget_document(data_dir)
        raise
    return kept


def _stage_history(data_dir: Path, found: Archive) -> int:
    """Stage the history. Raise `StartFailed` if the archive is damaged or the disk is full."""
    try:
        return stage_history(data_dir, history_of(found))
    except UNREADABLE as error:
        parts = (error.filename, error.strerror) if isinstance(error, OSError) else ()
        reason = ": ".join(map(str, filter(None, parts))) or error
        raise StartFailed(f"the history cannot be restored: {reason}; nothing was changed", os.EX_IOERR) from None


def _place_history(data_dir: Path, stamp: str) -> list[Path]:
    """Replace the history. Raise `StartFailed` on failure; configuration and document are already restored."""
    try:
        return place_history(data_dir, stamp)
    except OSError as error:
        stage, folder = data_dir / HISTORY_STAGE, data_dir / HISTORY_FOLDER
        raise StartFailed(
            f"the history was not restored ({error.strerror}); everything else was restored; to restore the history, "
            f"rename {stage} to {folder}",
            os.EX_IOERR,
        ) from None


def _merge_versions(data_dir: Path, versions: Mapping[str, bytes]) -> None:
    """Restore the previous texts of files. Raise `StartFailed` on failure; everything else is already restored."""
    try:
        merge_versions(Disk(data_dir), versions)
    except OSError as error:
        raise StartFailed(
            f"the versions of files were not restored ({error.filename or data_dir}: {error.strerror}); everything "
            "else was restored",
            os.EX_IOERR,
        ) from None


@contextlib.contextmanager
def _filesystem_errors(folder: Path) -> Iterator[None]:
    """Convert `OSError` to `StartFailed`. If the error names no path, name the folder."""
    try:
        yield
    except OSError as error:
        needs = f" (user {os.geteuid()}, the owner of this home, needs write access there)"
        why = f"{reason_of(error)}{needs if isinstance(error, PermissionError) else ''}"
        where = error.filename or folder
        raise StartFailed(f"cannot restore: {where}: {why}; nothing was changed", os.EX_IOERR) from None
