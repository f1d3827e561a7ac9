"""Recovers, extends, and replaces the document's files. All functions run on the store's thread."""

from __future__ import annotations

import contextlib
import logging
import os
import zlib
from collections.abc import Mapping
from typing import Any

from appliance.shrinking import shrunk
from appliance.store.disk import PART, Disk, FileState
from appliance.store.file_format import (
    STORE_FORMAT,
    EncodedChanges,
    encode_snapshot,
    generations_of,
    journal_name,
    leftovers,
    snapshot_name,
)
from appliance.store.journal import Journal
from appliance.store.recovery import Migrations, Recovered, recover

MIN_COMPACT_BYTES = 256 * 1024
"""Minimum size in bytes of a journal for compaction."""

SNAPSHOTS_PER_JOURNAL = 4
"""A journal is compacted when it is longer than this number of snapshots, so that the card is mostly written with
changes."""

COMPACT_AGAIN = 64 * 1024
"""If the card is too full to compact the journal, compaction is tried again after the journal has grown by this
number of bytes."""

MIGRATIONS: Migrations = {}
"""The migrations. Each migration converts values from an older format to the next format."""

log = logging.getLogger("store")


def explain_os_error(error: OSError) -> str:
    """Return the operating system's message as the end of a sentence."""
    message = error.strerror or str(error)
    return message[:1].lower() + message[1:]


