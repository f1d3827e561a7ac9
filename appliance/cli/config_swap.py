"""Replaces the configuration folder with a new folder, and keeps the old one."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
from datetime import datetime
from pathlib import Path, PurePosixPath

from appliance.errors import StartFailed
from appliance.store.disk import naming, sync_folder

log = logging.getLogger("hub")

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2

STAGE = ".restore-part"
"""The suffix of a folder that a restore has prepared or replaced."""

MARKER = ".restored"
"""A file in the restored configuration folder. The file exists until the document has been restored too."""


def write_stage(folder: Path, files: dict[PurePosixPath, bytes], stamp: str, hub_group: int) -> None:
    """Write the new folder next to the current folder, and sync it to storage."""
    stage = _stage_of(folder)
    settle_stage(folder, stamp)
    try:
        for path, data in files.items():
            target = stage / path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.touch(mode=0o600)
            with naming(target):
                target.write_bytes(data)
        _copy_ownership(stage, folder, hub_group)
        os.sync()
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise


def settle_stage(folder: Path, stamp: str) -> Path | None:
    """Remove the incomplete new folder of an interrupted restore. If the restore was interrupted after the exchange,
    keep the old folder instead, and return its path. Raise `OSError` on failure."""
    stage = _stage_of(folder)
    if not stage.exists():
        return None
    if (stage / MARKER).exists():
        for path in [*stage.iterdir()]:
            if path.name != MARKER:  # remove the marker last; without it, the rest would look like old files
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(stage)
        return None
    return stage.rename(folder.with_name(f"{folder.name}.before-restore-{stamp}-cut"))


def settle_at_start(file: Path, now: datetime) -> None:
    """Call `settle_stage` for the folder of this configuration file. The starting hub must hold the lock of its data
    directory. Log a failure, because the hub may lack write access to the parent folder."""
    folder = file.absolute().parent
    try:
        kept = settle_stage(folder, now.strftime("%Y%m%dT%H%M%SZ"))
    except OSError as error:
        reason, stage = error.strerror, _stage_of(folder)
        log.warning("an interrupted restore left %s, which cannot be removed (%s); remove it", stage, reason)
        return
    if kept is not None:
        log.warning("a restore was interrupted; the old configuration is kept as %s", kept)


def _copy_ownership(stage: Path, folder: Path, hub_group: int) -> None:
    """Give the new files the owner and mode of the replaced files, so that the hub's user can read them.

    If a file or folder replaces nothing, it gets the owner and mode of the configuration folder. Other users cannot
    read a file that replaces nothing, because it may contain secrets. If other users can read the folder, the hub's
    group gets access.
    """
    for path in [stage, *stage.rglob("*")]:
        there = folder / path.relative_to(stage)
        like = next(each for each in (there, folder, folder.parent) if each.exists()).stat()
        is_new_file = not there.exists() and not path.is_dir()
        mode = like.st_mode & (0o640 if is_new_file else 0o777)
        group = hub_group if is_new_file and like.st_mode & stat.S_IROTH else like.st_gid
        with contextlib.suppress(PermissionError):  # only root can change the owner, and no other user needs to do so
            os.chown(path, like.st_uid, group)
        path.chmod(mode)


def swap(folder: Path, old: Path) -> None:
    """Rename `folder` to `old` and the staged folder to `folder`, and sync both names to storage. Raise `OSError` on
    failure.

    `folder` exists at any time. However, if the file system cannot exchange names, a power cut may leave only `old`.
    """
    new = _stage_of(folder)
    if folder.exists():
        if _exchange(new, folder):
            try:
                sync_folder(folder.parent)
                new.rename(old)
            except OSError:
                _exchange(new, folder)
                raise
        else:
            folder.rename(old)
            new.rename(folder)
    else:
        new.rename(folder)
    sync_folder(folder.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders, and return whether that worked. Most Linux file systems support this
    exchange."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # Python builds for routers may lack ctypes

        rename = ctypes.CDLL(None, use_errno=True).renameat2
        return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)
    return False


def swap_back(folder: Path, old: Path) -> None:
    """Undo the restore, and remove the new files."""
    stage = _stage_of(folder)
    try:
        if (folder / MARKER).exists() and not stage.exists():
            folder.rename(stage)
        if old.exists() and not folder.exists():
            old.rename(folder)
    except OSError as error:
        raise StartFailed(
            f"the restore failed and could not be reversed ({error.strerror}); to get your files back, "
            f"rename {old} to {folder}",
            os.EX_IOERR,
        ) from None
    if (stage / MARKER).exists():
        shutil.rmtree(stage, ignore_errors=True)


def _stage_of(folder: Path) -> Path:
    return folder.with_name(folder.name + STAGE)
