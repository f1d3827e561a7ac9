"""Changes: what one costs depends on the change, not on the home."""

from __future__ import annotations

import asyncio
from typing import Any

from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.changes import AssignRoom, PutGroup, PutRoom, RemoveGroup, RemoveRoom, RenameDevice, SetMembers
from appliance.home.layout import Layout
from appliance.home.model import DeviceKind, Observation, Report, Room
from appliance.home.registry import Registry
from appliance.store.change_queue import Changes
from appliance.store.document import Document
from appliance.store.files import Files
from tests.fakes.disk import RecordingDisk

EVERY_KIND = (
    PutRoom(room=Room(id="hall", name="Hall")),
    PutRoom(room=Room(id="hall", name="The hall")),
    AssignRoom(device_id="lamp", room_id="hall"),
    RenameDevice(device_id="lamp", name="Lamp"),
    PutGroup(group_id="all", name="All", members=("lamp",)),
    SetMembers(group_id="all", members=()),
    RemoveGroup(group_id="all"),
    RemoveRoom(room_id="hall"),
)


class Unwalkable(dict[str, Any]):
    """A mapping that knows its keys and lets nobody go through them, as copying would."""

    def __iter__(self) -> Any:
        raise AssertionError("goes through everything")

    keys = values = items = copy = __iter__


async def test_no_change_goes_through_the_home() -> None:
    registry = Registry(Bus(), Clock())
    seen = Observation(device_id="lamp", kind=DeviceKind.LIGHT, attributes={}, vendor_specific={})
    async with Document(RecordingDisk(), Clock()) as document, Changes(registry, document) as changes:
        registry.restore(Layout(), [])
        registry.apply(Report(adapter="x", present=frozenset({"lamp"}), observations=(seen,)))
        for name in ("rooms", "groups", "places", "names"):
            setattr(registry.layout, name, Unwalkable())
        files: Files = document._files
        files.values = Unwalkable(files.values)
        for change in EVERY_KIND:
            await changes.make(change)
        assert registry.get_device("lamp").room_id is None and dict.keys(files.values) == {"name/lamp"}


async def test_of_changes_that_share_a_sync_each_sees_what_those_before_it_leave() -> None:
    registry = Registry(Bus(), Clock())
    seen = Observation(device_id="lamp", kind=DeviceKind.LIGHT, attributes={}, vendor_specific={})
    async with Document(RecordingDisk(), Clock()) as document, Changes(registry, document) as changes:
        registry.apply(Report(adapter="x", present=frozenset({"lamp"}), observations=(seen,)))
        await changes.make(PutRoom(room=Room(id="attic", name="Attic")))
        edits = await asyncio.gather(
            changes.make(PutRoom(room=Room(id="hall", name="Hall"))),
            changes.make(AssignRoom(device_id="lamp", room_id="hall")),
            changes.make(RemoveRoom(room_id="hall")),
            changes.make(PutRoom(room=Room(id="hall", name="Again"))),
            changes.make(RemoveRoom(room_id="attic")),
        )
        assert [dict(edit.room_assignments) for edit in edits] == [{}, {"lamp": "hall"}, {"lamp": None}, {}, {}]
        assert registry.get_device("lamp").room_id is None
        assert dict(document.items("")) == {"room/hall": {"name": "Again"}}
        assert registry.layout.devices_in("hall") == [] and registry.list_room_devices("hall") == []
