"""Endless files and scripts delay a load only briefly, and slow files still load."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from appliance.clock import Clock
from appliance.errors import ConfigFailed, Fault, ScriptFailed
from appliance.lua.files.catalog import LoadedFile, load_folder
from appliance.lua.files.folder import Contents
from appliance.lua.running.load_limit import (
    FIRST_CPU_SECS,
    MAX_LATE_SECS,
    SHORTEST_CPU_SECS,
    current_load,
    limit_load,
)
from appliance.lua.running.run_limits import RunLimits, RunSettings
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.source import Source
from tests.lua.bench import FILE, file, open_pool

ENDLESS = 1e9
QUANTUM = 0.01
STUCK = "text:find(string.rep('a?', 40) .. string.rep('a', 40))"

SETTINGS = RunSettings(RunLimits(), None, Clock(), ZoneInfo("UTC"), Clock())


class Machine:
    """Loads files that need these seconds of processor time, on one processor. `secs` is the time that has passed."""

    def __init__(self) -> None:
        self.secs = 0.0

    async def load(self, needs: dict[str, float]) -> list[str]:
        """Return the names of the loaded files."""
        sources = tuple(Source(name=name, text=b"") for name in needs)

        async def load_one(source: Source) -> LoadedFile[str]:
            async def run(settings: RunSettings) -> bytes:
                limits, used, began = settings.limits, 0.0, self.secs
                while used < needs[source.name]:
                    await asyncio.sleep(0)
                    used, self.secs = used + QUANTUM, self.secs + QUANTUM
                    if used > limits.max_cpu_secs or self.secs - began > limits.max_real_secs:
                        raise ScriptFailed(Fault(source.name, 1, "was stopped"), "timeout")
                return b""

            limit = current_load()
            assert limit is not None
            try:
                await limit.run(source, SETTINGS, run)
            except ScriptFailed as failed:
                raise ConfigFailed([failed.fault]) from None
            return LoadedFile(definition=source.name, source=source)

        with limit_load(lambda: self.secs):
            loaded = await load_folder(Contents(sources=sources, faults=()), load_one)
        assert {each.file for each in loaded.faults} == needs.keys() - {each.definition for each in loaded.files}
        return [each.definition for each in loaded.files]


def number(count: int, secs: float) -> dict[str, float]:
    return {f"{each:03}.lua": secs for each in range(count)}


async def test_slow_files_load() -> None:
    machine = Machine()
    assert len(await machine.load(number(3, 1.5))) == 3


async def test_the_time_of_endless_files_is_limited_and_quick_files_load() -> None:
    machine = Machine()
    assert await machine.load({**number(100, ENDLESS), "quick.lua": 0.02}) == ["quick.lua"]
    assert machine.secs < MAX_LATE_SECS + 100 * SHORTEST_CPU_SECS + 4 * FIRST_CPU_SECS


@pytest.mark.parametrize("place", ["a.lua", "z.lua"])
async def test_a_slow_file_loads_next_to_endless_ones(place: str) -> None:
    machine = Machine()
    assert await machine.load(dict(sorted({**number(4, ENDLESS), place: 0.9}.items()))) == [place]
    assert machine.secs < MAX_LATE_SECS + FIRST_CPU_SECS


async def test_loads_within_a_load_share_its_time() -> None:
    machine = Machine()
    with limit_load(lambda: machine.secs) as outer:
        for _ in range(2):
            assert await machine.load({"endless.lua": ENDLESS, "slow.lua": 0.6}) == ["slow.lua"]
        assert await machine.load(number(20, ENDLESS)) == []
        assert current_load() is outer
    assert machine.secs < MAX_LATE_SECS + 8 * FIRST_CPU_SECS
    assert current_load() is None


async def test_a_task_that_outlives_a_load_does_not_use_its_limits() -> None:
    gate = asyncio.Event()

    async def look() -> bool:
        await gate.wait()
        return current_load() is None

    with limit_load():
        task = asyncio.create_task(look())
        await asyncio.sleep(0)
    gate.set()
    assert await task


def requiring(script: str, name: str) -> Source:
    return Source(name=f"{name}.lua", text=f"require('{script}') return {{}}".encode())


async def load(pool: WorkerPool, *sources: Source) -> tuple[list[str], list[str]]:
    """Return the loaded files, and the faults."""

    async def load_one(source: Source) -> LoadedFile[str]:
        try:
            await pool.describe(source)
        except ScriptFailed as failed:
            raise ConfigFailed([failed.fault]) from None
        return LoadedFile(definition=source.name, source=source)

    loaded = await load_folder(Contents(sources=tuple(sources), faults=()), load_one)
    return [each.definition for each in loaded.files], [str(each) for each in loaded.faults]


@pytest.mark.slow
async def test_a_script_that_was_stopped_runs_for_no_other_file_of_the_load(tmp_path: Path) -> None:
    (tmp_path / "bad.lua").write_text("print('runs')\nwhile true do end")
    (tmp_path / "outer.lua").write_text("return require('bad')")
    (tmp_path / "good.lua").write_text("return {loop = function() while true do end end}")
    endless = [requiring(name, f"{name}{each}") for name in ("bad", "outer") for each in range(9)]
    looping = Source(name="looping.lua", text=b"require('good').loop() return {}")
    valid = [requiring("good", f"valid{each}") for each in range(9)]
    async with open_pool(RunLimits(max_cpu_secs=0.6), scripts=tmp_path) as pool:
        loaded, faults = await load(pool, looping, *endless, *valid)
    assert loaded == [each.name for each in valid]
    assert len(faults) == len(endless) + 1
    stopped = re.compile(r"config/scripts/bad.lua:2: (used|ran for) .* and was stopped \(")
    assert len([each for each in faults if stopped.search(each)]) == len(endless)


@pytest.mark.slow
async def test_a_script_that_could_not_be_stopped_runs_for_no_other_file_of_the_load(tmp_path: Path) -> None:
    (tmp_path / "stuck.lua").write_text(f"local text = string.rep('a', 40)\n{STUCK}")
    stuck = [requiring("stuck", f"stuck{each}") for each in range(9)]
    async with open_pool(RunLimits(max_cpu_secs=0.6), scripts=tmp_path) as pool:
        loaded, faults = await load(pool, *stuck, requiring("none", "none"), file("return {}"))
    assert loaded == [FILE] and len(faults) == len(stuck) + 1
    assert len([each for each in faults if "could not be stopped" in each]) == len(stuck)
    assert [each for each in faults if re.match(r"stuck\d\.lua:1: stuck\d\.lua:1: ", each)]


@pytest.mark.slow
async def test_a_slow_script_loads_for_every_file(tmp_path: Path) -> None:
    (tmp_path / "slow.lua").write_text("local began = os.clock() while os.clock() - began < 0.7 do end")
    slow = [requiring("slow", f"{each}") for each in range(3)]
    async with open_pool(scripts=tmp_path) as pool:
        loaded, faults = await load(pool, *slow)
    assert len(loaded) == 3 and faults == []


@pytest.mark.slow
async def test_files_that_are_not_part_of_a_load_have_the_normal_limits() -> None:
    async with open_pool(RunLimits(max_cpu_secs=0.6)) as pool:
        with pytest.raises(ScriptFailed, match=r"(used 0\.6 s|ran for 6 s) .*scripts.max_cpu_secs"):
            await pool.describe(file("while true do end"))
