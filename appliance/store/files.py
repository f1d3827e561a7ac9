"""The document's files: recovered, appended to, and begun anew; all of it on the store's thread."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from appliance.store import file_names, snapshot
from appliance.store.disk import Disk
from appliance.store.file_names import STORE_FORMAT
from appliance.store.journal import EncodedChanges, Journal
from appliance.store.recovery import Migrations, Recovered, recover

MIN_COMPACT_BYTES = 256 * 1024
"""Bytes that a journal may always hold; beyond them it may be as long as its snapshot, then a generation begins."""

COMPACT_AGAIN = 64 * 1024
"""Bytes that a journal grows on before compacting is tried again where the card had no room for it."""

MIGRATIONS: Migrations = {}
"""How the values of each older format become those of the next."""

log = logging.getLogger("store")


class Files:
    """Snapshot and journal of the present generation, and the document's values as JSON bytes.

    `values` holds exactly what is acknowledged: another thread must copy it to go through it. Every failure is an
    `OSError` and leaves `values` as they were. `refusal` says why the card could not be written at the start. `stamp`
    becomes part of the names of files that are kept aside; a journal of up to `min_compact_bytes` is not compacted.
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
        self._aside: list[tuple[str, str]] = []
        self._journal: Journal | None = None
        self._must_renew = True
        self._was_refused = False
        self._base = 0
        self._generation = 0
        self._sequence = 0
        self._journal_end = 0
        self._last = b""
        self._snapshot_size = 0
        self._min_compact_bytes = min_compact_bytes
        self._compact_at = min_compact_bytes
        self.values: dict[str, bytes] = {}
        self.refusal: str | None = None

    def open(self) -> Recovered:
        """Recover the document and make it ready for changes; a card that takes none now is tried again later."""
        found = recover(self._disk, self._migrations)
        self._continue(found)
        try:
            self._ready()
            self._remove_leftovers(oldest=0)
        except OSError as error:
            self.refusal = (error.strerror or str(error)).lower()
        return found

    def begin(self, values: Mapping[str, bytes], *, above: int, sequence: int) -> None:
        """Begin a generation above that one with these values, whatever files there are.

        `sequence` is the last record of the document that the files hold: it counts until both new names do.
        """
        self.values, self._generation, self._sequence, self._must_renew = dict(values), above, sequence, True
        self._ready()

    def append(self, changes: EncodedChanges) -> None:
        """Write the changes; on the device when this returns."""
        journal = self._ready()
        try:
            journal.append(changes)
        except BaseException:
            self._abandon(journal)
            raise
        for key, value in changes.items():
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value
        self._sequence, self._journal_end = journal.sequence, journal.end

    @property
    def is_compaction_due(self) -> bool:
        """Whether the journal has outgrown its snapshot."""
        return self._journal is not None and self._journal_end > self._compact_at

    def compact(self) -> None:
        """Begin the next generation if that is due; if the card has no room for it now, the present one goes on."""
        if not self.is_compaction_due:
            return
        try:
            self._renew()
        except OSError as error:
            self._compact_at = self._journal_end + COMPACT_AGAIN
            log.warning("the journal cannot be compacted now: %s", error.strerror)
            self._was_refused = True
        else:
            if self._was_refused:
                log.info("the journal is compacted again")
            self._was_refused = False

    def close(self) -> None:
        """Close the journal, if it is open."""
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    def figures(self) -> dict[str, Any]:
        """Where the files stand, and what was asked of the device since the start."""
        return {
            "folder": str(self._disk.folder),
            "generation": self._generation,
            "sequence": self._sequence,
            "keys": len(self.values),
            "snapshot_bytes": self._snapshot_size,
            "journal_bytes": self._journal_end,
            "bytes_written": self._disk.bytes_written,
            "syncs": self._disk.syncs,
        }

    def _continue(self, found: Recovered) -> None:
        self.values = found.values
        self._base, self._generation, self._sequence = found.base, found.generation, found.sequence
        self._journal_end, self._last, self._snapshot_size = found.journal_end, found.last, found.snapshot_size
        self._compact_at = max(self._snapshot_size, self._min_compact_bytes)
        self._must_renew = not found.is_clean
        self._aside = [(name, f"{name}.corrupt-{self._stamp}") for name in found.damaged]
        for name, kept in self._aside:
            found.notes = [f"{note}; it is kept as {kept}" if note.startswith(name) else note for note in found.notes]
        self._aside += [(name, f"{name}.before-format-{STORE_FORMAT}-{self._stamp}") for name in found.outdated]

    def _ready(self) -> Journal:
        """A journal that takes records: the present one, reopened or begun anew after a failure."""
        if self._journal is None:
            if self._must_renew:
                self._keep_aside()
                self._renew()
            else:
                self._journal = self._reopen()
        assert self._journal is not None
        return self._journal

    def _reopen(self) -> Journal:
        """Open the present journal again; one that refuses it once is not trusted any more."""
        name = file_names.journal(self._generation)
        try:
            journal = Journal.reopen(self._disk, name, self._journal_end, self._sequence, self._last)
        except BaseException:
            self._must_renew = True
            raise
        self._last = b""
        return journal

    def _abandon(self, journal: Journal) -> None:
        """After a failed append: take back what may have been written; trust the file no more if a sync failed."""
        self._must_renew = self._must_renew or journal.is_sync_broken
        self._journal = None
        try:
            journal.close()
            self._reopen().close()
        except Exception:
            self._must_renew = True

    def _renew(self) -> None:
        """Begin the next generation: both its files, then their names, then nothing but them is written to."""
        generation = self._generation + 1
        data = snapshot.encode(generation, self._sequence, self.values)
        journal = self._write_parts(generation, data)
        self._must_renew = True  # until the names are on the device, either generation may be found at the next start
        try:
            self.close()
            for name in (file_names.journal(generation), file_names.snapshot(generation)):
                self._disk.rename(name + file_names.PART, name)
            self._disk.sync_folder()
        except BaseException:
            journal.close()
            raise
        self._must_renew = False
        self._remove_leftovers(oldest=self._base)
        self._base = self._generation = generation
        self._journal, self._journal_end, self._snapshot_size = journal, journal.end, len(data)
        self._compact_at = max(len(data), self._min_compact_bytes)

    def _write_parts(self, generation: int, data: bytes) -> Journal:
        """Write the files of a generation, under names that do not count yet."""
        parts = file_names.snapshot(generation) + file_names.PART, file_names.journal(generation) + file_names.PART
        try:
            snapshot.write_new(self._disk, parts[0], data)
            return Journal.create(self._disk, parts[1], generation, self._sequence)
        except BaseException:
            for name in parts:
                self._disk.remove(name)
            raise

    def _keep_aside(self) -> None:
        """Give what is damaged, or of an older format, a second name that nothing removes."""
        while self._aside:
            with contextlib.suppress(FileNotFoundError):
                self._disk.link(*self._aside[-1])
            self._aside.pop()

    def _remove_leftovers(self, *, oldest: int) -> None:
        """Remove what nothing needs; what cannot be removed now is tried again another time."""
        try:
            for name in file_names.leftovers(self._disk.list_names(), oldest):
                self._disk.remove(name)
        except OSError as error:
            log.warning("old files cannot be removed now: %s", error.strerror)
