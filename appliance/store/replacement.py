"""A document that replaces another one, together with a folder of configuration: both or neither.

The new document is put aside first. It counts from the moment on at which a marker is in the folder of configuration
that carries the same token; the next start finishes what a power cut has interrupted then, and drops it where
that had not come.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from appliance.errors import StartFailed
from appliance.store.atomic import sync_folder, write_file
from appliance.store.reading import combine, read_document, read_what_can_be, replace_document
from appliance.store.recovery import Recovered

log = logging.getLogger("store")

PENDING = "restore-pending.json"
"""The new document, with where its marker is to be and what that says."""

OWN_KEYS = "own"


def prepare(folder: Path, values: Mapping[str, Any], marker: Path, token: str, *, own: Iterable[str]) -> None:
    """Put the values aside, on the device when this returns; nothing counts yet. Raises `OSError`."""
    pending = {"token": token, "marker": os.fspath(marker), OWN_KEYS: list(own), "values": dict(values)}
    write_file(folder / PENDING, orjson.dumps(pending))


def forget(folder: Path) -> None:
    """Remove what was put aside. Raises `OSError`."""
    if (folder / PENDING).exists():
        (folder / PENDING).unlink()
        sync_folder(folder)


def finish(folder: Path, stamp: str) -> list[Path]:
    """Let what was put aside be the document if its marker is there, else remove it. The caller holds the lock.

    The paths under which the old files are kept. Raises `OSError`; it can be called again then.
    """
    pending = _read_pending(folder)
    if pending is None:
        return []
    kept = []
    if _is_marked(pending):
        kept = replace_document(folder, pending["values"], stamp, own=pending[OWN_KEYS])
    forget(folder)
    return kept


def finish_at_start(folder: Path, now: datetime) -> None:
    """The same for a hub that starts; raises `StartFailed`."""
    try:
        kept = finish(folder, now.strftime("%Y%m%dT%H%M%SZ"))
    except OSError as error:
        raise StartFailed(f"a restore that was cut off cannot be finished: {error}", os.EX_IOERR) from None
    if kept:
        log.warning("a restore that was cut off is finished; what was there is kept as %s", kept[0])


def read_present(folder: Path) -> Recovered:
    """The document that counts now, without writing: that of a restore that was cut off, if its marker is there.

    Raises what `read_document` raises.
    """
    pending = _read_pending(folder)
    if pending is None or not _is_marked(pending):
        return read_document(folder)
    found = read_what_can_be(folder)
    found.values = combine(pending["values"], found.values, pending[OWN_KEYS])
    found.notes = [*found.notes, "a restore was cut off behind its last step; the next start of the hub finishes it"]
    return found


def _read_pending(folder: Path) -> dict[str, Any] | None:
    """What was put aside, if anything was that is ours: what we write is whole."""
    try:
        pending: dict[str, Any] = orjson.loads((folder / PENDING).read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None
    return pending


def _is_marked(pending: Mapping[str, Any]) -> bool:
    try:
        return bool(Path(pending["marker"]).read_text() == pending["token"])
    except FileNotFoundError:
        return False
