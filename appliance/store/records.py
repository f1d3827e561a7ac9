"""Records: what the home's things look like in the document, and how they are read back.

Keys are `room/<id>`, `group/<id>`, `place/<device id>` (its room), `device/<id>` (what it is) and `state/<device id>`
(`is`: what it shows, `at`: since when, in milliseconds since 1970; short, for hardly anything else is ever written);
`counter/card` counts what was written; `key/<id>` are the keys of `store/keys.py`. Whether a device is online is not
kept: after a start nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import orjson

from appliance.home.changes import Order
from appliance.home.model import Device, Group, Kind, Metadata, Room
from appliance.home.registry import OFFLINE

ROOM, GROUP, PLACE, DEVICE, STATE = "room/", "group/", "place/", "device/", "state/"

EPOCH, MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)

KEY = "key/"

MASTER_KEY = KEY + "master"
"""The hash of the master key that the box made itself; it stays on its box, whatever is restored."""

CARD = "counter/card"
"""What all runs together have asked of the card, and when that was noted: `{bytes_written, syncs, since, at}`."""


class Told(Protocol):
    """What tells the home: the document, or a backup of it."""

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """The keys that begin with the prefix, without it, and their values."""


def items_of(values: Mapping[str, bytes], prefix: str) -> list[tuple[str, Any]]:
    """The keys that begin with the prefix, without it and in order, and what their JSON says."""
    found = sorted((key, value) for key, value in values.items() if key.startswith(prefix))
    return [(key.removeprefix(prefix), orjson.loads(value)) for key, value in found]


def order_changes(before: Order, after: Order) -> dict[str, Any]:
    """What to write so that the document tells the order after instead of that before; None removes a key."""
    told, telling = encode_order(before), encode_order(after)
    gone = dict.fromkeys(told.keys() - telling.keys())
    return {**gone, **{key: value for key, value in telling.items() if told.get(key) != value}}


def encode_order(order: Order) -> dict[str, Any]:
    """The order as keys and values."""
    return {
        **{ROOM + room.id: {"name": room.name} for room in order.rooms.values()},
        **{GROUP + group.id: {"name": group.name, "members": group.members} for group in order.groups.values()},
        **{PLACE + device_id: room_id for device_id, room_id in order.places.items()},
    }


def read_order(document: Told) -> Order:
    """The order that the document tells."""
    rooms = {id_: Room(id=id_, name=value["name"]) for id_, value in document.items(ROOM)}
    groups = {
        id_: Group(id=id_, name=value["name"], members=tuple(value["members"]))
        for id_, value in document.items(GROUP)
    }
    return Order(rooms=rooms, groups=groups, places=dict(document.items(PLACE)))


def encode_device(device: Device) -> dict[str, Any]:
    """A device as keys and values: what it is, which hardly ever changes, and what it shows, which does."""
    return {
        DEVICE + device.id: {
            "kind": device.kind,
            "source": device.metadata.source,
            "vendor_specific": device.metadata.vendor_specific,
        },
        STATE + device.id: {
            "at": (device.updated_at - EPOCH) // MILLISECOND,
            "is": {key: value for key, value in device.attributes.items() if key != "state"},
        },
    }


def read_devices(document: Told, order: Order) -> list[Device]:
    """The devices that the document tells, in their rooms, all offline until they are seen.

    When a device was last seen is not kept: it was so at least when its state last changed.
    """
    states = dict(document.items(STATE))
    return [
        _device(id_, value, states[id_], order.places.get(id_))
        for id_, value in document.items(DEVICE)
        if id_ in states
    ]


def _device(device_id: str, value: dict[str, Any], state: dict[str, Any], room_id: str | None) -> Device:
    changed_at = EPOCH + state["at"] * MILLISECOND
    return Device(
        id=device_id,
        room_id=room_id,
        kind=Kind(value["kind"]),
        attributes={**state["is"], "state": OFFLINE},
        metadata=Metadata(source=value["source"], vendor_specific=value["vendor_specific"]),
        updated_at=changed_at,
        last_seen=changed_at,
    )
