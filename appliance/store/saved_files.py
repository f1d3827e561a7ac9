"""Saves configuration files while the hub runs, and keeps their previous texts.

A save replaces the file atomically, so a power cut leaves either the old or the new text. Before each save, the
previous text is stored as a version in the data directory: `versions/<percent-encoded path>.<number>.<milliseconds
since 1970>`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from errno import ENOSPC
from urllib.parse import quote

from msgspec import Struct

from appliance.clock import from_millis, to_millis
from appliance.store.disk import PART, Disk

VERSIONS_FOLDER = "versions"

MAX_SAVED_BYTES = 256 << 10
"""Maximum size of a saved text."""

MAX_VERSIONS = 20
"""Maximum number of versions per file."""

MAX_VERSIONS_BYTES = 8 << 20
"""Maximum total size of all versions. The oldest versions are removed first."""

MIN_FREE_AFTER_SAVE_BYTES = 1 << 20
"""Free space in bytes that must remain after a save, for the home's state."""

MAX_SLUG_BYTES = 200
"""Maximum length of an encoded path, or of another file's name, in a file name. A longer text is replaced with its
SHA-256, because file names are limited to 255 bytes."""


class FileVersion(Struct, frozen=True, kw_only=True):
    """A previous text of a file. `n` starts at 1. `saved_at` is the time when the next text replaced this text."""

    n: int
    saved_at: datetime
    size: int
    name: str


class VersionFailed(OSError):
    """Raised if a previous text cannot be stored as a version. `filename` is the folder of the versions."""


class SavedFiles:
    """Saves and deletes files in the folder of `home`, and keeps their previous texts in the folder of `data`.

    Methods block, and can raise `OSError`. Only one thread at a time may call methods.
    """

    def __init__(self, home: Disk, data: Disk) -> None:
        self._home = home
        self._data = data

    def save(self, path: str, text: bytes, at: datetime, *, previous: bytes | None, is_new: bool) -> None:
        """Save the text. Return after the text is durable. Store `previous`, if given, as a version."""
        _check_room(self._home, len(text))
        if previous is not None:
            self._keep(path, previous, at)
        _replace(self._home, path, text, like=_folder_of(path) if is_new else path)

    def make_folders(self, path: str) -> None:
        """Create the parent folders of the file."""
        parts = _folder_of(path).split("/")
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count])
            self._home.make_folder(folder, like=_folder_of(folder))
            self._home.sync_folder(_folder_of(folder))

    def delete(self, path: str, at: datetime, *, previous: bytes) -> None:
        """Delete the file, and store `previous` as a version."""
        self._keep(path, previous, at)
        with _put_back_on_failure(self._home, path):
            self._home.remove(path)

    def list_versions(self, path: str) -> list[FileVersion]:
        """Return the versions of the file, newest first."""
        slug = _slug_of(path)
        return [each for name, each in self._list_all() if name == slug][::-1]

    def read_version(self, version: FileVersion) -> bytes:
        return self._data.read(f"{VERSIONS_FOLDER}/{version.name}")

    def _keep(self, path: str, text: bytes, at: datetime) -> None:
        """Store the text as a version. Do nothing if the newest version already has the same text, for example
        after an interrupted save. Raise `VersionFailed` on failure."""
        try:
            self._data.check_folder()
            self._add_version(path, text, at)
        except OSError as error:
            folder = self._data.folder / VERSIONS_FOLDER
            raise VersionFailed(error.errno, error.strerror, str(folder)) from None

    def _add_version(self, path: str, text: bytes, at: datetime) -> None:
        versions = self.list_versions(path)
        if versions and self.read_version(versions[0]) == text:
            return
        _check_room(self._data, len(text))
        n = versions[0].n + 1 if versions else 1
        self._data.make_folder(VERSIONS_FOLDER)
        self._data.sync_folder()
        name = f"{_slug_of(path)}.{n}.{to_millis(at)}"
        _replace(self._data, f"{VERSIONS_FOLDER}/{name}", text)
        with suppress(OSError):  # the next save tries again to remove these versions
            self._remove_surplus(path)

    def _remove_surplus(self, path: str) -> None:
        """Remove versions above the limits, but keep the file's newest version."""
        versions = self.list_versions(path)
        surplus = {each.name for each in versions[MAX_VERSIONS:]}
        every = sorted((each for _, each in self._list_all()), key=lambda each: each.saved_at)
        room = MAX_VERSIONS_BYTES - sum(each.size for each in every if each.name not in surplus)
        for each in every:
            if room < 0 and each.name not in surplus and each.name != versions[0].name:
                surplus.add(each.name)
                room += each.size
        for name in sorted(surplus):
            self._data.remove(f"{VERSIONS_FOLDER}/{name}")
        if surplus:
            self._data.sync_folder(VERSIONS_FOLDER)

    def _list_all(self) -> list[tuple[str, FileVersion]]:
        """Return the versions of all files with their encoded paths, sorted by path and number."""
        try:
            names = self._data.list_names(VERSIONS_FOLDER)
        except FileNotFoundError:
            return []
        found = []
        for name in names:
            with suppress(ValueError, OverflowError, FileNotFoundError):
                slug, n, millis = name.rsplit(".", 2)
                size = self._data.size(f"{VERSIONS_FOLDER}/{name}")
                version = FileVersion(n=int(n), saved_at=from_millis(int(millis)), size=size, name=name)
                found.append((slug, version))
        return sorted(found, key=lambda each: (each[0], each[1].n))


