"""Event frames: one row for each type on the wire says what it is made of, what it holds, and when it comes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson
from msgspec import Struct

from appliance.api import schemas
from appliance.home import events, json_shapes
from appliance.home.texts import identifier
from appliance.tables.json_schema import ANY, COUNT, OBJECT, TEXT, Part, Record, Schema, array_of, maybe, only


class EventFrame(Struct, frozen=True, kw_only=True):
    """One type of frame: when it is sent, as a sentence, and what it is as JSON."""

    type: str
    when: str
    record: Record


def _frame(
    type_: str, when: str, optional: Mapping[str, Schema | Part] | None = None, /, **fields: Schema | Part
) -> EventFrame:
    title = "".join(word.capitalize() for word in type_.replace("_", ".").split(".")) + "Frame"
    record = Record(title, {"type": only(type_), **fields}, optional, when)
    return EventFrame(type=type_, when=when, record=record)


_DEVICE_ID = Part(TEXT, "device_id")
_TARGET = schemas.RELOADED_PARTS["target"]

RELOAD_PREFIXES: Mapping[str, str] = {
    "scenes": "scene.catalog_reload",
    "automations": "automation.catalog_reload",
    "scripts": "scripts.reload",
    "adapters": "adapters.reload",
}
"""How the types of the frames of each target's reloads begin."""

DROPPED = Part(
    {**COUNT, "description": "How many frames this reader has lost, because it was too slow."}, lambda _: None
)
"""A field of `lag_frame` alone."""


def _reload_frames(end: str, when: str, fields: Mapping[str, Schema | Part]) -> Mapping[str, EventFrame]:
    """The frames of an event of reloads, by its target."""
    return {
        target: _frame(f"{begin}{end}", when.format(target), **fields) for target, begin in RELOAD_PREFIXES.items()
    }


BY_EVENT: Mapping[type[events.Event], EventFrame | Mapping[str, EventFrame] | None] = {
    events.DeviceStateChanged: _frame(
        "device.state_changed",
        "An attribute of the device changed, or the device is new; `state` holds all attributes.",
        id=Part(TEXT, "device.id"),
        state=Part(json_shapes.ATTRIBUTES, "device.attributes"),
    ),
    events.DeviceUpdated: _frame(
        "device.updated",
        "The device has another name, or its vendor says something else about it.",
        id=Part(TEXT, "device.id"),
        name=Part(TEXT, "device.name"),
        info=Part(json_shapes.INFO, "device.info"),
    ),
    events.DeviceEvent: _frame(
        "device.event",
        "Something happened at the device that is no state: a button was pressed, a bell rang. Two alike are two.",
        id=_DEVICE_ID,
        event=TEXT,
        data=OBJECT,
    ),
    events.DeviceRemoved: _frame("device.removed", "The device is gone from its adapter's full list.", id=_DEVICE_ID),
    events.DeviceRoomChanged: _frame(
        "device.room_changed",
        "The device was put into a room, or (null) into none.",
        id=_DEVICE_ID,
        room_id=maybe(TEXT),
    ),
    events.RoomAdded: _frame("room.added", "A room was made.", room=json_shapes.ROOM),
    events.RoomUpdated: _frame("room.updated", "A room has another name.", room=json_shapes.ROOM),
    events.RoomRemoved: _frame(
        "room.removed",
        "A room was removed, after a `device.room_changed` for each of its devices.",
        id=Part(identifier.schema, "room_id"),
    ),
    events.GroupAdded: _frame("group.added", "A group was made.", group=json_shapes.GROUP),
    events.GroupUpdated: _frame("group.updated", "A group has another name.", group=json_shapes.GROUP),
    events.GroupRemoved: _frame("group.removed", "A group was removed.", id=Part(identifier.schema, "group_id")),
    events.GroupMembersChanged: _frame(
        "group.members_changed",
        "A group has other members, or the same ones in another order.",
        id=Part(identifier.schema, "group_id"),
        members=array_of(TEXT),
    ),
    events.AdapterStarted: _frame(
        "adapter.started",
        "The adapter's first poll has ended, whether its devices were reached or not.",
        adapter=TEXT,
    ),
    events.VariableChanged: _frame(
        "variable.changed",
        "A variable of the automations has another value; null where it was removed.",
        name=TEXT,
        value=ANY,
    ),
    events.TimerFired: None,
    events.HookCalled: None,
    events.SystemErrorReported: _frame(
        "system.error",
        "Something is wrong in an adapter or in the hub: once when it begins, not again while it lasts. Also "
        "sent to a reader that was too slow: it lost `dropped` frames, and goes on with those that follow.",
        {"dropped": DROPPED},
        message=TEXT,
    ),
    events.CatalogReloadStarted: _reload_frames("_started", "A reload of the {} begins.", {"target": _TARGET}),
    events.CatalogReloaded: _reload_frames(
        "ed", "A reload of the {} has ended; what it read is in force.", schemas.RELOADED_PARTS
    ),
    events.CatalogReloadFailed: _reload_frames(
        "_failed",
        "A reload of the {} has ended with faults, which `errors` lists; what was in force before stays.",
        schemas.RELOADED_PARTS,
    ),
    events.KeyRevoked: None,
    events.AdapterAnswered: None,
    events.AdapterProgressed: None,
    events.AdapterErrored: None,
    events.AdapterFileChecked: None,
    events.CommandStarted: None,
    events.CommandEnded: None,
    events.ObservationDropped: None,
}
"""The frame of each event; by the target where it is a reload's; None for events that stay inside."""

_HEARTBEAT = _frame(
    "heartbeat",
    "To readers that ask for it with `heartbeat_secs` alone: at once, and whenever so many seconds went by.",
)

FRAMES: Sequence[EventFrame] = [
    *(
        each
        for frames in BY_EVENT.values()
        if frames is not None
        for each in ([frames] if isinstance(frames, EventFrame) else frames.values())
    ),
    _HEARTBEAT,
]
"""Every type of frame."""


def frame_of(event: events.Event) -> bytes | None:
    """The event's frame as JSON, or None when it has none."""
    found = BY_EVENT[type(event)]
    if isinstance(event, events.CatalogReloadStarted | events.CatalogReloaded | events.CatalogReloadFailed):
        assert isinstance(found, Mapping)
        found = found[event.target]
    assert found is None or isinstance(found, EventFrame)
    return None if found is None else orjson.dumps(found.record(event))


def lag_frame(dropped: int) -> bytes:
    """The frame that says to a reader how many it lost."""
    message = f"subscriber lagged: {dropped} events dropped"
    return orjson.dumps({"type": "system.error", "message": message, "dropped": dropped})


def heartbeat_frame() -> bytes:
    """The frame that says that the stream is alive."""
    return orjson.dumps(_HEARTBEAT.record({}))


def fault_frame(event: events.Event) -> bytes:
    """The frame in place of one that could not be encoded."""
    message = f"an event could not be encoded ({type(event).__name__}); the log says why"
    return orjson.dumps({"type": "system.error", "message": message})
