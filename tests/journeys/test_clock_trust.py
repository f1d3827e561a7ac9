"""The clock is not trusted. A person confirms the time over HTTP or on the hub's machine. The decision survives
restarts."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance.store.record_keys import CARD, KEY_PREFIX
from tests.fakes.app import App, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.lua import automation, write
from tests.fakes.moody_disk import MoodyDisk

NOW = datetime(2027, 6, 1, 12, tzinfo=UTC)
LATER = "2036-01-01T00:00:00.000Z"
WRONG = {
    CARD: {"bytes_written": 0, "syncs": 0, "since": LATER, "at": LATER},
    KEY_PREFIX + "key_a": {"label": "x", "role": "read", "hash": "h", "created_at": LATER},
}


async def clock_of(app: App) -> Any:
    return (await app.get("/diagnostics")).json["clock"]


@pytest.mark.slow
async def test_a_person_can_overrule_entries_of_a_clock_in_2036_even_after_a_restart(tmp_path: Path) -> None:
    async with open_app(clock=VirtualClock(NOW), data_dir=tmp_path, adapters={}) as app:
        await app.hub.store.document.put_many(WRONG)
    async with open_app(clock=VirtualClock(NOW), data_dir=tmp_path, adapters={}) as app:
        clock = await clock_of(app)
        assert (clock["trusted"], clock["trusted_after"]) == (False, LATER)
        assert "lares clock trust" in clock["waits_because"]
        done = await app.post("/diagnostics/clock/trust")
        assert (done.status, done.json) == (200, {"status": "ok"})
        clock = await clock_of(app)
        assert (clock["trusted"], clock["waits_because"], clock["forgotten"]) == (True, None, LATER)
    for months in (7, 8):
        async with open_app(clock=VirtualClock(NOW.replace(month=months)), data_dir=tmp_path, adapters={}) as app:
            assert (await clock_of(app))["trusted"] is True
    async with open_app(clock=VirtualClock(NOW.replace(month=1)), data_dir=tmp_path, adapters={}) as app:
        assert (await clock_of(app))["trusted"] is False, "a clock behind the present is wrong all the same"


async def test_a_synchronised_clock_forgets_later_entries_and_reports_it(tmp_path: Path) -> None:
    async with open_app(clock=VirtualClock(NOW), data_dir=tmp_path, adapters={}) as app:
        await app.hub.store.document.put_many(WRONG)
    for is_synchronised in (True, False):
        clock = VirtualClock(NOW.replace(month=7 + (not is_synchronised)), is_synchronised=is_synchronised)
        async with open_app(clock=clock, data_dir=tmp_path, adapters={}) as app:
            reported = await clock_of(app)
            assert reported["trusted"] is True
            assert (reported["synchronised"], reported["forgotten"]) == (
                is_synchronised,
                LATER if is_synchronised else None,
            )


async def test_a_failing_card_does_not_change_the_trust_in_the_clock(tmp_path: Path) -> None:
    disk = MoodyDisk(tmp_path)
    async with open_app(clock=VirtualClock(datetime(1970, 1, 1, tzinfo=UTC)), disk=disk, adapters={}) as app:
        disk.mood = errno.EIO
        assert (await app.post("/diagnostics/clock/trust")).status == 503
        assert (await clock_of(app))["trusted"] is False
        disk.mood = None
        assert (await app.post("/diagnostics/clock/trust")).status == 200
        assert (await clock_of(app))["trusted"] is True


BOOT = datetime(1970, 1, 1, tzinfo=UTC)
NOON = datetime(2027, 6, 1, 12, tzinfo=UTC)
IDLE = 2
"""Number of tasks that sleep in a hub without adapters: the recorder and the scheduler."""

WINDOW = "conditions = { { type = 'time_window', start = '00:00', ['end'] = '23:59' } }"
FILES = {
    "automations/c.lua": automation("c", "{ type = 'cron', expression = '0 */10 * * * *' }"),
    "automations/i.lua": automation("i", "{ type = 'interval', every_secs = 600 }"),
    "automations/w.lua": automation("w", "{ type = 'wall_clock', hour = 12, minute = 30 }"),
    "automations/t.lua": automation("t", "{ type = 'interval', every_secs = 1000 }", more=WINDOW),
}


class Hub:
    """A hub and its clock."""

    def __init__(self, app: App, clock: VirtualClock) -> None:
        self.app = app
        self.clock = clock

    async def pass_by(self, **span: float) -> None:
        await self.clock.advance(timedelta(**span).total_seconds(), sleepers=IDLE)
        async with asyncio.timeout(10):
            while self.app.hub.automations.figures()["running"]:  # noqa: ASYNC110 - no event to await
                await asyncio.sleep(0.002)

    async def counts(self) -> Mapping[str, int]:
        """Return the number of runs of each automation."""
        return {id_: len([each for each in await self.entries(id_) if each["status"] == "ok"]) for id_ in "ciwt"}

    async def entries(self, id_: str) -> list[Any]:
        found: list[Any] = (await self.app.get(f"/automations/{id_}/history")).json["entries"]
        return found

    async def time(self) -> Any:
        return (await self.app.get("/diagnostics")).json["clock"]


@asynccontextmanager
async def hub(folder: Path, start: datetime) -> AsyncIterator[Hub]:
    """Run a hub whose clock has this time at the start."""
    clock = VirtualClock(start)
    async with open_app(clock=clock, root=write(folder, FILES), adapters={}) as app:
        yield Hub(app, clock)


async def test_a_box_that_boots_in_1970_waits_for_the_time(tmp_path: Path) -> None:
    async with hub(tmp_path, BOOT) as it:
        await it.pass_by(hours=1)
        assert await it.counts() == {"c": 0, "i": 6, "w": 0, "t": 0}
        assert {each["error"] for each in await it.entries("t")} == {
            "condition 1: the clock is not trusted yet, needs 00:00 to 23:59"
        }
        clock = await it.time()
        assert clock["trusted"] is False and clock["waits_because"].startswith("the clock shows 1970-01-01T01:00")
        assert (await it.app.get("/why?id=t")).json["automation"]["notes"] == [clock["waits_because"]]
        it.clock.set(NOON + timedelta(minutes=1))
        await it.pass_by(minutes=1)
        assert await it.counts() == {"c": 0, "i": 6, "w": 0, "t": 0}
        clock = await it.time()
        assert (clock["trusted"], clock["waits_because"], len(clock["steps"])) == (True, None, 1)
        status = (await it.app.get("/diagnostics/status")).json
        assert (status["uptime_secs"], status["started_at"]) == (3660.0, "2027-06-01T11:01:00.000Z")
        await it.pass_by(hours=1)
        assert await it.counts() == {"c": 6, "i": 12, "w": 1, "t": 4}


@pytest.mark.slow
async def test_after_a_suspend_everything_continues(tmp_path: Path) -> None:
    async with hub(tmp_path, NOON) as it:
        await it.pass_by(minutes=1)
        it.clock.suspend(timedelta(hours=8, minutes=5).total_seconds())
        await it.pass_by(seconds=15)
        assert await it.counts() == {"c": 0, "i": 0, "w": 0, "t": 1}, "only t was due within the last five minutes"
        received = (await it.app.get("/why?id=w")).json
        [missed] = received["automation"]["notes"]
        assert missed in received["summary"] and missed.startswith("it was due at 2027-06-01T12:30:00.000Z")
        await it.pass_by(hours=1)
        assert await it.counts() == {"c": 6, "i": 6, "w": 0, "t": 4}
        await it.pass_by(hours=16)
        assert (await it.counts())["w"] == 1
