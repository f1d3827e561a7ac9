"""Checks of files run one at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from appliance.errors import Fault, ScriptFailed
from appliance.files.file_checks import FileChecks
from appliance.files.file_locations import FileLocation
from appliance.lua.source import Source

SCRIPT = FileLocation(kind="script", path="scripts/a.lua", file=Path("scripts/a.lua"))


class HeldPool:
    """A pool that compiles each text only after `release` is set, and then refuses the text."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.running = self.most = self.begun = 0

    async def compile(self, source: Source) -> None:
        self.begun += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await self.release.wait()
        await asyncio.sleep(0)
        self.running -= 1
        raise ScriptFailed(Fault(source.name, 1, "is wrong"))


async def test_one_check_runs_at_a_time_even_after_a_cancelled_one() -> None:
    pool, unused = HeldPool(), cast("Any", None)
    checks = FileChecks(unused, cast("Any", pool), unused, unused, unused, (), unused)
    asked = [asyncio.create_task(checks.check(SCRIPT, b"a")) for _ in range(6)]
    for _ in range(5):
        await asyncio.sleep(0)
    asked[0].cancel()
    asked[1].cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert pool.begun == 1
    pool.release.set()
    results = await asyncio.gather(*asked[2:])
    assert [each.errors[0].message for each in results] == ["is wrong"] * 4
    assert pool.most == 1 and pool.begun == 5
