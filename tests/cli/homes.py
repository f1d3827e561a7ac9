"""Homes on disk, and archives of their backups."""

from __future__ import annotations

import io
import json
import tarfile
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from appliance.cli import archive
from appliance.store.restore import read_document, replace_document
from tests.cli.commands import KEY, LOOPBACK, box
from tests.fakes.lua import write

HOME: Mapping[str, Any] = {
    "room/kitchen": {"name": "Kitchen"},
    "group/all": {"name": "All", "members": ["lamp:light:0"]},
    "place/lamp:light:0": "kitchen",
    "device/lamp:light:0": {"kind": "Light", "source": "lamp", "vendor_specific": {}},
    "state/lamp:light:0": {"at": 1767225600000, "is": {"power": "on"}},
}
CARD = {"bytes_written": 7, "syncs": 3, "since": "2026-01-01T00:00:00.000Z"}
PAGE = {"kind": "lares-backup", "format": 1, "version": "1", "created_at": "2026-01-01", "main": "default.toml"}
BERLIN = '[locale]\ntimezone = "Europe/Berlin"\nlatitude = 52.52\nlongitude = 13.40\n'


def ask(url: str, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(url + path, data=data, headers=headers, method=method), timeout=30
    ) as answer:
        return json.loads(answer.read() or b"null")


def home(folder: Path, values: Mapping[str, Any] = HOME, text: str = LOOPBACK) -> Path:
    """Create a data directory and a configuration with this content, without a running hub."""
    box(folder, text)
    (folder / "data").mkdir(mode=0o700, exist_ok=True)
    replace_document(folder / "data", values, "before")
    for file in (folder / "data").glob("*.before-restore-*"):
        file.unlink()
    return folder


def stored_values(folder: Path) -> dict[str, Any]:
    return {key: orjson.loads(value) for key, value in read_document(folder / "data").values.items()}


def everything(folder: Path) -> dict[str, bytes]:
    """Return all files of the box with their bytes, except the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        return {each.name: (tar.extractfile(each) or io.BytesIO()).read() for each in tar}


def pack(file: Path, entries: Mapping[str, bytes], change: Callable[[tarfile.TarFile], None] | None = None) -> Path:
    """Write an archive with these members and changes."""
    with tarfile.open(file, "w:gz") as tar:
        for name, data in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        if change is not None:
            change(tar)
    return file


def entries(page: Mapping[str, Any] = PAGE, state: Any = HOME) -> dict[str, bytes]:
    result = {
        archive.MANIFEST_FILE: json.dumps(page),
        archive.STATE_FILE: json.dumps(state),
        "config/default.toml": LOOPBACK,
    }
    return {name: text.encode() for name, text in result.items()}


def furnish(folder: Path, text: str, *automations: str) -> Path:
    """Create a box with this configuration and these automations."""
    box(folder, LOOPBACK + text)
    return write(folder, {f"automations/{number}.lua": each for number, each in enumerate(automations)})


def image(folder: Path) -> Mapping[str, Any]:
    """Return the contents of the folder with their modification times."""
    files = [file for file in sorted(folder.rglob("*")) if file.name not in ("out", "err")]
    return {
        str(file): (file.stat().st_mtime_ns, file.stat().st_mode, file.is_file() and file.read_bytes())
        for file in files
        if not file.name.endswith((".out", ".err", ".log"))
    }
