"""The expected devices of the captures: the table `expected.tsv`, and its generator."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from appliance.adapters.mqtt.announcements.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.message_loop import MessageLoop
from appliance.adapters.mqtt.messages import Message, Outgoing, Received
from appliance.adapters.mqtt.platforms.entity import EntityEvent
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.home_locale import ANYWHERE, Locale
from tests.adapters.mqtt.captures import Sent, captures
from tests.fakes.clock import VirtualClock

NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
EXPECTED = Path(__file__).parent / "expected.tsv"

R = TypeVar("R")


def new_catalog(hub_id: str = "here", *, includes_config_entities: bool = False) -> AnnouncedDevices:
    settings = Mqtt(host="h", include_config_entities=includes_config_entities)
    return message_loop(settings=settings, hub_id=hub_id).announced


def message_loop(
    clock: Clock | None = None,
    locale: Locale = ANYWHERE,
    *,
    publish: Publisher | None = None,
    settings: Mqtt | None = None,
    hub_id: str = "here",
) -> MessageLoop:
    """Return the parts of a broker without announcements."""
    clock, bus = clock or VirtualClock(), Bus()
    publish = publish or Publisher("mqtt", Registry(bus, clock), bus, clock)
    return MessageLoop(settings or Mqtt(host="h"), hub_id, None, publish, clock, locale, None)


def run_steps(work: Generator[object, None, R]) -> R:
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def rebuild(catalog: AnnouncedDevices) -> list[MqttDevice]:
    return run_steps(catalog.rebuild())


def take(catalog: AnnouncedDevices, messages: tuple[Sent, ...]) -> list[tuple[str, str, dict[str, Any]]]:
    """Process messages, configurations first. Return each event as device, name, and data."""
    for sent in messages:
        if catalog.store.is_config(sent.topic):
            catalog.store.take_config(sent.topic, sent.payload)
    rebuild(catalog)
    happenings: list[tuple[str, str, dict[str, Any]]] = []
    for sent in messages:
        if not catalog.store.is_config(sent.topic):
            message = Message(sent.topic, sent.payload, NOW, is_retained=sent.retain)
            for filter_, device, entity in catalog.router.find_routes(sent.topic):
                for change in entity.changes(filter_, message):
                    if isinstance(change, Exception):
                        catalog.refusals.note_message(device.id, entity, change)
                    elif isinstance(change, EntityEvent):
                        happenings.append((device.id, change.name, dict(change.data)))
                    elif change is not None:
                        entity.apply(change, entity.changed_by(change))
    return happenings


def receive(loop: MessageLoop, topic: str, payload: bytes, *, is_retained: bool = False) -> None:
    """Process a message, and publish its changes."""
    deque(loop.processor.process(Received(topic, payload, is_retained)), maxlen=0)
    deque(loop.processor.changed.flush(), maxlen=0)


def config(topic: str, /, **fields: Any) -> Sent:
    """Return a retained configuration at a topic below the prefix."""
    return Sent(f"homeassistant/{topic}/config", json.dumps(fields).encode(), retain=True)


def announce(loop: MessageLoop, *configs: Sent) -> None:
    for sent in configs:
        loop.announced.store.take_config(sent.topic, sent.payload)
    deque(loop.processor.publish_rebuilt(rebuild(loop.announced)), maxlen=0)


class Noted:
    """A connection that records published messages."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []

    async def publish(self, message: Outgoing) -> None:
        self.sent.append(message)


def expected_lines() -> list[str]:
    """Return the lines of the table. For each capture, there is one line per device, one line per event, and, if
    there are refusals, a line with their number."""
    lines: list[str] = []
    for capture in captures():
        catalog = new_catalog()
        happenings = take(catalog, capture.messages + capture.states)
        rows = [{"device": id_, **described(catalog.devices[id_])} for id_ in sorted(catalog.devices)]
        rows += [{"event": each} for each in happenings]
        rows += [{"refused": len(catalog.refusals.by_key)}] if catalog.refusals.by_key else []
        lines += [f"{capture.name}\t{json.dumps(row, ensure_ascii=False, sort_keys=True)}" for row in rows]
    return lines


def described(device: MqttDevice) -> dict[str, Any]:
    return {
        "kind": str(device.kind),
        "class": device.device_class,
        "name": device.name,
        "parent": device.parent_id or device.bridge_id,
        "available": any(entity.availability.is_available for entity in device.entities),
        "attributes": device.attributes,
        "commands": {
            key: [" ".join(entity.offers[key].actions), dict(entity.offers[key].schema)]
            for key, entity in device.handlers.items()
        },
    }


def write() -> None:
    """Update the table. Check the difference before you commit the table."""
    EXPECTED.write_text("".join(f"{line}\n" for line in expected_lines()))


if __name__ == "__main__":
    write()
