"""The hub reads all documented keys of each component. If the hub does not read a key, the documentation gives the
reason."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.mqtt.announcements.abbreviations import CONFIG_NAMES
from appliance.adapters.mqtt.announcements.announcement import Announcement, DeviceFacts, DiscoveryProtocol
from appliance.adapters.mqtt.announcements.device_builder import build_devices
from appliance.adapters.mqtt.component_classes import COMPONENTS
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.refusals import Refusals
from appliance.errors import LaresError
from appliance.home.commands import Command
from tests.adapters.mqtt.documented_keys import DOCUMENTED, EVERYWHERE
from tests.adapters.mqtt.table import NOW, run_steps
from tests.fakes.rows import each_row

PAGE = Path(__file__).parents[3] / "docs" / "mqtt.md"
TOLD = {"url_topic"}
"""Keys that are read only to report that they are unsupported."""

OLD = {"color_mode", "components", "json_attributes", "payload_turn_off", "payload_turn_on"}
"""Abbreviated keys that are no longer documented."""


class NotingConfig(dict[str, Any]):
    """A configuration that records the keys that are read."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)


GIVEN: dict[str, Any] = {
    "automation_type": "trigger", "device_class": None, "options": ["a", "b"], "modes": ["off", "heat", "auto"],
    "fan_modes": ["low"], "swing_modes": ["on"], "swing_horizontal_modes": ["left"], "preset_modes": ["eco"],
    "image_encoding": "b64", "event_types": ["press"], "effect_list": ["none", "rainbow"], "fan_speed_list": ["min"],
    "supported_color_modes": ["color_temp", "hs", "rgbww", "white"], "code": "1234", "available_tones": ["bell"],
    "supported_features": [
        *("arm_home", "arm_away", "arm_night", "arm_vacation", "arm_custom_bypass", "trigger", "start", "pause"),
        *("locate", "send_command", "fan_speed", "stop", "return_home", "clean_spot"),
    ],
    "unit_of_measurement": "m", "temperature_unit": "C", "availability": None, "on_command_type": "last",
    "timezone": "Europe/Berlin", "migrate_discovery": None, "entity_category": None,
}  # fmt: skip
"""Valid values for keys whose names do not reveal the type of the value."""

_NUMBERS = re.compile(
    r"max|min|speed_range|position_(open|closed)$|tilt_(min|max|.*value)|flash_time|qos|.*(step|scale|after|delay)$"
)
_FLAGS = re.compile(r"support_|code_.*required|flash|effect|transition|brightness|reports_|retain|.*kelvin|enabled_")

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "light": (
        *(
            {"schema": schema, "rgb_command_topic": None, "on_command_type": "brightness"}
            for schema in ("json", "template")
        ),
        {"schema": "default", "rgb_command_topic": None, "rgbww_command_topic": None},
        {"schema": "default", "rgb_command_topic": None, "on_command_type": "brightness"},
        {"schema": "default", "state_value_template": None},
    ),
    "cover": ({}, {"device_class": "garage"}),
    "image": ({"url_topic": None}, {"image_topic": None}),
    "valve": ({}, {"reports_position": None}),
    "sensor": ({}, {"unit_of_measurement": None}, {"device_class": "aqi", "unit_of_measurement": None}),
    "climate": ({}, {"mode_state_template": None, "current_temperature_template": None}),
    "water_heater": ({}, {"current_temperature_template": None}),
}
"""Configurations of components with keys that exclude each other."""

VALUES: dict[str, Any] = {
    "color_temperature": {"value": 3000, "unit": "kelvin"}, "color_xy": {"x": 0.3, "y": 0.3}, "color_hex": "#010203",
    "color_hs": {"hue": 3, "saturation": 10}, "color_rgb": {"r": 1, "g": 2, "b": 3},
    "target_temperature": {"value": 20, "unit": "°C"},
}  # fmt: skip
"""Values for commands that set an attribute without a list of options."""

MESSAGES = ("1", "on", "None", "unknown", "{}", '{"state": "on", "effect": "none"}')
"""Messages that each entity receives."""


def plausible(key: str) -> Any:
    if key in GIVEN:
        return GIVEN[key]
    if key.endswith("topic"):
        return f"x/{key}"
    if key.endswith("template"):
        return "{{ value }}"
    if _NUMBERS.match(key):
        return 1 if key.startswith(("min", "qos")) else 99
    return True if _FLAGS.match(key) else f"the {key}"


