"""Reads a whole configuration folder of Home Assistant."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from appliance.cli.homeassistant.configuration import Configuration
from appliance.cli.homeassistant.folder import STORAGE, ConfigFolder
from appliance.cli.homeassistant.helper_entities import (
    Group,
    read_groups,
    read_helper_rows,
    read_helpers,
    read_schedules,
    read_timers,
)
from appliance.cli.homeassistant.home_settings import is_metric, read_locale, read_persons, read_zones
from appliance.cli.homeassistant.registries import HaArea, HaDevice, HaEntity, read_areas, read_devices, read_entities
from appliance.errors import StartFailed


class Installation(Struct, frozen=True, kw_only=True):
    """The content of the folder.

    - `automations`, `scenes`: pairs of origin and definition.
    - `scripts`: triples of origin, object id, and definition.
    - `timers`: default durations by object id.
    - `zones`: names by id.
    - `persons`: trackers by entity id.
    - `groups`: groups by entity id.
    - `schedules`: days with start and end, by entity id.
    - `helpers`: values by entity id.
    - `helper_rows`: settings by entity id.
    - `locale`: `timezone`, `latitude`, and `longitude`, if known.
    - `problems`: sentences about skipped parts.
    """

    areas: Mapping[str, HaArea]
    devices: Mapping[str, HaDevice]
    entities: Mapping[str, HaEntity]
    automations: tuple[tuple[str, Any], ...]
    scripts: tuple[tuple[str, str, Any], ...]
    scenes: tuple[tuple[str, Any], ...]
    timers: Mapping[str, Any]
    zones: Mapping[str, str]
    persons: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, Group]
    schedules: Mapping[str, tuple[tuple[str, str, str], ...]]
    helpers: Mapping[str, Any]
    helper_rows: Mapping[str, Mapping[str, Any]]
    locale: Mapping[str, Any]
    problems: tuple[str, ...] = ()
    is_metric: bool = True


def read_installation(path: Path) -> Installation:
    """Read the folder. Raise `StartFailed` if the folder is not a Home Assistant folder, or if a file cannot be
    read."""
    if not path.is_dir():
        raise StartFailed(f"{path} is not a folder; name Home Assistant's configuration folder", os.EX_NOINPUT)
    known = (
        "automations.yaml",
        "configuration.yaml",
        f"{STORAGE}/core.area_registry",
        f"{STORAGE}/core.device_registry",
    )
    if not any((path / each).is_file() for each in known):
        raise StartFailed(
            f"{path} contains neither automations.yaml nor .storage; name Home Assistant's configuration folder",
            os.EX_NOINPUT,
        )
    folder = ConfigFolder(path)
    configuration = Configuration(folder)
    integrations = configuration.read_integrations()
    entities = read_entities(folder)
    helper_rows = read_helper_rows(folder, integrations, entities)
    return Installation(
        areas=read_areas(folder),
        devices=read_devices(folder),
        entities=entities,
        automations=tuple(configuration.read_automations()),
        scripts=tuple(configuration.read_scripts()),
        scenes=tuple(configuration.read_scenes()),
        timers=read_timers(folder, integrations),
        zones=read_zones(folder, integrations),
        persons=dict(read_persons(folder, integrations)),
        groups=dict(read_groups(folder, integrations, entities)),
        schedules=dict(read_schedules(folder, integrations, entities)),
        helpers=read_helpers(folder, helper_rows),
        helper_rows=helper_rows,
        locale=read_locale(folder, integrations),
        is_metric=is_metric(folder, integrations),
        problems=tuple(folder.problems),
    )
