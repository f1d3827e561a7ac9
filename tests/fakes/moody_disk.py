"""A disk on a real folder that refuses everything while it is in the mood to."""

from __future__ import annotations

import os
from pathlib import Path

from appliance.store.disk import Disk


class MoodyDisk(Disk):
    """Fails every change with the error number `mood` while it is not None; reading works always."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.mood: int | None = None

    def create(self, name: str) -> int:
        self._ask()
        return super().create(name)

    def open(self, name: str) -> int:
        self._ask()
        return super().open(name)

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        self._ask()
        super().write(descriptor, data, offset)

    def sync(self, descriptor: int) -> None:
        self._ask()
        super().sync(descriptor)

    def sync_folder(self, below: str = "") -> None:
        self._ask()
        super().sync_folder(below)

    def make_folder(self, name: str) -> None:
        self._ask()
        super().make_folder(name)

    def truncate(self, descriptor: int, length: int) -> None:
        self._ask()
        super().truncate(descriptor, length)

    def rename(self, old: str, new: str) -> None:
        self._ask()
        super().rename(old, new)

    def remove(self, name: str) -> None:
        self._ask()
        super().remove(name)

    def _ask(self) -> None:
        if self.mood is not None:
            raise OSError(self.mood, os.strerror(self.mood))
