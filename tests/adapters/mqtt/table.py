"""What the captures should become: the table `expected.json`, and how it is made."""

from __future__ import annotations

import json
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from appliance.adapters.mqtt.announced_devices import MqttDevice
from appliance.adapters.mqtt.entities.entity import apply
from appliance.adapters.mqtt.entity_catalog import CatalogSettings, DeviceCatalog
from appliance.adapters.mqtt.payloads import Message
from tests.adapters.mqtt.captures import Capture, Sent, captures

NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
EXPECTED = Path(__file__).parent / "expected.json"


def new_catalog(hub_id: str = "here", *, includes_config_entities: bool = False) -> DeviceCatalog:
    """A catalog with the usual settings."""
    settings = CatalogSettings(
        section="mqtt",
        prefix="homeassistant",
        hub_id=hub_id,
        includes_config_entities=includes_config_entities,
    )
    return DeviceCatalog(settings)


def rebuild(catalog: DeviceCatalog) -> list[MqttDevice]:
    """Rebuild what changed; the devices that are new or other than before."""
    rebuilt: list[MqttDevice] = []
    deque(catalog.rebuilding(rebuilt), maxlen=0)
    return rebuilt


def take(catalog: DeviceCatalog, messages: tuple[Sent, ...]) -> list[tuple[str, str, dict[str, Any]]]:
    """Let a catalog take in messages, configurations first; the happenings, as device, event and data."""
    for sent in messages:
        if catalog.is_config(sent.topic):
            catalog.take_config(sent.topic, sent.payload)
    rebuild(catalog)
    happenings: list[tuple[str, str, dict[str, Any]]] = []
    for sent in messages:
        if not catalog.is_config(sent.topic):
            for change in catalog.changes(Message(sent.topic, sent.payload, NOW, is_retained=sent.retain)):
                apply(change.member.entity, change.update)
                if (happening := change.event) is not None:
                    happenings.append((change.device.id, happening.name, dict(happening.data)))
    return happenings


def described(capture: Capture) -> dict[str, Any]:
    """The devices of a capture as the table writes them."""
    catalog = new_catalog()
    happenings = take(catalog, capture.messages + capture.states)
    return {
        "devices": {
            device.id: {
                "kind": str(device.kind),
                "class": device.device_class,
                "name": device.name,
                "parent": device.parent_id or device.bridge_id,
                "available": any(member.availability.is_available for member in device.members),
                "attributes": {
                    key: value for member in device.members for key, value in sorted(member.entity.attributes.items())
                },
                "commands": {
                    key: [" ".join(offer.actions), dict(offer.schema)]
                    for key, (_, offer) in sorted(device.offers.items())
                },
            }
            for device in catalog.devices.values()
        },
        "happenings": [list(each) for each in happenings],
        "refused": len(catalog.refused),
    }


def write() -> None:
    """Write the table anew; look at the difference before it is committed."""
    table = {capture.name: described(capture) for capture in captures()}
    EXPECTED.write_text(json.dumps(table, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    write()
