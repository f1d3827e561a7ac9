"""Changes: those that come together share one sync."""

from __future__ import annotations

import asyncio

from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.model import DeviceKind, Observation, Report, Room
from appliance.home.registry import Registry
from appliance.store.document import Document
from appliance.store.store_setup import Changes
from tests.fakes.disk import RecordingDisk


async def test_of_changes_that_share_a_sync_each_sees_what_those_before_it_leave() -> None:
    registry = Registry(Bus(), Clock())
    seen = Observation(device_id="lamp", kind=DeviceKind.LIGHT, attributes={}, vendor_specific={})
    async with Document(RecordingDisk(), Clock()) as document:
        changes = Changes(registry, document)
        registry.apply(Report(adapter="x", present=frozenset({"lamp"}), observations=(seen,)))
        await changes.make(lambda layout, _: layout.put_room(Room(id="attic", name="Attic")))
        layouts = await asyncio.gather(
            changes.make(lambda layout, _: layout.put_room(Room(id="hall", name="Hall"))),
            changes.make(lambda layout, devices: layout.assign_room("lamp", "hall", devices)),
            changes.make(lambda layout, _: layout.remove_room("hall")),
            changes.make(lambda layout, _: layout.put_room(Room(id="hall", name="Again"))),
            changes.make(lambda layout, _: layout.remove_room("attic")),
        )
        assert [dict(each.room_assignments) for each in layouts] == [{}, {"lamp": "hall"}, {}, {}, {}]
        assert registry.get_device("lamp").room_id is None
        assert dict(document.items("")) == {"room/hall": {"name": "Again"}}
        assert registry.layout.devices_in("hall") == [] and registry.list_room_devices("hall") == []
