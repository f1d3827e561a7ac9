"""Converts the home to keys and values of the document, and back.

The value of `state/<device id>` contains `is` (the attributes), `at` (the time of the change, in milliseconds since
1970), and `was` (`Device.last`). The names are short because these values cause most writes. The online state of a
device is not stored, because it is unknown after a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

import orjson
from msgspec import Struct, convert, field

from appliance.clock import from_millis, to_millis
from appliance.errors import Invalid, LaresError
from appliance.home.command_specs import CommandSpec
from appliance.home.layout import Layout, LayoutChange
from appliance.home.model import OFFLINE, Device, DeviceKind, Group, Info, Metadata, Room
from appliance.home.observations import Dropped, check_attributes
from appliance.home.texts import alias
from appliance.store.record_keys import (
    ALIAS_PREFIX,
    ASSIGNMENT_PREFIX,
    DEVICE_PREFIX,
    GROUP_PREFIX,
    NAME_PREFIX,
    ROOM_PREFIX,
    STATE_PREFIX,
)
from appliance.store.storage import DocumentReader

T = TypeVar("T")

log = logging.getLogger("store")


def encode_layout_change(made: LayoutChange) -> dict[str, Any]:
    """Return the changed keys and values. The value None removes a key."""
    groups = made.groups.items()
    parts: dict[str, Mapping[str, Any]] = {
        ROOM_PREFIX: {id_: each and {"name": each.name} for id_, each in made.rooms.items()},
        GROUP_PREFIX: {id_: each and {"name": each.name, "members": each.members} for id_, each in groups},
        ASSIGNMENT_PREFIX: made.room_assignments,
        NAME_PREFIX: made.names,
        ALIAS_PREFIX: made.aliases,
    }
    return {prefix + id_: value for prefix, part in parts.items() for id_, value in part.items()}


OnFault = Callable[[str, Exception], None]
"""Is called with the key of a malformed stored value, and the error."""


def refuse(key: str, error: Exception) -> None:
    """Raise the error."""
    try:
        raise error
    finally:
        del error  # a variable that refers to a raised exception forms a cycle with the exception's traceback


def skip(key: str, error: Exception) -> None:
    """Log the error. The caller ignores the malformed value."""
    log.warning("the stored value '%s' is ignored: %s", key, error)


def read_all(
    document: DocumentReader, prefix: str, decode: Callable[[str, Any], T], on_fault: OnFault = refuse
) -> dict[str, T]:
    """Return the decoded values with this prefix. The returned keys lack the prefix. Pass errors to `on_fault`."""
    found = {}
    for id_, value in document.items(prefix):
        try:
            found[id_] = decode(id_, value)
        except (LaresError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            on_fault(prefix + id_, error)
    return found


def read_one(document: DocumentReader, key: str, decode: Callable[[Any], T], on_fault: OnFault = refuse) -> T | None:
    """Return the decoded value of this key, or None if the value is missing. Pass errors to `on_fault`."""

    def decode_exact(rest: str, value: Any) -> T | None:
        return None if rest else decode(value)

    return read_all(document, key, decode_exact, on_fault).get("")


def read_layout(document: DocumentReader, on_fault: OnFault = refuse) -> Layout:
    return Layout(
        rooms=read_all(document, ROOM_PREFIX, lambda id_, value: convert({**value, "id": id_}, Room), on_fault),
        groups=read_all(document, GROUP_PREFIX, _group, on_fault),
        room_assignments=read_all(document, ASSIGNMENT_PREFIX, lambda _, value: convert(value, str), on_fault),
        names=read_all(document, NAME_PREFIX, lambda _, value: convert(value, str), on_fault),
        aliases=_read_aliases(document, on_fault),
    )


def _read_aliases(document: DocumentReader, on_fault: OnFault) -> dict[str, str]:
    """Return the aliases by device. If several devices have the same alias, the first by id keeps it."""
    found = read_all(document, ALIAS_PREFIX, lambda _, value: alias(value), on_fault)
    holders: dict[str, str] = {}
    for device_id in sorted(found):
        if (holder := holders.setdefault(found[device_id], device_id)) != device_id:
            on_fault(ALIAS_PREFIX + device_id, Invalid(f"alias '{found[device_id]}' belongs to device '{holder}'"))
    return {device_id: each for each, device_id in holders.items()}


def _group(group_id: str, value: Any) -> Group:
    return convert({**value, "id": group_id, "members": value["members"]}, Group)


class SectionKind(NamedTuple):
    """The kind of an adapter section, and the kinds that its devices can have."""

    type: str
    device_kinds: Collection[DeviceKind]


SectionKinds = Mapping[str, SectionKind]
"""The kinds of sections by the section's name."""


