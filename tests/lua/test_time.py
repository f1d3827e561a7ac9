"""`os.time` and `os.date` use the home's time zone and the hub's clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from appliance.errors import ScriptFailed
from appliance.lua.running.worker_pool import WorkerPool
from tests.fakes.clock import VirtualClock
from tests.lua.bench import open_pool, run

pytestmark = pytest.mark.asyncio(loop_scope="module")

SUMMER = VirtualClock(datetime(2026, 7, 1, 10, 30, 15, tzinfo=UTC))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    async with open_pool(clock=SUMMER) as opened:
        yield opened


TIMES: tuple[tuple[str, str], ...] = (
    ("os.time()", "1782901815"),
    ("os.date('%Y-%m-%d %H:%M:%S')", "2026-07-01 12:30:15"),
    ("os.date('!%H:%M')", "10:30"),
    ("os.date('%H:%M %z', 0)", "01:00 +0100"),
    ("os.date('*t').hour", "12"),
    ("os.date('*t', 0).hour", "1"),
    ("os.time({year = 2026, month = 7, day = 1, hour = 12, min = 30, sec = 15})", "1782901815"),
    ("os.time({year = 2026, month = 1, day = 1, hour = 0})", "1767222000"),
    ("os.time(os.date('*t'))", "1782901815"),
    # one hour is skipped by a clock change, and one hour is repeated
    ("os.date('%H:%M', os.time({year = 2026, month = 3, day = 29, hour = 2, min = 30}))", "03:30"),
    ("os.date('%H:%M', os.time({year = 2026, month = 10, day = 25, hour = 2, min = 30}))", "02:30"),
)


@pytest.mark.parametrize(("asked", "answer"), TIMES)
async def test_lua_knows_the_local_time(pool: WorkerPool, asked: str, answer: str) -> None:
    assert (await run(pool, f"print({asked})")).printed == [answer]


@pytest.mark.parametrize(
    ("zone", "shown"),
    [("UTC", "10:30 +0000"), ("America/New_York", "06:30 -0400"), ("Asia/Kathmandu", "16:15 +0545"),
     ("America/St_Johns", "08:00 -0230")],
)  # fmt: skip
async def test_the_time_zone_is_the_homes(zone: str, shown: str) -> None:
    async with open_pool(clock=SUMMER, zone=zone) as pool:
        assert (await run(pool, "print(os.date('%H:%M %z'))")).printed == [shown]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("os.time({})", "field 'year' missing in date table"),
        ("os.time(5)", "table expected, got number"),
        ("os.date('%H', 1 << 60)", "cannot be represented"),
        ("os.date({})", "string expected, got table"),
        ("os.date('%Q')", "invalid conversion specifier"),
    ],
)
async def test_invalid_times_are_refused_at_the_line(pool: WorkerPool, asked: str, message: str) -> None:
    with pytest.raises(ScriptFailed) as failure:
        await run(pool, f"\n{asked}")
    assert failure.value.line == 3
    assert message in str(failure.value)
