"""Reads the registries of areas, devices, and entities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from appliance.cli.homeassistant.folder import STORAGE, ConfigFolder
from appliance.cli.homeassistant.values import as_mapping, as_text, shown, words


class HaArea(Struct, frozen=True, kw_only=True):
    """A row of the area registry."""

    id: str
    name: str
    floor_id: str | None = None
    labels: tuple[str, ...] = ()


class HaDevice(Struct, frozen=True, kw_only=True):
    """A row of the device registry."""

    id: str
    identifiers: tuple[tuple[str, str], ...] = ()
    connections: tuple[str, ...] = ()
    serial: str | None = None
    name: str | None = None
    area_id: str | None = None
    labels: tuple[str, ...] = ()


class HaEntity(Struct, frozen=True, kw_only=True):
    """A row of the entity registry. Device automations refer to the entity by `id`."""

    entity_id: str
    id: str = ""
    unique_id: str = ""
    platform: str = ""
    device_id: str | None = None
    area_id: str | None = None
    name: str | None = None
    original_name: str | None = None
    device_class: str | None = None
    config_entry: str | None = None
    labels: tuple[str, ...] = ()

    @property
    def domain(self) -> str:
        return self.entity_id.partition(".")[0]


def registry_rows(folder: ConfigFolder, registry: str, key: str) -> list[Mapping[str, Any]]:
    """Return the rows of a registry. Report rows that are not JSON objects."""
    origin, content = f"{STORAGE}/{registry}", folder.read_json(registry)
    rows = as_mapping(as_mapping(content).get("data")).get(key, [])
    if content is not None and (not isinstance(rows, list) or "data" not in as_mapping(content)):
        folder.report(origin, f"the list data.{key} is missing")
        return []
    if wrong := [each for each in rows if not isinstance(each, Mapping)]:
        folder.report(origin, f"data.{key} contains {shown(wrong[0])} instead of an object")
    return [each for each in rows if isinstance(each, Mapping)]


def read_areas(folder: ConfigFolder) -> dict[str, HaArea]:
    found = {}
    for row in registry_rows(folder, "core.area_registry", "areas"):
        id_, name = as_text(row.get("id")) or as_text(row.get("area_id")), as_text(row.get("name"))
        if id_ and name:
            labels = tuple(words(row.get("labels")))
            found[id_] = HaArea(id=id_, name=name, floor_id=as_text(row.get("floor_id")), labels=labels)
    return found


def read_devices(folder: ConfigFolder) -> dict[str, HaDevice]:
    return {
        id_: HaDevice(
            id=id_,
            identifiers=tuple(_pairs(row.get("identifiers"))),
            connections=tuple(value for _, value in _pairs(row.get("connections"))),
            serial=as_text(row.get("serial_number")),
            name=as_text(row.get("name_by_user")) or as_text(row.get("name")),
            area_id=as_text(row.get("area_id")),
            labels=tuple(words(row.get("labels"))),
        )
        for row in registry_rows(folder, "core.device_registry", "devices")
        if (id_ := as_text(row.get("id")))
    }


def read_entities(folder: ConfigFolder) -> dict[str, HaEntity]:
    return {
        entity_id: HaEntity(
            entity_id=entity_id,
            id=as_text(row.get("id")) or "",
            unique_id=as_text(row.get("unique_id")) or "",
            platform=as_text(row.get("platform")) or "",
            device_id=as_text(row.get("device_id")),
            area_id=as_text(row.get("area_id")),
            name=as_text(row.get("name")),
            original_name=as_text(row.get("original_name")),
            device_class=as_text(row.get("device_class")) or as_text(row.get("original_device_class")),
            config_entry=as_text(row.get("config_entry_id")),
            labels=tuple(words(row.get("labels"))),
        )
        for row in registry_rows(folder, "core.entity_registry", "entities")
        if (entity_id := as_text(row.get("entity_id"))) and "." in entity_id
    }


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    for each in value if isinstance(value, list) else ():
        if isinstance(each, list) and len(each) >= 2:
            yield str(each[0]), str(each[1])
