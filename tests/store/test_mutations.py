"""Each sync and each check of the store is necessary. If a sync or a check is removed, a test of the store fails.
The sites are found in the syntax tree."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.store import histories
from tests.store.corruptions import CHECKS
from tests.store.cuts import Bounds
from tests.store.histories import dying, failing, plain
from tests.store.mutants import MODULES, Site, find_sites, load
from tests.store.proof import SMALLEST, Maker, Proof, silence

COARSE = Bounds(torn_bytes=3, names=2, mixtures=2)

SITES = [site for site in find_sites() if site.module in MODULES]

Prover = Callable[[dict[str, ModuleType], Path], None]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Hide the store's warnings, which these tests do not check."""
    with silence():
        yield


@pytest.mark.slow
def test_the_scratch_copy_passes_every_proof(tmp_path: Path) -> None:
    assert len(SITES) >= 15
    assert first_failure(load(), tmp_path, PROVERS) is None


@pytest.mark.parametrize("site", SITES, ids=str)
@pytest.mark.slow
def test_without_a_precaution_a_proof_fails(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    provers = PROVERS if "sync" in site.source else (*PROVERS[2:], *PROVERS[:2])
    failure = first_failure(load(site), tmp_path, provers)
    with capsys.disabled():
        sys.stdout.write(f"\n{site!s:90} {failure}")
    assert failure is not None


def first_failure(store: dict[str, ModuleType], tmp_path: Path, provers: tuple[Prover, ...]) -> str | None:
    """Return the first test that fails with this store, or None."""
    for prover in provers:
        try:
            prover(store, tmp_path)
        except (Exception, pytest.fail.Exception) as failure:
            reason = str(failure).partition("\n")[0]
            return f"{prover.__name__.removeprefix('prove_')}: {type(failure).__name__}: {reason[:90]}"
    return None


def prove_device(store: dict[str, ModuleType], tmp_path: Path) -> None:
    """Check that the real disk always syncs the device, and copies a file if the file cannot be linked."""
    module: Any = store["disk"]
    module.os = system = _System()
    disk = module.Disk(tmp_path)
    descriptor = disk.create("file")
    disk.write(descriptor, b"content", 0)
    disk.sync(descriptor)
    assert system.calls == ["fdatasync"]
    disk.close(descriptor)
    disk.sync_folder()
    assert system.calls == ["fdatasync", "fsync"]
    disk.link("file", "copy")
    assert system.calls[2:] == ["fdatasync"]
    assert (tmp_path / "copy").read_bytes() == b"content"
    assert disk.list_names() == ["copy", "file"]
    system.calls.clear()
    module.write_file(tmp_path / "file", b"new")
    assert system.calls == ["fsync", "fsync"] and disk.read("file") == b"new"


def prove_crashes(store: dict[str, ModuleType], tmp_path: Path) -> None:
    """Run the tests of power cuts with bounds that take only seconds."""
    maker = _maker(store)
    proof = Proof(maker, bounds=COARSE)
    for history in (histories.small, histories.brief):
        proof.prove(plain(maker, history).disk)
    for disk, begin in dying(maker, histories.brief):
        proof.prove(disk, begin)
    for lasts, dies in ((0, False), (1, True), (3, True)):
        for disk, begin in failing(maker, histories.brief, refusal="EIO", lasts=lasts, dies=dies):
            proof.prove(disk, begin)


def prove_corruption(store: dict[str, ModuleType], tmp_path: Path) -> None:
    """Run the checks for all kinds of damage."""
    for check in CHECKS:
        check(_maker(store))


def prove_changed_files(store: dict[str, ModuleType], tmp_path: Path) -> None:
    """Check that the document is written again after another program has changed the snapshot."""
    folder = tmp_path / "changed"
    folder.mkdir(exist_ok=True)
    files = store["document_files"].DocumentFiles(store["disk"].Disk(folder), "20260101T000000Z")
    files.begin({"a": b"1"}, above=0, sequence=0)
    snapshot = folder / store["file_format"].snapshot_name(1)
    snapshot.write_bytes(snapshot.read_bytes().replace(b'"value":1', b'"value":2'))
    os.utime(snapshot, (0, 0))
    files.append({"b": b"1"})
    assert files.figures()["generation"] == 2


PROVERS: tuple[Prover, ...] = (prove_device, prove_crashes, prove_corruption, prove_changed_files)


def _maker(store: dict[str, ModuleType]) -> Maker:
    files: Any = store["document_files"].DocumentFiles
    return lambda disk: files(disk, "20260101T000000Z", min_compact_bytes=SMALLEST)


class _System:
    """An operating system that records syncs, and cannot create hard links."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fdatasync(self, descriptor: int) -> None:
        self.calls.append("fdatasync")
        os.fdatasync(descriptor)

    def fsync(self, descriptor: int) -> None:
        self.calls.append("fsync")
        os.fsync(descriptor)

    def link(self, old: Path, new: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))