def keys_read(component: str) -> set[str]:
    """Return the keys that are read while an entity of this component is built, published, updated, and commanded."""
    keys = {*DOCUMENTED[component], *EVERYWHERE} - {"optimistic"}
    asked: set[str] = set()
    for variant in VARIANTS.get(component, ({},)):
        config = NotingConfig({key: plausible(key) for key in keys} | variant)
        announcement = announcement_of(component, config)
        _ = announcement.is_excluded
        for device in built(announcement):
            use(device)
        asked |= config.asked
    return asked


def announcement_of(component: str, config: Mapping[str, Any]) -> Announcement:
    facts = DeviceFacts(identifiers=("x",))
    return Announcement(
        protocol=DiscoveryProtocol.HOME_ASSISTANT,
        key="k",
        source="s",
        component=component,
        object_id="x",
        config=config,
        device=facts,
        origin="",
    )


def built(announcement: Announcement) -> list[MqttDevice]:
    return run_steps(build_devices("mqtt:x", [announcement], Refusals()))


@pytest.mark.parametrize("component", sorted(DOCUMENTED))
def test_a_dropped_entity_is_freed_without_the_collector(component: str) -> None:
    gc.disable()
    try:
        for variant in VARIANTS.get(component, ({},)):
            config = {key: plausible(key) for key in {*DOCUMENTED[component], *EVERYWHERE}} | variant
            devices = built(announcement_of(component, config))
            entities = [weakref.ref(entity) for device in devices for entity in device.entities]
            for device in devices:
                use(device)
                del device
            devices.clear()
            assert [each() for each in entities] == [None] * len(entities)
    finally:
        gc.enable()


def use(device: MqttDevice) -> None:
    """Publish a device, process messages for it, and send all of its commands."""
    device.observation()
    for entity in device.entities:
        assert entity.is_assumed("power") in (True, False)
        for reader in entity.readers:
            for text in MESSAGES:
                try:
                    reader.parse(entity, text)
                except LaresError:
                    continue
    for attribute, entity in device.handlers.items():
        offer = entity.offers[attribute]
        for action in offer.actions:
            for value in values_of(attribute, offer.schema) if action == "set" else [None]:
                write(entity, Command(capability=attribute, action=action, value=value, code="1234"))


def values_of(attribute: str, schema: Any) -> list[Any]:
    if attribute in VALUES:
        return [VALUES[attribute]]
    kinds: dict[str, list[Any]] = {"boolean": [True, False], "string": ["abc"]}
    return list(schema.get("values") or kinds.get(schema.get("type"), [50]))


def write(entity: Entity, command: Command) -> None:
    """Write a command, which the entity may reject."""
    try:
        entity.write(command, NOW)
    except LaresError:
        return


def rows() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each component in the page's table, with the patterns of its read and omitted keys."""
    table = PAGE.read_text().partition("## Every component")[2].partition("\n## ")[0]
    for line in table.splitlines():
        cells = [each.strip() for each in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4:
            read, left_out = (re.findall(r"`([^`]+)`", cells[at]) for at in (2, 3))
            yield cells[0].strip("`"), read, left_out


def matches(key: str, patterns: list[str]) -> bool:
    return any(fnmatch(key, each) for each in patterns)


ROWS = {component: (read, left_out) for component, read, left_out in rows()}


def test_every_key_with_a_short_name_is_documented() -> None:
    known = {*EVERYWHERE}.union(*DOCUMENTED.values())
    assert {*CONFIG_NAMES.values()} - known == OLD
    assert DOCUMENTED.keys() | {"infrared"} == COMPONENTS.keys()


@each_row("component", DOCUMENTED)
def test_every_key_is_read_or_omitted_as_documented(component: str) -> None:
    (read, left_out), asked = ROWS[component], keys_read(component) - TOLD
    everywhere_read, everywhere_out = ROWS["every component"]
    wrong = {}
    for key in DOCUMENTED[component]:
        is_out = matches(key, left_out) or (matches(key, everywhere_out) and not matches(key, read))
        is_named = is_out or matches(key, read) or matches(key, everywhere_read)
        if (key in asked) == is_out or not is_named:
            wrong[key] = f"{'read' if key in asked else 'not read'}, {'left out' if is_out else f'named: {is_named}'}"
    assert not wrong


def test_the_page_names_only_existing_keys() -> None:
    wrong = [
        (component, pattern)
        for component, (read, left_out) in ROWS.items()
        for pattern in (*read, *left_out)
        if component in DOCUMENTED and not any(fnmatch(key, pattern) for key in DOCUMENTED[component])
    ]
    assert not wrong


def test_common_keys_are_in_the_first_row() -> None:
    read, left_out = ROWS["every component"]
    assert not [key for key in EVERYWHERE if not matches(key, read) and not matches(key, left_out)]
