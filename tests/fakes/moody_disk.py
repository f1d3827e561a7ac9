"""A disk on a real folder that refuses everything while it is in the mood to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from appliance.store.disk import Disk

CHANGING = ("create", "open", "write", "sync", "sync_folder", "make_folder", "truncate", "rename", "remove")


class MoodyDisk(Disk):
    """Fails every change with the error number `mood` while it is not None; reading works always."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.mood: int | None = None

    def __getattribute__(self, name: str) -> Any:
        if name in CHANGING and self.mood is not None:
            return self._refuse
        return super().__getattribute__(name)

    def _refuse(self, *_: object) -> None:
        assert self.mood is not None
        raise OSError(self.mood, os.strerror(self.mood))
