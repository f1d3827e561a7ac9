"""The possible states of a disk after a power cut, for each point of its log.

- A write without a sync may be present, missing, torn at any byte, or present in some of its blocks. A later write
  may be present while an earlier write is missing. If the length was stored before the data, the data are zeros.
- A file may have its old length although data was appended, its new length although no data was written, or its
  length from before a truncation.
- If the folder was not synced, each change of a name may be present or missing. For example, a rename can precede the
  data of the renamed file, a removal can be missing, and a new name can be present without an older name.
- A sync makes data and length of one file durable, but no name. Data of a failed sync may be present or missing,
  and no later sync changes this, because the kernel treats these pages as clean.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise, product
from typing import Any, Generic, TypeVar

from tests.fakes.disk import (
    Content,
    Event,
    Image,
    Named,
    Naming,
    RecordingDisk,
    Removed,
    Sync,
    Truncate,
    Write,
    apply,
)

E = TypeVar("E")

SECTOR, BLOCK = 512, 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of the enumeration: the number of bytes at each end of a long write at which the write is torn, the
    maximum number of name changes whose combinations are all tried, and the number of random mixtures at each
    point."""

    torn_bytes: int = 700
    names: int = 5
    mixtures: int = 12


class PowerCut:
    """The possible images after a power cut at a point of a log. `advance` continues by one event."""

    def __init__(self, start: Image, bounds: Bounds, seed: int = 0) -> None:
        self._bounds = bounds
        self._random = random.Random(seed)
        self._files = {number: _File(content, bounds) for number, content in enumerate(start.values())}
        self._names: dict[str, int] = {name: number for number, name in enumerate(start)}
        self._changes: list[_Change[Naming]] = []

    def advance(self, event: Event) -> None:
        """Process the next event of the log."""
        match event:
            case Named() | Removed():
                self._files.setdefault(event.file, _File(b"", self._bounds))
                self._changes.append(_Change(event))
            case Write() | Truncate():
                self._files[event.file].add(event)
            case Sync(file=None):
                _settle(self._changes, event.is_done)
                self._forget_settled()
            case Sync(file=int(number)):
                self._files[number].settle(event.is_done)

    def images(self) -> Iterator[tuple[bytes, Image]]:
        """Yield each image with its hash. Some images repeat."""
        namings = self._namings()
        for names in namings:
            for choose in (0, -1):
                yield self._image(names, dict.fromkeys(names.values(), choose))
        for names in (namings[0], namings[-1]):
            for number in names.values():
                for index in range(len(self._files[number].variants())):
                    for others in (0, -1):
                        choice = dict.fromkeys(names.values(), others)
                        yield self._image(names, {**choice, number: index})
        if len(namings) > 1 or sum(len(each.variants()) > 1 for each in self._files.values()) > 1:
            for _ in range(self._bounds.mixtures):
                names = self._random.choice(namings)
                counts = {number: len(self._files[number].variants()) for number in names.values()}
                yield self._image(names, {each: self._random.randrange(count) for each, count in counts.items()})

    def _image(self, names: Mapping[str, int], choice: Mapping[int, int]) -> tuple[bytes, Image]:
        image, digest = {}, hashlib.blake2b(digest_size=16)
        for name, number in sorted(names.items()):
            image[name], content_digest = self._files[number].variants()[choice[number]]
            digest.update(name.encode() + b"\0" + content_digest)
        return digest.digest(), image

    def _namings(self) -> list[dict[str, int]]:
        """Return the possible names of files. The first result contains no unsettled change, and the last result
        contains every unsettled change."""
        open_changes = [index for index, each in enumerate(self._changes) if not each.is_settled]
        found = [self._named(frozenset(chosen)) for chosen in _subsets(open_changes, self._bounds, self._random)]
        return [each for index, each in enumerate(found) if each not in found[:index] or index == len(found) - 1]

    def _named(self, chosen: frozenset[int]) -> dict[str, int]:
        names = dict(self._names)
        for index, change in enumerate(self._changes):
            if change.is_settled or index in chosen:
                _rename(names, change.event)
        return names

    def _forget_settled(self) -> None:
        while self._changes and self._changes[0].is_settled:
            _rename(self._names, self._changes.pop(0).event)


def durable(disk: RecordingDisk) -> Image:
    """Return the minimal content after a cut, with only the settled changes."""
    cut = PowerCut(disk.start, Bounds())
    for event in disk.log:
        cut.advance(event)
    return next(cut.images())[1]


class _Change(Generic[E]):
    """A change that a sync must settle, and that stays uncertain after a failed sync."""

    __slots__ = ("event", "is_in_limbo", "is_settled")

    def __init__(self, event: E) -> None:
        self.event = event
        self.is_settled = False
        self.is_in_limbo = False


