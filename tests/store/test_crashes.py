"""The power is cut at every point of the store's work. After each restart, all confirmed changes are complete, and
there are no other changes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest

from appliance.clock import Clock
from appliance.store.document import open_document
from tests.fakes.disk import Mark, RecordingDisk, Refusal
from tests.store import histories
from tests.store.cuts import Bounds, durable
from tests.store.histories import dying, failing, plain
from tests.store.proof import Owner, Proof, Values, make, make_roomy, silence

REFUSALS: tuple[Refusal, ...] = ("ENOSPC", "EIO", "short")
FOREVER = 10**9

COARSE = Bounds(torn_bytes=8, names=3, mixtures=3)
"""Bounds with so few possibilities that all points can be tried in seconds. Before a release, all possibilities are
tried."""

FEW = Bounds(torn_bytes=2, names=2, mixtures=1)

BOTH = [COARSE, pytest.param(Bounds(), marks=pytest.mark.release)]
"""The bounds of the slow tests."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Hide the store's warnings, which these tests do not check."""
    with silence():
        yield


def report(what: str, proof: Proof, capsys: pytest.CaptureFixture[str]) -> None:
    """Print the size of the test, even if pytest captures output."""
    with capsys.disabled():
        sys.stdout.write(f"\n{what}: {proof.images} distinct disk images, at {proof.points} points of the logs")


def test_a_cut_tears_short_records_at_every_byte(capsys: pytest.CaptureFixture[str]) -> None:
    proof = Proof(bounds=Bounds(names=3))
    proof.prove(plain(make, histories.small).disk)
    report("every byte", proof, capsys)
    assert proof.images >= 1_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "bounds", [COARSE, pytest.param(Bounds(torn_bytes=200), marks=pytest.mark.release)], ids=["coarse", "fine"]
)
def test_a_cut_keeps_long_changes(bounds: Bounds, capsys: pytest.CaptureFixture[str]) -> None:
    proof = Proof(make_roomy, bounds, twice=300)
    proof.prove(plain(make_roomy, histories.large).disk)
    report("large changes", proof, capsys)
    assert proof.images >= 500


@pytest.mark.slow
@pytest.mark.parametrize("name", ["journal.000002.json", "snapshot.000002.json"])
def test_a_cut_during_a_start_keeps_the_damaged_files(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    proof = Proof(bounds=COARSE, twice=60)
    owner = damaged(name)
    histories.reopening(owner)
    proof.prove(owner.disk)
    report(f"starts with {name} damaged", proof, capsys)
    assert proof.images >= 300


def test_a_cut_while_changes_share_a_sync_keeps_the_confirmed_ones(capsys: pytest.CaptureFixture[str]) -> None:
    proof = Proof(bounds=COARSE)
    disk = asyncio.run(shared_syncs())
    proof.prove(disk)
    report("shared syncs", proof, capsys)
    assert proof.images >= 100


@pytest.mark.slow
@pytest.mark.parametrize("bounds", BOTH, ids=["coarse", "fine"])
def test_a_cut_at_any_point_keeps_confirmed_changes(bounds: Bounds, capsys: pytest.CaptureFixture[str]) -> None:
    proof = Proof(bounds=bounds, twice=500)
    for history in (histories.small, histories.compacting, histories.brief):
        proof.prove(plain(make, history).disk)
    report("plain histories", proof, capsys)
    assert proof.images >= 1_000


@pytest.mark.slow
@pytest.mark.parametrize("bounds", BOTH, ids=["coarse", "fine"])
def test_a_cut_after_a_kill_keeps_confirmed_changes(bounds: Bounds, capsys: pytest.CaptureFixture[str]) -> None:
    proof = Proof(bounds=bounds, twice=500)
    for disk, begin in dying(make, histories.compacting):
        proof.prove(disk, begin)
    report("killed processes", proof, capsys)
    assert proof.images >= 1_000


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [FEW, pytest.param(COARSE, marks=pytest.mark.release)], ids=["coarse", "fine"])
@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_cut_at_any_point_after_refused_operations_keeps_confirmed_changes(
    refusal: Refusal, bounds: Bounds, capsys: pytest.CaptureFixture[str]
) -> None:
    ways = ((0, False), (1, True), (3, False), (FOREVER, True))
    proof = Proof(bounds=bounds, twice=500)
    for lasts, dies in ways if bounds is COARSE else ways[REFUSALS.index(refusal) :: len(REFUSALS)]:
        for disk, begin in failing(make, histories.brief, refusal=refusal, lasts=lasts, dies=dies):
            proof.prove(disk, begin)
    report(f"operations refused with {refusal}", proof, capsys)
    assert proof.images >= 1_000


def damaged(name: str) -> Owner:
    """Return a store of two generations. The middle of this file is damaged."""
    image = dict(durable(plain(make, histories.brief).disk))
    content = image[name]
    middle = len(content.rstrip(b"\0")) // 2
    image[name] = content[:middle] + b"?" + content[middle + 1 :]
    files = make(RecordingDisk(image))
    assert files.open().damaged == [name]
    files.close()
    return Owner(RecordingDisk(image), make, dict(files.values), may_be_damaged=True)


async def shared_syncs() -> RecordingDisk:
    """Make changes that share a sync. Record in the log when the changes were answered."""
    disk = RecordingDisk()
    state: Values = {}
    async with open_document(disk, Clock()) as document:
        for batch in range(4):
            several = {f"{batch}/{number}": b"%d" % number for number in range(3)}
            disk.mark(Mark((dict(state), {**state, **several})))
            await asyncio.gather(*(document.put_many({key: int(value)}) for key, value in several.items()))
            state |= several
            disk.mark(Mark((dict(state),)))
    return disk
