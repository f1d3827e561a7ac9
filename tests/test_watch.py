"""Watching: a saved file is noticed once, however it was saved and whatever becomes of its folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from appliance import watch
from appliance.clock import Clock
from appliance.watch import DEBOUNCE_SECS, MAX_DEBOUNCE_SECS, POLL_INTERVAL_SECS, Target, Watcher
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until

QUICK_SECS = 0.02


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are looked at often."""
    for name in ("POLL_INTERVAL_SECS", "MISSING_POLL_INTERVAL_SECS", "DEBOUNCE_SECS"):
        monkeypatch.setattr(watch, name, QUICK_SECS)


class Counter:
    """Counts how often it was called."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> None:
        """Once more."""
        self.count += 1


@asynccontextmanager
async def watched(folder: Path, *, is_deep: bool = False) -> AsyncIterator[Counter]:
    """The folder is watched."""
    counter = Counter()
    async with Watcher([Target(folder=folder, is_deep=is_deep, on_change=counter)], Clock()):
        yield counter


SAVES: dict[str, Callable[[Path], object]] = {
    "written": lambda file: file.write_text("xx"),
    "renamed into place": lambda file: _write(file.with_suffix(".tmp")).rename(file),
    "moved away and written": lambda file: (file.rename(file.with_name("probe.lua~")), file.write_text("x")),
    "new": lambda file: file.with_name("new.lua").write_text("x"),
    "many at once": lambda file: [file.with_name(f"{n}.lua").write_text("x") for n in range(200)],
    "removed": lambda file: file.unlink(),
}


def _write(file: Path) -> Path:
    file.write_text("x")
    return file


@pytest.mark.usefixtures("quick_looks")
@pytest.mark.parametrize("way", SAVES)
async def test_a_file_is_noticed_however_it_is_saved_and_not_for_each_write(tmp_path: Path, way: str) -> None:
    _write(tmp_path / "probe.lua")
    async with watched(tmp_path) as counter:
        SAVES[way](tmp_path / "probe.lua")
        await until(lambda: counter.count)
        await asyncio.sleep(4 * QUICK_SECS)
        assert counter.count <= 2


@pytest.mark.usefixtures("quick_looks")
async def test_what_is_no_lua_file_of_the_folder_is_not_noticed(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    async with watched(tmp_path) as counter:
        for name in ("x.txt", ".hidden.lua", "x.lua~", ".x.lua.swp", "inner/x.lua", "4913"):
            _write(tmp_path / name)
        await asyncio.sleep(5 * QUICK_SECS)
        assert counter.count == 0


@pytest.mark.usefixtures("quick_looks")
async def test_folders_inside_a_deep_one_are_watched_too_and_new_ones_as_well(tmp_path: Path) -> None:
    async with watched(tmp_path, is_deep=True) as counter:
        (tmp_path / "inner").mkdir()
        _write(tmp_path / "inner/x.lua")
        await until(lambda: counter.count)


@pytest.mark.usefixtures("quick_looks")
async def test_a_folder_may_be_missing_come_go_and_be_another(tmp_path: Path) -> None:
    folder, other = tmp_path / "scenes", tmp_path / "other"
    async with watched(folder) as counter:
        folder.mkdir()
        _write(folder / "x.lua")
        await until(lambda: counter.count == 1)
        folder.rename(other)
        await until(lambda: counter.count == 2)
        folder.symlink_to(other)
        await until(lambda: counter.count == 3)
        folder.unlink()
        folder.mkdir()
        _write(folder / "x.lua")
        await until(lambda: counter.count >= 4)


async def test_a_reload_that_fails_does_not_end_the_watch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock, calls = VirtualClock(), list[int]()

    async def fail() -> None:
        calls.append(1)
        raise RuntimeError("no")

    async with Watcher([Target(folder=tmp_path, is_deep=False, on_change=fail)], clock):
        for number in (1, 2):
            _write(tmp_path / f"{number}.lua")
            await clock.run(until(partial(lambda count: len(calls) == count, number)))
    assert "RuntimeError: no" in caplog.text


async def test_a_burst_counts_once_it_has_ended_and_an_endless_one_now_and_then(tmp_path: Path) -> None:
    clock, counter = VirtualClock(), Counter()
    target = Target(folder=tmp_path, is_deep=False, on_change=counter)

    async def burst(times: float) -> None:
        """A change before every look."""
        number, before = 0, counter.count
        while number < times and counter.count == before:
            _write(tmp_path / f"{clock.monotonic()}.lua")
            number += 1
            await clock.sleep(DEBOUNCE_SECS / 2)
        await until(lambda: counter.count > before)

    async with Watcher([target], clock):
        await clock.run(burst(5))
        began = clock.monotonic()
        assert (counter.count, began >= POLL_INTERVAL_SECS + DEBOUNCE_SECS) == (1, True)
        await clock.run(burst(float("inf")))
        assert counter.count == 2 and clock.monotonic() - began >= MAX_DEBOUNCE_SECS