class _File:
    def __init__(self, content: bytes, bounds: Bounds) -> None:
        self._content = content
        self._bounds = bounds
        self._changes: list[_Change[Content]] = []
        self._variants: list[tuple[bytes, bytes]] | None = None

    def add(self, event: Content) -> None:
        self._changes.append(_Change(event))
        self._variants = None

    def settle(self, is_done: bool) -> None:
        _settle(self._changes, is_done)
        content = bytearray(self._content)
        while self._changes and self._changes[0].is_settled:
            apply(content, self._changes.pop(0).event)
        self._content = bytes(content)
        self._variants = None

    def variants(self) -> list[tuple[bytes, bytes]]:
        """Return the possible contents with their hashes. The first result contains no unsettled change, and the last
        result contains every unsettled change."""
        if self._variants is None:
            contents = list(dict.fromkeys(self._contents()))
            everything = self._with(lambda index, event: [event])
            contents = [*(each for each in contents if each != everything), everything]
            self._variants = [(each, hashlib.blake2b(each, digest_size=16).digest()) for each in contents]
        return self._variants

    def _contents(self) -> Iterator[bytes]:
        open_changes = [index for index, each in enumerate(self._changes) if not each.is_settled]
        nothing, everything = self._with(lambda index, event: []), self._with(lambda index, event: [event])
        yield nothing
        for torn in open_changes:
            for part in _parts(self._changes[torn].event, self._bounds):
                for before, after in ((True, False), (False, False), (False, True), (True, True)):
                    content = self._mixed(torn, part, before, after)
                    yield content
                    yield content + bytes(max(0, len(everything) - len(content)))
                    yield content[: len(nothing)]

    def _mixed(self, torn: int, part: list[Content], before: bool, after: bool) -> bytes:
        def choose(index: int, event: Content) -> list[Content]:
            if index == torn:
                return part
            return [event] if (before if index < torn else after) else []

        return self._with(choose)

    def _with(self, choose: Callable[[int, Content], list[Content]]) -> bytes:
        content = bytearray(self._content)
        for index, change in enumerate(self._changes):
            for event in [change.event] if change.is_settled else choose(index, change.event):
                apply(content, event)
        return bytes(content)


def _parts(event: Content, bounds: Bounds) -> Iterator[list[Content]]:
    """Yield the possible parts of a write or truncation."""
    yield []
    yield [event]
    if isinstance(event, Truncate):
        return
    for cut in _tears(event, bounds):
        yield [Write(event.file, event.offset, event.data[:cut])]
    blocks = _blocks(event)
    for index, block in enumerate(blocks):
        yield [block]
        yield [*blocks[:index], *blocks[index + 1 :]]
        yield list(blocks[index:])


def _tears(event: Write, bounds: Bounds) -> list[int]:
    """Return the positions at which a write can be torn: each byte near the ends of the write, and the boundaries
    of sectors and blocks."""
    written = len(event.data.rstrip(b"\0"))
    reach = bounds.torn_bytes
    near_ends = [*range(min(written, reach) + 1), *range(max(0, written - reach), written + 1)]
    size = SECTOR if len(event.data) <= 16 * SECTOR else BLOCK
    borders = range(size - event.offset % size, len(event.data), size)
    around = [each + shift for each in borders for shift in ((-1, 0, 1) if each < written else (0,))]
    return sorted({each for each in [*near_ends, *around] if 0 < each < len(event.data)})


def _blocks(event: Write) -> list[Content]:
    """Split a write into pieces that a device can store in any order. The zeros at the end of the data are one
    piece."""
    written = max(1, len(event.data.rstrip(b"\0")))
    size = SECTOR if written <= 16 * SECTOR else BLOCK
    borders = [0, *range(size - event.offset % size, written, size), written, len(event.data)]
    pieces = ((start, end) for start, end in pairwise(borders) if start < end)
    return [Write(event.file, event.offset + start, event.data[start:end]) for start, end in pieces]


def _subsets(items: Sequence[int], bounds: Bounds, chance: random.Random) -> Iterator[Sequence[int]]:
    """Yield subsets of the items. If there are few items, yield all subsets. If there are many, yield the empty
    subset, each prefix, each single item, all items except one, all items, and some random subsets."""
    yield ()
    if len(items) <= bounds.names:
        for flags in product((False, True), repeat=len(items)):
            yield list(compress(items, flags))
    else:
        yield from (items[:count] for count in range(len(items)))
        yield from ([each] for each in items)
        yield from ([each for each in items if each != left_out] for left_out in items)
        yield from ([each for each in items if chance.random() < 0.5] for _ in range(bounds.mixtures))
    yield items


def _settle(changes: Iterable[_Change[Any]], is_done: bool) -> None:
    for change in changes:
        if is_done and not change.is_in_limbo:
            change.is_settled = True
        elif not is_done and not change.is_settled:
            change.is_in_limbo = True


def _rename(names: dict[str, int], event: Naming) -> None:
    taken = event.name if isinstance(event, Removed) else event.old
    if taken is not None and names.get(taken) == event.file:
        del names[taken]
    if isinstance(event, Named):
        names[event.name] = event.file
