"""Tests the store with power cuts at every point. Each start finds all confirmed changes. A change in progress may be
present, but no other change.

A start may find a refused change only if the disk also refused to remove the change. In this case, the whole record
of the refused change was written, and no successful truncation and sync removed the record. No store can avoid this.
An interrupted start may find the change in progress. The content after a finished start is treated as confirmed,
unless the disk refused the writes of this start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from appliance.store.document_files import DocumentFiles
from appliance.store.file_format import EncodedChanges, encode_record
from tests.fakes.disk import Event, Image, Mark, RecordingDisk, Sync, Truncate, Write
from tests.store.cuts import Bounds, PowerCut, durable

Maker = Callable[[RecordingDisk], DocumentFiles]
"""Creates the store to be tested. Mutants create faulty stores."""

Values = dict[str, bytes]

SMALLEST = 1200
"""Maximum size of a journal in these histories. The size is small, so that each test covers several generations."""

AFTER: EncodedChanges = {"after": b'"the cut"'}


def make(disk: RecordingDisk) -> DocumentFiles:
    """Return the unchanged store."""
    return DocumentFiles(disk, "20260101T000000Z", min_compact_bytes=SMALLEST)


def make_roomy(disk: RecordingDisk) -> DocumentFiles:
    """Return the unchanged store with journals of the normal maximum size."""
    return DocumentFiles(disk, "20260101T000000Z")


class Died(BaseException):
    """Raised when the process is killed. The disk keeps all its content, including unsynced writes."""


class Owner:
    """Uses a store as the hub does. In the log of the disk, marks the documents that a start may find."""

    def __init__(
        self, disk: RecordingDisk, maker: Maker, state: Values | None = None, *, may_be_damaged: bool = False
    ) -> None:
        self.disk = disk
        self.state: Values = {} if state is None else state
        self.may_be_damaged = may_be_damaged
        self._maker = maker
        self._perhaps: list[Values] = []
        self._files: DocumentFiles | None = None
        self._mark()

    def start(self) -> None:
        """Drop the running store without closing it, as if the process was killed, and start a new store."""
        allowed = [self.state, *self._perhaps]
        refusals = self.disk.refusals
        self.disk.forget_descriptors()
        self._files = self._maker(self.disk)
        found = self._files.open()
        assert self._files.values in allowed, "a start without a power cut finds another document"
        assert self.may_be_damaged or not (found.damaged or found.lost), found.notes
        self.state = dict(self._files.values)
        is_ready = self.disk.refusals == refusals
        self._perhaps = [] if is_ready else [each for each in allowed if each != self.state]
        self._mark()

    def put(self, changes: EncodedChanges) -> bool:
        """Make a change. Return whether the change was confirmed."""
        assert self._files is not None
        expected = changed(self.state, changes)
        self._perhaps.append(expected)
        self._mark()
        begin, refusals = len(self.disk.log), self.disk.refusals
        try:
            self._files.append(changes)
        except OSError:
            assert self._files.values == self.state, "a refused change counts"
            if not _may_be_there(self.disk.log[begin:], changes):
                self._perhaps.pop()
            else:
                assert self.disk.refusals > refusals + 1, "a refused change is not taken back"
            self._mark()
            return False
        self.state, self._perhaps = expected, []
        self._mark()
        self._files.compact()
        assert self._files.values == expected
        self._check_thrift(begin)
        return True

    def _check_thrift(self, begin: int) -> None:
        """Check the number of syncs: one per change, and three per compaction."""
        if not self.disk.refusals:
            syncs = sum(isinstance(each, Sync) for each in self.disk.log[begin:])
            has_compacted = any(isinstance(each, Sync) and each.file is None for each in self.disk.log[begin:])
            assert syncs <= (4 if has_compacted else 1), "too many syncs"

    def stop(self) -> None:
        """Stop the store in order."""
        assert self._files is not None
        with suppress(OSError):
            self._files.close()
        assert not self.disk.open_descriptors, "files stay open"

    def _mark(self) -> None:
        self.disk.mark(Mark((self.state, *self._perhaps), self.may_be_damaged))


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a start from an image: the hash of the document, and whether the start reported damage."""

    values: int
    is_damaged: bool


