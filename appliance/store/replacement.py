"""A document that replaces another one, together with a folder of configuration: both or neither.

The new document is put aside first. It counts from the moment on at which a marker is in the folder of configuration
that carries the same token; whoever starts next finishes what a power cut has interrupted then, and forgets what had
not come so far.
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
from appliance.store.reading import replace_document

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
    """Let what was put aside be the document if its marker is there, else forget it; for who holds the folder's lock.

    The paths under which the old files are kept. Raises `OSError`; it can be called again then.
    """
    try:
        pending = orjson.loads((folder / PENDING).read_bytes())
    except FileNotFoundError:
        return []
    except orjson.JSONDecodeError:  # not ours: what we write is whole
        return []
    kept = []
    if _is_marked(Path(pending["marker"]), pending["token"]):
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


def _is_marked(marker: Path, token: str) -> bool:
    try:
        return marker.read_text() == token
    except FileNotFoundError:
        return False
