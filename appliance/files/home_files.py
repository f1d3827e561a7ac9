"""Lists, reads, saves, and deletes the home's Lua files and configuration, and keeps previous texts."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime
from errno import EACCES, EPERM
from functools import partial
from typing import Any

from msgspec import Struct, convert

from appliance.clock import Clock, from_millis
from appliance.computing import compute_alone
from appliance.config import Config
from appliance.errors import Fault, FileChanged, Invalid, InvalidFile, NotFound, StoreFailed, TooLarge
from appliance.files import toml_secrets
from appliance.files.file_checks import FILES_THREAD, CheckedText, FileChecks, first_faults
from appliance.files.file_locations import PERMISSION_HINT, FileLocation, FileLocations
from appliance.files.secret_settings import secret_tester
from appliance.lua.files.folder import MAX_FOLDER_BYTES
from appliance.lua.files.reload import Reloaded
from appliance.store.disk import Disk, reason_of
from appliance.store.record_keys import VERSION_KEY
from appliance.store.records import read_one, skip
from appliance.store.saved_files import MAX_SAVED_BYTES, FileVersion, SavedFiles, VersionFailed
from appliance.store.storage import Storage
from appliance.tables.fields import line_at
from appliance.tables.toml_lines import line_finder
from appliance.tasks import Tasks


class _VersionKey(Struct, frozen=True):
    key: str


log = logging.getLogger("files")


class FileEntry(Struct, frozen=True, kw_only=True):
    """A file in a list. `version` changes with the content."""

    path: str
    kind: str
    size: int
    modified_at: datetime
    version: str


class FileText(Struct, frozen=True, kw_only=True):
    """The text of a file, with secrets hidden."""

    path: str
    text: str
    version: str


class SavedFile(Struct, frozen=True, kw_only=True):
    """The result of a save."""

    path: str
    version: str
    warnings: tuple[Fault, ...]


class HomeFiles:
    """The files of the home. Saves and deletions run one after another, and finish even if the caller is cancelled.

    - `run`: executes work on the thread that writes to storage.
    - `reload_valid`: for each kind of file, reloads the valid files and keeps the loaded definitions of faulty files.
    - `secret_settings`: returns the secret settings of Lua kinds by section.
    """

    def __init__(
        self,
        config: Config,
        data: Disk,
        checks: FileChecks,
        clock: Clock,
        storage: Storage,
        *,
        run: Callable[[Callable[[], Any]], Awaitable[Any]],
        reload_valid: Mapping[str, Callable[[], Awaitable[Reloaded]]],
        secret_settings: Callable[[], Mapping[str, frozenset[str]]],
    ) -> None:
        self.checks = checks
        self.locations = FileLocations(config)
        self._saved = SavedFiles(Disk(config.root), data)
        self._clock = clock
        self._storage = storage
        self._run = run
        self._reload_valid = reload_valid
        self._secret_settings = secret_settings
        self._lock = asyncio.Lock()
        self._tasks = Tasks()
        self._key = b""

    async def __aenter__(self) -> HomeFiles:
        kept = read_one(self._storage, VERSION_KEY, lambda value: convert(value, _VersionKey), skip)
        if kept is None:
            kept = _VersionKey(key=secrets.token_hex(16))
            await self._store_key(kept.key)
        self._key = kept.key.encode()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    async def _store_key(self, key: str) -> None:
        """Store the key at once, so that the versions stay the same after a power cut. If the card rejects the key,
        store it with the next flush."""
        try:
            await self._storage.put_many({VERSION_KEY: {"key": key}})
        except StoreFailed as error:
            log.debug("%s", error)
            self._storage.put_later(VERSION_KEY, {"key": key})

    async def list_files(self) -> list[FileEntry]:
        """Return all files, sorted by path."""
        return await asyncio.to_thread(lambda: sorted(self._entries(), key=lambda each: each.path))

    async def read(self, path: str) -> FileText:
        """Return the file's text. Raise `NotFound` for an unknown path."""
        location, data = await self._find(path)
        return FileText(
            path=location.path,
            text=await compute_alone(FILES_THREAD, self._shown, location, data),
            version=self._version_of(data),
        )

    async def check(self, path: str, text: str) -> CheckedText:
        """Return the faults and warnings of a new text for the file, without writing it."""
        location = self.locations.get(path)
        faults, full = await self._with_secrets(location, _encode(text))
        return await self.checks.check(location, full) if not faults else CheckedText(errors=faults)

    async def exists(self, path: str) -> bool:
        """Return whether the path exists as a file, a folder, or a link."""
        return await asyncio.to_thread(os.path.lexists, self.locations.get(path).file)

    async def with_secrets(self, path: str, text: str) -> str:
        """Replace the marks in the text with the stored secrets."""
        return (await self._with_secrets(self.locations.get(path), _encode(text)))[1].decode()

    async def save(self, path: str, text: str, version: str | None = None) -> SavedFile:
        """Save the text if it has no faults, and reload the file's catalog.

        Raise `InvalidFile` for faults, `FileChanged` if the file no longer has the `version`, or `StoreFailed`.
        """
        location, data = self.locations.get(path), _encode(text)
        return await self._tasks.finish(self._save(location, lambda _: data, version), f"save of {path}")

    async def change_config(self, change: Callable[[str], str], version: str | None) -> SavedFile:
        """Apply `change` to the configuration's text, including its secrets, and save the result. Raise the
        exceptions of `save`."""
        location = self.locations.get(self.locations.config_path)

        def apply(before: bytes | None) -> bytes:
            return _encode(change(_text_of(location, before)))

        return await self._tasks.finish(self._save(location, apply, version), f"change of {location.path}")

    async def read_config(self) -> tuple[str, str, str]:
        """Return the configuration's text with secrets, its text without secrets, and its version."""
        location = self.locations.get(self.locations.config_path)
        data = await asyncio.to_thread(location.read) or b""
        shown = await compute_alone(FILES_THREAD, self._shown, location, data)
        return _text_of(location, data), shown, self._version_of(data)

    async def delete(self, path: str) -> None:
        """Delete the file. The versions of the file are kept, and the file's last text becomes one more version.
        Raise `NotFound` or `StoreFailed` on failure."""
        location = self.locations.get(path)
        await self._tasks.finish(self._delete(location), f"deletion of {path}")

    async def list_versions(self, path: str) -> list[FileVersion]:
        """Return the previous texts of the file, newest first.

        Raise `NotFound` if neither the file nor a version exists.
        """
        found: list[FileVersion] = await self._run(partial(self._saved.list_versions, path))
        if not found:
            await self._find(path)
        return found

    async def read_version(self, path: str, n: int) -> str:
        """Return the text of the saved version with this number. Raise `NotFound` if there is no such version."""
        found: list[FileVersion] = await self._run(partial(self._saved.list_versions, path))
        version = next((each for each in found if each.n == n), None)
        if version is None:
            raise NotFound("version", f"{path} {n}")
        data: bytes = await self._run(partial(self._saved.read_version, version))
        return data.decode(errors="replace")

    async def _save(
        self, location: FileLocation, change: Callable[[bytes | None], bytes], version: str | None
    ) -> SavedFile:
        async with self._lock:
            before = await asyncio.to_thread(location.read)
            self._require_version(location, before, version)
            faults, full = await self._with_secrets(location, await compute_alone(FILES_THREAD, change, before))
            checked = CheckedText(errors=faults) if faults else await self.checks.check(location, full)
            if checked.errors:
                raise InvalidFile(location.path, checked.errors)
            await self._require_room(location, len(full) - len(before or b""))
            if full != before:
                await self._write(location, partial(self._replace, location, full, before, version))
                log.info("saved %s", location.path)
            done = await self._reload(location)
            waiting = () if done is None else done.next_start
            later = [_at_next_start(location, full, each) for each in waiting]
            warnings = (*checked.warnings, *later)
            return SavedFile(path=location.path, version=self._version_of(full), warnings=warnings)

    async def _delete(self, location: FileLocation) -> None:
        async with self._lock:
            _, data = await self._find(location.path)
            kept = (await compute_alone(FILES_THREAD, self._shown, location, data)).encode()
            await self._write(location, partial(self._saved.delete, location.path, self._clock.now(), previous=kept))
            log.info("deleted %s", location.path)
            await self._reload(location)

    def _replace(self, location: FileLocation, full: bytes, before: bytes | None, version: str | None) -> None:
        """Replace the file if it did not change during the check. Call this method on the thread that writes to
        storage."""
        present = location.read()
        if present != before:
            self._require_version(location, present, version)
        kept = None if present is None else self._shown(location, present).encode()
        if present is None:
            self._saved.make_folders(location.path)
        self._saved.save(location.path, full, self._clock.now(), previous=kept, is_new=present is None)

    async def _write(self, location: FileLocation, work: Callable[[], None]) -> None:
        try:
            await self._run(work)
        except OSError as error:
            hint = PERMISSION_HINT if error.errno in (EACCES, EPERM) else ""
            what = f"{location.path} cannot be written"
            if isinstance(error, VersionFailed):
                what = f"the previous text of {location.path} cannot be stored in {error.filename}"
            raise StoreFailed(f"{what}: {reason_of(error)}; nothing was changed{hint}") from None

    async def _reload(self, location: FileLocation) -> Reloaded | None:
        reload = self._reload_valid.get(location.kind)
        return None if reload is None else await reload()

    async def _require_room(self, location: FileLocation, added_bytes: int) -> None:
        if not await asyncio.to_thread(location.has_room, added_bytes):
            assert location.folder is not None
            folder = location.path.removesuffix(f"/{location.file.relative_to(location.folder)}")
            sentence = f"the files in {folder} would have more than {MAX_FOLDER_BYTES >> 20} MiB in total"
            raise InvalidFile(location.path, [Fault(location.path, 0, f"{sentence}; delete some of them first")])

    def _require_version(self, location: FileLocation, data: bytes | None, version: str | None) -> None:
        if version is not None and version != ("" if data is None else self._version_of(data)):
            raise FileChanged(location.path)

    async def _with_secrets(self, location: FileLocation, data: bytes) -> tuple[tuple[Fault, ...], bytes]:
        """Replace the marks for hidden secrets with the stored secrets. Return the faults of marks without a stored
        secret, and the text."""
        if location.kind != "config":
            return (), data
        stored = await asyncio.to_thread(location.read)
        was = b"" if stored is None else stored

        def put_back() -> tuple[tuple[Fault, ...], bytes]:
            before = was.decode(errors="replace")
            is_secret = secret_tester(self._secret_settings(), data, was)
            text, unknown = toml_secrets.put_back(data.decode(), before, is_secret)
            return first_faults(Fault(location.path, *each) for each in unknown), text.encode()

        return await compute_alone(FILES_THREAD, put_back)

    async def _find(self, path: str) -> tuple[FileLocation, bytes]:
        try:
            location = self.locations.get(path)
            data = await asyncio.to_thread(location.read)
        except Invalid:
            data = None
        if data is None:
            raise NotFound("file", path)
        return location, data

    def _shown(self, location: FileLocation, data: bytes) -> str:
        text = _text_of(location, data)
        if location.kind != "config":
            return text
        return toml_secrets.hide(text, secret_tester(self._secret_settings(), data))

    def _version_of(self, data: bytes) -> str:
        return hashlib.blake2b(data, digest_size=12, key=self._key).hexdigest()

    def _entries(self) -> Iterator[FileEntry]:
        for location in self.locations.list_all():
            try:
                data, found = location.read(), location.file.lstat()
                self.locations.get(location.path)
            except (Invalid, OSError):
                continue
            if data is not None:
                modified_at = from_millis(found.st_mtime_ns // 1_000_000)
                yield FileEntry(
                    path=location.path,
                    kind=location.kind,
                    size=len(data),
                    modified_at=modified_at,
                    version=self._version_of(data),
                )


def _at_next_start(location: FileLocation, data: bytes, key: str) -> Fault:
    """Return a warning for a changed configuration key that takes effect only after a restart."""
    line = line_at(tuple(key.split(".")), line_finder(data.decode(errors="replace")))
    return Fault(location.path, line, f"{key} takes effect after a restart of the hub")


def _text_of(location: FileLocation, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        raise Invalid(f"{location.path} is not UTF-8 text; save it as UTF-8") from None


def _encode(text: str) -> bytes:
    data = text.encode(errors="surrogatepass")
    if len(data) > MAX_SAVED_BYTES:
        raise TooLarge(f"the text is larger than {MAX_SAVED_BYTES >> 10} KiB")
    return data
