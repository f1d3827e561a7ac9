"""Imports rooms, names, and variables to the running hub or to the store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Container, Iterable, Iterator, Sized
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from appliance.adapters.mqtt.announcements.announced_devices import MAX_BROKER_DEVICES
from appliance.automations.variables import MAX_VARIABLES, check_capacity, variable_sizes
from appliance.cli.homeassistant.entities import Entities
from appliance.cli.homeassistant.installation import Installation
from appliance.cli.homeassistant.known_devices import KnownDevice
from appliance.cli.hub_client import HubRequest, ask, ask_or_act, read_state
from appliance.cli.record_checks import check_record
from appliance.clock import Clock
from appliance.errors import Invalid, LaresError
from appliance.home.layout import MAX_ROOMS
from appliance.shortening import shorten
from appliance.store.disk import Disk
from appliance.store.document import open_document
from appliance.store.record_keys import ASSIGNMENT_PREFIX, DEVICE_PREFIX, NAME_PREFIX, ROOM_PREFIX, VARIABLE_PREFIX
from appliance.store.storage import DocumentSnapshot

NOT_STORABLE = "the value cannot be stored as JSON"
MAX_SHOWN_CHARS = 200

Step = tuple[bool, str]
"""Whether a record or file was imported, and a sentence about it."""


class Item(Struct, frozen=True, kw_only=True):
    """A record to import. `sentence` describes the record. A running hub receives `request`. If no hub runs, `key`
    and `value` are stored.

    The device `device_id` must already exist in the hub.
    """

    sentence: str
    key: str
    value: Any
    request: HubRequest
    device_id: str | None = None


def read_known_devices(data_dir: Path) -> dict[str, KnownDevice]:
    """Return the devices in the running hub or in the store."""
    values, _ = read_state(data_dir)
    snapshot = DocumentSnapshot(values)
    names = dict(snapshot.items(NAME_PREFIX))
    return {
        id_: KnownDevice(
            id=id_,
            name=str(names.get(id_) or value.get("name") or id_),
            serial=str(value.get("info", {}).get("serial") or ""),
        )
        for id_, value in snapshot.items(DEVICE_PREFIX)
    }


def import_records(
    installation: Installation, entities: Entities, known: Container[str], data_dir: Path
) -> list[Step]:
    """Import the records to the hub that uses the data directory or, if no hub runs, to the store."""
    unknown = _unknown_devices(installation, entities, known)
    items = list(_items(installation, entities, frozenset(unknown[MAX_BROKER_DEVICES:])))
    through_hub, in_store = partial(_through_hub, items, data_dir), partial(_in_store, items, data_dir)
    return _excess(installation, unknown) + asyncio.run(ask_or_act(data_dir, through_hub, in_store))


def _items(installation: Installation, entities: Entities, omitted: Container[str]) -> Iterator[Item]:
    """Yield a room for each area, a variable for each helper, and the area and name of each known device, except the
    devices in `omitted`."""
    for area in islice(installation.areas.values(), MAX_ROOMS):
        yield Item(
            sentence=f"room {area.id} ({area.name})",
            key=ROOM_PREFIX + area.id,
            value={"name": area.name},
            request=_post("/rooms", {"id": area.id, "name": area.name}),
        )
    for ha_device in installation.devices.values():
        device_id = entities.device_id(ha_device)
        if device_id is None or device_id in omitted:
            continue
        if (room_id := ha_device.area_id) in installation.areas:
            yield Item(
                sentence=f"{device_id} in room {room_id}",
                key=ASSIGNMENT_PREFIX + device_id,
                value=room_id,
                request=_post(f"/devices/{device_id}/room", {"room_id": room_id}),
                device_id=device_id,
            )
        if (name_ := ha_device.name) is not None:
            yield Item(
                sentence=f"{device_id} named {name_}",
                key=NAME_PREFIX + device_id,
                value=name_,
                request=_post(f"/devices/{device_id}/name", {"name": name_}),
                device_id=device_id,
            )
    for entity_id, value in islice(installation.helpers.items(), MAX_VARIABLES):
        variable = entities.variable(entity_id)
        yield Item(
            sentence=f"variable {variable} = {_shown(value)}",
            key=VARIABLE_PREFIX + variable,
            value={"value": value},
            request=HubRequest(path=f"/variables/{variable}", method="PUT", body={"value": value}),
        )


def _unknown_devices(installation: Installation, entities: Entities, known: Container[str]) -> list[str]:
    """Return the ids of the devices that the import matches with MQTT devices that have not appeared in Lares yet."""
    ids = filter(None, map(entities.device_id, installation.devices.values()))
    return [each for each in dict.fromkeys(ids) if each not in known]


def _excess(installation: Installation, unknown_devices: Sized) -> list[Step]:
    """Describe areas, MQTT devices, and helpers beyond the limits of the hub."""
    limits = (
        (len(installation.areas), MAX_ROOMS, "areas", "rooms"),
        (len(unknown_devices), MAX_BROKER_DEVICES, "new MQTT devices", "devices of a broker"),
        (len(installation.helpers), MAX_VARIABLES, "helpers", "variables"),
    )
    return [
        (False, f"{count - limit} of {count} {what}: Lares supports at most {limit} {parts}")
        for count, limit, what, parts in limits
        if count > limit
    ]


def _shown(value: Any) -> str:
    """Return the value as JSON, shortened for a message."""
    return shorten(json.dumps(value), MAX_SHOWN_CHARS)


def _post(path: str, body: Any) -> HubRequest:
    return HubRequest(path=path, method="POST", body=body)


async def _in_store(items: Iterable[Item], data_dir: Path) -> list[Step]:
    steps: list[Step] = []
    async with open_document(Disk(data_dir), Clock()) as document:
        changes: dict[str, Any] = {}
        sizes = variable_sizes(document)
        for each in items:
            fault = _fault(each) or ("already set" if document.get(each.key) is not None else _excess_of(each, sizes))
            if fault is None:
                changes[each.key] = each.value
            steps.append((fault is None, each.sentence if fault is None else f"{each.sentence}: {fault}"))
        await document.put_many(changes)
    return steps


def _fault(item: Item) -> str | None:
    """Return the reason why the API would reject the item, or None."""
    try:
        encoded = orjson.loads(orjson.dumps(item.value))
        if encoded != item.value:  # orjson encodes NaN and infinity as null
            return NOT_STORABLE
        check_record(item.key, item.value)
    except orjson.JSONEncodeError:
        return NOT_STORABLE
    except Invalid as fault:
        return str(fault)
    return None


def _excess_of(item: Item, sizes: dict[str, int]) -> str | None:
    """Return the reason if the variables leave no room for the item, or None. Add a new variable to `sizes`."""
    if not item.key.startswith(VARIABLE_PREFIX):
        return None
    name, size = item.key.removeprefix(VARIABLE_PREFIX), len(orjson.dumps(item.value["value"]))
    try:
        check_capacity(name, size, sizes)
    except Invalid as fault:
        return str(fault)
    sizes[name] = size
    return None


def _through_hub(items: Iterable[Item], data_dir: Path) -> list[Step]:
    state, _ = read_state(data_dir)
    return [_post_item(each, state, data_dir) for each in items]


def _post_item(item: Item, state: Collection[str], data_dir: Path) -> Step:
    if item.key in state:
        return False, f"{item.sentence}: already set"
    if (fault := _fault(item)) is not None:
        return False, f"{item.sentence}: {fault}"
    if item.device_id is not None and DEVICE_PREFIX + item.device_id not in state:
        return False, f"{item.sentence}: the hub does not know this device yet; import again after it appears"
    try:
        ask(data_dir, item.request)
    except LaresError as refused:
        return False, f"{item.sentence}: {refused}"
    return True, item.sentence