def _replace(disk: Disk, name: str, text: bytes, like: str | None = None) -> None:
    """Write or replace the file, with the mode and owner of `like`."""
    part = _hidden(name, PART)
    try:
        disk.write_synced(part, text, like)
        with _put_back_on_failure(disk, name):
            disk.rename(part, name)
    except OSError:
        with suppress(OSError):
            disk.remove(part)
        raise


def _check_room(disk: Disk, count: int) -> None:
    if disk.free_bytes() - count < MIN_FREE_AFTER_SAVE_BYTES:
        raise OSError(ENOSPC, os.strerror(ENOSPC))


@contextmanager
def _put_back_on_failure(disk: Disk, name: str) -> Iterator[None]:
    """Sync the folder after the context has changed the file. If the sync fails, restore the file."""
    kept, is_there = _hidden(name, f".old{PART}"), True
    disk.remove(kept)
    try:
        disk.link(name, kept)
    except FileNotFoundError:
        is_there = False
    try:
        yield
        disk.sync_folder(_folder_of(name))
    except OSError:
        with suppress(OSError):
            if is_there:
                disk.rename(kept, name)
            else:
                disk.remove(name)
        raise
    finally:
        with suppress(OSError):
            disk.remove(kept)


def _hidden(name: str, ending: str) -> str:
    """Return the name of a hidden file in the same folder."""
    folder, _, last = name.rpartition("/")
    if len(last.encode()) > MAX_SLUG_BYTES:
        last = _digest(last)
    return f"{folder}/.{last}{ending}".lstrip("/")


def is_version(name: str) -> bool:
    """Return whether a file in the versions folder is a complete version."""
    slug, _, rest = name.partition(".")
    return bool(slug and rest) and not name.endswith(PART) and "/" not in name


def merge_versions(data: Disk, versions: Mapping[str, bytes]) -> None:
    """Add the versions from a backup. `versions` maps file names to contents. Existing versions do not change. Raise
    `OSError` on failure."""
    if not versions:
        return
    data.make_folder(VERSIONS_FOLDER)
    data.sync_folder()
    present = {*data.list_names(VERSIONS_FOLDER)}
    for name, text in versions.items():
        if name not in present:
            _replace(data, f"{VERSIONS_FOLDER}/{name}", text)


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _slug_of(path: str) -> str:
    slug = quote(path, safe="")
    return slug if len(slug) <= MAX_SLUG_BYTES else _digest(path)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
