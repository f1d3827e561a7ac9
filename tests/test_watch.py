"""The hub detects each save exactly once, however an editor saves the file, and even if the folder is replaced."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from appliance.clock import Clock
from appliance.watch import DEBOUNCE_SECS, MAX_DEBOUNCE_SECS, Target, Watcher
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until

OFTEN_MS = 300
"""In these tests, the watcher's interval between checks for created and replaced folders."""


class Noted:
    """A callback that counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1


@asynccontextmanager
async def watched(folder: Path, *, is_deep: bool = False, look: Any = None) -> AsyncIterator[Noted]:
    """Watch the folder as soon as it exists. Yield the callback."""
    noted = Noted()
    target = Target(folder=folder, is_deep=is_deep, on_change=noted)
    more = {} if look is None else {"watch": look}
    async with Watcher([target], Clock(), interval_ms=OFTEN_MS, **more):
        await settled(folder, noted)
        yield noted


async def settled(folder: Path, noted: Noted) -> None:
    """Wait until the watch has begun. To find out, touch a file until the callback is called. Return when no
    further call follows."""
    if await asyncio.to_thread(folder.is_dir):
        file = folder / "probe.lua"
        async with asyncio.timeout(20):
            while not noted.count:
                await asyncio.to_thread(file.touch)
                await asyncio.sleep(2 * DEBOUNCE_SECS)
        before = 0
        while before != noted.count:
            before = noted.count
            await asyncio.sleep(3 * DEBOUNCE_SECS)
    noted.count = 0


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "watch"]


SAVES: dict[str, Callable[[Path], object]] = {
    "written": lambda file: file.write_text("x"),
    "renamed into place": lambda file: file.with_suffix(".tmp").rename(file) if _make(file) else None,
    "moved away and written": lambda file: (file.rename(file.with_name("probe.lua~")), file.write_text("x")),
    "new": lambda file: file.with_name("new.lua").write_text("x"),
    "many at once": lambda file: [file.with_name(f"{n}.lua").write_text("x") for n in range(200)],
    "removed": lambda file: file.unlink(),
}


def _make(file: Path) -> bool:
    file.with_suffix(".tmp").write_text("x")
    return True


async def test_a_file_is_noticed_however_it_is_saved_and_not_for_each_write(tmp_path: Path) -> None:
    async def count_of(number: int, save: Callable[[Path], object]) -> int:
        folder = tmp_path / str(number)
        folder.mkdir()
        async with watched(folder) as noted:
            save(folder / "probe.lua")
            await until(lambda: noted.count)
            await asyncio.sleep(2 * DEBOUNCE_SECS)
            return noted.count

    counts = await asyncio.gather(*(count_of(number, save) for number, save in enumerate(SAVES.values())))
    assert max(counts) <= 2, dict(zip(SAVES, counts, strict=True))


@pytest.mark.slow
async def test_only_lua_files_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    async with watched(tmp_path) as noted:
        for name in ("x.txt", ".hidden.lua", "x.lua~", ".x.lua.swp", "inner/x.lua", "4913"):
            (tmp_path / name).write_text("x")
        await asyncio.sleep(4 * DEBOUNCE_SECS)
        assert noted.count == 0


async def test_folders_inside_a_deep_one_are_watched_too_and_new_ones_as_well(tmp_path: Path) -> None:
    async with watched(tmp_path, is_deep=True) as noted:
        (tmp_path / "inner").mkdir()
        await until(lambda: noted.count)
        await asyncio.sleep(2 * DEBOUNCE_SECS)
        before = noted.count
        (tmp_path / "inner/x.lua").write_text("x")
        await until(lambda: noted.count > before)


async def test_a_folder_can_be_missing_and_appear_repeatedly(tmp_path: Path) -> None:
    folder = tmp_path / "scenes"
    async with watched(folder) as noted:
        folder.mkdir()
        (folder / "x.lua").write_text("x")
        await until(lambda: noted.count)
        await settled(folder, noted)
        (folder / "x.lua").write_text("y")
        await until(lambda: noted.count)
        folder.rename(tmp_path / "away")
        await until(lambda: noted.count >= 2)
        noted.count = 0
        (tmp_path / "away").rename(folder)
        await until(lambda: noted.count)
        await settled(folder, noted)
        (folder / "x.lua").write_text("z")
        await until(lambda: noted.count)


async def test_a_recreated_folder_is_watched_again_even_if_its_inode_is_reused(tmp_path: Path) -> None:
    begun: list[float] = []

    def look(*_: Path, stop_event: threading.Event, **__: Any) -> Iterator[set[Any]]:
        begun.append(1)
        yield {(3, str(tmp_path))} if len(begun) == 1 else {(1, str(tmp_path / "x.lua"))}
        stop_event.wait()

    noted = Noted()
    async with Watcher(
        [Target(folder=tmp_path, is_deep=False, on_change=noted)], Clock(), watch=look, interval_ms=OFTEN_MS
    ):
        await until(lambda: noted.count)
    assert len(begun) == 2


@pytest.mark.slow
async def test_a_changed_target_of_a_link_is_noticed(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    (tmp_path / "current").symlink_to("old")
    async with watched(tmp_path / "current") as noted:
        (tmp_path / "next").symlink_to("new")
        (tmp_path / "next").rename(tmp_path / "current")
        await until(lambda: noted.count)
        await settled(tmp_path / "current", noted)
        (tmp_path / "new/x.lua").write_text("x")
        await until(lambda: noted.count)


async def test_a_save_during_the_start_of_the_watch_is_noticed(tmp_path: Path) -> None:
    def look(*_: Path, stop_event: threading.Event, **__: Any) -> Iterator[set[Any]]:
        (tmp_path / "x.lua").write_text("x")
        yield set()
        stop_event.wait()

    noted = Noted()
    async with Watcher(
        [Target(folder=tmp_path, is_deep=False, on_change=noted)], Clock(), watch=look, interval_ms=OFTEN_MS
    ):
        await until(lambda: noted.count == 1)


async def test_all_folders_share_one_thread(tmp_path: Path) -> None:
    targets = [Target(folder=tmp_path / name, is_deep=False, on_change=Noted()) for name in ("a", "b")]
    (tmp_path / "a").mkdir()
    async with Watcher([], Clock()):
        assert threads() == []
    async with Watcher(targets, Clock(), interval_ms=OFTEN_MS):
        assert threads() == ["watch"]
    await until(lambda: not threads())


async def test_without_notifications_the_folder_is_polled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[bool | None] = []

    def look(*folders: Path, force_polling: bool | None, stop_event: threading.Event, **_: Any) -> Iterator[set[Any]]:
        asked.append(force_polling)
        if not force_polling:
            raise OSError("OS file watch limit reached")
        yield {(1, str(tmp_path / "x.lua"))}
        stop_event.wait()

    noted = Noted()
    async with Watcher(
        [Target(folder=tmp_path, is_deep=False, on_change=noted)], Clock(), watch=look, interval_ms=OFTEN_MS
    ):
        await until(lambda: noted.count == 1)
    assert asked[:2] == [None, True]
    assert "the system cannot watch folders (OS file watch limit reached)" in caplog.text


async def test_a_burst_is_one_call_and_an_endless_one_several(tmp_path: Path) -> None:
    clock, noted = VirtualClock(), Noted()
    target = Target(folder=tmp_path / "missing", is_deep=False, on_change=noted)

    async def burst(times: int) -> None:
        for _ in range(times):
            assert noted.count == 0
            target.changed.set()
            await clock.sleep(DEBOUNCE_SECS / 2)
        await until(lambda: noted.count)

    async def never_end() -> None:
        while noted.count == 1:
            target.changed.set()
            await clock.sleep(DEBOUNCE_SECS / 2)

    async with Watcher([target], clock, interval_ms=OFTEN_MS):
        await clock.run(burst(5))
        began = clock.monotonic()
        assert (noted.count, began >= 3 * DEBOUNCE_SECS) == (1, True)
        await clock.run(never_end())
        assert clock.monotonic() - began >= MAX_DEBOUNCE_SECS - DEBOUNCE_SECS
    assert noted.count == 2


async def test_a_change_in_the_target_of_a_link_is_noticed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "lua"
    for each in (outside / "one", outside / "two", folder):
        each.mkdir(parents=True)
    for name in ("one", "two"):
        (outside / name / "x.lua").write_text(name)
    (outside / "..data").symlink_to(outside / "one")
    (folder / "x.lua").symlink_to(outside / "..data" / "x.lua")
    async with watched(folder) as noted:
        before = noted.count
        (outside / "one" / "x.lua").write_text("changed")
        await until(lambda: noted.count > before)
        before = noted.count
        (outside / "next").symlink_to(outside / "two")
        (outside / "next").rename(outside / "..data")
        await until(lambda: noted.count > before)
