"""Reads zones, persons, units, and the location of the home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from appliance.cli.homeassistant.folder import STORAGE, ConfigFolder
from appliance.cli.homeassistant.registries import registry_rows
from appliance.cli.homeassistant.values import as_mapping, as_text, object_id, shown


def read_zones(folder: ConfigFolder, integrations: Mapping[str, Any]) -> dict[str, str]:
    """Return zone names by object id."""
    configured = integrations.get("zone")
    rows = [*registry_rows(folder, "zone", "items"), *(configured if isinstance(configured, list) else [configured])]
    names = [name for row in rows if (name := as_text(as_mapping(row).get("name")))]
    return {object_id(name): name for name in names}


def read_persons(folder: ConfigFolder, integrations: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each person's entity id, and the entity ids of the person's trackers."""
    configured = integrations.get("person")
    stored = registry_rows(folder, "person", "items")
    for row in [*stored, *(configured if isinstance(configured, list) else ())]:
        name, trackers = as_text(as_mapping(row).get("name")), as_mapping(row).get("device_trackers")
        if name and isinstance(trackers, list):
            yield f"person.{object_id(name)}", tuple(map(str, trackers))
        elif trackers is not None:
            origin = f"{STORAGE}/person" if row in stored else "configuration.yaml"
            folder.report(origin, f"{name}: device_trackers is not a list, but {shown(trackers)}")


def read_locale(folder: ConfigFolder, integrations: Mapping[str, Any]) -> dict[str, Any]:
    stored, configured = _stored(folder), as_mapping(integrations.get("homeassistant"))
    both = {**stored, **configured}

    def report(key: str, what: str) -> None:
        origin = "configuration.yaml" if key in configured else f"{STORAGE}/core.config"
        folder.report(origin, f"{key} is not {what}, but {shown(both[key])}")

    found: dict[str, Any] = {}
    if zone := as_text(both.get("time_zone")):
        found["timezone"] = zone
    elif both.get("time_zone") is not None:
        report("time_zone", "a text")
    coordinates = {key: both[key] for key in ("latitude", "longitude") if both.get(key) is not None}
    wrong = [key for key, each in coordinates.items() if type(each) not in (int, float)]
    for key in wrong:
        report(key, "a number")
    return found if wrong or len(coordinates) < 2 else {**found, **coordinates}


def is_metric(folder: ConfigFolder, integrations: Mapping[str, Any]) -> bool:
    configured = as_mapping(integrations.get("homeassistant"))
    system = configured.get("unit_system", _stored(folder).get("unit_system_v2"))
    return system not in ("imperial", "us_customary")


def _stored(folder: ConfigFolder) -> Mapping[str, Any]:
    return as_mapping(as_mapping(folder.read_json("core.config")).get("data"))