class StoredDevice(Struct, frozen=True, kw_only=True):
    """The stored form of a device without its attributes. `type` is the kind of its section. It is None in records of
    older versions."""

    kind: DeviceKind
    source: str
    vendor_specific: dict[str, Any]
    name: str | None = None
    info: Info = Info()
    commands: tuple[CommandSpec, ...] | None = None
    type: str | None = None

    def is_of(self, sections: SectionKinds) -> bool:
        """Return whether the device's section can still have this device."""
        section = sections.get(self.source)
        return section is not None and self.kind in section.device_kinds and self.type in (None, section.type)


class StoredState(Struct, frozen=True, kw_only=True, rename={"attributes": "is", "last": "was"}):
    """The stored form of a device's attributes: the time of their change in milliseconds since 1970, and the last
    known values."""

    at: int
    attributes: dict[str, Any]
    last: dict[str, tuple[Any, ...]] = field(default_factory=dict)


def encode_device(device: Device, sections: SectionKinds, *, has_state: bool = False) -> dict[str, Any]:
    """Encode a device as two keys with values: the description, which rarely changes, and the attributes.

    If `has_state` is true, the attributes include `state`.
    """
    section = sections.get(device.metadata.source)
    stated = {
        "type": None if section is None else section.type,
        "name": device.vendor_name,
        "info": _without_none(device.info),
        "commands": None if device.commands is None else [_without_none(each) for each in device.commands],
    }
    return {
        DEVICE_PREFIX + device.id: {
            "kind": device.kind,
            "source": device.metadata.source,
            "vendor_specific": device.metadata.vendor_specific,
            **{key: value for key, value in stated.items() if value not in (None, {})},
        },
        STATE_PREFIX + device.id: {
            "at": to_millis(device.updated_at),
            "is": {key: value for key, value in device.attributes.items() if has_state or key != "state"},
            **({"was": {key: list(known) for key, known in device.last.items()}} if device.last else {}),
        },
    }


def is_changed(stored: bytes | None, value: Any) -> bool:
    """Return whether the value differs from the stored value in a field other than `at`. If a change was undone, no
    write is necessary."""
    if stored is None or value is None:
        return stored is not None or value is not None
    before, after = orjson.loads(stored), orjson.loads(orjson.dumps(value))
    for each in (before, after):
        if isinstance(each, dict):
            each.pop("at", None)
    return bool(before != after)


def read_devices(
    document: DocumentReader,
    layout: Layout,
    on_fault: OnFault = refuse,
    *,
    begin: str = "",
    sections: SectionKinds | None = None,
) -> list[Device]:
    """Return the stored devices whose ids begin with `begin`. If `sections` is given, omit the devices of other
    sections, and of sections that have another kind now. Each device is offline until its adapter observes it.

    The time of the last observation is not stored, so the time of the last change is used instead.
    """
    states = read_all(document, STATE_PREFIX + begin, _decode_state, on_fault)

    def decode(rest: str, value: Any) -> Device | None:
        stored, state = convert(value, StoredDevice), states.get(rest)
        is_gone = state is None or (sections is not None and not stored.is_of(sections))
        return None if state is None or is_gone else _device(begin + rest, stored, state, layout, on_fault)

    found = read_all(document, DEVICE_PREFIX + begin, decode, on_fault).values()
    return [device for device in found if device is not None]


def _decode_state(_: str, value: Any) -> StoredState:
    state = convert(value, StoredState)
    from_millis(state.at)  # raises an error for an impossible time
    return state


def _device(device_id: str, stored: StoredDevice, state: StoredState, layout: Layout, on_fault: OnFault) -> Device:
    changed_at = from_millis(state.at)
    dropped: Dropped = {}
    shown_then = {key: each for key, each in state.attributes.items() if key != "state"}
    attributes = check_attributes(shown_then, {}, dropped)
    for attribute, reason in dropped.items():
        on_fault(f"{STATE_PREFIX}{device_id}: {attribute}", Invalid(reason))
    return Device(
        id=device_id,
        room_id=layout.room_assignments.get(device_id),
        kind=stored.kind,
        attributes={**attributes, "state": OFFLINE},
        metadata=Metadata(source=stored.source, vendor_specific=stored.vendor_specific),
        updated_at=changed_at,
        last_seen=changed_at,
        person_name=layout.names.get(device_id),
        alias=layout.aliases.get(device_id),
        vendor_name=stored.name,
        info=stored.info,
        commands=stored.commands,
        last=state.last,
    )


def _without_none(value: Info | CommandSpec) -> dict[str, Any]:
    stated = {name: getattr(value, name) for name in value.__struct_fields__}
    return {key: each for key, each in stated.items() if each not in (None, ())}
