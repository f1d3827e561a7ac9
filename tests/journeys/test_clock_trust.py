"""A clock that nothing trusts: a person says that it is right, over HTTP or at the box, also after restarts."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from appliance.store.records import CARD, KEY_PREFIX
from tests.fakes.clock import VirtualClock
from tests.fakes.house import House, open_house
from tests.fakes.moody_disk import MoodyDisk

NOW = datetime(2027, 6, 1, 12, tzinfo=UTC)
LATER = "2036-01-01T00:00:00.000Z"
WRONG = {
    CARD: {"bytes_written": 0, "syncs": 0, "since": LATER, "at": LATER},
    KEY_PREFIX + "key_a": {"label": "x", "role": "read", "hash": "h", "created_at": LATER},
}


async def clock_of(house: House) -> Any:
    """What diagnostics tell of the clock."""
    return (await house.get("/diagnostics")).json["clock"]


async def test_what_a_clock_of_2036_stored_is_overruled_by_a_person_also_after_a_restart(tmp_path: Path) -> None:
    async with open_house(clock=VirtualClock(NOW), data_dir=tmp_path, adapters={}) as house:
        await house.hub.document.put_many(WRONG)
    async with open_house(clock=VirtualClock(NOW), data_dir=tmp_path, adapters={}) as house:
        clock = await clock_of(house)
        assert (clock["trusted"], clock["trusted_after"]) == (False, LATER)
        assert "lares clock trust" in clock["waits_because"]
        done = await house.post("/diagnostics/clock/trust")
        assert (done.status, done.json) == (200, {"status": "ok"})
        clock = await clock_of(house)
        assert (clock["trusted"], clock["waits_because"], clock["forgotten"]) == (True, None, LATER)
    for months in (7, 8):
        async with open_house(clock=VirtualClock(NOW.replace(month=months)), data_dir=tmp_path, adapters={}) as house:
            assert (await clock_of(house))["trusted"] is True
    async with open_house(clock=VirtualClock(NOW.replace(month=1)), data_dir=tmp_path, adapters={}) as house:
        assert (await clock_of(house))["trusted"] is False, "a clock behind the present is wrong all the same"


async def test_a_synchronised_clock_forgets_what_is_ahead_of_it_and_says_so(tmp_path: Path) -> None:
    async with open_house(clock=VirtualClock(NOW), data_dir=tmp_path, adapters={}) as house:
        await house.hub.document.put_many(WRONG)
    for is_synchronised in (True, False):
        clock = VirtualClock(NOW.replace(month=7 + (not is_synchronised)), is_synchronised=is_synchronised)
        async with open_house(clock=clock, data_dir=tmp_path, adapters={}) as house:
            reported = await clock_of(house)
            assert reported["trusted"] is True
            assert (reported["synchronised"], reported["forgotten"]) == (
                is_synchronised,
                LATER if is_synchronised else None,
            )


async def test_a_card_that_takes_nothing_leaves_the_clock_as_it_was(tmp_path: Path) -> None:
    disk = MoodyDisk(tmp_path)
    async with open_house(clock=VirtualClock(datetime(1970, 1, 1, tzinfo=UTC)), disk=disk, adapters={}) as house:
        disk.mood = errno.EIO
        assert (await house.post("/diagnostics/clock/trust")).status == 503
        assert (await clock_of(house))["trusted"] is False
        disk.mood = None
        assert (await house.post("/diagnostics/clock/trust")).status == 200
        assert (await clock_of(house))["trusted"] is True