class DocumentFiles:
    """The snapshot and journal of the current generation, and the document's values as JSON bytes.

    - `values`: the result of exactly the acknowledged changes. Other threads must copy `values` before they iterate.
    - `refusal`: the reason why the card was not writable at the start, or None.
    - `stamp`: a part of the names under which damaged files are kept.
    - `min_compact_bytes`: smaller journals are not compacted.

    Every failure raises an `OSError` and leaves `values` unchanged.

    Each append and `close` first check the files. If another program deleted or changed them, a new generation begins
    with `values`.

    A failed append closes the journal. The next append opens the journal again. However, if it is unknown whether the
    file contains the failed append, the next append begins a new generation.
    """

    def __init__(
        self,
        disk: Disk,
        stamp: str,
        *,
        migrations: Migrations = MIGRATIONS,
        min_compact_bytes: int = MIN_COMPACT_BYTES,
    ) -> None:
        self._disk = disk
        self._stamp = stamp
        self._migrations = migrations
        self._preserved: list[tuple[str, str]] = []
        self._journal = Journal(disk, 0, 0)
        self._needs_generation = True
        self._compaction_failed = False
        self._base = 0
        self._generation = 0
        self._snapshot_size = self._snapshot_crc = 0
        self._snapshot_state: FileState | None = None
        self._folder_state: FileState | None = None
        self._min_compact_bytes = min_compact_bytes
        self._compact_at = min_compact_bytes
        self.values: dict[str, bytes] = {}
        self.refusal: str | None = None

    def open(self) -> Recovered:
        """Recover the document and prepare for changes. If the card is not writable now, try again later."""
        found = recover(self._disk, self._migrations)
        self._continue(found)
        try:
            self._make_ready()
            self._remove_leftovers(oldest=0)
        except OSError as error:
            self.refusal = explain_os_error(error)
        return found

    def begin(self, values: Mapping[str, bytes], *, above: int, sequence: int) -> None:
        """Begin a generation with these values and a number above `above`, regardless of existing files.

        `sequence` is the number of the last record in the old files. The old files are valid until both new names are
        durable.
        """
        self.values, self._generation, self._needs_generation = dict(values), above, True
        self._journal = Journal(self._disk, above, sequence)
        self._make_ready()

    def append(self, changes: EncodedChanges) -> None:
        """Append the changes to the journal. Return after the changes are durable."""
        self._disk.check_folder()
        self._check_files()
        self._make_ready()
        try:
            self._journal.append(changes)
        except BaseException:
            self._undo_append()
            raise
        for key, value in changes.items():
            if value is None:
                if self.values.pop(key, None) is not None:
                    self.values = shrunk(self.values)
            else:
                self.values[key] = value

    def pack(self) -> None:
        """Copy all keys and values. After a burst of changes, each of them may keep another page in use. The C
        allocator places the copies in small gaps of pages that are in use anyway."""
        self.values = {f"{key} "[:-1]: bytes(memoryview(value)) for key, value in self.values.items()}

    @property
    def is_compaction_due(self) -> bool:
        return self._journal.is_open and self._journal.end > self._compact_at

    def compact(self) -> None:
        """Begin the next generation if the journal is long enough. If the card is full, continue the current
        generation."""
        if not self.is_compaction_due:
            return
        try:
            self._begin_generation()
        except OSError as error:
            self._compact_at = self._journal.end + COMPACT_AGAIN
            log.warning("the journal cannot be compacted now: %s", error.strerror)
            self._compaction_failed = True
        else:
            if self._compaction_failed:
                log.info("the journal can be compacted again")
            self._compaction_failed = False

    def close(self) -> None:
        """Close the journal if it is open. First check the files. If an append failed, first try again to undo the
        append, so that the next start does not find the append's record."""
        try:
            self._disk.check_folder()
            self._folder_state = None  # compare the journal's name even if the folder's time is too coarse
            self._check_files()
            if max(generations_of(self._disk.list_names()), default=0) > self._generation:
                self._replace_files(f"added files of a later generation to {self._disk.folder}")
            elif not self._needs_generation and not self._journal.is_whole():
                self._replace_files(f"changed {self._disk.folder / journal_name(self._generation)}")
            if self._needs_generation:
                self._make_ready()
        finally:
            self._journal.close()

    def figures(self) -> dict[str, Any]:
        """Return the sizes and numbers of the files, and the number of writes since the hub's start."""
        return {
            "folder": os.fsencode(self._disk.folder).decode(errors="backslashreplace"),
            "generation": self._generation,
            "sequence": self._journal.sequence,
            "keys": len(self.values),
            "snapshot_bytes": self._snapshot_size,
            "journal_bytes": self._journal.end,
            "bytes_written": self._disk.bytes_written,
            "syncs": self._disk.syncs,
        }

    def _continue(self, found: Recovered) -> None:
        self.values = found.values
        self._base, self._generation = found.base, found.generation
        self._snapshot_size, self._snapshot_crc = found.snapshot_size, found.snapshot_crc
        self._journal = Journal(self._disk, found.generation, found.sequence, found.journal_end, found.last)
        self._compact_at = max(SNAPSHOTS_PER_JOURNAL * self._snapshot_size, self._min_compact_bytes)
        self._needs_generation = not found.is_clean
        self._snapshot_state = self._disk.find_state(snapshot_name(found.generation))
        self._preserved = [(name, f"{name}.corrupt-{self._stamp}") for name in found.damaged]
        for name, kept in self._preserved:
            found.notes = [f"{note}; it is kept as {kept}" if note.startswith(name) else note for note in found.notes]
        self._preserved += [(name, f"{name}.before-format-{STORE_FORMAT}-{self._stamp}") for name in found.outdated]

    def _check_files(self) -> None:
        """Require a new generation if another program deleted or changed the files of the current generation."""
        if not self._needs_generation and (change := self._find_change()) is not None:
            self._replace_files(change)

    def _find_change(self) -> str | None:
        name = snapshot_name(self._generation)
        found = self._disk.find_state(name)
        if found != self._snapshot_state:
            if found is None or not self._is_snapshot_unchanged(name):
                return f"{'deleted' if found is None else 'replaced or changed'} {self._disk.folder / name}"
            self._snapshot_state = found
        name = journal_name(self._generation)
        if not self._journal.is_intact():
            return f"changed {self._disk.folder / name}"
        folder_state = self._disk.find_state()
        if folder_state != self._folder_state and not self._journal.is_in_place():
            return f"deleted or replaced {self._disk.folder / name}"
        self._folder_state = folder_state
        return None

    def _is_snapshot_unchanged(self, name: str) -> bool:
        """Return whether the snapshot has the same content, even if its time has changed. Some network file systems
        change the times of files."""
        try:
            return zlib.crc32(self._disk.read(name)) == self._snapshot_crc
        except OSError:
            return False

    def _replace_files(self, change: str) -> None:
        log.warning("another program %s; the hub writes the whole document again", change)
        self._journal.close()
        self._needs_generation = True

    def _make_ready(self) -> None:
        """Open the journal, or begin the next generation. If the journal cannot be opened, the next call begins a new
        generation."""
        if self._journal.is_open:
            return
        if self._needs_generation:
            self._preserve()
            self._begin_generation()
            return
        try:
            self._journal.open()
        except BaseException:
            self._needs_generation = True
            raise

    def _undo_append(self) -> None:
        """Remove a failed append from the file, and close the journal."""
        self._needs_generation = self._needs_generation or self._journal.is_sync_broken
        try:
            self._journal.close()
            self._journal.open()  # truncates the file after the last acknowledged record
            self._journal.close()
        except Exception:
            self._needs_generation = True

    def _begin_generation(self) -> None:
        """Begin the next generation: write both files, then rename them. After the renaming, only these files are
        written."""
        generation = max([self._generation, *generations_of(self._disk.list_names())]) + 1
        names = journal_name(generation), snapshot_name(generation)
        data = encode_snapshot(generation, self._journal.sequence, self.values)
        journal = Journal(self._disk, generation, self._journal.sequence)
        try:
            self._disk.write_synced(names[1] + PART, data)
            journal.create()
        except BaseException:
            for name in names:
                self._disk.remove(name + PART)
            raise
        self._needs_generation = True  # until the new names are durable, the next start can use either generation
        try:
            self._journal.close()
            for name in names:
                self._disk.rename(name + PART, name)
            self._disk.sync_folder()
            self._snapshot_state, self._folder_state = self._disk.find_state(names[1]), None
        except BaseException:
            journal.close()
            raise
        self._needs_generation = False
        self._remove_leftovers(oldest=self._base)
        self._base = self._generation = generation
        self._journal, self._snapshot_size, self._snapshot_crc = journal, len(data), zlib.crc32(data)
        self._compact_at = max(SNAPSHOTS_PER_JOURNAL * len(data), self._min_compact_bytes)

    def _preserve(self) -> None:
        """Link damaged and outdated files to permanent names."""
        while self._preserved:
            with contextlib.suppress(FileNotFoundError):
                self._disk.link(*self._preserved[-1])
            self._preserved.pop()

    def _remove_leftovers(self, *, oldest: int) -> None:
        """Remove obsolete files. If a file cannot be removed, try again later."""
        try:
            for name in leftovers(self._disk.list_names(), oldest):
                self._disk.remove(name)
        except OSError as error:
            log.warning("old files cannot be removed now: %s", error.strerror)
