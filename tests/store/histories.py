"""Histories of a store before a power cut. Each history runs without faults, with each operation refused, or with
a kill at each operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from tests.fakes.disk import Fault, Image, RecordingDisk, Refusal
from tests.store.proof import Died, Maker, Owner

History = Callable[[Owner], None]


def small(owner: Owner) -> None:
    owner.start()
    for number in range(4):
        owner.put({f"room/{number}": b'{"name":"Room %d"}' % number})
    owner.put({"room/1": None, "group/a": b"[1,2]", "room/2": b'{"name":"B\xc3\xbcro"}'})
    owner.put({"room/9": None})
    owner.stop()
    owner.start()
    owner.put({"room/0": b'{"name":"Attic"}'})
    owner.put({"room/4": b"4"})


def large(owner: Owner) -> None:
    """Make changes that are longer than a block, changes that are longer than the preallocation, and small changes
    after them."""
    owner.start()
    owner.put({"a": b"1"})
    owner.put({"block": b'"' + b"x" * 5000 + b'"'})
    owner.put({"b": b"2"})
    owner.put({"long": b'"' + b"y" * 40_000 + b'"'})
    owner.put({"c": b"3"})
    owner.put({"longer": b'"' + b"z" * 70_000 + b'"'})
    owner.put({"d": b"4"})
    owner.stop()
    owner.start()
    owner.put({"e": b"5"})


def compacting(owner: Owner) -> None:
    """Make changes until the third generation has records. In between, restart the store."""
    owner.start()
    for number in range(9):
        owner.put({f"key/{number % 4}": b'"%s"' % (b"%d" % number * 180)})
        if number == 4:
            owner.stop()
            owner.start()
    owner.put({"key/0": None})


def brief(owner: Owner) -> None:
    """Start, start again, make changes, and compact once. The history is the shortest one that contains all
    operations."""
    owner.start()
    owner.put({"a": b'"%s"' % (b"a" * 500)})
    owner.stop()
    owner.start()
    owner.put({"b": b'"%s"' % (b"b" * 500)})
    owner.put({"a": b'"%s"' % (b"c" * 500)})
    owner.put({"c": b"3"})
    owner.put({"d": b"4"})
    owner.put({"e": b"5"})


def reopening(owner: Owner) -> None:
    """Start from files with records, make changes, and compact once."""
    owner.start()
    owner.put({"d": b'"%s"' % (b"d" * 700)})
    owner.put({"d": b'"%s"' % (b"e" * 700)})
    owner.put({"f": b"6"})


def heal(owner: Owner) -> None:
    """Stop refusing operations. Check that the store works again, both before and after a restart."""
    assert owner.put({"healed": b"1"}), "the store does not heal"
    assert owner.put({"healed": b"2"})
    owner.stop()
    owner.start()
    assert owner.put({"healed": b"3"})


def plain(maker: Maker, history: History, image: Image | None = None, state: dict[str, bytes] | None = None) -> Owner:
    """Run a history without faults."""
    owner = Owner(RecordingDisk(image), maker, state)
    history(owner)
    return owner


def dying(maker: Maker, history: History) -> Iterator[tuple[RecordingDisk, int]]:
    """Run the history once per operation. In each run, kill the process before the operation, and start it again.
    Yield the disk and the position in the log."""
    for number in range(len(plain(maker, history).disk.operations)):
        owner = Owner(RecordingDisk(), maker)
        owner.disk.fault = _death(number)
        with suppress(Died):
            history(owner)
        begin = len(owner.disk.log)
        owner.disk.fault = lambda index, operation: None
        owner.start()
        owner.put({"revived": b"1"})
        owner.put({"revived": b"2"})
        yield owner.disk, begin


def failing(
    maker: Maker, history: History, *, refusal: Refusal, lasts: int, dies: bool = False
) -> Iterator[tuple[RecordingDisk, int]]:
    """Run the history once per operation. In each run, refuse the operation and the `lasts` operations after it, then
    stop refusing. Yield the disk and the position in the log.

    If `dies` is true, the process is killed at the next operation, and another process recovers.
    """
    for number in range(len(plain(maker, history).disk.operations)):
        owner = Owner(RecordingDisk(), maker)
        owner.disk.fault = _refusal(number, number + lasts, refusal, dies)
        begin = _run_to_first_refusal(owner, history)
        owner.disk.fault = lambda index, operation: None
        if dies:
            owner.start()
        heal(owner)
        yield owner.disk, begin


def _run_to_first_refusal(owner: Owner, history: History) -> int:
    fault, begins = owner.disk.fault, []

    def watch(index: int, operation: str) -> Refusal | None:
        refusal = fault(index, operation)
        if refusal is not None:
            begins.append(len(owner.disk.log))
        return refusal

    owner.disk.fault = watch
    with suppress(Died):
        history(owner)
    return begins[0] if begins else len(owner.disk.log)


def _refusal(first: int, last: int, refusal: Refusal, dies: bool) -> Fault:
    def fault(index: int, operation: str) -> Refusal | None:
        if dies and index > last:
            raise Died
        return refusal if first <= index <= last else None

    return fault


def _death(number: int) -> Fault:
    def fault(index: int, operation: str) -> Refusal | None:
        if index == number:
            raise Died
        return None

    return fault
