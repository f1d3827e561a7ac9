"""The history of a backup: staged beside that of the box, and put in its place once all else is restored."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from appliance.cli.archive import UNREADABLE, Archive, history_of
from appliance.cli.paths import STAGE
from appliance.errors import StartFailed
from appliance.store.atomic import sync_folder
from appliance.store.month_files import HISTORY_FOLDER


def stage_history(data_dir: Path, found: Archive) -> int:
    """Write the archive's months beside those of the box, on the device when this returns; how many there are.

    Nothing counts yet. Raises `StartFailed`; then nothing is left of it.
    """
    stage, count = data_dir / f"{HISTORY_FOLDER}{STAGE}", 0
    shutil.rmtree(stage, ignore_errors=True)
    try:
        for name, stream in history_of(found):
            stage.mkdir(mode=0o700, exist_ok=True)
            target = stage / name
            target.touch(mode=0o600)
            with target.open("wb") as written:
                shutil.copyfileobj(stream, written)
                written.flush()
                os.fsync(written.fileno())
            count += 1
        if count:
            sync_folder(stage)
    except UNREADABLE as error:
        shutil.rmtree(stage, ignore_errors=True)
        reason = getattr(error, "strerror", None) or error
        raise StartFailed(f"the history cannot be restored: {reason}; everything is as it was", os.EX_IOERR) from None
    return count


def put_history(data_dir: Path, stamp: str) -> Path | None:
    """Put what was staged in place of the box's history; where that is kept, None where there was none.

    Raises `StartFailed`.
    """
    stage, folder = data_dir / f"{HISTORY_FOLDER}{STAGE}", data_dir / HISTORY_FOLDER
    old = data_dir / f"{HISTORY_FOLDER}.before-restore-{stamp}"
    try:
        kept = old if folder.exists() else None
        if kept is not None:
            folder.rename(kept)
        stage.rename(folder)
        sync_folder(data_dir)
    except OSError as error:
        raise StartFailed(
            f"all is restored but the history: {error.strerror}; rename {stage} to {folder}", os.EX_IOERR
        ) from None
    return kept


def forget_history(data_dir: Path) -> None:
    """Remove what was staged."""
    shutil.rmtree(data_dir / f"{HISTORY_FOLDER}{STAGE}", ignore_errors=True)
