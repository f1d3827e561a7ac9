"""The document from outside a hub: read while one may be running, or replaced while none is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from appliance.errors import StartFailed
from appliance.store import names
from appliance.store.disk import Disk
from appliance.store.files import MIGRATIONS, Files
from appliance.store.recovery import Recovered, recover

TRIES = 50
"""How often a document is read again whose hub has just begun another generation."""


def read_document(folder: Path) -> Recovered:
    """The document as its files hold it now; read again where a hub compacts meanwhile. Nothing is written."""
    for _ in range(TRIES - 1):
        try:
            return recover(Disk(folder), MIGRATIONS)
        except FileNotFoundError:
            if not folder.is_dir():
                return Recovered()
    return recover(Disk(folder), MIGRATIONS)


def replace_document(folder: Path, values: Mapping[str, Any], stamp: str, *, own: Iterable[str] = ()) -> list[Path]:
    """Put a document with these values in place of the folder's; the paths under which the old files are kept.

    Values of the keys in `own` stay as they are in the folder. Only for who holds the folder's lock. A power cut or a
    failure leaves the old document or the new one.
    """
    disk, present = Disk(folder), read_what_can_be(folder)
    old = [name for name in disk.list_names() if names.generations([name])]
    kept = {name: f"{name}.before-restore-{stamp}" for name in old}
    for name in old:
        disk.link(name, kept[name])
    encoded = combine(values, present.values, own)
    files = Files(disk, stamp)
    try:
        files.begin(encoded, above=max(names.generations(old), default=0), sequence=present.sequence)
    except OSError:
        _undo(disk, kept)
        raise
    files.close()
    _remove_old(disk, old)
    return [folder / name for name in kept.values()]


def combine(values: Mapping[str, Any], present: Mapping[str, bytes], own: Iterable[str]) -> dict[str, bytes]:
    """The values, encoded; those of the keys in `own` as they are at present."""
    encoded = {key: orjson.dumps(value) for key, value in values.items() if value is not None and key not in own}
    return encoded | {key: present[key] for key in own if key in present}


def read_what_can_be(folder: Path) -> Recovered:
    """The folder's document; an empty one where it is damaged beyond recovery or of another Lares."""
    try:
        return read_document(folder)
    except (StartFailed, OSError):
        return Recovered()


def _remove_old(disk: Disk, old: Iterable[str]) -> None:
    """Remove the files of the old document; the new one counts whether they go or not."""
    with contextlib.suppress(OSError):
        for name in old:
            disk.remove(name)
        disk.sync_folder()


def _undo(disk: Disk, kept: Mapping[str, str]) -> None:
    """Remove the generation that could not begin, its snapshot first, and the old files' second names."""
    with contextlib.suppress(OSError):
        there = disk.list_names()
        begun = [name for name in there if names.generations([name]) and name not in kept]
        for name in [*sorted(begun, reverse=True), *names.leftovers(there, 0), *kept.values()]:
            disk.remove(name)
