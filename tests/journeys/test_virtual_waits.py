"""A power cut never separates the value of a virtual device from the wait that begins with this value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.store.file_format import read_journal
from tests.cli.commands import LOOPBACK
from tests.fakes.app import open_app
from tests.fakes.lua import automation, write
from tests.fakes.patience import until

HOME = """
[adapters.virtual]
devices = [
  { id = "door", attributes = { contact = "closed" } },
  { id = "window", attributes = { contact = "closed" } },
]
"""
OPEN = 'type = "device_state_change", attribute = "contact", equals = "open"'
TRIGGERS = {
    "each": f'{{ {OPEN}, device_id = "*", duration_secs = 600 }}',
    "room": f'{{ {OPEN}, room_id = "hall", debounce_secs = 600 }}',
    "at_once": f'{{ {OPEN}, device_id = "virtual:door" }}',
}


@pytest.mark.parametrize("devices", [["door"], ["door", "window"]])
async def test_the_value_and_the_wait_are_one_record(tmp_path: Path, devices: list[str]) -> None:
    files = {f"automations/{id_}.lua": automation(id_, trigger) for id_, trigger in TRIGGERS.items()}
    root = write(tmp_path, {"default.toml": LOOPBACK + HOME, **files})
    (data := root / "data").mkdir()
    async with open_app(adapters=HOME, root=root, data_dir=data, toml=HOME) as app:
        await app.post("/rooms", {"id": "hall", "name": "Hall"})
        for name in devices:
            await app.post(f"/devices/virtual:{name}/room", {"room_id": "hall"})
        for name in devices:
            opened = {"device_id": f"virtual:{name}", "attributes": {"contact": "open"}}
            assert (await app.post("/adapters/virtual/operations/observe", opened)).status == 200
        active = app.hub.automations.engine.list_active()
        await until(lambda: sum(len(each.waits) for each in active) == 2 * len(devices))
    journal = (data / "journal.000001.json").read_bytes()
    stored: dict[str, Any] = {}
    opened_in = 0
    records = read_journal(journal, 1).records
    written = sorted(key for record in records for key in record["put"] if key.startswith("wait/"))
    assert written == sorted(f"wait/virtual:{name}\t{id_}" for name in devices for id_ in ("each", "room"))
    for record in records:
        stored |= record["put"]
        for name in devices:
            device_id = f"virtual:{name}"
            if '"open"' not in str(stored.get(f"state/{device_id}")).replace("'", '"'):
                continue
            opened_in += 1
            for id_ in ("each", "room"):
                assert stored.get(f"wait/{device_id}\t{id_}"), (id_, record)
    assert opened_in
