"""A disk on a real folder that refuses operations on request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from appliance.store.disk import Disk

CHANGING = ("create", "open", "write", "sync", "sync_folder", "make_folder", "truncate", "rename", "remove")


class MoodyDisk(Disk):
    """After the first `takes` changes, all changes of this disk fail with the error number `mood`. If `mood` is
    None, no change fails."""

    def __init__(
        self, folder: Path, mood: int | None = None, takes: int = 0, changes: tuple[str, ...] = CHANGING
    ) -> None:
        super().__init__(folder)
        self.mood = mood
        self._takes = takes
        self._changes = changes

    def __getattribute__(self, name: str) -> Any:
        if name in CHANGING and self.mood is not None and name in self._changes:
            if self._takes == 0:
                return self._refuse
            self._takes -= 1
        return super().__getattribute__(name)

    def _refuse(self, *_: object) -> None:
        assert self.mood is not None
        raise OSError(self.mood, os.strerror(self.mood), str(self.folder))