class Proof:
    """Loads each distinct image that a power cut can leave."""

    def __init__(self, maker: Maker = make, bounds: Bounds | None = None, twice: int = 0) -> None:
        self._maker = maker
        self._bounds = Bounds() if bounds is None else bounds
        self._twice = twice
        self._loaded: dict[bytes, Loaded] = {}
        self.points = 0

    @property
    def images(self) -> int:
        """The number of distinct images."""
        return len(self._loaded)

    def prove(self, disk: RecordingDisk, begin: int = 0, twice: int | None = None) -> None:
        """Cut the power at each point of the log from `begin` on. For every `twice`-th image, also cut the power
        during the recovery."""
        twice = self._twice if twice is None else twice
        cut = PowerCut(disk.start, self._bounds)
        mark = Mark(({},))
        for position, event in enumerate(disk.log):
            cut.advance(event)
            mark = event if isinstance(event, Mark) else mark
            if position >= begin:
                self.points += 1
                self._prove_point(cut.images(), mark, f"after {position} {_describe(event)}", twice)

    def _prove_point(self, images: Iterable[tuple[bytes, Image]], mark: Mark, where: str, twice: int) -> None:
        allowed = {_hash(each) for each in mark.allowed}
        for digest, image in images:
            loaded = self._loaded.get(digest)
            is_new = loaded is None
            if loaded is None:
                loaded = self._loaded[digest] = self._load(image, where)
            sizes = {name: len(content) for name, content in image.items()}
            assert loaded.values in allowed, f"{where}: neither what was acknowledged nor what was in flight, {sizes}"
            assert mark.may_be_damaged or not loaded.is_damaged, f"{where}: a cut is called damage, {sizes}"
            if is_new and twice and len(self._loaded) % twice == 0:
                self._cut_again(image, mark, loaded)

    def _load(self, image: Image, where: str) -> Loaded:
        """Start from the image, make a change, and start again from the durable content."""
        disk = RecordingDisk(image)
        files = self._maker(disk)
        found = files.open()
        values = dict(files.values)
        assert disk.syncs <= 5, f"{where}: a start takes {disk.syncs} syncs"
        files.append(AFTER)
        files.close()
        assert not disk.open_descriptors, f"{where}: files stay open"
        assert not [name for name in disk.list_names() if name.endswith(".part")], f"{where}: halves stay behind"
        again = self._maker(RecordingDisk(durable(disk)))
        second = again.open()
        again.close()
        assert again.values == changed(values, AFTER), f"{where}: what is acknowledged after the start is lost"
        assert not second.damaged, f"{where}: a start leaves damage behind"
        return Loaded(_hash(values), bool(found.damaged or found.lost))

    def _cut_again(self, image: Image, mark: Mark, loaded: Loaded) -> None:
        """Cut the power during the start from an image, and after the first change."""
        disk = RecordingDisk(image)
        state = next(dict(each) for each in mark.allowed if _hash(each) == loaded.values)
        owner = Owner(disk, self._maker, state, may_be_damaged=mark.may_be_damaged)
        owner.start()
        owner.put({"again": b"1"})
        self.prove(disk, begin=1, twice=0)


def changed(values: Mapping[str, bytes], changes: EncodedChanges) -> Values:
    """Return the values after the changes."""
    return {key: value for key, value in {**values, **changes}.items() if value is not None}


@contextmanager
def silence() -> Iterator[None]:
    """Hide the store's warnings, which would be printed a hundred thousand times."""
    logger = logging.getLogger("store")
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False


def _may_be_there(log: Sequence[Event], changes: EncodedChanges) -> bool:
    """Return whether the disk may contain a refused change: its whole record was written, and was not removed."""
    put = encode_record(1, changes).partition(b'"put":')[2].rpartition(b',"crc"')[0]
    written = [index for index, each in enumerate(log) if isinstance(each, Write) and put in each.data]
    if not written:
        return False
    match [each for each in log[written[-1] :] if isinstance(each, Truncate | Sync)]:
        case [*_, Truncate(), Sync(is_done=True)]:
            return False
        case _:
            return True


def _hash(values: Mapping[str, bytes]) -> int:
    return hash(frozenset(values.items()))


def _describe(event: Event) -> str:
    match event:
        case Write(offset=offset, data=data):
            return f"write of {len(data)} bytes at {offset}"
        case Mark():
            return "mark"
        case _:
            return str(event)
