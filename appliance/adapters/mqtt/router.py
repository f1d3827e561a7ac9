"""The router of one broker: maps each topic to the entities that read the topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.platforms.binary_sensor import BinarySensor
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.refusals import Refusals
from appliance.adapters.mqtt.topic_filters import is_wild, matches

MAX_TOPICS = 10_000
"""Maximum number of subscribed topics, not including the discovery topics."""

MAX_WILDCARDS = 200
"""Maximum number of subscribed filters with wildcards. Each incoming topic is compared with all these filters."""


class Route(NamedTuple):
    """A filter, and a device and entity that read the filter's messages."""

    filter: str
    device: MqttDevice
    entity: Entity


class _DeviceEntity(Struct, frozen=True, gc=False):
    """An entity and its device. Neither refers to this object."""

    device: MqttDevice
    entity: Entity


class Router:
    """The filters to which the devices of one broker listen, with the reading entities."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals
        self._readers: dict[str, list[_DeviceEntity]] = {}  # by filter
        self._wild: list[tuple[str, list[str]]] = []  # filters with wildcards, and their levels

    @property
    def filters(self) -> frozenset[str]:
        """The filters to subscribe to."""
        return frozenset(self._readers)

    def __contains__(self, filter_: str) -> bool:
        return filter_ in self._readers

    def find_routes(self, topic: str) -> Sequence[Route]:
        """Return the entities that read a topic, each with its filter and its device."""
        filters = [topic] if topic in self._readers else []
        if self._wild:
            given = topic.split("/")
            filters += [each for each, levels in self._wild if each != topic and matches(levels, given)]
        return [Route(each, found.device, found.entity) for each in filters for found in self._readers[each]]

    def device_id_at(self, topic: str) -> str | None:
        """Return the id of a device that reads the topic, or None if no device reads it."""
        if found := self._readers.get(topic):
            return found[0].device.id
        return next((each.device.id for each in self.find_routes(topic)), None) if self._wild else None

    def has_events(self, topic: str) -> bool:
        """Return whether an entity that reads the topic reports events."""
        return any(each.entity.reports_events for each in self.find_routes(topic))

    def route(self, devices: Iterable[MqttDevice]) -> Iterator[None]:
        """Replace all readers with the entities of these devices, one device per step. Beyond the limits, filters
        that already have a reader take precedence."""
        readers: dict[str, list[_DeviceEntity]] = {}
        sensors: dict[tuple[str | None, str], list[BinarySensor]] = {}
        for device in devices:
            for entity in device.entities:
                if isinstance(entity, BinarySensor):
                    sensors.setdefault(entity.source, []).append(entity)
                reader = _DeviceEntity(device, entity)
                for filter_ in entity.filters:
                    readers.setdefault(filter_, []).append(reader)
            yield
        wild = [each for each in readers if is_wild(each)]
        for kind, limit, filters in ("wildcards", MAX_WILDCARDS, wild), ("topics", MAX_TOPICS, readers):
            sentence = f"the broker announces {len(filters)} {kind}, but Lares uses only {limit}"
            self._refusals.note_limit(kind, sentence if len(filters) > limit else None)
            if len(filters) > limit:
                for filter_ in sorted(filters, key=lambda filter_: filter_ not in self._readers)[limit:]:
                    del readers[filter_]
        for sharing in sensors.values():
            words = frozenset(word for each in sharing for word in each.words)
            for sensor in sharing:
                sensor.shared_words = words
        self._readers = readers
        self._wild = [(each, each.split("/")) for each in readers if is_wild(each)]
