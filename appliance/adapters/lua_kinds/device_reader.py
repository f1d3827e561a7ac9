"""Reads the devices and events that a Lua file returns. Drops each invalid device or event with a message."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from appliance.adapters.lua_kinds.command_reader import MAX_COMMANDS, CommandReader, array, with_actions
from appliance.adapters.publisher import Publisher
from appliance.errors import Invalid
from appliance.home.model import UNAVAILABLE, Device, DeviceKind, Info, Observation
from appliance.home.observations import check_event
from appliance.home.values import Value
from appliance.tables.checks import LUA, Mismatch, boolean, format_value, one_of, string
from appliance.tables.fields import Field, Fields, Findings, Path, Table, dotted

MAX_LOCAL_ID_CHARS = 200

MAX_DEVICES = 2000
"""Maximum number of devices in one list, and of the section's devices after an update."""

MAX_ATTRIBUTES, MAX_EVENTS = 1000, 100
"""Maximum numbers of entries in one device. The limits are low, because all entries are checked without a pause
for other tasks."""

DEVICE_FAULT = "\0fault"
"""The key of a device that JSON cannot represent. The value is an error message that replaces the device, or a list
of the dropped parts: field, key, and error message."""

MAX_DEVICE_FAULTS = 1000
"""Maximum number of different device faults that one adapter reports."""


T = TypeVar("T")


def _mapping(value: Any) -> Mapping[str, Any]:
    if value == []:
        return {}
    if not isinstance(value, Mapping):
        raise Mismatch("a table with named fields", value)
    return value


_INFO: Fields = {
    name: Field(string, required=False)
    for name in ("manufacturer", "model", "firmware", "serial", "parent_id", "area", "class")
}


def _at_most(most: int, check: Callable[[Any], T], value: Any) -> T:
    if isinstance(value, list | Mapping) and len(value) > most:
        raise Invalid(f"has more than {most} entries")
    return check(value)


_DEVICE: Fields = {
    "kind": Field(one_of(*DeviceKind), required=False),
    "class": Field(string, required=False),
    "name": Field(string, required=False),
    "attributes": Field(partial(_at_most, MAX_ATTRIBUTES, _mapping), required=False),
    "state": Field(one_of("online", "unavailable"), required=False),
    "events": Field(partial(_at_most, MAX_EVENTS, array), required=False),
}
_DROPPED_ALONE = frozenset({"commands", "name", "info", "class", "events", "state"})
"""The fields whose faults do not drop the device. The device keeps its earlier name, info, class, and state."""

_EVENT: Fields = {
    "event": Field(string),
    "data": Field(_mapping, required=False),
}
_UPDATE: Fields = {
    "send": Field(lambda value: value, required=False),
    "poll": Field(boolean, default=False),
    "complete": Field(boolean, default=False),
    "events": Field(array, required=False),
}

ReadEvent = tuple[str, str, Mapping[str, Value]]
"""The device id, the event name, and the data of an event."""


class ReadRow(Struct, frozen=True, kw_only=True):
    """One device of a list.

    - `attributes`: None if the row has no such field. Unreadable attributes have the value None.
    - `seen`: all other fields, or None if the row contains only attributes of a known device.
    """

    device_id: str
    attributes: Mapping[str, Value] | None
    seen: Observation | None = None

    def observation(self, before: Mapping[str, Value], *, is_pushed: bool = False) -> Observation:
        """Return the complete observation. If the row lacks an attribute, the attribute keeps its value from
        `before`."""
        assert self.seen is not None
        stated = self.attributes or {}
        kept = {key: each for key, each in before.items() if key != "state" and key not in stated}
        pushed = frozenset(stated) if is_pushed else frozenset[str]()
        valid = {key: each for key, each in stated.items() if each is not None}
        return replace(self.seen, attributes={**kept, **valid}, kept=frozenset(kept), pushed=pushed)


class ReadDevices(Struct, kw_only=True):
    """The rows of a list, and the events of their devices. `ids` also contains the ids of devices that are listed
    without a row."""

    rows: list[ReadRow] = field(default_factory=list)
    ids: dict[str, None] = field(default_factory=dict)
    kinds: dict[str, DeviceKind] = field(default_factory=dict)
    events: list[ReadEvent] = field(default_factory=list)


class ReadUpdate(Struct, frozen=True, kw_only=True):
    """The update that `receive` or `hook` returned."""

    devices: ReadDevices
    send: Any
    poll: bool
    complete: bool


