"""Checks of files run one at a time, and compute on one thread."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import current_thread
from typing import Any, cast

from appliance import config
from appliance.clock import Clock
from appliance.errors import Fault, ScriptFailed
from appliance.files.file_checks import CheckedText, FileChecks
from appliance.files.file_locations import FileLocation
from appliance.files.home_files import HomeFiles
from appliance.lua.text.source import Source
from appliance.store.disk import Disk

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


class HeldAutomations:
    """Automations that use the pool for each check."""

    def __init__(self, pool: HeldPool) -> None:
        self._pool = pool

    async def validate(self, id_: str) -> None:
        await self._pool.compile(Source(name=id_, text=b""))


async def test_one_automation_is_checked_at_a_time() -> None:
    pool, unused = HeldPool(), cast("Any", None)
    automations = cast("Any", HeldAutomations(pool))
    checks = FileChecks(unused, cast("Any", pool), unused, automations, unused, (), unused)
    pool.release.set()
    text = checks.check(SCRIPT, b"a")
    ends = await asyncio.gather(text, *(checks.validate("a") for _ in range(5)), return_exceptions=True)
    assert [type(end) for end in ends] == [CheckedText, *[ScriptFailed] * 5]
    assert pool.most == 1 and pool.begun == 6


class NoChecks:
    """Checks that find no faults."""

    async def check(self, location: FileLocation, text: bytes) -> CheckedText:
        """Return no faults."""
        return CheckedText()


async def test_concurrent_checks_of_the_configuration_put_their_secrets_back_on_one_thread(tmp_path: Path) -> None:
    threads = set[str]()

    def list_secrets() -> dict[str, frozenset[str]]:
        threads.add(current_thread().name)
        return {}

    file = tmp_path / "config" / "default.toml"
    file.parent.mkdir()
    file.write_text("[automations]\nenabled = false\n")
    unused = cast("Any", None)
    files = HomeFiles(
        config.load(file, {}),
        Disk(tmp_path),
        cast("Any", NoChecks()),
        Clock(),
        unused,
        run=unused,
        reload_valid={},
        secret_settings=list_secrets,
    )
    text = "".join(f"[adapters.a{number}]\nenabled = false\n" for number in range(500))
    await asyncio.gather(*(files.check("config/default.toml", text) for _ in range(6)))
    assert len(threads) == 1
