"""Two folders that change places in one step, where the system can do that."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from appliance.store.atomic import sync_folder

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def swap(new: Path, folder: Path, old: Path) -> None:
    """Put the new folder in the place of the folder, and that under the name `old`; on the device when this returns.

    At no time there is none in that place, unless the file system cannot exchange names: then a cut may leave the
    folder under its old name. Raises `OSError`.
    """
    if folder.exists():
        if _exchange(new, folder):
            sync_folder(folder.parent)
            new.rename(old)
        else:
            folder.rename(old)
            new.rename(folder)
    else:
        new.rename(folder)
    sync_folder(folder.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Whether the two have exchanged their names: Linux can, since 3.15, on most file systems."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # OpenWrt's Python may come without it

        rename = ctypes.CDLL(None, use_errno=True).renameat2
        return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)
    return False
