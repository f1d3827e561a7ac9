"""After crashes, the hub starts in safe mode without automations. Later, the hub runs the automations again by
itself."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from appliance.automations.safe_mode import SAFE_SECS
from appliance.store.lock import read_boot_id
from appliance.store.record_keys import CRASHES
from tests.fakes.app import open_app
from tests.fakes.clock import VirtualClock

TICK = 'return { id = "tick", name = "Tick", trigger = { type = "interval", every_secs = 60 }, execute = print }'
IDLE = 2
"""Number of tasks that sleep in a hub without adapters: the recorder and the scheduler."""


async def test_safe_mode_ends_by_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, clock: VirtualClock
) -> None:
    caplog.set_level(logging.INFO, "hub")
    (tmp_path / "config" / "automations").mkdir(parents=True)
    (tmp_path / "config" / "automations" / "tick.lua").write_text(TICK)
    data, cut = tmp_path / "data", tmp_path / "cut"
    data.mkdir()
    async with open_app(clock=clock, root=tmp_path, data_dir=data, adapters={}) as app:
        now = clock.monotonic()
        await app.hub.store.document.put_many({CRASHES: {"boot": read_boot_id(), "crashes": [now, now]}})
        shutil.copytree(data, cut)
    async with open_app(clock=clock, root=tmp_path, data_dir=cut, adapters={}) as app:
        await clock.advance(SAFE_SECS - 1, sleepers=IDLE)
        assert (await app.get("/diagnostics")).json["hub"]["safe"].startswith("safe mode: the hub crashed")
        assert (await app.get("/automations/tick/next")).json["next"] == []
        await clock.advance(2, sleepers=IDLE)
        assert (await app.get("/diagnostics")).json["hub"]["safe"] is None
        assert len((await app.get("/automations/tick/next")).json["next"]) == 10
    lines = [each.message for each in caplog.records if "safe mode ended" in each.message]
    assert lines == ["safe mode ended: the hub ran for 10 minutes without a crash; automations run again"]
