"""Reads configuration.yaml, its packages, and the files for automations, scripts, and scenes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from appliance.cli.homeassistant.blueprints import with_blueprint
from appliance.cli.homeassistant.folder import ConfigFolder
from appliance.cli.homeassistant.helper_entities import HELPERS
from appliance.cli.homeassistant.includes import expand_includes, included_files, merged
from appliance.cli.homeassistant.values import as_list, as_mapping, number, object_id, readable, shown
from appliance.cli.homeassistant.yaml_parser import Tagged

INTEGRATIONS = frozenset({"homeassistant", "zone", "person", "group", "timer", "schedule", *HELPERS})
"""Configuration keys that the import needs. If a file for another key is unreadable, the import continues."""

GROUP_DOMAINS = frozenset(
    {"binary_sensor", "button", "cover", "fan", "light", "lock", "media_player", "switch", "valve"}
)
"""Domains whose platform `group` defines groups."""

LISTED = frozenset({"automation", "scene", "script"})

IGNORED = frozenset(
    {
        *("api", "backup", "config", "default_config", "dhcp", "energy", "frontend", "go2rtc", "hardware", "history"),
        *("http", "lovelace", "logbook", "logger", "map", "mobile_app", "my", "network", "panel_custom"),
        *("recorder", "ssdp", "stream", "sun", "system_health", "system_log", "usb", "webhook", "zeroconf"),
    }
)
"""Configuration keys of Home Assistant's own functions, which need no translation."""


class Configuration:
    """configuration.yaml, its packages, and the files that Home Assistant's user interface writes."""

    def __init__(self, folder: ConfigFolder) -> None:
        self._folder = folder
        self._parts = [(origin, folder.mapping(origin, "the package", part)) for origin, part in self._read_parts()]
        """The path and content of configuration.yaml, its section `homeassistant`, and each package, without included
        files."""

    def _read_parts(self) -> Iterator[tuple[str, Any]]:
        name = "configuration.yaml"
        main = self._folder.mapping(name, "the file", self._folder.read_yaml(name))
        core_origin, core = next(included_files(self._folder, name, main.get("homeassistant")), (name, None))
        core = self._folder.mapping(core_origin, "homeassistant", core)
        yield name, {key: value for key, value in main.items() if key != "homeassistant"}
        yield core_origin, {"homeassistant": core}
        stated = core.get("packages")
        is_named = isinstance(stated, Tagged) and stated.tag == "!include_dir_named"
        for origin, value in included_files(self._folder, core_origin, stated):
            packages = {origin: value} if is_named else self._folder.mapping(origin, "packages", value)
            for package in packages.values():
                yield from included_files(self._folder, origin, package)

    def read_integrations(self) -> dict[str, Any]:
        """Return the sections of `INTEGRATIONS`. Report the other sections, and parts with a wrong type."""
        found: dict[str, Any] = {}
        for origin, part in self._parts:
            others = []
            for key, value in part.items():
                name = str(key).split(" ")[0]
                if name in INTEGRATIONS:
                    section = self._checked(origin, name, expand_includes(self._folder, origin, value))
                    found[name] = merged([found.get(name), section])
                elif name in GROUP_DOMAINS:
                    groups, is_complete = self._read_groups(origin, name, value)
                    found["group"] = merged([found.get("group"), groups])
                    others += [] if is_complete else [str(key)]
                elif name not in {*LISTED, *IGNORED}:
                    others.append(str(key))
            if others:
                self._folder.report(origin, f"the import does not translate {', '.join(others)}")
        return found

    def _read_groups(self, origin: str, domain: str, value: Any) -> tuple[dict[str, Any], bool]:
        """Return the groups by entity id, and whether all rows are groups."""
        rows = as_list(expand_includes(self._folder, origin, value))
        groups = [row for row in map(as_mapping, rows) if row.get("platform") == "group"]
        named = {f"{domain}.{object_id(str(row.get('name') or f'{domain} group'))}": row for row in groups}
        return named, len(groups) == len(rows)

    def _checked(self, origin: str, name: str, section: Any) -> Any:
        """Return the section without rows of a wrong type."""
        if name in ("zone", "person"):
            for each in as_list(section):
                self._folder.mapping(origin, name, each)
            return as_list(section)
        rows = self._folder.mapping(origin, name, section)
        if name == "homeassistant":
            return rows
        faults = {key: _fault_of(name, each) for key, each in rows.items()}
        for key, fault in faults.items():
            if fault is not None:
                self._folder.report(origin, f"{name}.{key}{fault}")
        return {key: each for key, each in rows.items() if faults[key] is None}

    def read_automations(self) -> Iterator[tuple[str, Any]]:
        return self._read_list("automation")

    def read_scenes(self) -> Iterator[tuple[str, Any]]:
        return self._read_list("scene")

    def read_scripts(self) -> Iterator[tuple[str, str, Any]]:
        for file, content in self._contents("script"):
            if content is not None and not isinstance(content, Mapping):
                yield file, "", content
            for id_, each in as_mapping(content).items():
                yield f"{file}, {readable(id_)}", str(id_), with_blueprint(self._folder, each, "script")

    def _read_list(self, section: str) -> Iterator[tuple[str, Any]]:
        for file, content in self._contents(section):
            for position, each in enumerate(as_list(content), 1):
                yield f"{file}, number {position}", with_blueprint(self._folder, each, section)

    def _contents(self, section: str) -> Iterator[tuple[str, Any]]:
        """Yield the origin and content of each part of a section: first the file that Home Assistant's user interface
        writes, such as `automations.yaml`, then each key in the configuration."""
        read = {f"{section}s.yaml"}
        for file in read:
            yield file, expand_includes(self._folder, file, self._folder.read_yaml(file))
        for origin, part in self._parts:
            for key, value in part.items():
                if str(key).split(" ")[0] != section:
                    continue
                is_named = section == "script" and isinstance(value, Tagged) and value.tag == "!include_dir_named"
                for file, content in included_files(self._folder, origin, value):
                    if file not in read or not isinstance(value, Tagged):
                        made = expand_includes(self._folder, file, content)
                        yield file, {Path(file).stem: made} if is_named else made
                        read |= {file} if isinstance(value, Tagged) else set()


def _fault_of(section: str, row: Any) -> str | None:
    """Return the fault of a helper, timer, schedule, or group, or None."""
    if not isinstance(row, Mapping | None) and not (section == "group" and isinstance(row, list | str)):
        return f" is not a YAML mapping, but {shown(row)}"
    is_number = section in ("input_number", "counter")
    for key in ("initial", "min"):
        value = as_mapping(row).get(key)
        if isinstance(value, Mapping | list | Tagged) or (is_number and isinstance(number(value), str)):
            return f".{key} is not a {'number' if is_number else 'single value'}, but {shown(value)}"
    return None
