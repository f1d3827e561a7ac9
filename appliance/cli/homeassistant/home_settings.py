"""Reads zones, persons, units, and the location of the home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from appliance.cli.homeassistant.folder import ConfigFolder
from appliance.cli.homeassistant.registries import registry_rows
from appliance.cli.homeassistant.values import as_mapping, as_text, object_id


def read_zones(folder: ConfigFolder, integrations: Mapping[str, Any]) -> dict[str, str]:
    """Return zone names by object id."""
    configured = integrations.get("zone")
    rows = [*registry_rows(folder, "zone", "items"), *(configured if isinstance(configured, list) else [configured])]
    names = [name for row in rows if (name := as_text(as_mapping(row).get("name")))]
    return {object_id(name): name for name in names}


def read_persons(folder: ConfigFolder, integrations: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each person's entity id, and the entity ids of the person's trackers."""
    configured = integrations.get("person")
    for row in [*registry_rows(folder, "person", "items"), *(configured if isinstance(configured, list) else ())]:
        name, trackers = as_text(as_mapping(row).get("name")), as_mapping(row).get("device_trackers")
        if name and isinstance(trackers, list):
            yield f"person.{object_id(name)}", tuple(map(str, trackers))


def read_locale(folder: ConfigFolder, integrations: Mapping[str, Any]) -> dict[str, Any]:
    stored = as_mapping(as_mapping(folder.read_json("core.config")).get("data"))
    both = {**stored, **as_mapping(integrations.get("homeassistant"))}
    found: dict[str, Any] = {}
    if zone := as_text(both.get("time_zone")):
        found["timezone"] = zone
    coordinates = both.get("latitude"), both.get("longitude")
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in coordinates):
        found |= dict(zip(("latitude", "longitude"), coordinates, strict=True))
    return found


def is_metric(folder: ConfigFolder, integrations: Mapping[str, Any]) -> bool:
    stored = as_mapping(as_mapping(folder.read_json("core.config")).get("data"))
    system = as_mapping(integrations.get("homeassistant")).get("unit_system", stored.get("unit_system_v2"))
    return system not in ("imperial", "us_customary")