class DeviceReader:
    """Reads the results of one section's functions. Each device fault is published once."""

    def __init__(self, publish: Publisher) -> None:
        self._section = publish.name
        self._publish = publish
        self._find = publish.find
        self._published: set[tuple[str, str]] = set()
        self.commands = CommandReader()

    def read_list(self, raw: Any, what: str, *, in_part: bool = False) -> Generator[None, None, ReadDevices]:
        """Return the devices of a list, read one per step. If `in_part` is true, the list may be incomplete.

        Raise `Invalid` on failure.
        """
        read = ReadDevices()
        try:
            rows = array({} if raw is None else raw)
        except Invalid as fault:
            raise Invalid(f"{what} {fault}") from None
        if len(rows) > MAX_DEVICES:
            raise Invalid(f"{what} must have at most {MAX_DEVICES} devices, not {len(rows)}")
        for number_, row in enumerate(rows, 1):
            self._read(row, f"device {number_} of {what}", read, in_part=in_part)
            yield
        return read

    def read_update(self, raw: Any, what: str) -> Generator[None, None, ReadUpdate]:
        """Return the result of `receive` or `hook`, read one device or event per step. `raw` can be None.

        Raise `Invalid` on failure.
        """
        findings = Findings(LUA)
        try:
            table = Table(_mapping({} if raw is None else raw), findings)
        except Invalid as fault:
            raise Invalid(f"it {fault}") from None
        found = table.read(_UPDATE)
        devices = table.raw("devices")
        table.refuse_others("a field of an update")
        if findings.faults:
            raise Invalid(str(findings.faults[0]))
        read = yield from self.read_list(devices, f"devices of {what}", in_part=True)
        for number_, row in enumerate(found["events"] or [], 1):
            self._read_event(row, f"event {number_} of {what}", read)
            yield
        return ReadUpdate(devices=read, send=found["send"], poll=found["poll"], complete=found["complete"])

    def read_one(self, raw: Any, device_id: str, what: str) -> Observation | None:
        """Return the device that `command` returned. The id in `raw` is optional. Return None if the device is
        invalid."""
        read = ReadDevices()
        local = device_id.removeprefix(f"{self._section}:")
        known = self._find(device_id)
        stated = {} if known is None else {"kind": known.kind.value}
        row = {"id": local, **stated, **raw} if isinstance(raw, Mapping) else raw
        self._read(row, what, read, in_part=True)
        before = {} if known is None else known.attributes
        return next((each.observation(before) for each in read.rows if each.device_id == device_id), None)

    def observations(self, read: ReadDevices) -> list[Observation]:
        """Convert the rows of a poll to observations. If a row has no attributes, the device keeps its previous
        attributes."""
        latest: dict[str, Mapping[str, Value]] = {}
        found = []
        for row in read.rows:
            before: Mapping[str, Value] = {}
            if row.attributes is None:
                known = self._find(row.device_id)
                before = latest.get(row.device_id, {} if known is None else known.attributes)
            seen = row.observation(before)
            latest[row.device_id] = seen.attributes
            found.append(seen)
        return found

    def refuse_further(self) -> None:
        """Publish that the section has too many devices, so that further devices of updates are ignored."""
        self._fault(self._section, "devices", f"are ignored beyond {MAX_DEVICES}; remove the devices that are gone")

    def refuse_pause(self, secs: Any) -> None:
        """Publish that the second result of `poll` is invalid, so that the section's interval is used."""
        self._fault("poll", "its second value", f"must be a number of seconds, not {format_value(secs)}")

    def _read(self, raw: Any, what: str, read: ReadDevices, *, in_part: bool) -> None:
        try:
            row = _mapping(raw)
            if row.get("id") is None:
                raise Invalid("is missing")
            local = string(row["id"])
            if DEVICE_FAULT in row and not local:
                raise Invalid(str(row[DEVICE_FAULT]).lstrip(". "))
            if not local or not local.isprintable() or len(local) > MAX_LOCAL_ID_CHARS or local != local.strip():
                raise Invalid(f"must have 1 to {MAX_LOCAL_ID_CHARS} visible characters, not {format_value(local)}")
        except Invalid as fault:
            self._fault(what, "id", str(fault))
            return
        id_ = f"{self._section}:{local}"
        if not in_part and id_ in read.ids:
            self._fault(id_, "id", "is listed more than once; the rows of this id apply in order")
        read.ids[id_] = None
        unread: frozenset[str] = frozenset()
        if isinstance(faults := row.get(DEVICE_FAULT), list):
            row, unread = self._without_parts(row, id_, faults)
        if DEVICE_FAULT in row:
            self._fault(id_, "device", str(row[DEVICE_FAULT]).lstrip(". "))
        elif (
            in_part
            and row.keys() == {"id", "attributes"}
            and isinstance(row["attributes"], Mapping)
            and len(row["attributes"]) <= MAX_ATTRIBUTES
            and (id_ in read.kinds or self._find(id_))
        ):
            read.rows.append(ReadRow(device_id=id_, attributes=row["attributes"]))
        elif len(row) > 1:
            self._describe(row, id_, read, unread)

    def _without_parts(
        self, row: Mapping[str, Any], id_: str, faults: list[Any]
    ) -> tuple[Mapping[str, Any], frozenset[str]]:
        """Return the row with None for each attribute that JSON cannot represent, and the fields with such parts."""
        left = {name: each for name, each in row.items() if name != DEVICE_FAULT}
        unknown: dict[str, None] = {}
        unread = set()
        for each in faults:
            match each:
                case ["attributes", str(key), str(fault)] if key:
                    self._fault(id_, key, fault.lstrip(". "))
                    unknown[key] = None
                case [str(field_), str(key), str(fault)]:
                    self._fault(id_, dotted(_path_of_part(field_, key)), fault.lstrip(". "))
                    if field_ != "attributes":
                        unread.add(field_)
        stated = left.get("attributes") or {}
        if unknown and isinstance(stated, Mapping):  # a list is a fault of its own
            left["attributes"] = {**stated, **unknown}
        return left, frozenset(unread)

    def _describe(self, row: Mapping[str, Any], id_: str, read: ReadDevices, unread: frozenset[str]) -> None:
        findings, known = Findings(LUA), self._find(id_)
        stated = row.get("commands")
        if isinstance(stated, list) and len(stated) > MAX_COMMANDS:
            self._fault(id_, "commands", f"has more than {MAX_COMMANDS} entries")
            row, stated = {**row, "commands": None}, None
        if isinstance(stated, list):
            row = {**row, "commands": [with_actions(each) for each in stated]}
        table = Table(row, findings)
        table.raw("id")
        found = table.read(_DEVICE)
        info, commands = self._info(table, found["class"]), self.commands.read(table, id_, stated, known)
        table.refuse_others("a field of a device")
        kind = read.kinds.get(id_) or (None if known is None else known.kind)
        if found["kind"] is None and kind is None and not table.has("kind"):
            table.fault("kind", f"is missing; use one of {', '.join(DeviceKind)}")
        for problem in findings.faults:
            self._fault(id_, dotted(problem.path) or "device", problem.message)
        unread |= {str(problem.path[0]) if problem.path else "device" for problem in findings.faults}
        if unread - _DROPPED_ALONE - ({"kind"} if kind else set()):
            return
        if known is not None and unread & {"info", "class"}:
            info = known.info
        is_available = found["state"] != "unavailable"
        if known is not None and "state" in unread:
            is_available = known.attributes.get("state") != UNAVAILABLE
        self.commands.remember(id_, stated, commands)
        kind = read.kinds[id_] = kind if found["kind"] is None and kind else DeviceKind(found["kind"])
        seen = Observation(
            device_id=id_,
            kind=kind,
            attributes={},
            name=found["name"],
            info=info,
            commands=commands,
            is_available=is_available,
        )
        read.rows.append(ReadRow(device_id=id_, attributes=found["attributes"], seen=seen))
        for number_, each in enumerate(found["events"] or [], 1):
            event = {"event": each} if isinstance(each, str) else each
            self._read_event(event, f"event {number_} of {id_}", read, id_)

    def _info(self, table: Table, device_class: str | None) -> Info:
        inner = table.table("info")
        if inner is None:
            return Info(device_class=device_class)
        found = inner.read(_INFO)
        inner.refuse_others("a field of info")
        own, parent = found.pop("class"), found.pop("parent_id")
        return Info(
            **found,
            parent_id=None if parent is None else f"{self._section}:{parent}",
            device_class=own if device_class is None else device_class,
        )

    def _read_event(self, raw: Any, what: str, read: ReadDevices, id_: str | None = None) -> None:
        findings = Findings(LUA)
        try:
            table = Table(_mapping(raw), findings)
            if id_ is None:
                id_ = f"{self._section}:{table.need('id', string)}"
            found = table.read(_EVENT)
            table.refuse_others("a field of an event")
            for problem in findings.faults:
                self._fault(what, dotted(problem.path), problem.message)
            if findings.faults:
                return
            event, data = check_event(found["event"], found["data"] or {})
        except Invalid as fault:
            self._fault(what, "event", str(fault))
            return
        if id_ not in read.ids and self._find(id_) is None:
            self._fault(id_, f"event {event}", "names an unknown device")
            return
        read.events.append((id_, event, data))

    def _fault(self, where: str, name: str, sentence: str) -> None:
        if (where, name) not in self._published and len(self._published) < MAX_DEVICE_FAULTS:
            self._published.add((where, name))
            self._publish.dropped(where, name, sentence)


def _path_of_part(field_: str, key: str) -> Path:
    """Return the path of a part of a device. A key with fewer than nine digits is an index."""
    if not key:
        return (field_,)
    is_index = key.isdecimal() and len(key) < 9
    return (field_, int(key) if is_index else key)


def device_for_lua(device: Device, section: str) -> dict[str, Any]:
    """Return the device for the file, with its local id."""
    return {
        "id": device.id.removeprefix(f"{section}:"),
        "kind": device.kind,
        "name": device.name,
        "class": device.info.device_class,
        "attributes": device.attributes,
    }
