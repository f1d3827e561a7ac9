"""The discovery payloads that a hub publishes: one per device, and one for the hub's scenes and automations."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from appliance.adapters.mqtt.announcements.announcement import LARES_ORIGIN
from appliance.adapters.mqtt.out.components import components_of, describe_events
from appliance.adapters.mqtt.out.published_device import Fields, PublishedDevice
from appliance.adapters.mqtt.out.topics import HubTopics, discovery_id
from appliance.home.model import Device
from appliance.version import VERSION


def device_payload(device: Device, room: str | None, topics: HubTopics, events: tuple[str, ...]) -> bytes:
    """Return the discovery payload of a device. `events` lists the names of the device's previous events."""
    state_topic = topics.of("devices", device.id, "state")
    components = dict(components_of(PublishedDevice(device, topics.of("devices", device.id, "set"), state_topic)))
    if events:
        shown = describe_events(topics.of("devices", device.id, "event"), events)
        components["event"] = {"platform": "event", "name": "Event", **shown}
    for key, component in components.items():
        component["unique_id"] = f"{topics.identifier(device.id)}_{key}"
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
            "state_topic": state_topic,
            "qos": 1,
            "availability_mode": "all",
            "availability": [{"topic": topics.status}, {"topic": state_topic, **own}],
            "components": components,
        }
    )


def origin() -> dict[str, str]:
    """Return the object `origin` of a discovery payload."""
    return {"name": LARES_ORIGIN, "sw_version": VERSION}


def hub_payload(scenes: Mapping[str, str], automations: Mapping[str, str], topics: HubTopics) -> bytes:
    """Return the discovery payload of the hub. `scenes` and `automations` contain names by id."""
    components: dict[str, Fields] = {}
    for id_, name in scenes.items():
        key = f"scene_{discovery_id(id_)}"
        components[key] = {"platform": "scene", "name": name, "command_topic": topics.of("scenes", id_, "run"),
                           "payload_on": "run"}  # fmt: skip
    for id_, name in automations.items():
        key = f"automation_{discovery_id(id_)}"
        components[key] = {"platform": "switch", "name": name, "state_topic": topics.of("automations", id_, "state"),
                           "command_topic": topics.of("automations", id_, "set"), "payload_on": "on",
                           "payload_off": "off", "entity_category": "config"}  # fmt: skip
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
