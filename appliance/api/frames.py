"""Event frames. A table defines each type of frame: the frame's fields, and the time when the frame is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson
from msgspec import Struct

from appliance.api import schemas
from appliance.home import events, json_shapes
from appliance.home.texts import alias, identifier
from appliance.tables.json_schema import ANY, COUNT, OBJECT, TEXT, Part, Record, Schema, array_of, maybe, only


class EventFrame(Struct, frozen=True, kw_only=True):
    """One type of frame. `when` describes when the frame is sent; `record` describes the frame's JSON."""

    type: str
    when: str
    record: Record


def _frame(
    type_: str, when: str, optional: Mapping[str, Schema | Part] | None = None, /, **fields: Schema | Part
) -> EventFrame:
    title = "".join(word.capitalize() for word in type_.replace("_", ".").split(".")) + "Frame"
    record = Record(title, {"type": only(type_), **fields}, optional, when)
    return EventFrame(type=type_, when=when, record=record)


def _of(
    event: type[events.Event],
    type_: str,
    optional: Mapping[str, Schema | Part] | None = None,
    /,
    **fields: Schema | Part,
) -> tuple[type[events.Event], EventFrame]:
    """Return the event and its frame. The event's docstring describes when the frame is sent."""
    return event, _frame(type_, event.__doc__ or "", optional, **fields)


_DEVICE_ID = Part(TEXT, "device_id")
_GROUP_ID = Part(identifier.schema, "group_id")
_TARGET = schemas.RELOADED_PARTS["target"]
_DROPPED = "The number of frames that this reader lost because it was too slow."

RELOAD_PREFIXES: Mapping[str, str] = {
    "scenes": "scene.catalog_reload",
    "automations": "automation.catalog_reload",
    "scripts": "scripts.reload",
    "adapters": "adapters.reload",
}
"""Maps a reload target to the first part of its frame types."""


def _reload_frames(end: str, when: str, fields: Mapping[str, Schema | Part]) -> Mapping[str, EventFrame]:
    """Return the frames of a reload event, by target."""
    return {
        target: _frame(f"{begin}{end}", when.format(target), **fields) for target, begin in RELOAD_PREFIXES.items()
    }


_ERROR = _frame(
    "system.error",
    f"{events.SystemErrorReported.__doc__} A reader that was too slow also receives this event, with the number of "
    "lost frames in `dropped`.",
    {"dropped": Part({**COUNT, "description": _DROPPED}, lambda _: None)},  # only `dropped_frame` sets this field
    message=TEXT,
)

BY_EVENT: Mapping[type[events.Event], EventFrame | Mapping[str, EventFrame] | None] = {
    **dict.fromkeys(events.Event.__subclasses__()),
    **dict(
        [
            _of(
                events.DeviceStateChanged,
                "device.state_changed",
                id=Part(TEXT, "device.id"),
                state=Part(json_shapes.ATTRIBUTES, "device.attributes"),
            ),
            _of(
                events.DeviceUpdated,
                "device.updated",
                {"alias": Part(alias.schema, "device.alias")},
                id=Part(TEXT, "device.id"),
                name=Part(TEXT, "device.name"),
                info=Part(json_shapes.INFO, "device.info"),
            ),
            _of(events.DeviceEvent, "device.event", id=_DEVICE_ID, event=TEXT, data=OBJECT),
            _of(events.DeviceRemoved, "device.removed", id=_DEVICE_ID),
            _of(events.DeviceRoomChanged, "device.room_changed", id=_DEVICE_ID, room_id=maybe(TEXT)),
            _of(events.RoomAdded, "room.added", room=json_shapes.ROOM),
            _of(events.RoomUpdated, "room.updated", room=json_shapes.ROOM),
            _of(events.RoomRemoved, "room.removed", id=Part(identifier.schema, "room_id")),
            _of(events.GroupAdded, "group.added", group=json_shapes.GROUP),
            _of(events.GroupUpdated, "group.updated", group=json_shapes.GROUP),
            _of(events.GroupRemoved, "group.removed", id=_GROUP_ID),
            _of(events.GroupMembersChanged, "group.members_changed", id=_GROUP_ID, members=array_of(TEXT)),
            _of(events.AdapterStarted, "adapter.started", adapter=TEXT),
            _of(events.VariableChanged, "variable.changed", name=TEXT, value=ANY),
        ]
    ),
    events.SystemErrorReported: _ERROR,
    events.CatalogReloadStarted: _reload_frames("_started", "A reload of the {} begins.", {"target": _TARGET}),
    events.CatalogReloaded: _reload_frames(
        "ed", "A reload of the {} has succeeded; the files are loaded.", schemas.RELOADED_PARTS
    ),
    events.CatalogReloadFailed: _reload_frames(
        "_failed",
        "A reload of the {} has failed; `errors` lists the errors, and the previous files stay loaded.",
        schemas.RELOADED_PARTS,
    ),
}
"""The frame of each event. A reload event has one frame per target. The value is None for events that are not sent to
clients."""

_HEARTBEAT = _frame(
    "heartbeat",
    "Sent only to readers with `heartbeat_secs`: when the stream opens, and then at this interval.",
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
    """Return the event's frame as JSON, or None."""
    found = BY_EVENT[type(event)]
    if found is None:
        return None
    if not isinstance(found, EventFrame):
        assert isinstance(event, events.CatalogReloadStarted | events.CatalogReloaded | events.CatalogReloadFailed)
        found = found[event.target]
    return orjson.dumps(found.record.encode(event))


def dropped_frame(dropped: int) -> bytes:
    """Return the frame that reports to a reader how many frames it lost."""
    message = f"subscriber lagged: {dropped} events dropped"
    return orjson.dumps(_ERROR.record({"message": message, "dropped": dropped}))


def heartbeat_frame() -> bytes:
    """Return a heartbeat frame, which shows that the stream is alive."""
    return orjson.dumps(_HEARTBEAT.record({}))


def fault_frame(event: events.Event) -> bytes:
    """Return the frame that replaces an event that cannot be encoded."""
    message = f"an event could not be encoded ({type(event).__name__}); see the log"
    return orjson.dumps(_ERROR.record({"message": message}))
