"""Endless files delay the start of the hub only briefly, and a slow file still loads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from appliance.errors import Fault, ScriptFailed
from appliance.lua.running.run_limits import RunLimits
from appliance.lua.running.start_limit import START_CPU_SECS, StartLimit
from appliance.lua.text.source import Source
from tests.lua.bench import file, open_pool

ENDLESS = 1e9


class Loads:
    """Loads files that need this processor time, and adds up the time."""

    def __init__(self) -> None:
        self.limit = StartLimit(RunLimits(max_cpu_secs=5.0))
        self.cpu_secs = 0.0

    async def load(self, name: str, secs: float) -> bool:
        """Return whether the file is loaded."""
        try:
            return await self.limit.run(Source(name=name, text=b""), self._run(secs)) == b"loaded"
        except ScriptFailed:
            return False

    def _run(self, secs: float) -> Callable[[RunLimits], Awaitable[bytes]]:
        async def run(limits: RunLimits) -> bytes:
            await asyncio.sleep(0)
            self.cpu_secs += min(secs, limits.max_cpu_secs)
            if secs > limits.max_cpu_secs:
                raise ScriptFailed(Fault("x.lua", 1, "was stopped"), "timeout")
            return b"loaded"

        return run


async def test_many_endless_files_at_a_start_use_little_time() -> None:
    loads = Loads()
    names = [f"{number}.lua" for number in range(8)]
    assert not any(await asyncio.gather(*(loads.load(name, ENDLESS) for name in names)))
    assert loads.cpu_secs == 8 * START_CPU_SECS + 5.0
    assert not any([await loads.load(name, ENDLESS) for name in names])  # the catalog tries a faulty file twice
    assert loads.cpu_secs == 8 * START_CPU_SECS + 5.0
    assert await loads.load("good.lua", 0.4)


async def test_slow_files_load_at_a_start() -> None:
    loads = Loads()
    assert all(await asyncio.gather(*(loads.load(f"{number}.lua", 4.0) for number in range(3))))


async def test_a_file_with_an_error_runs_again_at_once_only_if_its_caller_asks() -> None:
    runs = []

    async def fail(limits: RunLimits) -> bytes:
        runs.append(limits.max_cpu_secs)
        raise ScriptFailed(Fault("x.lua", 1, "attempt to index nil"))

    limit = StartLimit(RunLimits())
    for _ in range(2):
        with pytest.raises(ScriptFailed, match="index nil"):
            await limit.run(Source(name="x.lua", text=b""), fail)
    assert runs == [START_CPU_SECS] * 2


@pytest.mark.slow
async def test_the_pool_limits_files_only_during_the_start() -> None:
    endless = file("while true do end")
    async with open_pool(RunLimits(max_cpu_secs=0.6)) as pool:
        with pool.start():
            results = await asyncio.gather(*(pool.describe(endless) for _ in range(2)), return_exceptions=True)
        assert sorted(str(each).split(" s of")[0].split("used ")[1] for each in results) == ["0.5", "0.6"]
        with pytest.raises(ScriptFailed, match=r"used 0\.6 s .*scripts.max_cpu_secs"):
            await pool.describe(endless)
