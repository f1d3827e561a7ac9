"""The discovery configurations of this hub's devices and of the hub itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from appliance.adapters.mqtt.out.components import DeviceComponents
from appliance.adapters.mqtt.out.out_topics import HubTopics, discovery_id, encoded
from appliance.home.model import Device
from appliance.version import VERSION


def announcement(device: Device, room: str | None, topics: HubTopics, events: tuple[str, ...]) -> bytes:
    """The configuration of a device; `events` are the names of what has happened at it so far."""
    level = encoded(device.id)
    components = {
        key: {**component, "unique_id": f"{topics.identifier(device.id)}_{key}"}
        for key, component in DeviceComponents(device, topics, events).components()
    }
    own = {"value_template": "{{ 'online' if value_json.attributes.state == 'online' else 'offline' }}"}
    info = device.info
    facts = {
        "identifiers": [topics.identifier(device.id)],
        "name": device.name,
        "manufacturer": info.manufacturer,
        "model": info.model,
        "sw_version": info.firmware,
        "serial_number": info.serial,
        "suggested_area": room or info.area,
        "via_device": topics.identifier("hub"),
    }
    return orjson.dumps(
        {
            "device": {key: value for key, value in facts.items() if value is not None},
            "origin": origin(),
            "state_topic": topics.device(level, "state"),
            "qos": 1,
            "availability_mode": "all",
            "availability": [{"topic": topics.status}, {"topic": topics.device(level, "state"), **own}],
            "components": components,
        }
    )


def origin() -> dict[str, str]:
    """The object `origin` of a configuration."""
    return {"name": "Lares", "sw_version": VERSION}


def hub_announcement(scenes: Mapping[str, str], automations: Mapping[str, str], topics: HubTopics) -> bytes:
    """The configuration of the hub itself: its scenes and automations, names by their ids."""
    components: dict[str, dict[str, Any]] = {}
    for id_, name in scenes.items():
        key = f"scene_{discovery_id(id_)}"
        components[key] = {"platform": "scene", "name": name, "command_topic": topics.scene(encoded(id_)),
                           "payload_on": "run"}  # fmt: skip
    for id_, name in automations.items():
        key, level = f"automation_{discovery_id(id_)}", encoded(id_)
        components[key] = {"platform": "switch", "name": name, "state_topic": topics.automation(level, "state"),
                           "command_topic": topics.automation(level, "set"), "payload_on": "on",
                           "payload_off": "off"}  # fmt: skip
    for key, component in components.items():
        component["unique_id"] = f"{topics.identifier('hub')}_{key}"
    return orjson.dumps(
        {
            "device": {"identifiers": [topics.identifier("hub")], "name": f"Lares {topics.hub_id}",
                       "manufacturer": "Lares", "sw_version": VERSION},
            "origin": origin(),
            "qos": 1,
            "availability": [{"topic": topics.status}],
            "components": components,
        }
    )  # fmt: skip
